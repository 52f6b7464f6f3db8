"""The proxy over HTTP, without sockets: what comes in, what is handed on, what comes back."""

import asyncio
import base64
import json
import threading

import pytest

from safetydrift.errors import ConfigError
from safetydrift.guard import Approver
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.integrations.mcp.exchange import TASK_KEY
from safetydrift.integrations.mcp.http import HttpProxy, Refused, _headers, listening

httpx = pytest.importorskip("httpx2", reason="the extra mcp is not installed")

NEW = {"mcp-protocol-version": "2026-07-28"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def message(method="tools/call", number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(tool="read_note", number=1, **more):
    return message(number=number, name=tool, arguments={}, **more)


def result(number=1, text="a note"):
    return {"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": text}]}}


def event(data, name=b""):
    return name + b"event: message\r\ndata: " + json.dumps(data).encode() + b"\r\n\r\n"


class Answer:
    def __init__(self, sent):
        self.status = sent[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.body = b"".join(part.get("body", b"") for part in sent[1:])

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def said(self):
        return self.json["result"]["content"][0]["text"]


class Upstream:
    """A server that answers as it is told, and keeps what it was asked."""

    def __init__(self):
        self.requests = []
        self.replies = []

    def __call__(self, request):
        self.requests.append(request)
        reply = self.replies.pop(0) if self.replies else httpx.Response(200, json=result())
        if isinstance(reply, Exception):
            raise reply
        return reply


class Speaking:
    """A proxy with a client's and a server's side."""

    def __init__(self, connection):
        self.connection, self.upstream = connection, Upstream()
        about = {"category": "workspace"}
        self.proxy = HttpProxy(connection.guarding, "http://server.example/mcp", connection.run, about)
        self._spare = self.proxy._client
        self.proxy._client = httpx.AsyncClient(transport=httpx.MockTransport(self.upstream))

    async def asend(self, body=None, method="POST", path="/mcp", gone=None, **headers):
        pairs = [(b"host", b"127.0.0.1:8000"), (b"accept", b"application/json, text/event-stream")]
        if method == "POST":
            pairs.append((b"content-type", b"application/json"))
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        pairs = [(name, value) for name, value in pairs if name.decode() not in given]
        pairs += [(name.encode(), value.encode()) for name, value in given.items() if value is not None]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent, parts = [], [raw[: len(raw) // 2], raw[len(raw) // 2 :]]
        gone = gone or asyncio.Event()

        async def receive():
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(part):
            sent.append(part)

        scope = {"type": "http", "method": method, "path": path, "headers": pairs}
        await self.proxy(scope, receive, send)
        return Answer(sent) if sent else None

    def send(self, body=None, **more):
        return asyncio.run(self.asend(body, **more))

    def statuses(self, key="run"):
        session, _ = self.connection.guard._sessions.read(key)
        return [given.status for given in session.answers.values()]


@pytest.fixture
def speak(connect):
    made = []

    def speak(*given, **options):
        speaking = Speaking(connect(*given, **options))
        made.append(speaking)
        return speaking

    yield speak
    for speaking in made:
        asyncio.run(speaking.proxy.close())
        asyncio.run(speaking._spare.aclose())


def test_a_call_passes_as_it_came_and_so_does_its_answer(speak):
    speaking = speak()
    reply = b'{ "jsonrpc":"2.0","id":1,"result":{"content":[ ]} }'
    speaking.upstream.replies = [
        httpx.Response(200, content=reply, headers={"content-type": "application/json", "x-own": "1"})
    ]
    raw = json.dumps(call(), indent=1).encode()
    answer = speaking.send(raw, authorization="Bearer t", origin="http://localhost:5", **NEW)
    (asked,) = speaking.upstream.requests
    assert asked.content == raw
    assert asked.headers["authorization"] == "Bearer t"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["host"] == "server.example"
    assert "origin" not in asked.headers
    assert (answer.status, answer.body, answer.headers["x-own"]) == (200, reply, "1")
    assert speaking.statuses() == ["confirmed"]


def test_a_blocked_call_is_answered_and_never_handed_on(speak):
    speaking = speak()
    answer = speaking.send(call("write_note", _meta=META))
    assert not speaking.upstream.requests
    assert "nothing is written here" in answer.said
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["result"]["resultType"] == "complete"


def test_a_warning_stands_in_the_answer(speak):
    assert "lists are long" in speak().send(call("list_notes")).json["result"]["content"][1]["text"]


def test_a_stream_passes_event_by_event_with_results_confirmed(speak):
    speaking = speak()
    progress = event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
    data = b": hello\n\n" + progress + event(result())
    for tool in ("read_note", "list_notes"):
        speaking.upstream.replies = [
            httpx.Response(
                200, content=_pieces(data), headers={"content-type": "text/event-stream; charset=utf-8"}
            )
        ]
        answer = speaking.send(call(tool))
        assert answer.body.startswith(b": hello\n\n" + progress)
        assert (answer.body == data) is (tool == "read_note")
        assert ("lists are long" in answer.body.decode()) is (tool == "list_notes")
    assert speaking.statuses() == ["confirmed"] * 2


async def _pieces(data, size=7):
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _breaking(data):
    yield data
    raise httpx.ReadError("gone")


@pytest.mark.parametrize(
    ("stream", "answered"),
    [
        (_pieces(b""), True),
        (_breaking(b": x\n\n"), True),
        (_pieces(b"id: 1\ndata:\n\n"), False),  # the client may ask for the rest
        (_pieces(event({"id": 1, "jsonrpc": "2.0"})), True),
        (_pieces(b'data: {"id":1,"id":1,"result":{}}\n\n'), True),
    ],
)
def test_a_stream_without_the_answer_is_given_one(speak, stream, answered):
    speaking = speak()
    speaking.upstream.replies = [
        httpx.Response(200, content=stream, headers={"content-type": "text/event-stream"})
    ]
    answer = speaking.send(call())
    assert (b"has no result" in answer.body) is answered
    assert speaking.statuses() == ["open"]


def test_an_event_that_is_too_long_ends_the_stream_with_an_answer(speak, monkeypatch):
    monkeypatch.setattr("safetydrift.integrations.mcp.events.MAX_MESSAGE", 1000)
    speaking = speak()
    speaking.upstream.replies = [
        httpx.Response(
            200,
            content=_pieces(b"id: 1\n\ndata: " + b"x" * 3000),
            headers={"content-type": "text/event-stream"},
        )
    ]
    assert b"has no result" in speaking.send(call()).body


@pytest.mark.parametrize(
    ("reply", "status", "after"),
    [
        (httpx.ConnectError("refused"), 200, "released"),
        (httpx.ReadTimeout("late"), 200, "open"),
        (httpx.Response(302, headers={"location": "http://elsewhere.example"}), 200, "released"),
        (httpx.Response(202), 200, "open"),
        (httpx.Response(200, json={"jsonrpc": "2.0", "id": 9, "result": {}}), 200, "open"),
        (httpx.Response(200, content=_breaking(b"{")), 200, "open"),
        (httpx.Response(404, json={"error": "no session"}), 404, "released"),
        (
            httpx.Response(400, json={"jsonrpc": "2.0", "id": 1, "error": {"code": -32020, "message": "m"}}),
            400,
            "released",
        ),
        (httpx.Response(401, headers={"www-authenticate": "Bearer"}), 401, "released"),
        (httpx.Response(500, text="oops"), 500, "open"),
    ],
)
def test_what_becomes_of_a_call_that_gets_no_result(speak, reply, status, after):
    speaking = speak()
    speaking.upstream.replies = [reply]
    answer = speaking.send(call())
    assert answer.status == status
    if status == 200:
        assert answer.json["id"] == 1
        assert "has no result" in answer.said
    assert speaking.statuses() == [after]


def test_another_request_that_fails_gets_an_error(speak):
    speaking = speak()
    speaking.upstream.replies = [httpx.ConnectError("refused")] * 3
    answer = speaking.send(message("ping", 4))
    assert (answer.status, answer.json["id"]) == (502, 4)
    assert speaking.send({"jsonrpc": "2.0", "method": "notifications/initialized"}).json["id"] is None
    assert speaking.send(method="GET").status == 502


def test_an_answer_that_is_too_long_is_not_passed_on(speak, monkeypatch):
    speaking = speak()
    speaking.upstream.replies = [httpx.Response(200, json=result(text="x" * 5000))]
    monkeypatch.setattr("safetydrift.integrations.mcp.wire.MAX_MESSAGE", 1000)
    assert "was not read" in speaking.send(call()).said


# -- what may come in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "[nonsense"}, 403),
        ({"host": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"path": "/other"}, 404),
        ({"method": "PUT"}, 405),
        ({"mcp_method": "ping"}, 400),
        ({"mcp_method": "tools/call", "mcp_name": "write_note"}, 400),
        ({"mcp_name": "=?base64?!!?="}, 400),
        ({"mcp_name": "=?base64?/w==?="}, 400),
    ],
)
def test_what_is_not_meant_for_us_is_refused(speak, headers, status):
    speaking = speak()
    assert speaking.send(call(), **headers).status == status
    assert not speaking.upstream.requests


@pytest.mark.parametrize("name", ["read_note", f"=?base64?{base64.b64encode(b'read_note').decode()}?="])
def test_headers_that_say_what_the_message_says_pass(speak, name):
    speaking = speak()
    assert speaking.send(call(), mcp_method="tools/call", mcp_name=name, **NEW).status == 200
    assert speaking.send(message("resources/read", uri="a:b"), mcp_name="a:b").status == 200
    assert speaking.send(message("ping"), mcp_name="read_note").status == 400
    assert len(speaking.upstream.requests) == 2


def test_a_header_that_stands_twice_is_refused(speak):
    with pytest.raises(Refused):
        _headers([(b"Mcp-Name", b"a"), (b"mcp-name", b"a")])
    assert _headers([(b"accept", b"a"), (b"accept", b"b")]) == {"accept": "a, b"}


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense",
        b"",
        b'{"method":"ping","method":"tools/call"}',
        b'{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
    ],
)
def test_a_malformed_message_is_refused(speak, raw):
    speaking = speak()
    answer = speaking.send(raw)
    assert (answer.status, answer.json["error"]["code"]) == (400, -32700)
    assert not speaking.upstream.requests


