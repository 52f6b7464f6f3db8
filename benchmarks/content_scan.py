"""Looking for secrets and identifiers in what comes back to an agent and in what it sends.

The texts are made up, about ten thousand characters each of what agents read: mails, JSON, a listing, a web page, code,
a table of numbers; none of them holds anything. Then the same mails with one secret in them, which wakes the libraries;
their import is not part of the figures, except where it says so. Last the texts an attacker would choose, at two sizes:
what matters there is that twice the size takes about twice as long.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from _timing import Timing, interleaved, measure, options, report

from safetydrift.effects.content import Scanner
from safetydrift.effects.content.scan import ScannedText, in_small_letters
from safetydrift.formats.catalogue_file import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Scanning texts"
SIZE = 10_000
TIMES = 100
# fmt: off
WORDS = (
    "the", "report", "for", "next", "week", "shows", "that", "our", "team", "has", "booked", "a", "hotel", "near",
    "station", "and", "will", "meet", "customers", "about", "new", "product", "before", "lunch", "please", "send",
    "me", "notes", "on", "travel", "budget", "open", "questions", "agenda", "minutes", "Monday", "June", "office",
)
# fmt: on
SHORT = {
    "a command": "cd src && grep -rn 'parse_args' --include='*.py' . | head -20",
    "arguments": '{"path": "/workspace/reports/summary.md", "encoding": "utf-8", "limit": 200}',
    "a sentence": "Please move the meeting with the design team to three in the afternoon and tell everybody about it.",
}


def filled(piece: Callable[[random.Random, int], str]) -> str:
    """Return a text of `SIZE` characters made of pieces."""
    chance = random.Random(0)  # noqa: S311  # made-up texts
    pieces: list[str] = []
    while sum(map(len, pieces)) < SIZE:
        pieces.append(piece(chance, len(pieces)))
    return "".join(pieces)[:SIZE]


def sentence(chance: random.Random, words: int = 12) -> str:
    return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."


def mail(chance: random.Random, number: int) -> str:
    head = f"id: {number}\nsubject: {sentence(chance, 4)}\nsender: desk{number % 5}@example.org\n"
    body = " ".join(sentence(chance) for _ in range(6))
    return f"{head}date: 2026-05-{number % 28:02}\n{body}\n\n"


def record(chance: random.Random, number: int) -> str:
    about = f'"name": "{sentence(chance, 3)}", "amount": {chance.random():.2f}'
    return f'{{"id": {number}, {about}, "open": true, "at": "2026-05-01T09:{number % 60:02}:00Z"}},'


def listed(chance: random.Random, number: int) -> str:
    size, name = chance.randrange(10**5), chance.choice(WORDS)
    return f"-rw-r--r-- 1 root root {size:6} May 12 08:{number % 60:02} {name}_{number}.txt\n"


def tag(chance: random.Random, number: int) -> str:
    link = f'<a href="https://example.org/page/{number}">{sentence(chance, 5)}</a>'
    return f'<div class="row col-{number}">{link}</div>\n'


def code(chance: random.Random, number: int) -> str:
    name = chance.choice(WORDS)
    return f"def {name}_{number}(values: list[int]) -> int:\n    total = sum(values)\n    return total * {number}\n\n"


def numbers(chance: random.Random, number: int) -> str:
    measured = f"{chance.random():.6f},{chance.randrange(10**7)}"
    return f"{number},{measured},2026-05-{number % 28:02},{chance.randrange(100)}\n"


KINDS = {
    "mails": mail,
    "JSON": record,
    "a listing": listed,
    "a web page": tag,
    "code": code,
    "numbers": numbers,
}
HOSTILE: dict[str, Callable[[int], str]] = {
    "one mark over and over": lambda n: "password=" * (n // 9),
    "one digit over and over": lambda n: "4" * n,
    "digits and blanks": lambda n: "4 " * (n // 2),
    "at signs": lambda n: "a@" * (n // 2),
    "one letter, one line": lambda n: "a" * n,
    "beginnings of keys": lambda n: "-----BEGIN " * (n // 11),
}


def first_find() -> Timing:
    """Time a first secret in a process of its own, where a library has to be imported: what that adds."""
    program = (
        "from time import perf_counter as now\n"
        "from safetydrift.effects.content import Scanner\n"
        "from safetydrift.formats.catalogue_file import load_catalogue\n"
        "scanner = Scanner(load_catalogue())\n"
        "start = now(); scanner.scan('card 4111 1111 1111 1111'); print(now() - start)\n"
    )
    taken = [
        float(
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        )
        for _ in range(3)
    ]
    return Timing.of(taken)


def often(scanner: Scanner, text: str) -> None:
    for _ in range(TIMES):
        scanner.scan(text)


def slowest(scanner: Scanner, texts: dict[str, str]) -> list[tuple[float, str]]:
    """Return the patterns that take longest over all texts when each is tried everywhere it has to be."""
    taken: dict[str, float] = {}
    for pattern in scanner.content.patterns:
        start = time.perf_counter()
        for text in texts.values():
            scanner.finds(pattern, ScannedText(text, in_small_letters(text)))
        name = f"{pattern.what}{' (library)' if pattern.detector else ''}"
        taken[name] = max(taken.get(name, 0.0), time.perf_counter() - start)
    return sorted([(seconds, name) for name, seconds in taken.items()], reverse=True)[:5]


def main() -> None:
    big = 32_000 if options(TITLE).quick else 128_000
    scanner = Scanner(load_catalogue())
    texts = {name: filled(piece) for name, piece in KINDS.items()}
    for name, text in texts.items():
        if scanner.scan(text):
            raise SystemExit(f"{name}: was meant to hold nothing")
    spoiled = texts["mails"][:5000] + "\nexport DB_PASSWORD=correct4horse\n" + texts["mails"][5000:]
    clean = {f"clean, 10 kB: {name}": text for name, text in texts.items()}
    short = {f"clean, short: {name}": text for name, text in SHORT.items()}
    timings = interleaved({name: partial(scanner.scan, text) for name, text in clean.items()}, 51)
    hundred = interleaved({name: partial(often, scanner, text) for name, text in short.items()}, 21)
    timings |= {name: timing.scaled(1 / TIMES) for name, timing in hundred.items()}
    timings["10 kB of mails with one password"] = measure(partial(scanner.scan, spoiled), 21)
    timings["first payment card in a process, imports included"] = first_find()
    medians = sorted(timings[name].median for name in clean)
    ratios: dict[str, tuple[float, str]] = {
        "clean texts of 10 kB, the middle one, us": (1e6 * medians[len(medians) // 2], "<= 500"),
        "clean texts of 10 kB, the slowest, us": (1e6 * medians[-1], "none"),
        "clean short texts, the slowest, us": (1e6 * max(timings[name].median for name in short), "<= 5"),
    }
    for name, make in HOSTILE.items():
        calls = {str(factor): partial(scanner.scan, make(factor * big)) for factor in (1, 2)}
        taken = interleaved(calls, 3)
        timings[f"hostile, {2 * big // 1000} kB: {name}"] = taken["2"]
        ratios[f"hostile, twice the size: {name}"] = (taken["2"].median / taken["1"].median, "<= 3")
    report(TITLE, timings, ratios)
    print("slowest patterns over all clean texts and the one with a password")
    for seconds, name in slowest(scanner, texts | {"spoiled": spoiled}):
        print(f"  {name:<58} {1e6 * seconds:.0f} us")


if __name__ == "__main__":
    main()
