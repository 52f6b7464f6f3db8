"""Detection against false alarms as the threshold moves (figure 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.metrics.detection import SWEPT, RunFrame
from safetydrift.evaluation.metrics.resampling import Resamples
from safetydrift.study.analyses.alarms import held_out_risk
from safetydrift.study.analyses.analysis import Analysis
from safetydrift.study.analyses.study import HELD_OUT_NOTE
from safetydrift.study.published import HORIZON, MEAN_LEAD_TIME, MONITORS, OPERATING_REGION

if TYPE_CHECKING:
    from safetydrift.markov._arrays import FloatArray
    from safetydrift.study.analyses.analysis import Cell
    from safetydrift.study.analyses.study import Study


def thresholds(study: Study) -> dict[str, Analysis]:
    """Return ``thresholds``: detection, false alarms and lead time at each threshold."""
    held_out = held_out_risk(study)
    published = MONITORS["SafetyDrift"]
    low, high = OPERATING_REGION
    rows: list[tuple[Cell, ...]] = []
    frame = RunFrame(study.cases, Resamples.draw(len(study.cases.tasks), study.generator(), n_resamples=0))
    sweep = frame.sweep(held_out.risk, SWEPT)
    for threshold, (detected, false), lead in zip(SWEPT, sweep.rates(), sweep.mean_lead_time, strict=True):
        here = threshold == low
        rows.append(
            (
                threshold,
                detected,
                false,
                detected.value - false.value,
                lead,
                _prior(study, held_out.prior, false.value),
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
    return {"thresholds": Analysis("Detection and false alarms by threshold", note, columns, tuple(rows))}


def _prior(study: Study, prior: FloatArray, most_false: float) -> float:
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
