"""Which calls a person is asked to judge: a sample that shows rare tools too, drawn while traces stream by.

Every call has a random rank, a hash of the seed and its name, so the draw depends neither on the order in which files
are read nor on what else is read. Per stratum only the calls of lowest rank are remembered, without any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from heapq import heapify, heappop, heappush, heapreplace
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from safetydrift.effects.labeling import read_steps
from safetydrift.evaluation.review.excerpt import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.effect import Effect
    from safetydrift.trace import Step, Trace

PER_RUN = 3
"""Calls of one run are alike; no more than this many are drawn from any."""
MAX_STRATA = 1000
"""Models invent names of tools; those beyond this many strata share one per source and layer."""
OTHER_TOOLS = "(other tools)"
MAX_ID = 1024
MAX_TOOL = 256
UNSHOWN = "(cannot be shown) "
"""Begins the name of a tool whose own is too long, or holds characters that cannot be printed."""


class Moment(Enum):
    """Which of its two effects a call is reviewed by."""

    PROPOSED = "proposed"
    """What it will do if it is executed: its result is not known."""

    DONE = "done"
    """What it did, as far as its result tells; a call that failed did little."""


class Stratum(NamedTuple):
    """Calls that are counted, and drawn, together."""

    source: str
    layer: str
    tool: str


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call to judge, with what the program says of it.

    Parameters
    ----------
    id
        ``<source>/<trace id>/<number of the step, from 1>``.
    source, tool
        Where it comes from and which tool it calls.
    stratum
        What it was drawn from.
    effect
        What the program says it does.
    """

    id: str
    source: str
    tool: str
    stratum: Stratum
    effect: Effect


@dataclass(frozen=True, slots=True)
class Sample:
    """The calls drawn, and how many there were to draw from.

    Parameters
    ----------
    calls
        In random order, the same for the same seed.
    seen
        Number of calls by stratum.
    unnamed
        Calls that were passed over, since their name is too long or holds characters that cannot be printed.
    """

    calls: tuple[DrawnCall, ...]
    seen: dict[Stratum, int]
    unnamed: int


def sample_id(trace: Trace, number: int) -> str:
    """Return the name of a call; its steps are numbered from 1."""
    return f"{trace.source}/{trace.id}/{number}"


def labelled_steps(
    trace: Trace, labeler: Labeler, moment: Moment = Moment.PROPOSED
) -> Iterator[tuple[Step, Effect]]:
    """Yield every step of a trace with what the program says of it, in view of the run so far."""
    for read in read_steps(trace, labeler):
        yield read.step, read.effect if moment is Moment.DONE else read.proposal.effect


def tool_name(step: Step) -> str:
    """Return the name of the tool a step calls, made fit to be shown; `UNSHOWN` begins it where it is not its own."""
    name = str(step.call.name)
    if len(name) <= MAX_TOOL and name.isprintable():
        return name
    return UNSHOWN + visible(name[:MAX_TOOL])[:MAX_TOOL]


@dataclass(slots=True)
class _Candidates:
    """The calls of one stratum that may be drawn: as many as could ever be asked for, those of lowest rank."""

    seen: int
    heap: list[tuple[int, str, DrawnCall]]
    ids: set[str]

    def offer(self, rank: int, call: DrawnCall, limit: int) -> None:
        if call.id in self.ids:
            return
        item = (-rank, call.id, call)
        if len(self.heap) < limit:
            heappush(self.heap, item)
        elif item > self.heap[0]:
            self.ids.discard(heapreplace(self.heap, item)[1])
        else:
            return
        self.ids.add(call.id)


