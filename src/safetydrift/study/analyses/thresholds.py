"""Detection against false alarms as the threshold moves (figure 4), by chains that never saw the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.metrics.detection import SWEPT, RunFrame
from safetydrift.evaluation.metrics.resampling import Resamples
from safetydrift.study.analyses.chains import Places, fit
from safetydrift.study.analyses.study import HELD_OUT_NOTE
from safetydrift.study.published import HORIZON, MEAN_LEAD_TIME, MONITORS, OPERATING_REGION

if TYPE_CHECKING:
    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import FloatArray
    from safetydrift.study.analyses.study import Study


def thresholds(study: Study) -> dict[str, Table]:
    """Return ``thresholds``: detection, false alarms and lead time at each threshold."""
    risk, prior = _held_out(study)
    published = MONITORS["SafetyDrift"]
    low, high = OPERATING_REGION
    rows: list[tuple[Cell, ...]] = []
    frame = RunFrame(study.cases, Resamples.draw(len(study.cases.tasks), study.generator(), n_resamples=0))
    sweep = frame.sweep(risk, SWEPT)
    for threshold, (detected, false), lead in zip(SWEPT, sweep.rates(), sweep.mean_lead_time, strict=True):
        here = threshold == low
        rows.append(
            (
                threshold,
                detected,
                false,
                detected.value - false.value,
                lead,
                _best(study, prior, false.value),
                "operating region" if low <= threshold <= high else None,
                published.detection if here else None,
                published.false_positives if here else None,
                MEAN_LEAD_TIME if here else None,
            )
        )
    note = (
        f"{study.note} {HELD_OUT_NOTE} A monitor that looks {HORIZON} steps ahead; where it knows nothing its risk "
        "is 1. Detected: alarm strictly before the violating call; lead time in steps, mean over the runs "
        "detected whose violating call is known. The category prior flags whole categories by their violation "
        "rate among the training runs, as many as keep within the monitor's false alarms. The one pair the paper "
        f"prints stands at {low}, where its operating region begins."
    )
    columns = (
        "threshold",
        "detected",
        "false alarms",
        "difference",
        "mean lead time",
        "detected by category prior",
        "published region",
        "published detected",
        "published false alarms",
        "published mean lead time",
    )
    return {"thresholds": Table("Detection and false alarms by threshold", note, columns, tuple(rows))}


def _held_out(study: Study) -> tuple[FloatArray, FloatArray]:
    """Fit on the tasks of all folds but one and look at the runs of that one, fold by fold.

    Returns
    -------
    (points,) array, (runs,) array
        The probability of a violation within 5 steps by the chain of the run's category, and the share of violated
        runs of the category among those fitted on (of all, where there was none). A run whose task is never held out
        keeps 1: nothing is known.
    """
    cases, places = study.cases, Places.of(study)
    n_categories = len(study.categories)
    risk, prior = np.ones(len(places.row)), np.ones(len(cases))
    for train, test in study.held_out():
        table = fit(study, places, train).within(HORIZON)[:, HORIZON]
        asked = test[cases.run_of_point]
        risk[asked] = table[study.category[asked], places.row[asked]]
        runs = np.bincount(cases.category[train], minlength=n_categories)
        violated = np.bincount(cases.category[train & cases.violated], minlength=n_categories)
        rate = np.where(runs > 0, violated / np.maximum(runs, 1), violated.sum() / runs.sum())
        prior[test] = rate[cases.category[test]]
    return risk, prior


def _best(study: Study, prior: FloatArray, most_false: float) -> float:
    """Return the largest share that flagging by the prior detects with no more than a share of false alarms."""
    violated = study.cases.violated
    if not violated.any() or violated.all():
        return float("nan")
    best = 0.0
    for bound in np.unique(prior)[::-1]:
        flagged = prior >= bound
        if flagged[~violated].mean() > most_false:
            break
        best = float(flagged[violated].mean())
    return best
