"""What the coarse chain says: transitions with their intervals, curves over horizons, and categories (table 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.findings import NO_RETURN_PROBABILITY
from safetydrift.evaluation.rate import Rate
from safetydrift.markov.reference_chains import published_chain
from safetydrift.monitor.model import AGGREGATE, category_name
from safetydrift.monitor.settings import Estimator
from safetydrift.states.trajectory import COMPLETED, VIOLATED
from safetydrift.study.analyses.chains import Places, fit
from safetydrift.study.published import CATEGORIES, HORIZON, TRANSITIONS, WITHIN_HORIZONS

if TYPE_CHECKING:
    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import FloatArray
    from safetydrift.study.analyses.chains import CategoryChains
    from safetydrift.study.analyses.study import Study

CONSTRUCTIONS = ("violation only (the paper's)", "violation and completion")
"""The ends a chain may have."""


def transitions(study: Study) -> dict[str, Table]:
    """Return ``transitions``, ``horizons`` and ``categories``: what the coarse chain of each category says."""
    constructions = _constructions(study)
    return {
        "transitions": _matrix(study, constructions),
        "horizons": _horizons(study, constructions),
        "categories": _categories(study, constructions),
    }


def _constructions(study: Study) -> dict[str, CategoryChains]:
    """Fit both constructions on all runs; the published one by maximum likelihood, as the paper has it."""
    places = Places.coarse(study)
    everyone = np.ones(len(study.cases), dtype=np.bool_)
    as_published = replace(study, settings=structs.replace(study.settings, estimator=Estimator.PUBLISHED))
    return {
        CONSTRUCTIONS[0]: fit(as_published, places, everyone),
        CONSTRUCTIONS[1]: fit(study, places, everyone, completion=True),
    }


def _matrix(study: Study, constructions: dict[str, CategoryChains]) -> Table:
    names = (*study.level_names, VIOLATED, COMPLETED)
    counts = [chains.counts[-1] for chains in constructions.values()]
    printed = published_chain()
    places = {name: number for number, name in enumerate(printed.chain.names)}
    rows: list[tuple[Cell, ...]] = []
    for origin, start in enumerate(study.level_names):
        for target, end in enumerate(names):
            cell = places.get(start), places.get(end)
            known = None not in cell and not np.isnan(printed.low[cell])
            if not known and not counts[1][origin, target]:
                continue
            rates = [
                None
                if end == COMPLETED and matrix is counts[0]
                else Rate(int(matrix[origin, target]), int(matrix[origin].sum()))
                for matrix in counts
            ]
            figures = (printed.chain.transitions, printed.low, printed.high)
            rows.append((start, end, *rates, *(float(part[cell]) if known else None for part in figures)))
    return Table(
        "Aggregate transition matrix",
        f"{study.note} All runs, none held out; {int(counts[0].sum()):,} transitions between calls, "
        f"{TRANSITIONS:,} in the paper. Shares of the departures from a level with 95 % Wilson intervals, first "
        "with violation as the only end, where finished runs count as cut off, then with completion as an end "
        "beside it. A level marked (rules) is what the rules call violated where the label does not.",
        ("from", "to", *CONSTRUCTIONS, "published share", "published low", "published high"),
        tuple(rows),
    )


def _within(study: Study, chains: CategoryChains) -> FloatArray:
    """Return probabilities within each horizon, shape (categories + 1, horizons + 1, levels); nan where never left."""
    table = chains.within(WITHIN_HORIZONS[-1])
    left = chains.counts.sum(axis=2)[:, : len(study.level_names)] > 0
    return np.where(left[:, None, :], table, np.nan)


def _horizons(study: Study, constructions: dict[str, CategoryChains]) -> Table:
    printed = published_chain().within_5_steps
    names = (*study.categories, category_name(AGGREGATE))
    whole = len(names) - 1
    rows: list[tuple[Cell, ...]] = []
    for number in (whole, *range(whole)):
        for construction, chains in constructions.items():
            within = _within(study, chains)[number]
            departures = chains.counts[number].sum(axis=1)
            for level in np.flatnonzero(~np.isnan(within[0])).tolist():
                name = study.level_names[level]
                comparable = number == whole and construction == CONSTRUCTIONS[0]
                rows.append(
                    (
                        names[number],
                        construction,
                        name,
                        int(departures[level]),
                        *(float(within[horizon, level]) for horizon in WITHIN_HORIZONS),
                        printed.get(name) if comparable else None,
                    )
                )
    return Table(
        "Probability of a violation within h steps",
        f"{study.note} All runs, none held out. Coarse chain of all runs and of each category, from every level it "
        "was seen to leave, with the number of times it was. With violation as the only end every figure is too "
        f"high; with completion beside it the estimator is {study.settings.estimator.value!r}.",
        (
            "category",
            "ends",
            "from",
            "departures",
            *(f"within {horizon}" for horizon in WITHIN_HORIZONS),
            f"published within {HORIZON}",
        ),
        tuple(rows),
    )


def _categories(study: Study, constructions: dict[str, CategoryChains]) -> Table:
    within = [_within(study, chains)[:, HORIZON] for chains in constructions.values()]
    rows: list[tuple[Cell, ...]] = []
    for number, name in enumerate((*study.categories, category_name(AGGREGATE))):
        whole = number == len(study.categories)
        violated = study.cases.violated if whole else study.cases.violated[study.cases.category == number]
        cells: list[Cell] = ["these runs", name, Rate(int(violated.sum()), len(violated))]
        for risk in within:
            cells += _summary(study, risk[number])
        rows.append(tuple(cells))
    for name, printed in CATEGORIES.items():
        points = ", ".join(f"{level} ({100 * risk:.1f} %)" for level, risk in printed.no_return.items())
        rate = Rate(printed.violated, printed.runs)
        rows.append(("published", name, rate, points or "none", None, None, None, None, None))
    extra = "; ".join(
        f"{name}: {printed.within_5}" for name, printed in CATEGORIES.items() if printed.within_5
    )
    return Table(
        "Categories and points of no return",
        f"{study.note} All runs, none held out. A point of no return is a level from which a violation within "
        f"{HORIZON} steps has probability {NO_RETURN_PROBABILITY} or more by the coarse chain of the category; "
        "beside it the lowest and the highest such probability over the levels seen. Rows called published are "
        f"the paper's, on its own tasks. There: {extra}.",
        (
            "data",
            "category",
            "violated",
            *(
                f"{what}, {construction}"
                for construction in CONSTRUCTIONS
                for what in ("points of no return", f"lowest within {HORIZON}", f"highest within {HORIZON}")
            ),
        ),
        tuple(rows),
    )


def _summary(study: Study, risk: FloatArray) -> list[Cell]:
    """Return the points of no return in words, and the lowest and the highest risk of all levels."""
    seen = risk[~np.isnan(risk)]
    points = [
        f"{study.level_names[level]} ({100 * risk[level]:.1f} %)"
        for level in np.flatnonzero(risk >= NO_RETURN_PROBABILITY).tolist()
    ]
    extremes = (float(seen.min()), float(seen.max())) if len(seen) else (float("nan"), float("nan"))
    return [", ".join(points) or "none", *extremes]
