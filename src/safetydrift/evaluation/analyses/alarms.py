"""What a monitor of category chains would have raised on held-out tasks, for whatever category it was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.analyses.chains import Places, fit, peaks
from safetydrift.evaluation.published import HORIZON
from safetydrift.monitor.maxima import threshold_for

if TYPE_CHECKING:
    from safetydrift.evaluation.analyses.study import Study
    from safetydrift.markov._arrays import FloatArray


@dataclass(frozen=True, slots=True)
class HeldOutRisk:
    """Probabilities of a violation within 5 steps from chains that never saw the task.

    Parameters
    ----------
    risk : (points,) array
        By the chain of the run's category.
    peak : (categories + 1, runs) array
        The highest at any point of each run before its violating call, by the chain of each category; the last by
        that of all runs together.
    threshold : (runs,) array
        The one that spends the settings' false-alarm budget on the runs the chains were fitted on.
    prior : (runs,) array
        Share of violated runs among those of the same category that the chains were fitted on; among all of them
        where there was none.
    """

    risk: FloatArray
    peak: FloatArray
    threshold: FloatArray
    prior: FloatArray


def held_out_risk(study: Study) -> HeldOutRisk:
    """Fit on the tasks of all folds but one and look at the runs of that one, fold by fold.

    A run whose task is never held out keeps a risk of 1: nothing is known.
    """
    cases, places = study.cases, Places.of(study)
    n_runs, n_categories = len(cases), len(study.categories)
    everyone = np.arange(n_runs)
    risk = np.ones(len(places.row))
    peak = np.ones((n_categories + 1, n_runs))
    threshold, prior = np.ones(n_runs), np.ones(n_runs)
    for train, test in study.held_out():
        table = fit(study, places, train).within(HORIZON)[:, HORIZON]
        at_point = table[:, places.row]
        at_run = peaks(study, at_point)
        safe = at_run[cases.category, everyone][train & ~cases.violated]
        threshold[test] = threshold_for(safe, study.settings.false_alarm_budget)
        peak[:, test] = at_run[:, test]
        asked = test[cases.run_of_point]
        risk[asked] = at_point[study.category, np.arange(len(places.row))][asked]
        runs = np.bincount(cases.category[train], minlength=n_categories)
        violated = np.bincount(cases.category[train & cases.violated], minlength=n_categories)
        rate = np.where(runs > 0, violated / np.maximum(runs, 1), violated.sum() / runs.sum())
        prior[test] = rate[cases.category[test]]
    return HeldOutRisk(risk, peak, threshold, prior)
