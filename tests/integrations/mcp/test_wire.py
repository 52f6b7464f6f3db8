"""Messages as bytes: what every reader would find in them, lines, and server-sent events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.errors import MessageError
from safetydrift.integrations.mcp import wire
from safetydrift.integrations.mcp.events import Events
from safetydrift.integrations.mcp.opening import clean, derived_name

CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}'
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda more: st.lists(more) | st.dictionaries(st.text(), more),
)


@pytest.mark.parametrize(
    "raw",
    [
        "no json",
        "",
        "{",
        '{"id":NaN}',
        '{"id":1e5,"x":Infinity}',
        '\ufeff{"id":1}',
        '{"a":\r{"method":"tools/call"}\r}',
        '{"method":"ping","method":"tools/call"}',
        '{"method":"ping","Method":"tools/call"}',
        '{"method":["tools/call"]}',
        '{"method":"tools/call","param\u017f":{},"params":{"name":"a"}}',
        '{"method":"tools/call","params":{"name":"a","name":"b"}}',
        '{"method":"tools/call","params":{"name":"a","Name":"b"}}',
        '{"method":"tools/call","params":{"name":"a","arguments":{"x":[{"y":1,"y":2}]}}}',
        '[{"method":"ping","method":"tools/call"}]',
        '{"x":"\n"}',
        "[" * 100_000,
        "1" * 5000,
    ],
)
def test_what_readers_could_read_differently_is_not_read(raw):
    with pytest.raises(MessageError):
        wire.read_strictly(raw.encode())


def test_bytes_that_are_no_text_are_not_read():
    for raw in (b'{"a":"\xff"}', '{"id":1}'.encode("utf-16")):
        with pytest.raises(MessageError):
            wire.read_strictly(raw)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_call_is_read_whatever_its_line_ends_with(end):
    assert wire.read_strictly((CALL + end).encode())["params"]["name"] == "a"


def test_a_double_key_deep_in_what_is_no_call_is_nobodys_concern():
    raw = b'{"id":1,"method":"ping","params":{"x":{"y":1,"y":2}}}'
    assert wire.read_strictly(raw)["method"] == "ping"


@given(ANY_JSON)
def test_whatever_is_written_can_be_read(value):
    raw = wire.written({"jsonrpc": "2.0", "id": 1, "result": value})
    assert b"\n" not in raw
    assert wire.read_strictly(raw)["result"] == value
    assert wire.read_loosely(raw)["result"] == value


@given(st.binary(max_size=200))
def test_reading_fails_in_one_way_only(raw):
    for read in (wire.read_strictly, wire.read_loosely):
        try:
            read(raw)
        except MessageError:
            continue


@pytest.mark.parametrize("raw", [b"Listening on port 1", b"[INFO] started", b"", b"{half"])
def test_what_nobody_takes_for_a_message_is_none(raw):
    assert wire.read_loosely(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":1,"id":2,"result":{}}',
        b'{"id":1,"result":{},"Result":{}}',
        b'{"id":1,"result":{"content":[],"content":[]}}',
        b'{"id":' + b"1" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_an_answer_that_readers_read_differently_is_an_error(raw):
    with pytest.raises(MessageError):
        wire.read_loosely(raw)


def test_one_and_the_text_one_are_two_identifiers():
    assert wire.request_id({"id": 1}) != wire.request_id({"id": "1"})
    for none in ({}, {"id": None}, {"id": True}, {"id": 1.0}, {"id": [1]}):
        assert wire.request_id(none) is None


def test_a_result_is_read_with_its_structure():
    result = {
        "content": [{"type": "text", "text": "one"}, {"type": "resource", "resource": {"text": "two"}}, 3],
        "structuredContent": {"also": "three"},
    }
    assert wire.texts(result) == "one\nresource\ntwo\n3\nthree"
    same = {"content": [{"type": "text", "text": "one"}], "structuredContent": {"result": "one"}}
    assert wire.texts(same) == "one"
    assert wire.texts("plain") == "plain"


# -- lines ----------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200), st.integers(1, 7))
def test_lines_are_the_bytes_that_came_however_they_came(data, size):
    lines = wire.Lines()
    found = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert b"".join(found) + lines.rest() == data
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in found)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_line_that_is_too_long_is_left_out_and_no_other(chunk):
    lines, refused = wire.Lines(most=20), 0
    found: list[bytes] = []
    data = b"short\n" + b"x" * 50 + b"\nnext\n"
    for at in range(0, len(data), chunk):
        try:
            found.extend(lines.feed(data[at : at + chunk]))
        except MessageError:
            refused += 1
    found.extend(lines.feed(b""))
    assert (found, refused) == ([b"short\n", b"next\n"], 1)


# -- events ---------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([b"data: a", b"data:b", b"id: 1", b":x", b"\n", b"\r\n", b"\r", b"\n\n"])),
    st.integers(1, 5),
)
def test_events_are_the_bytes_that_came_however_they_came(parts, size):
    data = b"".join(parts)
    events = Events()
    found = [event for at in range(0, len(data), size) for event in events.feed(data[at : at + size])]
    joined = b"".join(event.raw for event in found)
    assert data.startswith(joined)
    whole = Events()
    assert [event.data for event in whole.feed(data)] == [event.data for event in found]


def test_an_event_is_replaced_in_what_it_says_and_nothing_else():
    events = Events()
    raw = b"event: message\r\nid: 7\r\ndata: one\r\ndata: two\r\n\r\n"
    (event,) = events.feed(raw)
    assert event.data == b"one\ntwo"
    assert events.resumable
    assert event.saying(event.data) is event.raw
    assert event.saying(b"new") == b"event: message\nid: 7\ndata: new\n\n"


def test_an_event_without_an_end_is_refused_when_it_grows_too_long(monkeypatch):
    monkeypatch.setattr("safetydrift.integrations.mcp.events.MAX_MESSAGE", 10)
    with pytest.raises(MessageError):
        list(Events().feed(b"data: " + b"x" * 20))


# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"], "filesystem"),
        (["uvx", "mcp-server-fetch@1.2"], "fetch"),
        (["python3.11", "/srv/notes_server.py"], "notes"),
        (["env", "A=b", "docker", "run", "ghcr.io/github/github-mcp-server"], "github"),
        (["python"], "server"),
        ([], "server"),
    ],
)
def test_a_server_is_named_by_its_command(command, name):
    assert derived_name(command) == name


def test_a_name_cannot_end_where_a_tools_name_begins():
    assert clean("a__b c/d") == "a-b-c-d"
    assert clean("__") == "server"