def test_a_message_that_is_too_long_is_refused(speak, monkeypatch):
    monkeypatch.setattr("safetydrift.integrations.mcp.wire.MAX_MESSAGE", 10)
    assert speak().send(call()).status == 413


def test_a_batch_with_a_call_is_refused(speak):
    speaking = speak()
    answer = speaking.send([call(number=1), message("ping", 2)])
    assert [one["id"] for one in answer.json] == [1, 2]
    assert speaking.send([{"jsonrpc": "2.0", "method": "tools/call"}]).status == 202
    assert not speaking.upstream.requests


# -- sessions -------------------------------------------------------------------------------------------------


def test_each_session_is_a_run_with_the_task_it_began_with(speak, monkeypatch):
    speaking = speak(task="")
    opened = []
    session = speaking.connection.guard.session

    def noted(key, task, **more):
        opened.append((key, task))
        session(key, task, **more)

    monkeypatch.setattr(speaking.connection.guard, "session", noted)
    for name in ("s1", "s2"):
        begun = httpx.Response(
            200, json={"jsonrpc": "2.0", "id": 0, "result": {}}, headers={"mcp-session-id": name}
        )
        speaking.upstream.replies = [begun]
        answer = speaking.send(message("initialize", 0, _meta={TASK_KEY: f"Task of {name}"}))
        assert answer.headers["mcp-session-id"] == name
        speaking.send(call(), mcp_session_id=name)
    keys = {key for key, _ in opened}
    assert len(keys) == 2
    assert all(key.startswith("run/session-") and "s1" not in key for key in keys)
    assert [task for _, task in opened] == ["Task of s1", "Task of s2"]
    assert [speaking.statuses(key) for key in keys] == [["confirmed"]] * 2
    speaking.upstream.replies = [httpx.Response(200)]
    assert speaking.send(method="DELETE", mcp_session_id="s1").status == 200
    assert len(speaking.proxy._exchanges) == 1


