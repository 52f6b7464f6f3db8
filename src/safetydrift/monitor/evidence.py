"""What runs showed: transitions between the rows of a chain, arrivals and ends, as counts that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import ModelFileError
from safetydrift.markov.counts import TransitionCounts, count_transitions
from safetydrift.monitor.settings import Granularity
from safetydrift.states.dimensions import Accumulation
from safetydrift.states.trajectory import COMPLETED, VIOLATED, ObservedRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from safetydrift.states.space import StateSpace

SMALL_SPACE = 100
"""Up to so many states a fine chain has a row for each; a larger one has rows for the states that were visited."""

NEVER = "(never visited)"
"""Name of the row shared by the states of a large space that no run visited."""

OTHER = "other"
"""The kind of a violation that fits none of the named ones."""

VIOLATION_KINDS = (*KINDS, OTHER)
"""The ways in which a run can be violated."""

_COLUMN = {kind: number for number, kind in enumerate(VIOLATION_KINDS)}


@dataclass(frozen=True, slots=True)
class Rows:
    """How states of a space become rows of a chain; the two ends follow the last row.

    Parameters
    ----------
    names
        Row names, shape (n_rows,).
    row_of
        Row by state, shape (n_states,).
    """

    names: tuple[str, ...]
    row_of: tuple[int, ...]

    @classmethod
    def of(cls, space: StateSpace, granularity: Granularity, visited: Iterable[int] | None = None) -> Rows:
        """Return the rows of a space at a granularity.

        Parameters
        ----------
        visited
            The states that runs stood in or came to. When given, a space of more than `SMALL_SPACE` states has a row
            for each of them, and one more that all others share.
        """
        if granularity is Granularity.COARSE:
            # Under the label a state the rules call violated is a state like any other, and no end.
            names = [
                f"{risk} (rules)" if number == space.violated_risk else risk
                for number, risk in enumerate(space.risks)
            ]
            return cls(tuple(names), space.risk_of)
        if visited is None or space.n_states <= SMALL_SPACE:
            return cls(tuple(map(space.describe, range(space.n_states))), tuple(range(space.n_states)))
        known = sorted(set(visited))
        row_of = [len(known)] * space.n_states
        for row, state in enumerate(known):
            row_of[state] = row
        return cls((*map(space.describe, known), NEVER), tuple(row_of))

    @property
    def absorbing(self) -> dict[str, list[int]]:
        """The absorbing classes of the chain, by name."""
        return {VIOLATED: [len(self.names)], COMPLETED: [len(self.names) + 1]}

    @property
    def chain_names(self) -> tuple[str, ...]:
        """Names of all states of the chain, ends included."""
        return (*self.names, VIOLATED, COMPLETED)

    def support(self, space: StateSpace) -> NDArray[np.bool_]:
        """Return which transitions the dimensions allow, shape (n_rows + 2, n_rows + 2); both ends are always open.

        A lumped chain has the support of its states: risk levels may fall when reversibility does.
        """
        n_rows, rows = len(self.names), np.array(self.row_of)
        digits = np.array([space.digits(state) for state in range(space.n_states)])
        lasting = [dimension.accumulation is Accumulation.HIGHEST for dimension in space.dimensions]
        kept = digits[:, lasting]
        allowed = np.zeros((n_rows + 2, n_rows + 2), dtype=np.bool_)
        for state in range(space.n_states):
            allowed[rows[state], rows[(kept >= kept[state]).all(axis=1)]] = True
        allowed[:n_rows, n_rows:] = True
        return allowed

    def sequence(self, run: ObservedRun) -> list[int]:
        """Return the states of the chain that a run went through, its end included."""
        rows = [self.row_of[state] for state in run.states]
        if run.end is not None:
            rows.extend(self.absorbing[run.end])
        return rows


@dataclass(slots=True)
class Evidence:
    """What the runs of one category showed.

    Parameters
    ----------
    counts
        Transitions between rows and ends, shape (n_rows + 2, n_rows + 2).
    violating_arrivals, arrivals
        Calls that led to each row and were themselves the violation, and all calls that led there.
    ends
        Runs by end: ``"violated"``, ``"completed"``, ``"censored"``.
    kinds
        Violating calls by the row they were made from and by kind, shape (n_rows, len(VIOLATION_KINDS)); a call of
        several kinds is divided among them.
    """

    counts: TransitionCounts
    violating_arrivals: NDArray[Any]
    arrivals: NDArray[Any]
    ends: Counter[str] = field(default_factory=Counter)
    kinds: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, len(VIOLATION_KINDS))))

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.counts + other.counts,
            self.violating_arrivals + other.violating_arrivals,
            self.arrivals + other.arrivals,
            self.ends + other.ends,
            self.kinds + other.kinds,
        )


def gather(
    runs: Sequence[ObservedRun],
    rows: Rows,
    *,
    completion: bool = True,
    kinds: Sequence[tuple[str, ...]] | None = None,
) -> Evidence:
    """Count what runs showed.

    Parameters
    ----------
    runs
        Observed runs, none of them left out.
    rows
        The rows of the chain.
    completion
        Whether finishing counts as an end; without it, a finished run is treated as cut off.
    kinds
        The kinds of violation of each run's violating call; without, none is known.
    """
    n_rows = len(rows.names)
    sequences = [rows.sequence(run) for run in runs]
    if not completion:
        ended = rows.absorbing[COMPLETED][0]
        sequences = [states[:-1] if states[-1] == ended else states for states in sequences]
    violating = [rows.row_of[run.arrival] for run in runs if run.arrival is not None]
    harmless = [rows.row_of[state] for run in runs for state in run.states[1:]]
    violating_arrivals = np.bincount(violating, minlength=n_rows).astype(np.int64)
    return Evidence(
        count_transitions(sequences, n_rows + 2),
        violating_arrivals,
        violating_arrivals + np.bincount(harmless, minlength=n_rows),
        Counter(run.end or "censored" for run in runs),
        _kinds(runs, rows, [()] * len(runs) if kinds is None else kinds),
    )


def _kinds(runs: Sequence[ObservedRun], rows: Rows, kinds: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
    found = np.zeros((len(rows.names), len(VIOLATION_KINDS)))
    for run, named in zip(runs, kinds, strict=True):
        if run.arrival is not None:
            columns = [_COLUMN.get(kind, _COLUMN[OTHER]) for kind in named or (OTHER,)]
            np.add.at(found, (rows.row_of[run.states[-1]], columns), 1.0 / len(columns))
    return found


def evidence_definition(parts: Mapping[tuple[str, str], Evidence]) -> list[dict[str, Any]]:
    """Return what runs showed by source and category as plain data, from which `read_evidence` makes it again.

    Arrivals that were no violation are transitions to their row, and not said twice.
    """
    return [
        {
            "source": source,
            "category": category,
            "ends": dict(sorted(part.ends.items())),
            "counts": _sparse(part.counts.matrix),
            "violating": _sparse(part.violating_arrivals[:, None]),
            "kinds": _sparse(part.kinds),
        }
        for (source, category), part in parts.items()
    ]


def read_evidence(definition: Any, n_rows: int) -> dict[tuple[str, str], Evidence]:
    """Build what runs showed from plain data; the inverse of `evidence_definition`.

    Parameters
    ----------
    n_rows
        Rows of the chain, its ends not counted.

    Raises
    ------
    ModelFileError
        If a part is missing or cannot be.
    """
    try:
        parts = {}
        for part in definition:
            counts = _dense(part["counts"], (n_rows + 2, n_rows + 2))
            violating = _dense(part["violating"], (n_rows, 1))[:, 0]
            whole = all(np.equal(np.mod(values, 1.0), 0.0).all() for values in (counts, violating))
            if whole:
                counts, violating = counts.astype(np.int64), violating.astype(np.int64)
            parts[str(part["source"]), str(part["category"])] = Evidence(
                TransitionCounts(counts) if whole else TransitionCounts.weighted(counts),
                violating,
                violating + counts[:n_rows, :n_rows].sum(axis=0),
                Counter({str(end): _whole(count) for end, count in part["ends"].items()}),
                _dense(part["kinds"], (n_rows, len(VIOLATION_KINDS))),
            )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelFileError(f"the counts behind its tables cannot be read: {error!r}") from error
    return parts


def _sparse(matrix: NDArray[Any]) -> list[list[Any]]:
    return [[int(row), int(column), matrix[row, column].item()] for row, column in np.argwhere(matrix)]


def _dense(entries: Any, shape: tuple[int, int]) -> NDArray[Any]:
    matrix = np.zeros(shape)
    for row, column, value in entries:
        if not (0 <= _whole(row) < shape[0] and 0 <= _whole(column) < shape[1]):
            raise ValueError(f"row {row}, column {column} is outside {shape}")
        if type(value) not in {int, float} or not 0.0 < value < _MOST:
            raise ValueError(f"{value!r} is no count")
        matrix[row, column] = value
    return matrix


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no whole number, 0 or more")
    return value


_MOST = 2.0**53
