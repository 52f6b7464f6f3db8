"""Labelled runs: what the mathematics needs of a trace, and none of its text.

A JSON Lines file. The first line is a header::

    {"format": "safetydrift.runs/3", "space": {..}, "space_identity": "..", "catalogue": ".."}

and every other line is a set of words or a run::

    {"words": [17, 230, ..]}

    {"id": "..", "source": "..", "task": "..", "category": "..", "model": "..", "ending": "completed",
     "tools": ["read_file", ..], "effects": [24, ..], "proposed": [24, ..], "states": [0, 24, ..],
     "label": {"violated": true, "onset": 3, ..}}

``effects``, ``proposed`` and ``states`` are indices of the header's space; ``states`` has one entry more than there
are steps, ``proposed`` is left out where it equals ``effects``, and so is every label field that says nothing.
``kinds``, where any call would complete a violation, has one number per step: bit ``i`` stands for kind ``i`` of
`KINDS`, in that order. Sets of words count from 0; words are as `task_words` numbers them. Of a run, ``words`` is the
set of its task's words, where the task is known; ``orders`` has, by the number of the step, that of what its result
said to the agent as if it gave orders, and ``heard`` that of what the user said before the next. A set comes before
the first run that names it. ``sources``, where any call was made after orders, has one number per step, as `unpacked`
reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.history.sources import N_SOURCES
from safetydrift.errors import SpaceMismatchError, TraceFormatError
from safetydrift.formats.native import RecordedLabel
from safetydrift.states.projection import project, projection
from safetydrift.states.space import StateSpace
from safetydrift.states.task_words import WORD_BINS
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

RUNS_FORMAT = "safetydrift.runs/3"


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    space: dict[str, Any]
    space_identity: str
    catalogue: str = ""


class _Run(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    id: str
    states: list[int]
    effects: list[int]
    proposed: list[int] | None = None
    tools: list[str] = []
    kinds: list[int] = []
    words: int | None = None
    orders: dict[str, int] = {}
    heard: dict[str, int] = {}
    sources: list[int] = []
    source: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    ending: Ending = Ending.CENSORED
    label: RecordedLabel = msgspec.field(default_factory=RecordedLabel)


class _Words(msgspec.Struct, forbid_unknown_fields=True):
    words: list[int]


_KINDS_OF = tuple(
    tuple(kind for bit, kind in enumerate(KINDS) if bits >> bit & 1) for bits in range(1 << len(KINDS))
)


def _bits(kinds: Iterable[str]) -> int:
    return sum(1 << KINDS.index(kind) for kind in kinds)


_encode = msgspec.json.Encoder().encode
_SET = b'{"words"'


class RunWriter:
    """Write labelled runs to a binary stream, one line each.

    Parameters
    ----------
    stream
        Where the lines go.
    space
        The space whose indices the runs hold.
    catalogue
        Identity of the catalogue the effects were read with.
    """

    def __init__(self, stream: IO[bytes], space: StateSpace, catalogue: str = "") -> None:
        self._stream = stream
        self._sets: dict[tuple[int, ...], int] = {}
        self._stream.write(
            _encode(_Header(RUNS_FORMAT, space.definition(), space.identity, catalogue)) + b"\n"
        )

    def write(self, run: Trajectory) -> None:
        """Write one run."""
        self._stream.write(encode_run(run, self._sets))


def encode_run(run: Trajectory, sets: dict[tuple[int, ...], int] | None = None) -> bytes:
    """Return the lines that stand for a run.

    Parameters
    ----------
    sets
        The sets of words that were written before, with their numbers; those of this run are added.
    """
    sets = {} if sets is None else sets
    lines: list[bytes] = []

    def number(found: tuple[int, ...]) -> int:
        if found not in sets:
            sets[found] = len(sets)
            lines.append(_encode(_Words(list(found))))
        return sets[found]

    orders, heard = (
        {str(step): number(found) for step, found in enumerate(sets_of, 1) if found}
        for sets_of in (run.orders, run.heard)
    )
    words = number(run.words) if run.words else None
    line = _encode(
        _Run(
            id=run.id,
            states=list(run.states),
            effects=list(run.effects),
            proposed=None if run.proposed == run.effects else list(run.proposed),
            tools=list(run.tools),
            kinds=[_bits(kinds) for kinds in run.kinds] if any(run.kinds) else [],
            words=words,
            orders=orders,
            heard=heard,
            sources=list(run.sources) if any(run.sources) else [],
            source=run.source,
            task=run.task,
            category=run.category,
            model=run.model,
            ending=run.ending,
            label=RecordedLabel.of(run.label),
        )
    )
    return b"\n".join([*lines, line, b""])


def catalogue_of(line: bytes) -> str:
    """Return the identity of the catalogue that labelled runs were read with, from their header; empty if unsaid."""
    try:
        return msgspec.json.decode(line, type=_Header).catalogue
    except (ValueError, RecursionError):
        return ""  # reading the runs will say what is wrong


def is_runs_header(line: bytes) -> bool:
    """Return whether a file's first line is the header of labelled runs, of any version."""
    try:
        head = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(head, dict) and str(head.get("format", "")).startswith("safetydrift.runs/")


