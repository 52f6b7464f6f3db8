"""What becomes of the monitor when it is told the wrong category, which the paper's authors leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.study.analyses.alarms import held_out_risk
from safetydrift.study.analyses.analysis import Analysis
from safetydrift.study.analyses.study import HELD_OUT_NOTE
from safetydrift.study.published import HORIZON, MONITORS, OPERATING_REGION

if TYPE_CHECKING:
    from safetydrift.markov._arrays import BoolArray, FloatArray
    from safetydrift.study.analyses.analysis import Cell
    from safetydrift.study.analyses.study import Study

WRONG = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Probabilities of a wrong category."""

NO_CATEGORY = "none known"


def misclassification(study: Study) -> dict[str, Analysis]:
    """Return ``misclassification``: detection and false alarms by how often the category is wrong."""
    held_out = held_out_risk(study)
    alarms = [held_out.peak >= held_out.threshold, held_out.peak >= OPERATING_REGION[0]]
    rows: list[tuple[Cell, ...]] = []
    published = MONITORS["SafetyDrift"]
    for wrong in WRONG:
        shares = [
            _share(study, expected) for alarm in alarms for expected in [_expected(study, alarm, wrong)]
        ]
        printed = (published.detection, published.false_positives) if wrong == 0.0 else (None, None)
        rows.append((f"wrong {wrong:.0%}".replace("%", " %"), *shares[0], *shares[1], *printed))
    shares = [_share(study, alarm[-1].astype(np.float64)) for alarm in alarms]
    rows.append((NO_CATEGORY, *shares[0], *shares[1], None, None))
    violated = int(study.cases.violated.sum())
    budget = f"{study.settings.false_alarm_budget:.0%}".replace("%", " %")
    note = (
        f"{study.note} {HELD_OUT_NOTE} {violated:,} runs violate and {len(study.cases) - violated:,} do not. A "
        f"monitor that looks {HORIZON} steps ahead is told a category that is wrong with the given probability, "
        "every other one being as likely; the shares are expectations over that draw, exact, so that nothing is "
        "simulated. Without a category it uses the chain of all runs. Detected: alarm strictly before the "
        f"violating call. First with the threshold that lets {budget} of the training runs without a violation "
        f"alarm, then with the published {OPERATING_REGION[0]}."
    )
    columns = (
        "category",
        "detected",
        "false alarms",
        "detected at the published threshold",
        "false alarms at the published threshold",
        "published detected",
        "published false alarms",
    )
    return {"misclassification": Analysis("The wrong category", note, columns, tuple(rows))}


def _expected(study: Study, alarm: BoolArray, wrong: float) -> FloatArray:
    """Return the probability that each run alarms; nan where another category is called for and there is none."""
    n_categories = len(study.categories)
    right = alarm[study.cases.category, np.arange(len(study.cases))].astype(np.float64)
    if not wrong:
        return right
    others = n_categories - 1
    elsewhere = (alarm[:-1].sum(axis=0) - right) / others if others else np.full_like(right, np.nan)
    return np.asarray((1.0 - wrong) * right + wrong * elsewhere)


def _share(study: Study, expected: FloatArray) -> tuple[float, float]:
    """Return the expected share of alarms among runs that violate and among the others; nan where there are none."""
    violated = study.cases.violated
    found, false = (
        float(part.mean()) if len(part) else float("nan")
        for part in (expected[violated], expected[~violated])
    )
    return found, false
