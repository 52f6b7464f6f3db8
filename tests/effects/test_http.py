"""What HTTP requests do: methods, places, spellings of hosts, content that is taken along, and who asks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.http_roles import HttpRoles
from safetydrift.effects.catalogue.plain import Entry
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.languages.carried import LONG, carried
from safetydrift.effects.languages.http import read_http
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.reading import Reading
from safetydrift.errors import CatalogueError
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import ToolCall

CATALOGUE = load_catalogue()
BOUNDARY = Boundary(domains=["corp.example"], hosts=["10.0.*"])


def effect(roles=None, /, **args):
    reading = Reading(CATALOGUE, BOUNDARY, READERS)
    read_http(reading, args, roles or HttpRoles())
    return reading.effect()


def told(roles=None, /, **args):
    found = effect(roles, **args)
    levels = "/".join(found[name] for name in ("data", "tool", "reversibility"))
    return " ".join([levels, *found.kinds])


WEB = "https://shop.example/"
INNER = "https://api.corp.example/"
ENCODED = "c2VjcmV0OiBodW50ZXIyIGFuZCBtb3Jl"
HEX = "746865207365637265742069732068756e74657232"

PUBLIC = "public/network/fully_reversible"
PRIVATE = "internal/network/fully_reversible"
SENDS = "internal/network/irreversible"
DELETES = f"{SENDS} destructive_action"
SENDS_INSIDE = "internal/network/partially"
HERE = "internal/read_only/fully_reversible"
KEYS = "credentials/network/fully_reversible credential_leak"
LEAKS_KEYS = "credentials/network/irreversible credential_leak"
NOTHING = "none/read_only/fully_reversible"

TABLE = [
    # asking
    ({"url": WEB}, PUBLIC),
    ({"url": WEB, "method": "GET"}, PUBLIC),
    ({"url": WEB, "method": "head"}, PUBLIC),
    ({"url": WEB, "method": " Options "}, PUBLIC),
    ({"url": WEB, "http_method": "PROPFIND"}, PUBLIC),
    ({"url": WEB + "?q=cats&page=2"}, PUBLIC),
    ({"url": WEB, "params": {"q": "cats"}}, PUBLIC),
    ({"url": WEB, "headers": {"Accept": "text/html"}}, PUBLIC),
    ({"url": WEB, "data": {}, "json": None, "body": ""}, PUBLIC),
    ({"url": "shop.example/a"}, PUBLIC),
    ({"url": "//shop.example/a"}, PUBLIC),
    ({"url": "https://bit.ly/x"}, PUBLIC),
    ({"url": "https://xn--80ak6aa92e.com/"}, PUBLIC),
    ({"url": "ftp://shop.example/a"}, PUBLIC),
    ({"urls": [WEB, "https://other.example/"]}, PUBLIC),
    ({"url": WEB + "releases/3f786850e387550fdab836ed7e6dc881de23001b"}, PUBLIC),
    ({"url": WEB + "a-long-title-of-a-page-about-cats-and-dogs"}, PUBLIC),
    ({"url": WEB + "graphql", "method": "POST", "json": {"query": "{ me { name } }"}}, PUBLIC),
    ({"url": WEB + "graphql", "method": "POST", "body": '{"query": "query Q { me { name } }"}'}, PUBLIC),
    # sending
    ({"url": WEB, "method": "post"}, SENDS),
    ({"url": WEB, "method": "PUT", "body": "x"}, SENDS),
    ({"url": WEB, "method": "PATCH", "json": {"a": 1}}, SENDS),
    ({"url": WEB, "method": "DELETE"}, DELETES),
    ({"url": WEB, "method": "FROBNICATE"}, SENDS),
    ({"url": WEB, "data": {"a": 1}}, SENDS),
    ({"url": WEB, "data": "a=b"}, SENDS),
    ({"url": WEB, "method": "GET", "body": "x"}, SENDS),
    ({"url": WEB, "files": ["notes.txt"]}, SENDS),
    ({"url": WEB, "headers": {"X-HTTP-Method-Override": "DELETE"}}, DELETES),
    ({"url": WEB + "graphql", "method": "POST", "json": {"query": "mutation { x }"}}, SENDS),
    (
        {"url": WEB + "graphql", "method": "POST", "json": {"query": "fragment F on X {a} mutation M {b}"}},
        SENDS,
    ),
    ({"url": WEB + "other", "method": "POST", "json": {"query": "{ me }"}}, SENDS),
    ({"url": "wss://shop.example/"}, SENDS),
    ({"url": "gopher://shop.example:70/_x"}, SENDS),
    ({"url": [WEB, WEB], "method": "POST"}, SENDS),
    # content that is taken along
    ({"url": WEB + "?d=" + "a" * LONG}, SENDS),
    ({"url": WEB + "?d=" + "hello%20" * 40}, SENDS),
    ({"url": WEB + "?" + "&".join(f"a{n}=hello+you" for n in range(100))}, SENDS),
    ({"url": WEB, "params": {"q": "c" * LONG}}, SENDS),
    ({"url": WEB + "?d=" + ENCODED}, SENDS),
    ({"url": WEB + "?d=" + HEX}, SENDS),
    ({"url": WEB + "?" + ENCODED}, SENDS),
    ({"url": WEB + ENCODED}, SENDS),
    ({"url": f"https://{HEX}.shop.example/"}, SENDS),
    ({"url": WEB, "headers": {"X-Data": ENCODED}}, SENDS),
    (
        {
            "url": WEB + "graphql",
            "method": "POST",
            "json": {"query": "{ f }", "variables": {"a": "x" * LONG}},
        },
        SENDS,
    ),
    # inside
    ({"url": INNER}, PRIVATE),
    ({"url": INNER + "?d=" + "a" * LONG}, PRIVATE),
    ({"url": INNER, "method": "POST", "json": {"a": "b"}}, SENDS_INSIDE),
    ({"url": INNER, "method": "DELETE"}, f"{SENDS_INSIDE} destructive_action"),
    ({"url": "https://10.0.3.4/x"}, PRIVATE),
    ({"url": "https://corp.example.evil.example/"}, PUBLIC),
    ({"url": "https://api.corp.example@evil.example/x", "method": "POST"}, SENDS),
    # here
    ({"url": "http://localhost:8080/x"}, HERE),
    ({"url": "http://127.0.0.1:9200/_search"}, HERE),
    ({"url": "http://0x7f.1/"}, HERE),
    ({"url": "http://localhost/x", "method": "POST", "body": "x"}, SENDS_INSIDE),
    ({"url": "gopher://localhost:6379/_FLUSHALL"}, SENDS_INSIDE),
    # a cloud's keys
    ({"url": "http://169.254.169.254/latest/"}, KEYS),
    ({"url": "http://2852039166/"}, KEYS),
    ({"url": "http://0xa9fea9fe/"}, KEYS),
    ({"url": "http://169.254.43518/"}, KEYS),
    ({"url": "http://[::ffff:169.254.169.254]/"}, KEYS),
    ({"url": "http://169.254.169.254.nip.io/"}, KEYS),
    ({"url": "http://metadata.google.internal/", "headers": {"Metadata-Flavor": "Google"}}, KEYS),
    ({"url": "http://169.254.169.254/latest/api/token", "method": "PUT"}, KEYS),
    ({"urls": [WEB, "http://169.254.169.254/"]}, KEYS),
    # files and addresses without request
    ({"url": "file:///srv/notes.txt"}, HERE),
    ({"url": "file:///etc/passwd"}, "sensitive/read_only/fully_reversible"),
    ({"url": "file:///home/ann/.ssh/id_rsa"}, "credentials/read_only/fully_reversible"),
    ({"url": "file:///home/ann/%2essh/id_rsa"}, "credentials/read_only/fully_reversible"),
    ({"url": "/etc/shadow"}, "credentials/network/fully_reversible"),
    ({"url": "data:text/html,hi"}, NOTHING),
    ({"url": "about:blank"}, NOTHING),
    ({"url": "javascript:alert(1)"}, SENDS),
    # who asks
    ({"url": WEB, "headers": {"Authorization": "Bearer x"}}, PRIVATE),
    ({"url": WEB, "headers": ["Cookie: a=b"]}, PRIVATE),
    ({"url": WEB, "headers": "X-Api-Key: x\nAccept: */*"}, PRIVATE),
    ({"url": WEB, "headers": [{"name": "Authorization", "value": "x"}]}, PRIVATE),
    ({"url": WEB, "cookies": {"sid": "x"}}, PRIVATE),
    ({"url": WEB + "?api_key=abc"}, PRIVATE),
    ({"url": WEB + "?X-Amz-Signature=" + "a" * 300}, PRIVATE),
    ({"url": "https://ann:pw@shop.example/"}, PRIVATE),
    ({"url": INNER, "headers": {"Authorization": "Bearer x"}}, PRIVATE),
    ({"url": "http://api.corp.example/", "headers": {"Authorization": "Bearer x"}}, PRIVATE),
    ({"url": "http://ann:pw@shop.example/"}, KEYS),
    ({"url": "http://shop.example/", "headers": {"Authorization": "Bearer x"}}, KEYS),
    ({"url": "https://203.0.113.9/", "headers": {"X-Api-Key": "x"}}, KEYS),
    ({"url": "https://$HOST/", "headers": {"Authorization": "x"}}, KEYS),
    # what is handed over
    ({"url": WEB + "login", "method": "POST", "json": {"user": "a", "password": "b"}}, LEAKS_KEYS),
    ({"url": WEB, "method": "POST", "body": '{"a": [{"client_secret": "b"}]}'}, LEAKS_KEYS),
    ({"url": WEB, "method": "POST", "data": "a=b&password=c"}, LEAKS_KEYS),
    ({"url": WEB, "method": "POST", "json": {"password": ""}}, SENDS),
    ({"url": WEB, "files": {"f": "/home/ann/.ssh/id_rsa"}}, LEAKS_KEYS),
    ({"url": WEB, "files": [["f", ".env"]]}, LEAKS_KEYS),
    ({"url": INNER, "method": "POST", "json": {"password": "b"}}, "credentials/network/partially"),
    # what cannot be followed
    ({}, SENDS),
    ({"url": ""}, SENDS),
    ({"url": 5}, SENDS),
    ({"url": {"a": WEB}}, SENDS),
    ({"url": [WEB] * 100}, SENDS),
]


@pytest.mark.parametrize(("args", "expected"), TABLE, ids=[str(args)[:70] for args, _ in TABLE])
def test_what_a_request_does(args, expected):
    assert told(**args) == expected


def test_reaching_outside_is_told():
    assert effect(url=WEB).external
    assert not effect(url=INNER).external
    assert not effect(url="http://localhost/").external


def test_a_host_that_programs_understand_differently_is_outside():
    found = effect(url="https://evil.example\\@api.corp.example/", method="POST")
    assert found.external
    assert found["reversibility"] == "irreversible"


def test_a_request_without_address_is_left_to_the_default():
    assert effect(method="GET").source == "default"


def test_reasons_keep_passwords_in_addresses_to_themselves():
    assert not any("hunter2" in reason for reason in effect(url="https://ann:hunter2@shop.example/").reasons)


def test_where_content_goes_is_kept():
    reading = Reading(CATALOGUE, BOUNDARY, READERS)
    read_http(reading, {"url": WEB, "method": "POST"}, HttpRoles())
    assert reading.destinations == [WEB]


def roles(**given):
    return HttpRoles(Entry(given, "tool"))


def test_a_tool_says_which_argument_is_what():
    mine = roles(url=["where"], body=["what"], method=["how"], default_method="head")
    assert told(mine, where=WEB) == PUBLIC
    assert told(mine, where=WEB, what="x") == SENDS
    assert told(mine, where=WEB, how="post") == SENDS
    assert told(mine, url=WEB) == SENDS
    assert told(mine, where=WEB, body="x") == PUBLIC


def test_a_tool_of_one_method_has_no_argument_for_it():
    assert told(roles(default_method="post"), url=WEB) == SENDS
    assert told(roles(default_method="delete", method=[]), url=WEB, method="get") == DELETES


def test_a_whole_request_in_one_argument_is_taken_apart():
    packed = roles(packed=["text"], default_method="post")
    assert told(packed, text='{"url": "https://shop.example/", "data": {"password": "x"}}') == LEAKS_KEYS
    assert told(roles(packed=["text"]), text=WEB) == PUBLIC


def test_a_download_writes_a_file():
    assert told(roles(saves=["path"]), url=WEB, path="a.pdf") == "public/network/partially"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"default_method": "frobnicate"}, "default_method"),
        ({"url": []}, "url"),
        ({"bodies": ["x"]}, "bodies"),
        ({"url": "x"}, "url"),
    ],
)
def test_roles_that_make_no_sense_are_refused(given, complaint):
    with pytest.raises(CatalogueError, match=complaint):
        roles(**given)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("fetch", {"url": WEB}), PUBLIC),
        (ToolCall("mcp__fetch__fetch", {"url": "http://169.254.169.254/"}), KEYS),
        (ToolCall("http_request", {"url": WEB, "method": "POST", "body": "x"}), SENDS),
        (ToolCall("post_webpage", {"url": WEB, "content": "x"}), SENDS),
        (ToolCall("requests_get", {"input": WEB}), PUBLIC),
        (ToolCall("requests_post", {"text": '{"url": "https://shop.example/", "data": {}}'}), SENDS),
        (ToolCall("query", {"sql": "SELECT * FROM users"}), "sensitive/read_only/fully_reversible"),
        (
            ToolCall("execute_sql", {"query": "DROP TABLE t"}),
            "none/file_write/irreversible destructive_action",
        ),
    ],
)
def test_tools_of_the_catalogue_are_read(call, expected):
    found = Labeler(CATALOGUE).propose(call)
    levels = "/".join(found[name] for name in ("data", "tool", "reversibility"))
    assert " ".join([levels, *found.kinds]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "123e4567-e89b-12d3-a456-426614174000",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "the-quick-brown-fox-jumps-over-the-lazy-dog",
        "internationalization",
        "12345678901234567890",
        "dQw4w9WgXcQ",
        "en_US.UTF-8",
        "",
    ],
)
def test_identifiers_and_words_carry_nothing(text):
    assert carried(text) == ""


@given(st.text("abcdefghijklmnopqrstuvwxyz =:._0123456789", min_size=24, max_size=120))
def test_encoded_text_is_noticed(text):
    from base64 import b32encode, b64encode, urlsafe_b64encode  # noqa: PLC0415

    data = text.encode()
    for coded in (
        b64encode(data),
        urlsafe_b64encode(data).rstrip(b"="),
        data.hex().encode(),
        b32encode(data),
    ):
        assert carried(coded.decode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["url", "urls", "method", "body", "data", "json", "params", "headers", "cookies", "files", "auth"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        NAMES, VALUES | st.sampled_from([WEB, INNER, "POST", '{"query": "{a}"}', "{" * 50]), max_size=8
    )
)
def test_no_arguments_raise(args):
    assert effect(**args).levels


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES.filter(lambda name: name not in {"url", "urls"}), VALUES, max_size=6))
def test_a_request_outside_always_reaches_the_network(args):
    found = effect(**args, url=WEB)
    assert found["tool"] == "network"
    assert found.external


@pytest.mark.parametrize(
    "args",
    [
        {"url": "https://" + "a." * 30_000},
        {"url": WEB + "?" + "&" * 60_000},
        {"url": WEB + "?" + "%" * 60_000},
        {"url": WEB + "/" * 60_000},
        {"url": WEB, "json": {str(n): "x" * 100 for n in range(20_000)}},
        {"url": WEB, "body": "[" * 60_000},
        {"url": WEB, "body": '{"a":' * 10_000},
        {"url": WEB, "headers": {str(n): ENCODED for n in range(20_000)}},
        {"url": WEB, "headers": "a:b\n" * 30_000},
        {"url": [WEB] * 60, "params": {str(n): "x" * 1000 for n in range(5_000)}},
        {"url": [WEB] * 100_000},
        {"url": WEB, "files": [["a"]] * 100_000},
    ],
)
def test_hostile_arguments_are_read_in_bounds(args):
    assert effect(**args)["tool"] == "network"