def read_runs(
    lines: Iterable[tuple[int, bytes | None]], path: str, space: StateSpace | None = None
) -> Iterator[Trajectory]:
    """Read labelled runs.

    Parameters
    ----------
    lines
        Line number (the header is line 1) and line.
    path
        What to call the file in errors.
    space
        The space to read them in. Effects recorded in another space are translated by the names of their
        levels, and the states folded anew.

    Raises
    ------
    TraceFormatError
        If a line is not a run, or contradicts itself.
    SpaceMismatchError
        If the space asked for has dimensions or levels the runs know nothing of.
    """
    rows = iter(lines)
    recorded = _read_header(next(rows, (1, b"")), path)
    space = space or recorded
    translation = None if space.identity == recorded.identity else _translate(recorded, space, path)
    decoder = msgspec.json.Decoder(_Run)
    sets: list[tuple[int, ...]] = []
    for number, line in rows:
        if line is None:
            raise TraceFormatError(path, number, "the line is too long to be a run")
        try:
            if line.startswith(_SET):
                sets.append(_words(line))
                continue
            run = decoder.decode(line)
            _check(run, recorded, len(sets))
        except (ValueError, RecursionError) as error:
            raise TraceFormatError(path, number, f"not a labelled run: {error}") from error
        yield _trajectory(run, space, sets, translation)


def _words(line: bytes) -> tuple[int, ...]:
    found = tuple(msgspec.json.decode(line, type=_Words).words)
    if any(not 0 <= word < WORD_BINS for word in found):
        raise ValueError(f"a word lies outside 0 to {WORD_BINS - 1}")
    return found


def _read_header(first: tuple[int, bytes | None], path: str) -> StateSpace:
    try:
        header = msgspec.json.decode(first[1] or b"", type=_Header)
        recorded = StateSpace.from_definition(header.space)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(path, first[0], f"not a header of labelled runs: {error}") from error
    if header.format != RUNS_FORMAT:
        raise TraceFormatError(
            path, first[0], f"format {header.format!r} is not supported; expected {RUNS_FORMAT!r}"
        )
    if recorded.identity != header.space_identity:
        raise TraceFormatError(path, first[0], "its state space is not the one its identity names")
    return recorded


def _translate(recorded: StateSpace, space: StateSpace, path: str) -> tuple[int, ...]:
    try:
        return projection(recorded, space)
    except SpaceMismatchError as error:
        raise SpaceMismatchError(f"{path}: {error}") from error


def _check(run: _Run, space: StateSpace, n_sets: int) -> None:
    proposed = run.effects if run.proposed is None else run.proposed
    if len(proposed) != len(run.effects) or len(run.tools) not in {0, len(run.effects)}:
        raise ValueError("effects, proposed effects and tools differ in length")
    if len(run.kinds) not in {0, len(run.effects)} or any(
        not 0 <= bits < len(_KINDS_OF) for bits in run.kinds
    ):
        raise ValueError("the kinds of violation are not one set per step")
    if len(run.sources) not in {0, len(run.effects)} or any(
        not 0 <= number < N_SOURCES for number in run.sources
    ):
        raise ValueError("the sources of arguments are not one number per step")
    steps = {str(step) for step in range(1, len(run.effects) + 1)}
    if not (run.orders.keys() <= steps and run.heard.keys() <= steps):
        raise ValueError("orders, or words of the user, stand at a step that the run does not have")
    named = [*run.orders.values(), *run.heard.values(), *([] if run.words is None else [run.words])]
    if any(not 0 <= number < n_sets for number in named):
        raise ValueError("it names a set of words that did not come before it")
    if any(not 0 <= effect < space.n_states for effect in (*run.effects, *proposed)):
        raise ValueError(f"an effect lies outside 0 to {space.n_states - 1}")
    if list(fold(space, run.effects)) != run.states:
        raise ValueError("its states do not follow from its effects")


def _trajectory(
    run: _Run, space: StateSpace, sets: list[tuple[int, ...]], translation: tuple[int, ...] | None
) -> Trajectory:
    trajectory = Trajectory(
        run.id,
        states=tuple(run.states),
        effects=tuple(run.effects),
        proposed=tuple(run.proposed or ()),
        tools=tuple(run.tools),
        kinds=tuple([_KINDS_OF[bits] for bits in run.kinds]),
        words=() if run.words is None else sets[run.words],
        orders=_by_step(run.orders, sets, len(run.effects)),
        heard=_by_step(run.heard, sets, len(run.effects)),
        sources=tuple(run.sources),
        source=run.source,
        task=run.task,
        category=run.category,
        model=run.model,
        ending=run.ending,
        label=run.label.label(),
    )
    return trajectory if translation is None else project(trajectory, translation, space)


def _by_step(named: dict[str, int], sets: list[tuple[int, ...]], n_steps: int) -> tuple[tuple[int, ...], ...]:
    if not named:
        return ()
    return tuple([sets[named[str(step)]] if str(step) in named else () for step in range(1, n_steps + 1)])
