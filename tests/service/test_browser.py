"""The page in a real browser: live, by keyboard, read aloud, on a phone, in the dark, under its own strict policy."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.conftest import Service, listening, waited

from safetydrift.guard import Guard
from safetydrift.service.demo import Demo
from safetydrift.trace import ToolCall

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
REQUIRED = os.environ.get("SAFETYDRIFT_BROWSER") == "required"
if CHROMIUM is None and not REQUIRED:
    pytest.skip("there is no Chromium on this machine", allow_module_level=True)
if not REQUIRED:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

PAGES = ("runs", "approvals", "decisions", "policies", "agents", "health", "tokens", "runs/1", "policies/1")
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def chromium():
    """Return a browser; it is closed before other modules want a loop of their own."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # after the skip

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a service with the demo's runs, and its address."""
    folder = tmp_path_factory.mktemp("site")
    service = Service(
        database=f"sqlite:///{folder}/s.sqlite", data=str(folder), limits={"sign_ins_per_minute": 600}
    )
    demo = Demo(service.runtime, service.org())
    demo.fill(service.do)
    for _ in range(60):
        service.do(demo.turn)
    with listening(service.runtime) as url:
        service.url = url
        yield service
    service.runtime.close()


@pytest.fixture
def visit(chromium, site):
    """Return a function that opens the page for somebody who has signed in; what the browser complains of fails."""
    contexts, complaints = [], []

    def visit(*scopes, path="/runs", **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None,
        )
        page.goto(f"{site.url}/sign-in?next={path}#{site.token(*(scopes or ('admin',)))}")
        page.wait_for_url(f"**{path}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


class Agent:
    """A guarded agent with a run of its own."""

    def __init__(self, site, run, **about):
        self.guard, self.run = Guard.remote(site.url, site.token("agent"), **about), run
        self.guard.session(run, "Write to Anna")
        self.threads = ThreadPoolExecutor(4)
        self.proposed = {}

    def propose(self, tool, arguments, call_id):
        """Return what will have been decided, by a person if need be."""
        call = ToolCall(tool, arguments)
        return self.proposed.setdefault(
            call_id, self.threads.submit(self.guard.propose, self.run, call, call_id)
        )

    def close(self):
        for call_id, decision in self.proposed.items():
            if not decision.done():
                self.guard.release(
                    self.run, call_id
                )  # or the service would wait for an answer a while longer
        self.guard.close()
        self.threads.shutdown(wait=False)


@pytest.fixture
def agent(site):
    """Return a function that makes agents."""
    made = []

    def agent(run, **about):
        made.append(Agent(site, run, **about))
        return made[-1]

    yield agent
    for one in made:
        one.close()


def test_the_link_of_the_first_start_signs_in_and_leaves_no_token_behind(visit):
    page = visit("reader")
    assert "#" not in page.url
    assert page.get_by_role("heading", name="Runs", exact=True).is_visible()
    assert "sdt_" not in page.content()


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.parametrize(("scheme", "rules"), [("light", TAGS), ("dark", ["color-contrast"])])
def test_no_page_has_a_barrier_that_axe_finds(visit, site, scheme, rules):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  # after the skip

    axe, page, found = Axe(), visit(color_scheme=scheme), []
    for path in PAGES:
        page.goto(f"{site.url}/{path}")
        results = axe.run(page, options={"runOnly": rules})
        found += [(path, one["id"], one["nodes"][0]["html"]) for one in results.response["violations"]]
    assert found == []


def test_a_phone_shows_every_page_without_scrolling_sideways(visit, site):
    page = visit(**PHONE)
    for path in PAGES:
        page.goto(f"{site.url}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
        for link in page.get_by_role("navigation").get_by_role("link").all():
            box = link.bounding_box()
            assert 0 <= box["x"] <= 390 - box["width"] + 1, path
            assert box["height"] >= 24, path


def test_runs_appear_and_change_while_one_looks(visit, agent):
    page = visit("reader")
    session = agent("live/one", agent="live-agent", person="mira")
    row = page.locator("tr", has_text="live-agent")
    row.wait_for()
    waiting = int(page.locator("[data-pending-count]").inner_text() or 0)
    assert session.propose("read_file", {"path": "notes.txt"}, "c1").result(20).allowed
    page.wait_for_function(
        "row => row.querySelector('[data-cell=tool]').textContent === 'read_file'", arg=row.element_handle()
    )
    assert row.locator("[data-cell=outcome]").inner_text() == "allowed"
    session.propose("send_money", {"recipient": "X", "amount": 5}, "c2")
    page.wait_for_function(
        f"() => Number(document.querySelector('[data-pending-count]').textContent) === {waiting + 1}"
    )
    assert f"{waiting + 1} questions waiting" in page.locator("[data-announce]").inner_text()


def test_a_filter_survives_what_arrives_live(visit, agent):
    page = visit("reader", path="/runs?agent=only-this")
    agent("live/other", agent="something-else")
    agent("live/wanted", agent="only-this")
    page.locator("tr", has_text="only-this").wait_for()
    assert page.locator("tbody tr").count() == 1


def test_questions_are_answered_by_keyboard_alone(visit, agent):
    session = agent("keys/one", agent="asker")
    proposed = [session.propose("send_money", {"recipient": "Anna", "amount": n}, f"k{n}") for n in range(2)]
    page = visit("approver", path="/approvals")
    cards = page.locator("[data-question]:not(.past)", has_text="asker wants")
    cards.nth(1).wait_for()
    for answer, words in (("a", "allowed once"), ("r", "refused")):
        target = cards.first.get_attribute("data-question")
        for key in ["k"] * 12 + ["j"] * 12:
            if page.evaluate("document.activeElement.dataset.question") == target:
                break
            page.keyboard.press(key)
        page.keyboard.press(answer)
        page.locator(f"[data-question='{target}'].past", has_text=words).wait_for()
        assert words in page.locator("[data-announce]").inner_text()
    assert sorted([one.result(20).intervention.value for one in proposed]) == ["allow", "block"]


def test_a_word_typed_as_a_reason_answers_nothing(visit, site, agent):
    session = agent("typed/one", agent="typist")
    proposed = session.propose("send_money", {"recipient": "Bo", "amount": 3}, "t1")
    page = visit("approver", path="/approvals")
    card = page.locator("[data-question]", has_text="typist wants")
    card.get_by_label("Reason").press_sequentially("jarxk")
    page.wait_for_timeout(300)
    assert card.get_attribute("class").split().count("past") == 0
    card.get_by_role("button", name=re.compile("Refuse")).click()
    page.locator(".question.past", has_text="typist wants").wait_for()
    row = waited(lambda: [one for one in _answered(site) if one["reason"] == "jarxk"])
    assert row[0]["status"] == "denied"
    assert proposed.result(20).refused


def _answered(site):
    from safetydrift.service import queries  # noqa: PLC0415  # after the skip

    return site.runtime.read(
        lambda c: queries.approval_list(c, site.org(), ("denied", "allowed", "consumed"), 500)
    )


def test_only_calls_that_are_alike_are_allowed_together(visit, agent):
    session = agent("bulk/one", agent="bulk-agent")
    paid = [session.propose("send_money", {"recipient": "Cy", "amount": n}, f"b{n}") for n in range(2)]
    posted = session.propose("post_public", {"channel": "news", "text": "x"}, "b9")
    page = visit("approver", path="/approvals")
    boxes = page.locator("[data-question]", has_text="bulk-agent wants").locator(".pick input")
    boxes.nth(2).wait_for()
    for number in range(3):
        boxes.nth(number).check()
    allow = page.get_by_role("button", name="Allow these, once each")
    assert allow.is_disabled()
    page.locator("[data-question]", has_text="bulk-agent wants to call post_public").locator(
        ".pick input"
    ).uncheck()
    assert allow.is_enabled()
    allow.click()
    page.wait_for_function("() => document.querySelectorAll('.question.past').length >= 2")
    assert all(one.result(20).allowed for one in paid)
    assert not posted.done()
    page.locator("[data-question]:not(.past)", has_text="bulk-agent wants").get_by_role(
        "button", name="Refuse"
    ).click()
    assert posted.result(20).refused


def test_somebody_else_answering_is_seen_at_once(visit, agent):
    session = agent("two/one", agent="two-people")
    session.propose("send_money", {"recipient": "Di", "amount": 1}, "d1")
    first, second = visit("approver", path="/approvals"), visit("approver", path="/approvals")
    card = second.locator("[data-question]", has_text="two-people wants")
    assert card.get_by_role("button", name=re.compile("Allow")).is_visible()
    first.locator("[data-question]", has_text="two-people wants").get_by_role(
        "button", name=re.compile("Allow")
    ).click()
    second.locator(".question.past", has_text="two-people wants").wait_for()
    assert card.get_by_role("button").count() == 0


def test_everything_can_be_read_and_answered_without_script(chromium, site, agent):
    session = agent("plain/one", agent="plain-agent")
    session.propose("send_money", {"recipient": "Ed", "amount": 1}, "p1")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.url}/sign-in")
    page.get_by_label("Token").fill(site.token("approver"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Questions").click()
    card = page.locator("[data-question]", has_text="plain-agent wants")
    card.get_by_role("button", name=re.compile("Refuse")).click()
    assert page.locator("tr", has_text="plain-agent").get_by_text("denied").is_visible()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name="plain-agent").click()
    assert "call 1, send_money: refused" in page.locator(".chart").text_content()
    context.close()


def test_the_page_runs_nothing_that_an_agent_wrote(visit, site, agent):
    evil = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    session = agent("evil/one", agent=evil, person=evil)
    page = visit("approver")
    page.locator("tr", has_text="document.title").wait_for()
    session.propose("send_money", {"recipient": evil}, "e1")
    page.locator("tr.waits", has_text="document.title").wait_for()
    page.goto(f"{site.url}/approvals")
    page.locator("[data-question]", has_text="document.title").first.wait_for()
    assert "taken" not in page.title()
    assert page.locator("main img").count() == 0


def test_the_theme_that_was_chosen_stays(visit):
    page = visit("reader", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    switch = page.get_by_role("button", name=re.compile("Theme"))
    switch.click()
    switch.click()
    assert page.evaluate(background) != light
    page.reload()
    assert page.evaluate(background) != light


def test_a_token_is_made_and_taken_back_in_the_browser(visit, site):
    page = visit("admin", path="/tokens")
    page.get_by_label("Name").fill("made here")
    page.get_by_role("button", name="Make it").click()
    secret = page.locator(".secret").inner_text()
    assert site.runtime.tokens.look_up(secret).may == {"agent"}
    page.get_by_role("button", name=re.compile("Take back made here")).click()
    page.locator("tr", has_text="made here").first.get_by_text("taken back").wait_for()
    assert secret not in page.content()
