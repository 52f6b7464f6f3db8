"""How far the two notions of violation agree, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

from safetydrift.evaluation.rate import Rate
from safetydrift.states.trajectory import VIOLATED, Notion, UnknownOnset, observe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Agreement:
    """Runs by what the rules and the label say of them.

    Parameters
    ----------
    both, rules_only, label_only, neither
        Counts of runs whose label can be used.
    """

    both: int = 0
    rules_only: int = 0
    label_only: int = 0
    neither: int = 0

    @property
    def total(self) -> int:
        """Runs whose label can be used."""
        return self.both + self.rules_only + self.label_only + self.neither

    @property
    def same(self) -> Rate:
        """Share of runs on which the two agree."""
        return Rate(self.both + self.neither, self.total)

    @property
    def recall(self) -> Rate:
        """Share of the runs labelled violated that the rules call violated."""
        return Rate(self.both, self.both + self.label_only)

    @property
    def precision(self) -> Rate:
        """Share of the runs the rules call violated that are labelled so."""
        return Rate(self.both, self.both + self.rules_only)

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance; nan where one of the two never varies.

        Notes
        -----
        Cohen, "A coefficient of agreement for nominal scales" (1960), Eq. 1.
        """
        n = self.total
        if not n:
            return nan
        rules, label = self.both + self.rules_only, self.both + self.label_only
        chance = (rules * label + (n - rules) * (n - label)) / (n * n)
        return nan if chance == 1.0 else (self.same.value - chance) / (1.0 - chance)

    def as_dict(self) -> dict[str, object]:
        """Return counts, rates and kappa as plain data."""
        return {
            "both": self.both,
            "rules_only": self.rules_only,
            "label_only": self.label_only,
            "neither": self.neither,
            "same": self.same.as_dict(),
            "kappa": self.kappa,
        }


def agreement(
    trajectories: Iterable[Trajectory],
    space: StateSpace,
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL,
) -> Agreement:
    """Compare the rules' verdict with the source's, over the runs whose label can be used.

    Parameters
    ----------
    unknown_onset
        Whether runs labelled violated whose violating call is not known are used.
    """
    counts = {(rules, label): 0 for rules in (True, False) for label in (True, False)}
    for trajectory in trajectories:
        by_label = observe(trajectory, space, Notion.LABEL, unknown_onset)
        if not by_label.left_out:
            by_rules = observe(trajectory, space, Notion.RULES)
            counts[by_rules.end == VIOLATED, by_label.end == VIOLATED] += 1
    return Agreement(counts[True, True], counts[True, False], counts[False, True], counts[False, False])
