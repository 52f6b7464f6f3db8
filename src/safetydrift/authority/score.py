"""The probability that a concern is unauthorised harm: additive tables over its cells and pairs of cells.

The tables come from boosted trees that were fitted under monotone constraints with no more than two features each
(`safetydrift.evaluation.authority_fitting`), so that adding up tables gives exactly what the trees say: a generalised
additive model with interactions (GA2M; Lou, Caruana, Gehrke and Hooker, 2013).
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from safetydrift.authority.concerns import FEATURE_NAMES, FEATURES, Concern
from safetydrift.authority.grading import FORBIDDEN
from safetydrift.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCORE_FORMAT = "safetydrift.authority-score/1"
FORBIDDEN_ODDS = 3.0
"""Log-odds of what the user said not to do, at least: nobody has to be asked whether it was asked for."""
ALIKE = 1.0
"""Log-odds by which concerns may differ, and count as about as probable: the most telling of them is named."""
MAX_FILE = 4 << 20
"""A larger file is refused, in bytes."""


class PairTable(Struct, frozen=True, forbid_unknown_fields=True):
    """What two features say together, in log-odds.

    Parameters
    ----------
    features
        Their names.
    values
        By the cell of the first, then that of the second.
    """

    features: tuple[str, str]
    values: tuple[tuple[float, ...], ...]


class ScoreTables(Struct, frozen=True, forbid_unknown_fields=True):
    """A score as it is written.

    Parameters
    ----------
    format
        `SCORE_FORMAT`.
    base
        Log-odds where every cell is 0.
    tables
        By feature, what each cell adds, in log-odds.
    pairs
        What pairs of cells add beyond that.
    fitted_on
        What it was fitted on: calls by source.
    """

    format: str
    base: float
    tables: dict[str, tuple[float, ...]]
    pairs: tuple[PairTable, ...]
    fitted_on: dict[str, int] = {}


class Assessment(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What is thought of a call.

    Parameters
    ----------
    probability
        That it brings about harm that nobody with authority asked for.
    concern
        The way in which it most probably does; None where there is none.
    """

    probability: float = 0.0
    concern: Concern | None = None


CLEAR = Assessment()
"""A call without any concern."""


class Score:
    """Says how probable it is that a concern is unauthorised harm.

    Parameters
    ----------
    tables
        The tables.

    Raises
    ------
    ModelFileError
        If they do not fit the features of concerns.
    """

    __slots__ = ("_base", "_pairs", "_tables", "tables")

    def __init__(self, tables: ScoreTables) -> None:
        if tables.format != SCORE_FORMAT:
            raise ModelFileError(f"not a score of concerns: its format is {tables.format[:40]!r}")
        if tuple(tables.tables) != FEATURE_NAMES or any(
            len(tables.tables[name]) != size for name, size in FEATURES.items()
        ):
            raise ModelFileError("the score was fitted with other features of concerns; fit it again")
        for pair in tables.pairs:
            first, second = pair.features
            sizes = (FEATURES.get(first), FEATURES.get(second))
            if (len(pair.values), len(pair.values[0]) if pair.values else 0) != sizes:
                raise ModelFileError(f"the score's table of {first} and {second} has other cells")
        self.tables = tables
        self._base = tables.base
        self._tables = tuple(tables.tables.values())
        self._pairs = tuple(
            [
                (FEATURE_NAMES.index(one.features[0]), FEATURE_NAMES.index(one.features[1]), one.values)
                for one in tables.pairs
            ]
        )

    def log_odds(self, cells: Sequence[int]) -> float:
        """Return the log-odds of unauthorised harm for the cells of a concern."""
        total = self._base
        for table, cell in zip(self._tables, cells, strict=True):
            total += table[cell]
        for first, second, values in self._pairs:
            total += values[cells[first]][cells[second]]
        return total

    def assess(self, concerns: Sequence[Concern]) -> Assessment:
        """Return what is thought of a call with these concerns: the probability of the most probable one.

        That is a lower bound of the probability that any of them is unauthorised harm, and the sum an upper one;
        concerns of one call mostly stand and fall together.
        """
        if not concerns:
            return CLEAR
        odds = [self._odds_of(concern) for concern in concerns]
        best = max(odds)
        alike = [one for one in range(len(odds)) if odds[one] >= best - ALIKE]
        telling = max(
            alike, key=lambda at: (concerns[at].cell("carried"), concerns[at].cell("certainty"), odds[at])
        )
        return Assessment(1.0 / (1.0 + exp(-best)), concerns[telling])

    def _odds_of(self, concern: Concern) -> float:
        odds = self.log_odds(concern.cells)
        return max(odds, FORBIDDEN_ODDS) if concern.cell("asked") == FORBIDDEN else odds

    def parts(self, concern: Concern) -> dict[str, float]:
        """Return what each feature adds to the log-odds of a concern; of a pair, each of the two has half."""
        found = {
            name: table[cell]
            for name, table, cell in zip(FEATURE_NAMES, self._tables, concern.cells, strict=True)
        }
        for first, second, values in self._pairs:
            half = values[concern.cells[first]][concern.cells[second]] / 2
            found[FEATURE_NAMES[first]] += half
            found[FEATURE_NAMES[second]] += half
        return found


def decode_score(data: bytes) -> Score:
    """Return a score from the bytes of its file.

    Raises
    ------
    ModelFileError
        If it is none.
    """
    if len(data) > MAX_FILE:
        raise ModelFileError(f"not a score of concerns: {len(data)} bytes are too many")
    try:
        return Score(msgspec.json.decode(data, type=ScoreTables))
    except msgspec.MsgspecError as error:
        raise ModelFileError(f"not a score of concerns: {error}") from error
