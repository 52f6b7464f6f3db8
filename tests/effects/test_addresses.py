"""The host behind an address, however it is spelt, and the addresses in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.boundary import METADATA, Boundary
from safetydrift.effects.languages.addresses import (
    MAX_ADDRESS,
    MAX_ADDRESSES,
    addresses_in,
    host_of,
    split_address,
)

DISPENSER = "169.254.169.254"
HOSTS = {
    "https://example.com": "example.com",
    "https://Example.COM./a": "example.com",
    "https://example.com:8443/a?b#c": "example.com",
    "https://user:pass@example.com/": "example.com",
    "https://inside.example@evil.example/": "evil.example",
    "https://evil.example#@inside.example/": "evil.example",
    "https://evil.example?@inside.example/": "evil.example",
    "http:/example.com/a": "example.com",
    "http:example.com/a": "example.com",
    "http:///example.com/a": "example.com",
    "http:\\\\example.com\\a": "example.com",
    "  https://example.com\n": "example.com",
    "ht\ntps://exa\tmple.com": "example.com",
    "//example.com/a": "example.com",
    "example.com": "example.com",
    "example.com/a/b": "example.com",
    "example.com:443": "example.com",
    "git@example.com:team/project.git": "example.com",
    "user:pass@example.com:path": "example.com",
    "example.com:/srv/data": "example.com",
    "ssh://git@example.com:2222/a": "example.com",
    "git+ssh://git@example.com/a": "example.com",
    "jdbc:postgresql://db.example.com:5432/x": "db.example.com",
    "postgres://u:p@db.example.com/x": "db.example.com",
    "s3://bucket/key": "bucket",
    "ann@example.com": "example.com",
    "Ann <ann@example.com>": "example.com",
    "mailto:ann@example.com?subject=x": "example.com",
    "https://xn--bcher-kva.example/": "xn--bcher-kva.example",
    "https://\uff45\uff58ample.com/": "example.com",
    "https://exam\u00adple.com/": "example.com",
    "file://server/share/a": "server",
    "view-source:https://example.com/": "example.com",
    "localhost:8080": "localhost",
    "app.localhost": "localhost",
    "[::1]:8080": "::1",
    "http://[fe80::1%25eth0]/": "fe80::1",
    "http://[2001:DB8:0:0::1]/": "2001:db8::1",
    "http://127.1/": "127.0.0.1",
    "http://0x7f000001/": "127.0.0.1",
    "http://0/": "0.0.0.0",  # noqa: S104
    "http://10.0.3.4/": "10.0.3.4",
    "http://app.10.0.0.1.nip.io/": "app.10.0.0.1.nip.io",
    "http://127.0.0.1.nip.io/": "127.0.0.1.nip.io",
    "http://300.1.1.1/": "300.1.1.1",
    "http://1.2.3.4.5/": "1.2.3.4.5",
    "http://099.1.1.1/": "099.1.1.1",
}
NO_HOSTS = [
    "",
    "/etc/passwd",
    "./a.txt",
    "~/a",
    "../a",
    "C:\\a",
    "C:/a",
    "file:///etc/passwd",
    "data:text/html,hi",
    "javascript:alert(1)",
    "about:blank",
    "https://$HOST/a",
    "https://{{host}}/a",
    "https://",
    "-o",
    "https://evil.example\\@inside.example/",
    "https://a b.example/",
    "x" * (MAX_ADDRESS + 1),
]
DISPENSERS = [
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0xA9.0xFE.0xA9.0xFE/",
    "http://169.254.43518/",
    "http://169.16689662/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://169.254.169.254.nip.io/",
    "http://x.169-254-169-254.sslip.io/",
    "http://a9fea9fe.nip.io/",
    "http://%31%36%39.254.169.254/",
    "http://169。254。169。254/",
    "http://①⑥⑨.254.169.254/",
    "http://user@169.254.169.254:80/",
    "169.254.169.254",
    "http://169.254.169.254./",
]


@pytest.mark.parametrize(("text", "host"), HOSTS.items())
def test_the_host_of_an_address(text, host):
    assert host_of(text) == host


@pytest.mark.parametrize("text", NO_HOSTS)
def test_what_has_no_host_that_can_be_told(text):
    assert host_of(text) == ""


@pytest.mark.parametrize("text", DISPENSERS)
def test_the_metadata_address_is_known_in_every_spelling(text):
    assert host_of(text) == DISPENSER
    assert Boundary().place(host_of(text)) == METADATA


def test_the_parts_of_an_address():
    address = split_address("HTTPS://ann:pw@example.com:8443/a/b?c=d#e")
    parts = (address.scheme, address.user, address.host, address.path, address.query)
    assert parts == ("https", "ann:pw", "example.com", "/a/b", "c=d")


@given(st.integers(0, 2**32 - 1))
def test_every_spelling_of_a_number_is_the_same_host(number):
    first, *rest = number.to_bytes(4, "big")
    usual = ".".join(map(str, (first, *rest)))
    tail = number & 0xFFFFFF
    for spelling in (
        str(number),
        hex(number),
        f"0{number:o}",
        f"{first}.{tail}",
        f"{first:#x}.{rest[0]}.{tail & 0xFFFF}",
    ):
        assert host_of(f"http://{spelling}/") == usual


@given(st.text(max_size=60))
def test_no_text_raises_and_hosts_stay_as_they_are(text):
    for host in (host_of(text), host_of(f"http://{text}"), host_of(f"http://[{text}]/")):
        assert host_of(f"http://[{host}]/" if ":" in host else f"http://{host}/") == host


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.com/a.", ("https://example.com/a",)),
        ("(https://example.com/a)", ("https://example.com/a",)),
        ("https://example.com/a_(b)", ("https://example.com/a_(b)",)),
        ("[here](https://example.com/a)", ("https://example.com/a",)),
        ('<a href="https://example.com/a">', ("https://example.com/a",)),
        (
            "a@example.com, b@example.org; c@x.example.net",
            ("a@example.com", "b@example.org", "c@x.example.net"),
        ),
        ("Ann <ann@example.com>", ("ann@example.com",)),
        ("mailto:ann@example.com", ("ann@example.com",)),
        ("host=example.com", ("example.com",)),
        ("run it on 10.0.0.1:80 please", ("10.0.0.1:80",)),
        ("www.example.org/path and example.io", ("www.example.org/path", "example.io")),
        (
            "https://a.example/?u=https://b.example/",
            ("https://a.example/?u=https://b.example/", "https://b.example/"),
        ),
        ("notes.txt main.py v1.2.3 3.14 e.g. a.b", ()),
        ("twice https://a.example and https://a.example", ("https://a.example",)),
        ("", ()),
        ("@ .com :// x@ @y", ()),
    ],
)
def test_addresses_in_a_text(text, found):
    assert addresses_in(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "://" * 20_000,
        "a://" * 15_000,
        "a@" * 30_000,
        "a." * 30_000,
        "a.b@" * 15_000,
        "https://x" + ")" * 60_000,
        "a" * 60_000 + "://b",
        " ".join(f"https://h{n}.example" for n in range(3_000)),
        "a,b.com;" * 8_000,
        "-." * 30_000 + "com",
    ],
)
def test_hostile_texts_are_searched_in_bounds(text):
    assert len(addresses_in(text)) <= MAX_ADDRESSES
    assert host_of(text[:MAX_ADDRESS]) is not None
