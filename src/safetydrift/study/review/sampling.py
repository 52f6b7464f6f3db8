"""Which calls a person is asked to judge: a sample that shows rare tools too, drawn while traces stream by.

Every call has a random rank, a hash of the seed and its name, so the draw depends neither on the order in which files
are read nor on what else is read. Per stratum only the calls of lowest rank are remembered, without any text.

What was drawn, and what the program said of it then, is kept in a sample file, so that decisions can be compared with
the program of that day, however much it has changed since.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from hashlib import blake2b
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from safetydrift._version import __version__
from safetydrift.effects.labeling import read_steps
from safetydrift.errors import ReviewError
from safetydrift.study.review.excerpt import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.effect import Effect
    from safetydrift.trace import Step, Trace

PER_RUN = 3
"""Calls of one run are alike; no more than this many are drawn from any."""
MAX_STRATA = 1000
"""Models invent names of tools; those beyond this many strata share one per source and layer."""
OTHER_TOOLS = "(other tools)"
MAX_ID, MAX_TOOL = 1024, 256
UNSHOWN = "(cannot be shown) "
"""Begins the name of a tool whose own is too long, or holds characters that cannot be printed."""
SAMPLE_FORMAT = "safetydrift.review/2"
MAX_SAMPLE_BYTES = 256 << 20


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


class DrawnCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call to judge, with what the program says of it.

    Parameters
    ----------
    id
        ``<source>/<trace id>/<number of the step, from 1>``.
    source, layer, tool
        Where it comes from, what decided its effect, and which tool it calls.
    stratum
        What it was drawn from.
    levels, kinds
        What the program says it does.
    """

    id: str
    source: str
    layer: str
    tool: str
    stratum: Stratum
    levels: dict[str, str]
    kinds: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many calls there were of one stratum."""

    stratum: Stratum
    calls: int


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The calls drawn, in random order, and how many there were to draw from; no text of them.

    Parameters
    ----------
    catalogue
        Name, version and identity of the catalogue that effects were read with.
    seed, moment
        Of the draw, and which effect counts.
    scales
        Levels by dimension.
    strata
        All strata.
    calls
        What was drawn.
    unnamed
        Calls that were passed over, since their name is too long or holds characters that cannot be printed.
    """

    format: str = SAMPLE_FORMAT
    safetydrift: str = __version__
    catalogue: tuple[str, str, str]
    seed: int
    moment: Moment
    scales: dict[str, tuple[str, ...]]
    strata: tuple[Seen, ...]
    calls: tuple[DrawnCall, ...]
    unnamed: int = 0


def scales_of(catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    """Return the dimensions that can be judged from a call alone, with their levels; lowest first."""
    return {name: catalogue.scales.levels(name) for name in catalogue.scales.required}


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
        self._seen: Counter[Stratum] = Counter()
        self._candidates: dict[Stratum, dict[str, DrawnCall]] = {}
        self._unnamed = 0

    def offer(self, trace: Trace, labeler: Labeler) -> None:
        """Label the calls of a trace and consider them; of each stratum, one call of a run at most."""
        best: dict[Stratum, DrawnCall] = {}
        for number, (step, effect) in enumerate(labelled_steps(trace, labeler, self._moment), 1):
            tool, name = tool_name(step), sample_id(trace, number)
            stratum = Stratum(trace.source, effect.source, tool)
            if stratum not in self._seen and len(self._seen) >= MAX_STRATA:
                stratum = stratum._replace(tool=OTHER_TOOLS)
            self._seen[stratum] += 1
            if len(name) > MAX_ID or not name.isprintable():
                self._unnamed += 1
            elif stratum not in best or self._rank(name) < self._rank(best[stratum].id):
                best[stratum] = DrawnCall(
                    name, trace.source, effect.source, tool, stratum, dict(effect.levels), effect.kinds
                )
        for stratum, call in best.items():
            found = self._candidates.setdefault(stratum, {})
            found.setdefault(call.id, call)
            if len(found) > 2 * self._size:
                self._candidates[stratum] = dict(self._ranked(found)[: self._size])

    def draw(self, catalogue: Catalogue, *, even_sources: bool = False) -> Sample:
        """Return the sample: the next call is of the stratum with the greatest claim.

        That is the square root of its size, shared among the calls drawn from it so far; one nothing was drawn from
        comes before all others, so every one is drawn from once before any is twice.

        Parameters
        ----------
        catalogue
            The one that effects were read with.
        even_sources
            Draw equally from every source; otherwise from all strata alike.
        """
        waiting = {
            stratum: [call for _, call in self._ranked(found)[::-1]]
            for stratum, found in self._candidates.items()
        }
        taken: Counter[Stratum] = Counter()
        by_source: Counter[str] = Counter()
        per_run: Counter[str] = Counter()
        drawn: dict[str, DrawnCall] = {}
        while len(drawn) < self._size and (waiting := {key: left for key, left in waiting.items() if left}):

            def claim(stratum: Stratum) -> tuple[float, float, int, Stratum]:
                seen, so_far = self._seen[stratum], taken[stratum]
                source = by_source[stratum.source] if even_sources else 0
                return source, -(sqrt(seen) / so_far if so_far else inf), -seen, stratum

            stratum = min(waiting, key=claim)
            call = waiting[stratum].pop()
            run = call.id.rpartition("/")[0]
            if call.id not in drawn and per_run[run] < PER_RUN:
                drawn[call.id] = call
                taken[stratum] += 1
                by_source[stratum.source] += 1
                per_run[run] += 1
        return Sample(
            catalogue=(catalogue.name, catalogue.version, catalogue.identity),
            seed=self._seed,
            moment=self._moment,
            scales=scales_of(catalogue),
            strata=tuple(Seen(stratum, calls) for stratum, calls in sorted(self._seen.items())),
            calls=tuple(call for _, call in self._ranked(drawn)),
            unnamed=self._unnamed,
        )

    def _ranked(self, calls: dict[str, DrawnCall]) -> list[tuple[str, DrawnCall]]:
        return sorted(calls.items(), key=lambda item: (self._rank(item[0]), item[0]))

    def _rank(self, name: str) -> int:
        digest = blake2b(f"{self._seed} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest)


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


def encode_sample(sample: Sample) -> bytes:
    """Return a sample as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(sample), indent=1) + b"\n"


def load_sample(path: Path) -> Sample:
    """Read a sample file.

    Raises
    ------
    ReviewError
        If it cannot be read, or is none; the message names the file.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SAMPLE_BYTES + 1)
        if len(data) > MAX_SAMPLE_BYTES:
            raise ReviewError(f"{path}: a sample file has at most {MAX_SAMPLE_BYTES:,} bytes")
        sample = msgspec.json.decode(data, type=Sample)
    except OSError as error:
        raise ReviewError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"{path}: not a sample of a review: {error}") from error
    if sample.format != SAMPLE_FORMAT:
        raise ReviewError(f"{path}: expected format {SAMPLE_FORMAT!r}, got {sample.format!r}")
    strata = {one.stratum for one in sample.strata}
    for call in sample.calls:
        if call.stratum not in strata:
            raise ReviewError(f"{path}: call {call.id!r} is of a stratum that is not listed")
        for name, levels in sample.scales.items():
            if call.levels.get(name) not in levels:
                raise ReviewError(f"{path}: call {call.id!r} has no level of {name!r}")
    return sample
