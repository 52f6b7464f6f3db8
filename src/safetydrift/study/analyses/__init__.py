"""The analyses of the SafetyDrift paper on any labelled runs, each with the published figures beside its own.

`run_analyses` runs any of `ANALYSES`; what comes of each are tables that say on what they rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.errors import UnknownAnalysisError
from safetydrift.study.analyses.ablation import ablation
from safetydrift.study.analyses.cross_model import cross_model
from safetydrift.study.analyses.learning_curve import learning_curve
from safetydrift.study.analyses.order import order
from safetydrift.study.analyses.study import DEFAULT_SEED, Study
from safetydrift.study.analyses.thresholds import thresholds
from safetydrift.study.analyses.transitions import transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from safetydrift.evaluation.document import Table
    from safetydrift.monitor.settings import FitSettings
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

__all__ = ["ANALYSES", "DEFAULT_SEED", "Study", "run_analyses"]

ANALYSES: Mapping[str, Callable[[Study], dict[str, Table]]] = {
    "transitions": transitions,
    "order": order,
    "thresholds": thresholds,
    "ablation": ablation,
    "learning-curve": learning_curve,
    "cross-model": cross_model,
}
"""Each takes the runs under study and returns one table or more, the first under its own name where it has one."""


def run_analyses(
    names: Iterable[str],
    trajectories: Iterable[Trajectory],
    space: StateSpace,
    settings: FitSettings | None = None,
    seed: int = DEFAULT_SEED,
) -> dict[str, Table]:
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

    Returns
    -------
    dict of str to Table
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
    found: dict[str, Table] = {}
    for name in chosen:
        found |= ANALYSES[name](study)
    return found