def test_without_sessions_all_is_one_run_unless_a_header_names_one(speak):
    speaking = speak()
    speaking.send(call(number=1))
    speaking.send(call(number=1))
    speaking.send(call(), safetydrift_session="other")
    assert speaking.statuses() == ["confirmed"] * 2
    assert speaking.statuses("run/other") == ["confirmed"]
    assert all("safetydrift-session" not in request.headers for request in speaking.upstream.requests)


def test_sessions_are_bounded(speak, monkeypatch):
    monkeypatch.setattr("safetydrift.integrations.mcp.http.MAX_SESSIONS", 2)
    speaking = speak()
    for number in range(5):
        speaking.send(call(), mcp_session_id=f"s{number}")
    assert len(speaking.proxy._exchanges) == len(speaking.proxy._runs) == 2


def test_an_answer_may_come_on_the_stream_of_the_session(speak):
    speaking = speak()
    stream = {"content-type": "text/event-stream"}
    speaking.upstream.replies = [
        httpx.Response(200, content=_pieces(b"id: 1\ndata:\n\n"), headers=stream),
        httpx.Response(200, content=_pieces(event(result())), headers=stream),
    ]
    speaking.send(call("list_notes"), mcp_session_id="s")
    answer = speaking.send(method="GET", mcp_session_id="s", last_event_id="1")
    assert b"lists are long" in answer.body
    assert speaking.upstream.requests[1].headers["last-event-id"] == "1"


