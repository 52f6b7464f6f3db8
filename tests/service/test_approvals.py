"""Questions to people: durable, answered once, for the call that was shown, by those who may."""

from __future__ import annotations

import json
import threading
import time
from hashlib import sha256
from hmac import new as hmac

import httpx
import pytest
from click.testing import CliRunner
from sqlalchemy import select, update
from tests.service.conftest import ASK, waited

from safetydrift import ToolCall
from safetydrift.cli.app import app
from safetydrift.guard import GuardPolicy
from safetydrift.guard.remote_client import RefusedError
from safetydrift.service import approvals, audit, slack, webhooks
from safetydrift.service.access import DeniedError
from safetydrift.service.database.schema import approvals as table
from safetydrift.service.database.schema import calls, outbox
from safetydrift.service.jobs import Jobs
from safetydrift.service.settings import Slack


@pytest.fixture
def agent(service, callers):
    service.enforce(ASK)
    caller = callers("agent", name="bot")
    caller.post("runs", run="r", task="Write to anna", host="desk-3")
    return caller


@pytest.fixture
def boss(callers, agent):
    return callers("approver", name="boss")


def asked(agent, call_id="c1", **more):
    return agent.propose("send_mail", call_id, **more)["approval"]


def answer(who, approval, approved=True, status=200, **more):
    body = {"approved": approved, "presented": approval["presented_digest"]} | more
    return who.post(f"approvals/{approval['id']}/answer", status, **body)


def test_a_question_shows_what_it_is_about(agent, boss):
    question = asked(agent)
    (shown,) = boss.get("approvals")["items"]
    assert shown["id"] == question["id"]
    assert shown["question"]["tool"] == "send_mail"
    assert "anna" in shown["question"]["arguments"]
    assert shown["question"]["run"]["task"] == "Write to anna"
    assert "people decide about mail" in shown["question"]["message"]


def test_a_yes_lets_the_call_through_once(agent, boss):
    question = asked(agent, nonce="first")
    assert answer(boss, question)["items"][0]["status"] == "allowed"
    final = agent.propose("send_mail", nonce="first")["decision"]
    assert (final["intervention"], final["answered_by"][:4]) == ("allow", "boss")
    # The same attempt may have missed the answer; anybody else is told that the yes is used.
    assert agent.propose("send_mail", nonce="first")["decision"]["intervention"] == "allow"
    for nonce in ("second", ""):
        again = agent.propose("send_mail", nonce=nonce)["decision"]
        assert (again["intervention"], again["rule"]) == ("block", "a yes holds once")


def test_a_yes_is_for_the_arguments_that_were_shown(agent, boss):
    question = asked(agent)
    answer(boss, question)
    other = agent.propose("send_mail", arguments={"to": "eve"})
    assert other["decision"]["intervention"] == "ask"
    assert other["approval"]["id"] != question["id"]
    assert boss.get(f"approvals/{question['id']}")["items"][0]["status"] == "cancelled"


def test_an_answer_to_something_else_than_was_shown_does_not_count(agent, boss):
    question = asked(agent)
    answer(boss, question | {"presented_digest": "0" * 64}, status=409)
    assert boss.get("approvals")["items"][0]["status"] == "pending"


def test_a_no_is_final_and_said_to_the_model(agent, boss):
    question = asked(agent)
    answer(boss, question, approved=False, reason="not today")
    decision = agent.propose("send_mail")["decision"]
    assert decision["intervention"] == "block"
    assert "A person was asked and said no" in decision["reason"]
    answer(boss, question, status=409)


