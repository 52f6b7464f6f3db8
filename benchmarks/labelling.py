"""What the labeler adds to a step: names, arguments, a result of ten thousand characters, and the flow between them.

Every call is one the labeler has not seen: what it remembers of short texts would flatter it. A long result is never
remembered. "Scanned for secrets and flow" is what a step with such a result costs: the scan, the fingerprints of what
was sensitive, the words for provenance, and passages that speak to the agent.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from _timing import interleaved, options, report
from content_scan import KINDS, filled

from safetydrift.effects.history import History
from safetydrift.effects.labeler import Labeler
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import Step, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "Labelling a step"
CATALOGUED = ToolCall("get_most_recent_transactions", {"n": 5})
NO_CONTENT = "propose: catalogued tool, no content"
LONG_RESULT = "effect and history: 10 kB result"
TASK = "Summarise my inbox and send the summary to anna@example.org, please."


def calls(labeler: Labeler) -> dict[str, Callable[[], object]]:
    """Return what is timed, on texts that were not seen before."""
    asked = History().hears(TASK)
    number = count()
    # A number of its own keeps every text from being remembered.
    texts = {kind: filled(piece) for kind, piece in KINDS.items()}
    secret = texts["mails"][:5000] + "\nDB_PASSWORD=hunter2-and-more\n" + texts["mails"][5000:9900]
    told = after(labeler, asked, secret)
    long = {
        f"{LONG_RESULT}, {kind}": partial(numbered, labeler, asked, number, text)
        for kind, text in {**texts, "mails with a secret": secret}.items()
    }
    return {
        NO_CONTENT: lambda: labeler.propose(CATALOGUED),
        "the same, in view of the task": lambda: labeler.propose(CATALOGUED, asked),
        "propose: mail of 100 characters": lambda: labeler.propose(
            mail(f"The summary, part {next(number)}: nothing new this week, two invitations for next."), asked
        ),
        "propose: mail of 750 characters after a secret was read": lambda: labeler.propose(
            mail(f"Part {next(number)}, as you asked: hunter2-and-more, {texts['mails'][200:900]}"), told
        ),
        **long,
    }


def mail(body: str) -> ToolCall:
    return ToolCall("send_email", {"recipients": ["anna@example.org"], "body": body})


def after(labeler: Labeler, history: History, result: str) -> History:
    return labeler.read_step(Step(ToolCall("read_inbox"), result), history).history or history


def numbered(labeler: Labeler, history: History, number: Iterator[int], text: str) -> History:
    return after(labeler, history, f"{next(number)} {text}")


def repeated(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def main() -> None:
    quick = options(TITLE).quick
    times = 20 if quick else 100
    timed = {name: partial(repeated, call, times) for name, call in calls(Labeler(load_catalogue())).items()}
    timings = interleaved(timed, 3 if quick else 7)
    each = {name: timing.scaled(1 / times) for name, timing in timings.items()}
    slowest = max(timing.median for name, timing in each.items() if name.startswith(LONG_RESULT))
    report(
        TITLE,
        each,
        {
            f"{NO_CONTENT}, us": (1e6 * each[NO_CONTENT].median, "< 10"),
            "10 kB result scanned for secrets and flow, slowest kind, ms": (1e3 * slowest, "< 1"),
        },
    )


if __name__ == "__main__":
    main()
