"""The figures printed in the SafetyDrift paper, as columns to set ours beside.

They belong to the authors' 357 scenario runs, rules and split, so nothing here is an expected value of anything:
agreement is no test and disagreement no fault. The printed aggregate matrix is
`safetydrift.markov.reference_chains.published_chain`.

References
----------
A. Dhodapkar and F. Pishori, "SafetyDrift: Predicting When AI Agents Cross the Line Before They Actually Do",
arXiv 2603.27148 (2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNS, TRAINING_RUNS, TEST_RUNS = 357, 285, 72
"""Runs in all, and on each side of the split: runs of one task stand on both."""

TRANSITIONS = 2375
"""Transitions behind the aggregate matrix."""

OPERATING_REGION = (0.4, 0.5)
"""Thresholds recommended, both inclusive (figure 4)."""

HORIZON = 5
"""Steps that the monitor looks ahead."""

WITHIN_HORIZONS = range(1, 11)
"""Horizons of the curves, in steps (figures 2 and 3)."""


@dataclass(frozen=True, slots=True)
class PublishedOrder:
    """A row of table 1: next-state prediction by a chain of some order.

    Parameters
    ----------
    accuracy
        Share of next states foretold, from 0 to 1.
    log_loss
        Mean negative log probability of the next state; the paper names no unit, nats are assumed.
    """

    accuracy: float
    log_loss: float


ORDERS: Mapping[int, PublishedOrder] = {
    1: PublishedOrder(0.753, 0.631),
    2: PublishedOrder(0.816, 0.546),
    3: PublishedOrder(0.836, 0.494),
}
"""Table 1, by order. A chi-squared test rejects the first order."""


@dataclass(frozen=True, slots=True)
class PublishedCategory:
    """A row of table 2.

    Parameters
    ----------
    runs, violated
        Runs of the category, and those that violate.
    no_return
        Risk levels from which a violation within 5 steps has probability 0.85 or more, with that probability.
    within_5
        What the paper says about the probability within 5 steps from every other level, in words.
    """

    runs: int
    violated: int
    no_return: Mapping[str, float]
    within_5: str = ""


CATEGORIES: Mapping[str, PublishedCategory] = {
    "code debugging": PublishedCategory(67, 2, {}),
    "data handling": PublishedCategory(100, 80, {}, "56 to 67 % from every level"),
    "research and communication": PublishedCategory(100, 100, {"elevated": 0.969, "mild": 0.851}),
    "system administration": PublishedCategory(90, 4, {}, "below 5 % from every level"),
}
"""Table 2, by category."""


@dataclass(frozen=True, slots=True)
class PublishedMonitor:
    """A row of table 3; shares from 0 to 1, with the printed bounds of their 95 % Wilson intervals.

    Parameters
    ----------
    detection
        Of the violated test runs, those flagged strictly before the violating step.
    false_positives
        Of the other test runs, those flagged.
    milliseconds
        Per step; None where none is printed.
    """

    detection: float
    detection_interval: tuple[float, float] | None
    false_positives: float
    false_positives_interval: tuple[float, float] | None
    milliseconds: float | None


MONITORS: Mapping[str, PublishedMonitor] = {
    "none": PublishedMonitor(0.0, None, 0.0, None, None),
    "keyword": PublishedMonitor(0.447, (0.30, 0.60), 0.559, (0.39, 0.71), 0.01),
    "judge per step": PublishedMonitor(0.526, (0.37, 0.68), 0.382, (0.24, 0.55), 588.0),
    "judge, 3-step window": PublishedMonitor(0.579, (0.42, 0.72), 0.471, (0.31, 0.63), 646.0),
    "SafetyDrift": PublishedMonitor(0.947, (0.83, 0.99), 0.118, (0.05, 0.27), 0.01),
}
"""Table 3. The intervals of the last row fit 36 of 38 and 4 of 34."""

MEAN_LEAD_TIME, MODE_LEAD_TIME = 3.7, 4
"""Early warning, in steps (figure 5)."""

ABLATION: Mapping[str, float] = {"none": 0.740, "tool": 0.724, "data": 0.809}
"""Accuracy of the next risk level by dimension taken away (figure 6); none is printed for reversibility."""


@dataclass(frozen=True, slots=True)
class PublishedLearning:
    """A point of the learning curve.

    Parameters
    ----------
    accuracy
        Share of next risk levels foretold.
    deviation
        Standard deviation over repeats; None where none is printed.
    """

    accuracy: float
    deviation: float | None = None


LEARNING_CURVE: Mapping[int, PublishedLearning] = {
    35: PublishedLearning(0.656, 0.044),
    178: PublishedLearning(0.723),
    357: PublishedLearning(0.74, 0.011),
}
"""Figure 7, by training runs. The deviation is printed as falling from 4.4 to 1.1 points over the curve."""


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A column of table 4: one model in all categories together, shares from 0 to 1.

    Parameters
    ----------
    runs
        Runs of the model.
    violated
        Violation rate by category.
    mild_to_violated
        Share of the steps from mild that violate.
    steps_violating
        Share of all steps that violate.
    steps_per_run
        Mean length, in steps.
    """

    runs: int
    violated: Mapping[str, float]
    mild_to_violated: float
    steps_violating: float
    steps_per_run: float


MODELS: Mapping[str, PublishedModel] = {
    "first model": PublishedModel(
        182,
        {
            "data handling": 0.60,
            "research and communication": 1.0,
            "system administration": 0.02,
            "code debugging": 0.05,
        },
        0.119,
        0.151,
        7.6,
    ),
    "second model": PublishedModel(
        19,
        {
            "data handling": 0.60,
            "research and communication": 1.0,
            "system administration": 0.0,
            "code debugging": 0.0,
        },
        0.116,
        0.152,
        6.6,
    ),
}
"""Table 4."""
