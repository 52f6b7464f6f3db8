"""Pages as a browser without script sees them: rights, forms, what strangers wrote, and what organisations share."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import ASK, Caller, waited

from safetydrift.service import access
from safetydrift.service.app import application

PAGES = ("runs", "approvals", "decisions", "policies", "agents", "health", "tokens")
HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 99991*99991 }}"


@pytest.fixture
def service(make, sqlite):
    return make(sqlite)


@pytest.fixture
def browse(service):
    """Return a function that signs somebody in; it yields their client and the key of their visit."""
    app = application(service.runtime)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as first:

        def signed_in(*scopes, org="default", name=None):
            client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
            client.portal = first.portal  # one loop for all, as in a worker
            reply = client.post("/sign-in", data={"token": service.token(*scopes, org=org, name=name)})
            assert reply.status_code == 303, reply.text
            key = _only(r'data-csrf="([^"]+)"', client.get("/runs").text)
            return client, key

        yield signed_in


@pytest.fixture
def told(service, browse):
    """Return a caller who has had a call refused, one allowed and one asked about."""
    service.enforce(ASK)
    caller = _caller(service, browse)
    caller.post("runs", run="r", agent="billing", person="mira", task="Pay what is due")
    caller.propose("get_balance", "c1")
    caller.post("confirm", run="r", call_id="c1", result="12")
    caller.propose("drop_table", "c2")
    caller.propose("send_mail", "c3")
    return caller


def _only(pattern, text):
    """Return what a pattern finds; it has to find something."""
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


def _caller(service, browse, org="default"):
    client, _ = browse("reader", org=org)
    return Caller(client, service.token("agent", org=org))


def test_every_page_is_shown_to_who_may_see_it_and_nothing_to_others(told, browse, service):
    admin, _ = browse("admin")
    for page in PAGES:
        reply = admin.get(f"/{page}")
        assert reply.status_code == 200, page
        assert "unsafe" not in reply.headers["content-security-policy"]
    assert "Pay what is due" in admin.get("/runs/1").text
    reader, _ = browse("reader")
    assert reader.get("/tokens").status_code == 403
    assert "Allow once" not in reader.get("/approvals").text
    nobody = TestClient(reader.app, follow_redirects=False)
    for page in PAGES:
        reply = nobody.get(f"/{page}")
        assert (reply.status_code, reply.headers["location"]) == (303, f"/sign-in?next=%2F{page}")


def test_an_agents_token_opens_no_page(service, browse):
    reader, _ = browse("reader")
    reply = reader.post("/sign-in", data={"token": service.token("agent")})
    assert reply.status_code == 403
    assert "for agents" in reply.text


def test_what_agents_and_tools_say_is_text_and_nothing_else(service, browse):
    service.enforce(ASK)
    caller = _caller(service, browse)
    about = dict.fromkeys(("agent", "person", "host", "framework", "category", "pipeline", "task"), HOSTILE)
    caller.post("runs", run=HOSTILE, **about)
    caller.propose(f"send_{HOSTILE}"[:100], HOSTILE, run=HOSTILE, arguments={HOSTILE: HOSTILE})
    admin, _ = browse("admin")
    for page in (*PAGES, "runs/1", "runs/rows", "decisions?q=onerror"):
        shown = admin.get(f"/{page}").text
        assert "<img" not in shown, page
        assert "<script>" not in shown, page
        assert "9998200081" not in shown, page


def test_a_form_from_elsewhere_changes_nothing(told, browse, service):
    admin, key = browse("admin")
    good = {"name": "made", "scopes": "agent", "csrf": key}
    for body, headers in (
        (good | {"csrf": ""}, {}),
        (good | {"csrf": "x" * 43}, {}),
        (good, {"origin": "https://evil.example"}),
        (good, {"sec-fetch-site": "cross-site"}),
        (good, {"sec-fetch-site": "same-site"}),
    ):
        assert admin.post("/tokens", data=body, headers=headers).status_code == 403
    question = told.client.get("/api/v1/approvals").json()["items"][0]
    said = {"approved": True, "presented": question["presented_digest"]}
    assert admin.post(f"/api/v1/approvals/{question['id']}/answer", json=said).status_code == 403
    assert "made #" not in admin.get("/tokens").text
    assert admin.post("/tokens", data=good, headers={"origin": "http://127.0.0.1"}).status_code == 200


def test_signing_in_leads_to_our_own_pages_only(service, browse):
    reader, _ = browse("reader")
    secret = service.token("reader")
    for asked, led in (
        ("/approvals", "/approvals"),
        ("https://evil.example", "/runs"),
        ("//evil.example", "/runs"),
        ("/\\evil.example", "/runs"),
        ("/\r\nset-cookie: a=b", "/runs"),
    ):
        reply = reader.post("/sign-in", data={"token": secret, "next": asked})
        assert reply.headers["location"] == led
        assert "HttpOnly" in reply.headers["set-cookie"]


def test_tokens_cannot_be_guessed_at_speed(service, browse):
    reader, _ = browse("reader")
    replies = [reader.post("/sign-in", data={"token": f"sdt_{n}"}).status_code for n in range(12)]
    assert replies[0] == 401
    assert replies[-1] == 429


def test_a_token_may_not_ask_without_end(make, sqlite):
    slow = make(sqlite, limits={"calls_per_second": 1.0, "burst": 3.0})
    with TestClient(application(slow.runtime), base_url="http://127.0.0.1") as client:
        caller = Caller(client, slow.token("reader"))
        codes = []
        for _ in range(5):
            reply = client.get("/api/v1/runs", headers=caller._headers)
            codes.append(reply.status_code)
        assert codes[:3] == [200, 200, 200]
        assert codes[-1] == 429
        assert int(reply.headers["retry-after"]) >= 1


def test_somebody_signed_out_or_whose_token_was_taken_back_is_out(browse, service):
    admin, key = browse("admin")
    other, other_key = browse("reader", name="leaver")
    number = max(int(found) for found in re.findall(r"leaver #(\d+)", admin.get("/tokens").text))
    assert admin.post(f"/tokens/{number}", data={"csrf": key}).status_code == 303
    assert other.get("/runs").status_code == 303
    assert other_key != key
    kept = dict(admin.cookies)
    assert admin.post("/sign-out", data={"csrf": key}).status_code == 303
    admin.cookies.update(kept)
    assert admin.get("/runs").status_code == 303


def test_a_question_is_answered_by_a_plain_form_and_the_call_goes_ahead(told, browse):
    approver, key = browse("approver")
    page = approver.get("/approvals").text
    which = _only(r'action="/approvals/([^"]+)"', page)
    shown = _only(r'name="presented" value="([^"]+)"', page)
    said = {"csrf": key, "presented": shown, "approved": "yes", "reason": "agreed by telephone"}
    assert approver.post(f"/approvals/{which}", data=said).status_code == 303
    assert approver.post(f"/approvals/{which}", data=said).status_code == 409
    assert told.propose("send_mail", "c3")["decision"]["intervention"] == "allow"
    assert "agreed by telephone" in approver.get("/approvals").text
    reader, reader_key = browse("reader")
    assert reader.post(f"/approvals/{which}", data=said | {"csrf": reader_key}).status_code == 403


def test_decisions_are_found_by_words_tool_and_outcome(told, browse):
    reader, _ = browse("reader")
    for query, tools in (
        ("q=anna", {"get_balance", "drop_table", "send_mail"}),
        ("q=anna+balance", {"get_balance"}),
        ("tool=drop_table", {"drop_table"}),
        ("intervention=ask", {"send_mail"}),
        ("q=nowhere", set()),
        ("q=%22%29+OR+1%3D1+--", set()),
    ):
        page = reader.get(f"/decisions?{query}")
        assert page.status_code == 200, query
        assert set(re.findall(r"<code>(\w+)</code></a>", page.text)) == tools, query


def test_runs_are_filtered_and_go_on_from_page_to_page(service, browse):
    caller = _caller(service, browse)
    for number in range(60):
        caller.post("runs", run=f"r{number}", agent=f"a{number % 2}", task="t")
    reader, _ = browse("reader")
    first = reader.get("/runs?agent=a1")
    assert len(re.findall(r"data-run=", first.text)) == 30
    every = reader.get("/runs").text
    older = _only(r'href="(/runs\?before=[^"]+)"', every).replace("&amp;", "&")
    seen = re.findall(r'data-run="(\d+)"', every) + re.findall(r'data-run="(\d+)"', reader.get(older).text)
    assert sorted(map(int, seen)) == list(range(1, 61))


def test_a_policy_that_lets_more_through_needs_a_second_person(told, browse):
    first, key = browse("admin", name="noor")
    text = 'format = "safetydrift.policy/1"\nname = "looser"\n'
    reply = first.post("/policies", data={"csrf": key, "text": text, "note": "less noise"})
    where = reply.headers["location"]
    page = first.get(where).text
    assert "no longer refuses drop_*" in page
    assert '<span class="removed">- [[never]]</span>' in page
    assert first.post(where, data={"csrf": key, "action": "enforce"}).status_code == 403
    second, other = browse("admin", name="sam")
    assert second.post(where, data={"csrf": other, "action": "enforce"}).status_code == 303
    assert "is in force" in second.get("/policies").text
    assert told.propose("drop_table", "c9")["decision"]["intervention"] != "block"
    broken = first.post("/policies", data={"csrf": key, "text": "when = 3"})
    assert broken.status_code == 422


def test_a_policy_is_tried_on_stored_runs_before_it_is_in_force(told, browse):
    admin, key = browse("admin")
    text = ASK.replace('"drop_*"', '"drop_*", "get_*"').replace('"test"', '"stricter"')
    where = admin.post("/policies", data={"csrf": key, "text": text}).headers["location"]
    assert "Nothing goes through with it" in admin.get(where).text
    assert admin.post(where, data={"csrf": key, "action": "backtest"}).status_code == 303
    page = waited(lambda: "3 calls of 1 runs" in (text := admin.get(where).text) and text, 60)
    assert "decides 3 of 3 calls as was decided then" in page
    assert page.count("/runs/1?before=") == 1
    assert "<code>get_balance</code>" in page


def test_a_policy_beside_the_one_in_force_decides_nothing_and_is_counted(told, browse):
    admin, key = browse("admin")
    text = ASK.replace('"drop_*"', '"drop_*", "get_*"')
    where = admin.post("/policies", data={"csrf": key, "text": text}).headers["location"]
    assert admin.post(where, data={"csrf": key, "action": "observe"}).status_code == 303
    assert told.propose("get_rate", "c7")["decision"]["intervention"] == "allow"
    page = admin.get(where).text
    assert "Beside the policy in force" in page
    assert admin.post(where, data={"csrf": key, "action": "reject"}).status_code == 303
    assert admin.post(where, data={"csrf": key, "action": "enforce"}).status_code == 404


def test_a_run_is_erased_on_request_and_the_audit_log_still_holds(told, browse, service):
    admin, key = browse("admin")
    assert admin.post("/runs/1/erase", data={"csrf": key}).status_code == 303
    for page in ("runs", "runs/1", "decisions", "approvals"):
        shown = admin.get(f"/{page}").text
        assert "anna" not in shown, page
        assert "Pay what is due" not in shown, page
    assert "mira" not in admin.get("/runs/1").text
    assert '<span class="done allow">holds</span>' in admin.get("/health").text


def test_organisations_see_and_change_nothing_of_each_other(told, browse, service):
    ours, key = browse("admin")
    where = ours.post("/policies", data={"csrf": key, "text": ASK}).headers["location"]
    which = told.client.get("/api/v1/approvals").json()["items"][0]
    token = _only(r"agent-\w+ #(\d+)", ours.get("/tokens").text)
    before = ours.get("/api/v1/audit").json()
    theirs, other = browse("admin", org="other")
    for page in PAGES:
        shown = theirs.get(f"/{page}").text
        assert "billing" not in shown, page
        assert "send_mail" not in shown, page
    for path in ("/runs/1", f"/approvals/{which['id']}", where, "/runs?key=r"):
        assert theirs.get(path).status_code == 404, path
    said = {"csrf": other, "presented": which["presented_digest"], "approved": "yes"}
    for path, body in (
        (f"/approvals/{which['id']}", said),
        ("/runs/1/erase", {"csrf": other}),
        (where, {"csrf": other, "action": "enforce"}),
        (where, {"csrf": other, "action": "backtest"}),
        (f"/tokens/{token}", {"csrf": other}),
    ):
        assert theirs.post(path, data=body).status_code == 404, path
    for path in ("runs", "calls?q=anna", "approvals", "policies", "agents"):
        assert theirs.get(f"/api/v1/{path}").json()["items"] == [], path
    stranger = Caller(theirs, service.token("agent", org="other"))
    assert stranger.post("known", run="r")["done"] is False
    assert stranger.propose("get_balance", "c1")["decision"]["intervention"] == "block"
    assert told.propose("get_balance", "c1")["decision"]["intervention"] == "allow"
    assert ours.get("/api/v1/audit").json() == before
    assert access.ADMIN == "admin"


def test_what_is_wrong_in_an_address_is_said_and_no_fault_of_ours(told, browse):
    reader, _ = browse("reader")
    for path, status in (
        ("/runs/999", 404),
        ("/approvals/none", 404),
        ("/policies/77", 404),
        ("/runs?before=x-y", 422),
        ("/decisions?before=now", 422),
        ("/agents?days=many", 422),
    ):
        reply = reader.get(path)
        assert reply.status_code == status, path
        assert "Traceback" not in reply.text
