"""Labelled runs: what the mathematics needs of a trace, and none of its text.

A JSON Lines file. The first line is a header::

    {"format": "safetydrift.runs/4", "space": {..}, "space_identity": "..", "catalogue": ".."}

and every other line is a run, as `safetydrift.states.trajectory.Trajectory` has it, without what says nothing::

    {"id": "..", "moves": [["read_file", 24, 24, [], [17, 230], 0, []], ..], "states": [0, 24, ..], "words": [5, ..],
     "source": "..", "task": "..", "category": "..", "model": "..", "ending": "completed",
     "label": {"violated": true, "onset": 3, ..}}

A move lists the fields of `safetydrift.states.trajectory.Move` in their order: tool, proposed effect, effect, kinds,
words of injected instructions, sources, and words of the user. Effects and states are indices of the header's space;
states follow from effects and are checked against them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.history.sources import N_SOURCES
from safetydrift.errors import SpaceMismatchError, TraceFormatError
from safetydrift.states.projection import project, projection
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Trajectory, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

RUNS_FORMAT = "safetydrift.runs/4"


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    space: dict[str, Any]
    space_identity: str
    catalogue: str = ""


_encode = msgspec.json.Encoder().encode
_kinds = frozenset(KINDS)


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
        self._stream.write(
            _encode(_Header(RUNS_FORMAT, space.definition(), space.identity, catalogue)) + b"\n"
        )

    def write(self, run: Trajectory) -> None:
        """Write one run."""
        self._stream.write(encode_run(run))


def encode_run(run: Trajectory) -> bytes:
    """Return the line that stands for a run."""
    return _encode(run) + b"\n"


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
    decode = msgspec.json.Decoder(Trajectory).decode
    known: dict[Any, Any] = {}  # calls and words come again and again; each is kept once
    for number, line in rows:
        if line is None:
            raise TraceFormatError(path, number, "the line is too long to be a run")
        try:
            run = decode(line)
            _check(run, recorded)
        except (ValueError, RecursionError) as error:
            raise TraceFormatError(path, number, f"not a labelled run: {error}") from error
        moves = tuple([known.setdefault(move, move) for move in run.moves])
        run = replace(run, moves=moves, words=known.setdefault(run.words, run.words))
        yield run if translation is None else project(run, translation, space)


def _read_header(first: tuple[int, bytes | None], path: str) -> StateSpace:
    try:
        header = msgspec.json.decode(first[1] or b"", type=_Header)
        recorded = StateSpace.from_definition(header.space)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(path, first[0], f"not a header of labelled runs: {error}") from error
    if header.format != RUNS_FORMAT:
        raise TraceFormatError(
            path,
            first[0],
            f"format {header.format!r} is not supported; expected {RUNS_FORMAT!r}: label the traces again "
            "(safetydrift label)",
        )
    if recorded.identity != header.space_identity:
        raise TraceFormatError(path, first[0], "its state space is not the one its identity names")
    return recorded


def _translate(recorded: StateSpace, space: StateSpace, path: str) -> tuple[int, ...]:
    try:
        return projection(recorded, space)
    except SpaceMismatchError as error:
        raise SpaceMismatchError(f"{path}: {error}") from error


def _check(run: Trajectory, space: StateSpace) -> None:
    for move in run.moves:
        if max(move.effect, move.proposed) >= space.n_states:
            raise ValueError(f"an effect lies outside 0 to {space.n_states - 1}")
        if move.sources >= N_SOURCES:
            raise ValueError(f"the sources of arguments lie outside 0 to {N_SOURCES - 1}")
        if move.kinds and not _kinds.issuperset(move.kinds):
            raise ValueError(f"a kind of violation that is not one of {', '.join(KINDS)}")
    if fold(space, run.effects) != run.states:
        raise ValueError("its states do not follow from its effects")
