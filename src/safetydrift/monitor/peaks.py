"""The highest figure of each run: all that thresholds are chosen from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Peaks:
    """The highest figure of each run that a threshold would have been compared with.

    Parameters
    ----------
    standing, proposal : (runs,) arrays
        Over the standings before the violating call, and over the proposals up to and with it.
    violated : (runs,) array of bool
        Whether the run ends violated.
    task : (runs,) array of int
        Number of the run's task.
    """

    standing: FloatArray
    proposal: FloatArray
    violated: BoolArray
    task: IntArray

    def thresholds(self, standing: float, proposal: float) -> tuple[float, float]:
        """Return the lowest thresholds at which at most these shares of the runs without a violation alarm."""
        calm = ~self.violated
        return _threshold(self.standing[calm], standing), _threshold(self.proposal[calm], proposal)


def _threshold(calm: FloatArray, budget: float) -> float:
    """Return the lowest probability, to six places, that at most a share of the values reaches."""
    allowed = int(budget * len(calm))
    reached = np.sort(calm)[::-1]
    bound = reached[allowed] if allowed < len(reached) else 0.0
    return float(min(np.floor(bound * 1e6 + 1.0) / 1e6, 1.0))