def test_of_two_who_answer_at_once_one_decides(agent, boss, callers, service):
    question = asked(agent)
    others = [callers("approver", name=f"p{number}") for number in range(6)]
    said = []

    def press(who, approved):
        body = {"approved": approved, "presented": question["presented_digest"]}
        headers = who._headers
        path = f"/api/v1/approvals/{question['id']}/answer"
        said.append(who.client.post(path, json=body, headers=headers).status_code)

    threads = [
        threading.Thread(target=press, args=(who, number % 2 == 0)) for number, who in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [200] + [409] * 5
    with service.runtime.reader.connect() as connection:
        found = audit.verify(connection, service.org())
    assert found.holds


@pytest.mark.parametrize("scope", ["agent", "reader"])
def test_who_may_not_answer_cannot(agent, boss, callers, scope):
    question = asked(agent)
    answer(callers(scope), question, status=403)
    agent.post("answer", 403, run="r", call_id="c1", approved=True)
    assert agent.propose("send_mail")["decision"]["intervention"] == "ask"


def test_an_agent_may_say_that_nobody_answered(agent, boss):
    question = asked(agent)
    decision = agent.post("answer", run="r", call_id="c1", approved=None)["decision"]
    assert decision["intervention"] == "block"
    assert boss.get(f"approvals/{question['id']}")["items"][0]["status"] == "cancelled"


@pytest.mark.filterwarnings("ignore:the guard fails open")
@pytest.mark.parametrize("outcome", ["block", "allow"])
def test_what_nobody_answers_expires_as_the_policy_says(service, callers, outcome):
    service.enforce(ASK.replace("ask_timeout = 60.0", f'ask_timeout = 0.1\non_unanswered = "{outcome}"'))
    agent = callers("agent")
    agent.post("runs", run="r", task="x")
    question = asked(agent)
    waited(lambda: callers("reader").get(f"approvals/{question['id']}")["items"][0]["status"] == "expired")
    decision = agent.propose("send_mail")["decision"]
    assert (decision["intervention"], decision["answered_by"]) == (outcome, "nobody"), decision


def test_a_yes_that_is_not_used_in_time_is_none(agent, boss, service):
    question = asked(agent)
    answer(boss, question)

    def age(lane):
        lane.execute(
            update(table).where(table.c.org == service.org()).values(valid_until=time.time() - 1), {}
        )

    service.do(age)
    decision = agent.propose("send_mail")["decision"]
    assert decision["intervention"] == "block"


def test_a_waiting_agent_hears_the_answer_at_once(service, remote):
    service.enforce(ASK)
    guard, boss = remote(policy=GuardPolicy(ask_timeout=30.0)), remote("approver").client
    guard.session("r", "Write to anna")
    decided = []
    thread = threading.Thread(target=lambda: decided.append(guard.propose("r", ToolCall("send_mail"), "c1")))
    thread.start()
    (question,) = waited(lambda: boss.ask("GET", "/api/v1/approvals", None, 5)["items"])
    body = {"approved": True, "presented": question["presented_digest"]}
    boss.post(f"/api/v1/approvals/{question['id']}/answer", body, 5)
    thread.join(30)
    assert decided[0].allowed
    assert decided[0].answered_by.startswith("approver")
    assert guard.confirm("r", "c1", "sent") is not None
    with pytest.raises(RefusedError):
        boss.post(f"/api/v1/approvals/{question['id']}/answer", body, 5)


def test_a_question_that_waits_long_is_put_again(agent, boss, service, run):
    question = asked(agent)

    def age(lane):
        lane.execute(update(table).where(table.c.org == service.org()).values(created=time.time() - 300), {})

    service.do(age)
    waited(lambda: rows(service, select(table.c.escalated))[0][0])
    assert len(rows(service, select(outbox.c.id).where(outbox.c.subject == question["id"]))) >= 2


def rows(service, statement):
    with service.runtime.reader.connect() as connection:
        return connection.execute(statement).all()


def test_every_step_of_a_question_is_in_the_audit_log(agent, boss, callers):
    question = asked(agent, nonce="n")
    answer(boss, question, reason="it is anna")
    agent.propose("send_mail", nonce="n")
    admin = callers("admin")
    entries = [one for one in admin.get("audit")["items"] if one["subject"] == question["id"]]
    assert [one["action"] for one in reversed(entries)] == ["question put", "question allowed", "answer used"]
    assert json.loads(entries[1]["detail"])["reason"] == "it is anna"
    assert admin.get("audit/verify")["items"][0]["holds"] is True


def test_the_terminal_answers_by_the_interface(service, remote):
    service.enforce(ASK)
    guard, boss = remote(policy=GuardPolicy(ask_timeout=30.0)), remote("approver").client
    guard.session("r", "Write to anna")
    decided = []
    thread = threading.Thread(target=lambda: decided.append(guard.propose("r", ToolCall("send_mail"), "c1")))
    thread.start()
    (question,) = waited(lambda: boss.ask("GET", "/api/v1/approvals", None, 5)["items"])
    words = ["approvals", "--url", boss.url, "--token", boss._headers["Authorization"].split()[1]]
    listed = CliRunner().invoke(app, words)
    assert "send_mail" in listed.output
    done = CliRunner().invoke(app, [*words, "--refuse", question["id"], "--reason", "no"])
    assert done.exit_code == 0, done.output
    thread.join(30)
    assert decided[0].refused


# -- Slack and webhooks -----------------------------------------------------------------------------------------

TOLD = Slack(channel="C1", team="T1", approvers={"U1": "Mia"})
SECRET = "slack-signing"  # noqa: S105


def click(question, *, user="U1", team="T1", stamp=None, secret=SECRET):
    """Return the headers and the body with which Slack tells of a button."""
    value = f"{question['id']}:{question['presented_digest']}"
    payload = {
        "type": "block_actions",
        "team": {"id": team},
        "user": {"id": user},
        "actions": [{"action_id": slack.YES, "value": value}],
    }
    body = str(httpx.QueryParams({"payload": json.dumps(payload)})).encode()
    stamp = stamp or str(int(time.time()))
    sign = "v0=" + hmac(secret.encode(), b"v0:" + stamp.encode() + b":" + body, sha256).hexdigest()
    return {"x-slack-request-timestamp": stamp, "x-slack-signature": sign}, body


QUESTION = {"id": "q1", "presented_digest": "d1"}


def test_a_button_in_slack_says_who_pressed_it_and_for_what():
    found = slack.clicked(TOLD, SECRET, *click(QUESTION))
    assert found == slack.Click("q1", "d1", approved=True, by="Mia in Slack")


@pytest.mark.parametrize(
    "forged",
    [{"secret": "other"}, {"stamp": "1"}, {"user": "U2"}, {"team": "T2"}],
    ids=["signature", "time", "person", "workspace"],
)
def test_a_button_that_is_not_believed(forged):
    with pytest.raises(DeniedError):
        slack.clicked(TOLD, SECRET, *click(QUESTION, **forged))


def test_words_of_an_agent_are_no_markup_in_slack():
    question = {
        "run": {"agent": "<!channel>", "host": "", "task": "<https://evil.example|click>"},
        "tool": "send",
        "arguments": "```<@U1>",
        "message": "a & b",
        "probability": 0.5,
    }
    approval = {"id": "q", "presented_digest": "d", "question": question, "tool": "send"}
    said = json.dumps(slack.message(TOLD, approval, "https://guard.example"))
    assert "<!channel>" not in said
    assert "<@U1>" not in said
    assert "|click>" not in said


def test_a_signature_of_a_webhook_holds_once_and_for_a_while():
    body = json.dumps({"id": "q", "approved": True, "presented": "d", "by": "desk"}).encode()
    headers = {webhooks.HEADER: webhooks.signed("key", body)}
    assert webhooks.replied("key", headers, body).approved
    for secret, given in (
        ("key", headers),
        ("other", headers),
        ("key", {webhooks.HEADER: webhooks.signed("key", body, 1)}),
    ):
        with pytest.raises(DeniedError):
            webhooks.replied(secret, given, body)
    with pytest.raises(DeniedError):
        webhooks.replied("key", {webhooks.HEADER: webhooks.signed("key", body)}, body + b" ")


@pytest.fixture
def told(make, sqlite, monkeypatch):
    """Return a service with Slack and a webhook, and what they are sent."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    monkeypatch.setenv("HOOK_KEY", "key")
    service = make(
        sqlite,
        slack=[{"channel": "C1", "team": "T1", "approvers": {"U1": "Mia"}}],
        webhook=[{"url": "https://desk.example/questions", "secret_env": "HOOK_KEY", "private": True}],
    )
    service.enforce(ASK)
    return service


def test_questions_go_out_until_they_arrive_and_answers_come_in(told, run, monkeypatch):
    from starlette.testclient import TestClient  # noqa: PLC0415
    from tests.service.conftest import Caller  # noqa: PLC0415

    from safetydrift.service.app import application  # noqa: PLC0415

    sent, fail = [], [True]

    def handle(request):
        if fail:
            fail.clear()
            return httpx.Response(503)
        sent.append((request.url.path, json.loads(request.content), dict(request.headers)))
        return httpx.Response(200, json={"ok": True, "channel": "C1", "ts": "1.2"})

    made = httpx.AsyncClient

    def client(**_):
        return made(transport=httpx.MockTransport(handle))

    monkeypatch.setattr("safetydrift.service.delivering.httpx.AsyncClient", client)
    with TestClient(application(told.runtime)) as browser:
        agent = Caller(browser, told.token("agent"))
        agent.post("runs", run="r", task="Write to anna")
        question = asked(agent)
        waited(lambda: len(sent) >= 2)
        paths = {path for path, _, _ in sent}
        assert paths == {"/api/chat.postMessage", "/questions"}
        posted = next(body for path, body, _ in sent if path == "/questions")
        headers = next(headers for path, _, headers in sent if path == "/questions")
        assert posted["presented_digest"] == question["presented_digest"]
        assert headers[webhooks.HEADER].startswith("t=")
        headers, body = click(question)
        assert browser.post("/hooks/slack/0", content=body, headers=headers).status_code == 200
        assert agent.propose("send_mail")["decision"]["answered_by"] == "Mia in Slack"
        waited(lambda: [body for path, body, _ in sent if path == "/api/chat.update"])
        late = browser.post("/hooks/slack/0", content=click(question)[1], headers=click(question)[0])
        assert "by now" in late.json()["text"]
        reply = json.dumps(
            {"id": question["id"], "approved": False, "presented": posted["presented_digest"]}
        ).encode()
        signed = {webhooks.HEADER: webhooks.signed("key", reply)}
        assert browser.post("/hooks/webhook/0", content=reply, headers=signed).status_code == 409
        assert browser.post("/hooks/webhook/7", content=reply, headers=signed).status_code == 404
    with told.runtime.reader.connect() as connection:
        (state,) = connection.execute(select(calls.c.intervention)).scalars().all()
    assert state == "allow"


def test_an_address_in_a_private_network_is_not_posted_to():
    for url in ("http://127.0.0.1/x", "http://10.0.0.1", "http://[::1]/", "http://169.254.169.254/latest"):
        with pytest.raises(Exception, match="private"):
            webhooks.require_public(url)


def test_one_worker_at_a_time_does_the_jobs(service, run):
    async def leads():
        first, second = Jobs(service.runtime), Jobs(service.runtime)
        await first.turn()
        service.runtime.id = "another"
        await second.turn()
        found = first.leads, second.leads
        await first._delivery.close()
        await second._delivery.close()
        return found

    assert run(leads()) == (True, False)


def test_numbers_that_canonical_json_does_not_have_still_have_one_digest():
    one = approvals.action_digest(ToolCall("pay", {"amount": 2**70, "note": "a\ud800"}))
    same = approvals.action_digest(ToolCall("pay", {"note": "a\ud800", "amount": 2**70}))
    other = approvals.action_digest(ToolCall("pay", {"note": "a\ud800", "amount": 2**70 + 1}))
    assert one == same != other
