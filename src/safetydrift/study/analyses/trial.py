"""Chains fitted on one part of the runs and tried on another: the next level, and a violation within a few steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.study.analyses.chains import fit
from safetydrift.study.analyses.foresight import NextLevel, Ranking, Steps, foretell
from safetydrift.study.published import HORIZON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.study.analyses.chains import Places
    from safetydrift.study.analyses.study import Part, Study


@dataclass(frozen=True, slots=True)
class Trial:
    """What chains foretold of runs they had not seen.

    Parameters
    ----------
    next_level
        Of the next risk level, or the violation; what comes after a run's last call is nobody's to foretell.
    own_level
        The same with risk levels as the chain's own rows have them.
    ranking
        By the probability of a violation within 5 steps, whether there was one.
    """

    next_level: NextLevel
    own_level: NextLevel
    ranking: Ranking


def try_out(study: Study, places: Places, parts: Iterable[Part]) -> Trial:
    """Fit on one part, try on the other, and put the trials together.

    Parameters
    ----------
    places
        The rows of the chain.
    parts
        Pairs of (runs,) arrays of bool: runs to learn from and runs to try on. A part that lacks either is passed over.
    """
    cases, n_levels, n_categories = study.cases, len(study.level_names), len(study.categories)
    full, own = Steps.of(study, study.level, n_levels), Steps.of(study, places.level, n_levels)
    at, run_of_step = full.point, cases.run_of_point[full.point]
    rungs = [np.zeros_like(at), places.level[at], places.row[at]]
    soon = cases.happens_within(HORIZON)
    nothing = np.zeros(n_categories + 1)
    found = Trial(NextLevel(), NextLevel(), Ranking(nothing, nothing))
    for train, test in parts:
        learnt, asked = train[run_of_step], test[cases.run_of_point]
        if not learnt.any() or not asked.any():
            continue
        table = fit(study, places, train).within(HORIZON)[:, HORIZON]
        risk = table[study.category[asked], places.row[asked]]
        next_level, own_level = (
            foretell(rungs, steps.target, steps.n_targets, learnt, test[run_of_step]) for steps in (full, own)
        )
        found = Trial(
            found.next_level + next_level,
            found.own_level + own_level,
            found.ranking + Ranking.of(risk, soon[asked], study.category[asked], n_categories),
        )
    return found
