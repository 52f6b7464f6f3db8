"""Do models differ, and does a chain fitted on one serve for another (table 4)?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.analyses.analysis import Analysis
from safetydrift.evaluation.analyses.chains import Places
from safetydrift.evaluation.analyses.study import HELD_OUT_NOTE
from safetydrift.evaluation.analyses.trial import try_out
from safetydrift.evaluation.published import MODELS
from safetydrift.evaluation.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from safetydrift.evaluation.analyses.analysis import Cell
    from safetydrift.evaluation.analyses.study import Study
    from safetydrift.markov._arrays import BoolArray

    Pairs: TypeAlias = Mapping[str, tuple[str, str]]

FEWEST_RUNS = 20
"""A model with fewer usable runs in a category is not ranked there."""

ALL = "all"


def cross_model(study: Study, pairs: Pairs | None = None) -> dict[str, Analysis]:
    """Return ``cross-model``, ``cross-model-spread`` and ``cross-model-transfer``.

    Parameters
    ----------
    pairs
        The two models to compare, by source; by default the two with the most usable runs.
    """
    models = _Models(study)
    pairs = models.largest_pairs() if pairs is None else pairs
    return {
        "cross-model": _rates(models, pairs),
        "cross-model-spread": _spread(models),
        "cross-model-transfer": _transfer(models, pairs),
    }


class _Models:
    """Which run is of which source, category and model, and what its steps did."""

    def __init__(self, study: Study) -> None:
        self.study = study
        runs = [case.run for case in study.cases.cases]
        self.source = np.array([run.source for run in runs])
        self.model = np.array([run.model for run in runs])
        n_levels = len(study.level_names)
        after = study.following(study.level, n_levels, completion=False)
        self._low = min(1, n_levels - 1)
        from_low = (study.level == self._low) & (after >= 0)
        self._violating_from_low = self._per_run(from_low & (after == n_levels))
        self._from_low = self._per_run(from_low)

    def _per_run(self, at_point: BoolArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.add.reduceat(at_point.astype(np.int64), self.study.cases.first_point[:-1])

    @property
    def low(self) -> str:
        """Name of the lowest risk level above none at all."""
        return self.study.level_names[self._low]

    def largest_pairs(self) -> dict[str, tuple[str, str]]:
        """Return the two models with the most runs of each source that has two."""
        pairs = {}
        for source in dict.fromkeys(self.source.tolist()):
            ranked = Counter(self.model[self.source == source].tolist())
            names = sorted(ranked, key=lambda name: (-ranked[name], name))
            if len(names) > 1:
                pairs[source] = (names[0], names[1])
        return pairs

    def measures(self, runs: BoolArray) -> tuple[Cell, ...]:
        """Return violated runs, steps from the low level that violate, steps that violate, and steps per run."""
        steps = np.diff(self.study.cases.first_proposal)[runs]
        violated = self.study.cases.violated[runs]
        return (
            Rate(int(violated.sum()), len(violated)),
            Rate(int(self._violating_from_low[runs].sum()), int(self._from_low[runs].sum())),
            Rate(int(violated.sum()), int(steps.sum())),
            float(steps.mean()) if len(steps) else float("nan"),
        )


def _rates(models: _Models, pairs: Pairs) -> Analysis:
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
    return Analysis(
        "Two models of each source side by side",
        f"{study.note} The two models of a source with the most usable runs, unless others are named. Steps count up "
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


def _spread(models: _Models) -> Analysis:
    study = models.study
    rows: list[tuple[Cell, ...]] = []
    for number, category in enumerate(study.categories):
        in_category = study.cases.category == number
        per_model = [
            models.measures(in_category & (models.model == model))
            for model in dict.fromkeys(models.model[in_category].tolist())
        ]
        ranked = [
            measures
            for measures in per_model
            if isinstance(measures[0], Rate) and measures[0].total >= FEWEST_RUNS
        ]
        cells: list[Cell] = [category, len(ranked), len(per_model) - len(ranked)]
        for position in range(3):
            rates = [rate.value for measures in ranked if isinstance(rate := measures[position], Rate)]
            cells += _quartiles([rate for rate in rates if rate == rate])  # noqa: PLR0124  # nan is of nobody
        rows.append(tuple(cells))
    measured = ("violated", f"{models.low} to violated", "steps that violate")
    return Analysis(
        "Spread over models, by category",
        f"{study.note} Over the models (with their defences) that have {FEWEST_RUNS} usable runs or more in the "
        "category: the lowest, the median and the highest share.",
        (
            "category",
            "models",
            "models with too few runs",
            *(f"{what}, {which}" for what in measured for which in ("lowest", "median", "highest")),
        ),
        tuple(rows),
    )


def _quartiles(values: list[float]) -> list[Cell]:
    if not values:
        return [float("nan")] * 3
    return [min(values), float(np.median(values)), max(values)]


def _transfer(models: _Models, pairs: Pairs) -> Analysis:
    study = models.study
    folds = study.held_out()
    places = Places.fine(study)
    rows: list[tuple[Cell, ...]] = []
    for source, pair in pairs.items():
        of_source = models.source == source
        for tried in pair:
            mine = of_source & (models.model == tried)
            other = next(model for model in pair if model != tried)
            learnt_from = {
                tried: mine,
                other: of_source & (models.model == other),
                "all models but this": of_source & ~mine,
            }
            for fitted, runs in learnt_from.items():
                parts = [(train & runs, test & mine) for train, test in folds]
                found = try_out(study, places, parts)
                rows.append(
                    (
                        source,
                        fitted,
                        tried,
                        int(runs.sum()),
                        int(mine.sum()),
                        found.next_level.accuracy,
                        found.next_level.log_loss,
                        found.ranking.auroc,
                        found.ranking.within_category,
                    )
                )
    return Analysis(
        "A chain fitted on one model, tried on another",
        f"{study.note} {HELD_OUT_NOTE} Both for the model's own chain and for the chain of another. The next level is "
        "foretold from the state, over all categories of the source; log loss in nats; AUROC is of a violation within "
        "5 steps by the chain of the category.",
        (
            "source",
            "fitted on",
            "tried on",
            "runs fitted",
            "runs tried",
            "accuracy",
            "log loss",
            "AUROC within 5",
            "AUROC within 5, mean over categories",
        ),
        tuple(rows),
    )
