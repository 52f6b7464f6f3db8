"""The work that a hostile text can cause: counted, not timed."""

import re
import subprocess
import sys
from typing import Any

import pytest

from safetydrift.effects.content import Scanner, secrets
from safetydrift.effects.content import scan as scan_module
from safetydrift.formats.catalogue_file import load_catalogue

HOSTILE = {
    "marks of passwords": "password=",
    "marks with quotes": 'secret"="',
    "digits": "4",
    "digits and blanks": "4 ",
    "digits and dashes": "41-",
    "at signs": "a@",
    "one letter": "a",
    "beginnings of keys": "-----BEGIN ",
    "web tokens": "eyJhbGciOiJ",
    "addresses": "://a:",
    "account numbers": "DE89 3704 ",
    "access keys": "AKIA",
    "junk": "\x00\xff\u2028\ud800",
}


class CountingPattern:
    """A compiled expression that counts how often it is asked."""

    def __init__(self, expression, count):
        self.expression, self.count = expression, count

    def match(self, *given):
        self.count.append(1)
        return self.expression.match(*given)

    def finditer(self, *given):
        self.count.append(1)
        return self.expression.finditer(*given)


def tries(text, monkeypatch):
    """How often any expression of the catalogue is tried on a text."""
    scanner = Scanner(load_catalogue())
    count: list[int] = []
    compiled: dict[str, Any] = scanner._compiled
    for pattern in scanner.content.patterns:
        compiled[pattern.regex] = CountingPattern(re.compile(pattern.regex), count)
    windows: list[str] = []

    def nothing_found(window):
        windows.append(window)
        return ()

    monkeypatch.setattr(secrets, "_detector", lambda name: nothing_found)
    scanner.scan(text)
    return len(count), windows


@pytest.mark.parametrize("kind", HOSTILE)
def test_tries_grow_no_faster_than_the_text_and_come_to_an_end(kind, monkeypatch):
    piece = HOSTILE[kind]
    small, _ = tries(piece * (2000 // len(piece)), monkeypatch)
    double, _ = tries(piece * (4000 // len(piece)), monkeypatch)
    assert double <= 2 * small + 200
    huge, windows = tries(piece * (1_000_000 // len(piece)), monkeypatch)
    scanner = Scanner(load_catalogue())
    assert huge <= 2 * 4 * scan_module.MAX_PLACES * len(scanner.content.patterns)
    assert all(len(window) <= secrets.MAX_WINDOW for window in windows)
    detectors = sum(bool(pattern.detector) for pattern in scanner.content.patterns)
    assert len(windows) <= 2 * scan_module.MAX_WINDOWS * detectors


def test_a_pattern_is_tried_at_a_bounded_number_of_places(monkeypatch):
    scanner = Scanner(load_catalogue())
    text = "password=<x> " * 10_000
    assert not scanner.scan(text).complete
    seen = scan_module.ScannedText(text, text)
    for pattern in scanner.content.patterns:
        assert len(seen.places(pattern)) <= scan_module.MAX_PLACES


def test_a_huge_text_is_cut_before_anything_looks_at_it(monkeypatch):
    looked: list[int] = []
    scanner = Scanner(load_catalogue())

    def measured(self, text):
        looked.append(len(text))
        return self._nothing

    monkeypatch.setattr(Scanner, "_scan", measured)
    scanner.scan("x" * 10_000_000)
    assert looked == [scan_module.HEAD, scan_module.TAIL]


def imported_by(text):
    program = (
        "import sys\n"
        "from safetydrift.effects.content import Scanner\n"
        "from safetydrift.formats.catalogue_file import load_catalogue\n"
        f"Scanner(load_catalogue()).scan({text!r})\n"
        "print(*[name for name in ('stdnum', 'detect_secrets', 'requests') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_libraries_are_imported_only_for_a_candidate():
    ordinary = (
        "Please reset your password. See https://example.org/a?id=12 on 2026-05-01, token list, secret santa.\n"
        * 100
    )
    assert imported_by(ordinary) == []
    assert imported_by("charge 4111 1111 1111 1111") == ["stdnum"]
    assert imported_by("password=hunter2 and AKIA" + "IOSFODNN7EXAMPLE") == []
    assert "detect_secrets" in imported_by("token is 0123456789abcdef0123456789abcdef-us12")
