"""What it costs to hear a user and to ask what their words cover; one process, warm unless a name says otherwise."""

from __future__ import annotations

from _timing import Timing, measure, report

from safetydrift.authority.request import Request
from safetydrift.authority.text import fold
from safetydrift.authority.vocabulary import vocabulary

TITLE = "Hearing a request"
MESSAGE = (
    "Hi! Please help me clean up the old branches in the repository, then tell me which of them were merged and write "
    "a short summary for Alice (alice.miller@example.com) and Bob. Pay the bill in /home/me/bill.txt, 1,200.50 EUR to "
    "DE89 3704 0044 0532 0130 00 by May 15th, 2024, but don't send anything before I say so. If the tests fail, fix "
    "them; otherwise deploy to staging only. You can find the details on https://docs.example.com/setup?x=1 and in the "
    "channel general. Thanks a lot!"
)
EMPTY = Request.empty(b"salt of a session")
GOALS = {
    "hear 500 characters": ("<= 1000 us", 1e6),
    "ask again": ("<= 5 us", 1e6),
    "ask for the first time": ("none", 1e6),
    "fold 4 kB of ASCII": ("<= 5 us", 1e6),
    "load the lexicon": ("<= 5000 us", 1e6),
}


def load() -> None:
    vocabulary.cache_clear()
    vocabulary()


def main() -> None:
    request = EMPTY.hear(MESSAGE[:500])
    names = iter(range(10**9))
    ascii_text = (MESSAGE * 10)[:4096]
    calls = {
        "hear 500 characters": lambda: EMPTY.hear(MESSAGE[:500]),
        "ask again": lambda: request.asks("delete", ("feature-x",), ("branch",)),
        "ask for the first time": lambda: request.asks("delete", (f"feature-{next(names)}",), ("branch",)),
        "fold 4 kB of ASCII": lambda: fold(ascii_text),
        "load the lexicon": load,
    }
    timings: dict[str, Timing] = {name: measure(call, 300) for name, call in calls.items()}
    ratios = {name: (factor * timings[name].median, goal) for name, (goal, factor) in GOALS.items()}
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