class Sampler:
    """Draw calls from traces that are offered one by one.

    Parameters
    ----------
    size
        How many calls to draw at most. Memory grows with it and the number of strata, not with the traces.
    seed
        Of the ranks.
    moment
        Which effect of a call counts.
    """

    def __init__(self, size: int, seed: int = 0, moment: Moment = Moment.PROPOSED) -> None:
        self._size, self._seed, self._moment = size, seed, moment
        self._strata: dict[Stratum, _Candidates] = {}
        self._unnamed = 0

    def offer(self, trace: Trace, labeler: Labeler) -> None:
        """Label the calls of a trace and consider them; of each stratum, one call of a run at most."""
        best: dict[Stratum, tuple[int, DrawnCall]] = {}
        for number, (step, effect) in enumerate(labelled_steps(trace, labeler, self._moment), 1):
            tool, name = tool_name(step), sample_id(trace, number)
            stratum = self._stratum(Stratum(trace.source, effect.source, tool))
            self._strata[stratum].seen += 1
            if len(name) > MAX_ID or not name.isprintable():
                self._unnamed += 1
                continue
            rank = self._rank(name)
            if stratum not in best or rank < best[stratum][0]:
                best[stratum] = rank, DrawnCall(name, trace.source, tool, stratum, effect)
        for stratum, (rank, call) in best.items():
            self._strata[stratum].offer(rank, call, self._size)

    def draw(self, *, even_sources: bool = False) -> Sample:
        """Return the sample.

        Parameters
        ----------
        even_sources
            Draw equally from every source, and by the square root of their counts from the strata within each;
            otherwise by the square root from all strata alike.
        """
        sources = sorted({stratum.source for stratum in self._strata}) if even_sources else [None]
        queues = [
            _Queue({key: part for key, part in self._strata.items() if source in {None, key.source}})
            for source in sources
        ]
        taken: dict[str, DrawnCall] = {}
        per_run: dict[str, int] = {}
        while len(taken) < self._size and (queues := [queue for queue in queues if queue]):
            queue = min(queues, key=lambda one: one.drawn)
            call = queue.next()
            run = call.id.rpartition("/")[0]
            if call.id not in taken and per_run.get(run, 0) < PER_RUN:
                taken[call.id] = call
                per_run[run] = per_run.get(run, 0) + 1
                queue.count(call.stratum)
        calls = sorted(taken.values(), key=lambda call: (self._rank(call.id), call.id))
        seen = {stratum: part.seen for stratum, part in sorted(self._strata.items())}
        return Sample(tuple(calls), seen, self._unnamed)

    def _stratum(self, stratum: Stratum) -> Stratum:
        if stratum not in self._strata:
            if len(self._strata) >= MAX_STRATA:
                stratum = stratum._replace(tool=OTHER_TOOLS)
            self._strata.setdefault(stratum, _Candidates(0, [], set()))
        return stratum

    def _rank(self, name: str) -> int:
        digest = blake2b(f"{self._seed} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest)


class _Queue:
    """Strata in the order of their claims: the square root of their size, shared among the calls drawn so far.

    A stratum nothing was drawn from comes before all others, so every one is drawn from once before any is twice.
    """

    def __init__(self, strata: dict[Stratum, _Candidates]) -> None:
        self.drawn = 0
        self._strata = strata
        self._left = {
            key: [call for _, _, call in sorted(part.heap, key=lambda item: item[:2])]
            for key, part in strata.items()
        }
        self._taken = dict.fromkeys(strata, 0)
        self._heap = [self._claim(key) for key, left in self._left.items() if left]
        heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def next(self) -> DrawnCall:
        """Take the next call of the stratum with the greatest claim."""
        stratum = heappop(self._heap)[-1]
        call = self._left[stratum].pop()
        if self._left[stratum]:
            heappush(self._heap, self._claim(stratum))
        return call

    def count(self, stratum: Stratum) -> None:
        """Count a call as drawn, which lowers the claim of its stratum."""
        self.drawn += 1
        self._taken[stratum] += 1
        if self._left[stratum]:
            self._heap = [item for item in self._heap if item[-1] != stratum]
            self._heap.append(self._claim(stratum))
            heapify(self._heap)

    def _claim(self, stratum: Stratum) -> tuple[float, int, Stratum]:
        seen, taken = self._strata[stratum].seen, self._taken[stratum]
        return -(sqrt(seen) / taken if taken else inf), -seen, stratum


def found_calls(
    traces: Iterable[Trace], wanted: Iterable[DrawnCall]
) -> Iterator[tuple[DrawnCall, Trace, int]]:
    """Find drawn calls again; yields each once with its trace and the position of its step, from 0."""
    left = {call.id: call for call in wanted}
    for trace in traces:
        if not left:
            return
        for position, step in enumerate(trace.steps):
            call = left.get(sample_id(trace, position + 1))
            if call is not None and call.tool == tool_name(step):
                del left[call.id]
                yield call, trace, position
