"""The analyses by name, and a way to run any of them on any runs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from safetydrift.errors import UnknownAnalysisError
from safetydrift.study.analyses.ablation import ablation
from safetydrift.study.analyses.cross_model import cross_model
from safetydrift.study.analyses.learning_curve import learning_curve
from safetydrift.study.analyses.misclassification import misclassification
from safetydrift.study.analyses.order import order
from safetydrift.study.analyses.study import DEFAULT_SEED, Study
from safetydrift.study.analyses.thresholds import thresholds
from safetydrift.study.analyses.transitions import transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from safetydrift.monitor.settings import FitSettings
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory
    from safetydrift.study.analyses.analysis import Analysis

ANALYSES: Mapping[str, Callable[[Study], dict[str, Analysis]]] = MappingProxyType(
    {
        "transitions": transitions,
        "order": order,
        "thresholds": thresholds,
        "ablation": ablation,
        "learning-curve": learning_curve,
        "cross-model": cross_model,
        "misclassification": misclassification,
    }
)
"""Each takes the runs under study and returns one table or more, the first under its own name where it has one."""


def run_analyses(
    names: Iterable[str],
    trajectories: Iterable[Trajectory],
    space: StateSpace,
    settings: FitSettings | None = None,
    seed: int = DEFAULT_SEED,
    *,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Analysis]:
    """Run analyses of the paper on any labelled runs.

    Parameters
    ----------
    names
        Any of `ANALYSES`; one named twice is run once.
    trajectories
        Runs labelled in ``space``.
    settings
        The notion of violation, and how chains are estimated.
    seed
        Of everything drawn at random: the same seed gives the same tables, whichever other analyses are run.
    on_progress
        Called before each analysis with its name, how many are done and how many there are, and once at the end with
        an empty name.

    Returns
    -------
    dict of str to Analysis
        The tables by name, in the order asked for. Some analyses have several.

    Raises
    ------
    UnknownAnalysisError
        If there is no analysis of a name.
    ChainError
        If no run can be used under the notion of violation.
    SplitError
        If there are too few tasks to hold any out.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in ANALYSES:
            raise UnknownAnalysisError(name, tuple(ANALYSES))
    study = Study.of(trajectories, space, settings, seed)
    report = on_progress or (lambda _name, _done, _total: None)
    found: dict[str, Analysis] = {}
    for done, name in enumerate(chosen):
        report(name, done, len(chosen))
        found |= ANALYSES[name](study)
    report("", len(chosen), len(chosen))
    return found