# -- people, and clients that go ------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_is_asked_while_others_are_answered(speak, approved):
    answer = threading.Event()
    speaking = speak(approver=Approver(lambda question, timeout: answer.wait(timeout) and approved))

    async def both():
        asking = asyncio.create_task(speaking.asend(call("ask_me", 1)))
        other = await speaking.asend(call("read_note", 2))
        assert not asking.done()
        answer.set()
        return other, await asking

    speaking.upstream.replies = [httpx.Response(200, json=result(2)), httpx.Response(200, json=result(1))]
    other, asked = asyncio.run(both())
    assert other.json["id"] == 2
    assert asked.json["result"].get("isError", False) is not approved


def test_who_goes_while_a_person_is_asked_has_not_called(speak):
    answer, asked = threading.Event(), threading.Event()

    def ask(question, timeout):
        asked.set()
        return answer.wait(timeout)

    speaking = speak(approver=Approver(ask))

    async def going():
        gone = asyncio.Event()
        asking = asyncio.create_task(speaking.asend(call("ask_me"), gone=gone))
        await asyncio.to_thread(asked.wait, 10)
        gone.set()
        await asking

    asyncio.run(going())
    answer.set()
    assert not speaking.upstream.requests


def test_who_cancels_while_a_person_is_asked_gets_no_answer(speak):
    answer, asked = threading.Event(), threading.Event()

    def ask(question, timeout):
        asked.set()
        return answer.wait(timeout)

    speaking = speak(approver=Approver(ask))
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    async def cancelling():
        asking = asyncio.create_task(speaking.asend(call("ask_me"), mcp_session_id="s"))
        await asyncio.to_thread(asked.wait, 10)
        answers = await speaking.asend(cancelled, mcp_session_id="s"), await asking
        return [one.status for one in answers]

    assert asyncio.run(cancelling()) == [202, 202]
    answer.set()
    assert not speaking.upstream.requests


def test_who_goes_while_the_server_works_leaves_the_call_reserved(speak):
    speaking = speak()

    async def going():
        gone = asyncio.Event()

        async def slowly(request):
            gone.set()
            await asyncio.sleep(60)

        speaking.proxy._client = httpx.AsyncClient(transport=httpx.MockTransport(slowly))
        return await speaking.asend(call(), gone=gone)

    assert asyncio.run(going()) is None
    assert speaking.statuses() == ["open"]


def test_a_store_that_waits_does_not_hold_up_the_loop(speak, tmp_path):
    speaking = speak(store=SQLiteStore(tmp_path / "s.sqlite"))
    assert speaking.send(call()).status == 200
    assert speaking.statuses() == ["confirmed"]


def test_only_this_host_can_reach_the_socket():
    with listening() as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_an_address_that_is_none_is_refused(connect):
    connection = connect()
    for address in ("ftp://x/y", "http://", "nonsense"):
        with pytest.raises(ConfigError):
            HttpProxy(connection.guarding, address, connection.run)
