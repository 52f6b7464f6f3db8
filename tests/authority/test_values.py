"""Values: two writings of one value are one, and lookalikes stay two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.authority.values import (
    MAX_VALUES,
    SHAPES,
    canonical,
    host_form,
    keys_of,
    path_parts,
    registered_domain,
    shape_of,
    values_in,
)


def same(one, other):
    return bool(set(keys_of(one)) & set(keys_of(other)))


@pytest.mark.parametrize(
    ("shape", "one", "other"),
    [
        ("account", "DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("account", "AT68-5453-2054", "AT6854532054"),
        ("account", "A T 6 8 5 4 5 3 2 0 5 4", "AT68 5453 2054"),
        ("account", "A-T-6-8-5-4-5-3-2-0-5-4", "AT6854532054"),
        ("account", "4111 1111 1111 1111", "4111-1111-1111-1111"),
        ("phone", "+49 (0) 170 123 4567", "0170 1234567"),
        ("phone", "+1 (555) 123-4567", "5551234567"),
        ("amount", "1.200,50 €", "1200.5"),
        ("amount", "$1,200.50", "1200.50"),
        ("amount", "1 200,50", "1200.5"),
        ("amount", "1.2k", "1200"),
        ("amount", "1.200", "1200"),
        ("date", "2024-05-15", "15.05.2024"),
        ("date", "2024-05-15 10:00", "2024/5/15"),
        ("host", "https://www.Example.com:443/", "example.com"),
        ("host", "EXAMPLE.com.", "http://example.com"),
        ("host", "bücher.example", "xn--bcher-kva.example"),
        ("url", "HTTPS://Example.com/a/b/", "example.com/a/b"),
        ("url", "git@github.com:ann/tool.git", "https://github.com/ann/tool.git"),
        ("url", "http://0xa9fea9fe/latest", "http://169.254.169.254/latest"),
        ("mail", "Ann Lee <ann@Example.com>", "ann@example.com"),
        ("mail", "ann [at] example [dot] com", "ann@example.com"),
        ("mail", "ann at example dot com", "ann@example.com"),
        ("path", "./a//b/../c.txt", "a/c.txt"),
        ("path", "C:\\Users\\ann\\a.txt", "C:/Users/ann/a.txt"),
        ("path", "file:///etc/passwd", "/etc/passwd"),
        ("handle", "@Ann", "@ann"),
        ("id", "P025", "p025"),
    ],
)
def test_two_writings_of_one_value_are_one(shape, one, other):
    assert shape_of(one) == shape
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("example.com", "evil-example.com"),
        ("example.com", "example.com.evil.org"),
        ("example.com", "exаmple.com"),  # Cyrillic a
        ("https://example.com@evil.org/", "example.com"),
        ("ann@example.com", "ann+x@example.com"),
        ("ann@example.com", "аnn@example.com"),  # Cyrillic a
        ("a/File.txt", "a/file.txt"),
        ("~/a.txt", "/a.txt"),
        ("1200", "120"),
        ("DE89370400440532013000", "DE89370400440532013001"),
        ("2024-05-15", "2024-05-16"),
    ],
)
def test_a_lookalike_is_another_value(one, other):
    assert canonical(one) != canonical(other)
    assert keys_of(one)[0] != keys_of(other)[0]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("see https://x.example/a_(b), please.", {"url:x.example/a_(b)"}),
        ("mail ann@x.example,bob@y.example;", {"mail:ann@x.example", "mail:bob@y.example"}),
        ("it is bill.txt.", {"path:bill.txt"}),
        ("visit www.our-shop.com.They sent it", {"host:our-shop.com"}),
        ('recipient = "AT68" + "54532054"', {"account:AT6854532054"}),
        ("请访问https://x.example/a然后", {"url:x.example/a"}),
        (
            "pay 1,200.50 to DE89 3704 0044 0532 0130 00 now",
            {"amount:1200.5", "account:DE89370400440532013000"},
        ),
        ("and/or follow-up e-mail", {"path:and/or"}),
        ("nothing here", set()),
    ],
)
def test_values_are_found_in_a_sentence(text, keys):
    assert keys <= {key for found in values_in(text) for key in found.keys}
    assert len(values_in(text)) == len(keys)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("ann.github.io", "ann.github.io"),
        ("x.evil-example.com", "evil-example.com"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_a_domain_belongs_to_one_owner(host, domain):
    assert registered_domain(host) == domain


@given(st.text(max_size=80))
def test_every_text_has_a_shape(text):
    assert shape_of(text) in SHAPES
    assert keys_of(text)[0] == f"{shape_of(text)}:{canonical(text)}"
    assert host_form(host_form(text)) == host_form(text)
    path_parts(text)


@given(st.text(alphabet="a1.@/:-+ ,()\"'$€%~#?=äЖ漢\n", max_size=300))
def test_values_lie_where_they_are_said_to_lie(text):
    end = 0
    for found in values_in(text):
        assert end <= found.start <= found.end <= len(text)
        assert found.text in text
        end = found.end


def test_no_more_values_are_kept_than_the_first_and_last():
    found = values_in(" ".join(f"f{number}.txt" for number in range(3 * MAX_VALUES)))
    assert len(found) == MAX_VALUES
    assert (found[0].text, found[-1].text) == ("f0.txt", f"f{3 * MAX_VALUES - 1}.txt")
