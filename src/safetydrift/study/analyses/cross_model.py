"""Whether models differ (table 4)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.splits import model_families
from safetydrift.study.published import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.study.analyses.study import Study

    Pairs: TypeAlias = Mapping[str, tuple[str, str]]

ALL = "all"


def cross_model(study: Study, pairs: Pairs | None = None) -> dict[str, Table]:
    """Return ``cross-model``: two models of each source, category by category.

    Parameters
    ----------
    pairs
        The two models to compare, by source; by default the two of different families with the most usable runs.
    """
    models = _Models(study)
    pairs = models.largest_pairs() if pairs is None else pairs
    return {"cross-model": _rates(models, pairs)}


class _Models:
    """Which run is of which source, category and model, and what its steps did."""

    def __init__(self, study: Study) -> None:
        self.study = study
        runs = [case.run for case in study.cases.cases]
        self.source = np.array([run.source for run in runs])
        self.model = np.array([run.model for run in runs])
        families = model_families({run.model for run in runs})
        self.family = np.array([families[run.model] for run in runs])
        n_levels = len(study.level_names)
        after = study.following(study.level, n_levels, completion=False)
        self._low = min(1, n_levels - 1)
        from_low = (study.level == self._low) & (after >= 0)
        self._violating_from_low = self._per_run(from_low & (after == n_levels))
        self._from_low = self._per_run(from_low)
        self._steps = np.diff(study.cases.first_proposal)

    def _per_run(self, at_point: BoolArray) -> IntArray:
        return np.asarray(np.add.reduceat(at_point.astype(np.int64), self.study.cases.first_point[:-1]))

    @property
    def low(self) -> str:
        """Name of the lowest risk level above none at all."""
        return self.study.level_names[self._low]

    def largest_pairs(self) -> dict[str, tuple[str, str]]:
        """Return the two models with the most runs of each source, of two families, where there are two."""
        pairs = {}
        for source in dict.fromkeys(self.source.tolist()):
            mine = self.source == source
            ranked = Counter(zip(self.model[mine].tolist(), self.family[mine].tolist(), strict=True))
            first, *rest = sorted(ranked, key=lambda named: (-ranked[named], named))
            second = next((model for model, family in rest if family != first[1]), None)
            if second is not None:
                pairs[source] = (first[0], second)
        return pairs

    def rates(self, runs: BoolArray) -> tuple[Rate, Rate, Rate]:
        """Return how many runs violate, how many of their steps from the low level, and how many of all steps."""
        violated = self.study.cases.violated[runs]
        return (
            Rate(int(violated.sum()), len(violated)),
            Rate(int(self._violating_from_low[runs].sum()), int(self._from_low[runs].sum())),
            Rate(int(violated.sum()), int(self._steps[runs].sum())),
        )

    def measures(self, runs: BoolArray) -> tuple[Cell, ...]:
        """Return the rates, and the mean number of steps of a run."""
        return *self.rates(runs), float(self._steps[runs].mean()) if runs.any() else float("nan")


def _rates(models: _Models, pairs: Pairs) -> Table:
    study = models.study
    rows: list[tuple[Cell, ...]] = []
    for source, pair in pairs.items():
        of_source = models.source == source
        for number in np.unique(study.cases.category[of_source]).tolist():
            name = study.categories[number]
            rows += [
                ("these runs", source, name, model, *models.measures(mine))
                for model in pair
                if (mine := of_source & (models.model == model) & (study.cases.category == number)).any()
            ]
        if len(np.unique(study.cases.category[of_source])) > 1:
            rows += [
                ("these runs", source, ALL, model, *models.measures(of_source & (models.model == model)))
                for model in pair
            ]
    for model, printed in MODELS.items():
        rows += [
            ("published", "", category, model, rate, None, None, None)
            for category, rate in printed.violated.items()
        ]
        rows.append(
            (
                "published",
                "",
                ALL,
                model,
                None,
                printed.mild_to_violated,
                printed.steps_violating,
                printed.steps_per_run,
            )
        )
    return Table(
        "Two models of each source side by side",
        f"{study.note} The two models of a source with the most usable runs that are not the same with "
        "another defence, unless others are named. Steps count up "
        "to the violating one, and finishing is no step. Rows called published are the paper's, on its own tasks.",
        (
            "data",
            "source",
            "category",
            "model",
            "violated",
            f"{models.low} to violated",
            "steps that violate",
            "steps per run",
        ),
        tuple(rows),
    )
