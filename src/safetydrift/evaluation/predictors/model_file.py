"""A model that was fitted elsewhere, with what its file says it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safetydrift.evaluation.predictors.foresight import model_scores
from safetydrift.evaluation.scores import Fixed
from safetydrift.states.task_words import task_digest

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.predictors.lookup import MonitorScores
    from safetydrift.evaluation.predictors.walked import WalkedScores
    from safetydrift.evaluation.scores import Scores
    from safetydrift.monitor.model import Model
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A fitted model in the shape of a predictor that needs no fitting.

    Parameters
    ----------
    scores
        What scores.
    seen
        How many of the tasks tried the model was fitted on; None where its file does not say.
    tried
        How many tasks are tried.
    """

    scores: MonitorScores | WalkedScores = field(repr=False)
    seen: int | None
    tried: int

    @property
    def name(self) -> str:
        """How tables name it."""
        return self.scores.name

    @property
    def in_sample(self) -> bool:
        """Whether it was fitted on tasks that are tried."""
        return bool(self.seen)

    @property
    def trained_on(self) -> frozenset[tuple[str, str, str]] | None:
        """The tasks tried that it was fitted on: none, or not known."""
        return frozenset() if self.seen == 0 else None

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal."""
        return self.scores.score(cases)


def model_predictor(name: str, model: Model, cases: CaseSet, recorded: StateSpace) -> Fixed:
    """Return a model as a predictor, having looked which of the tasks tried it was fitted on.

    Parameters
    ----------
    name
        How tables name it.
    cases
        The runs it may be tried on.
    recorded
        The space of these runs.

    Raises
    ------
    HorizonError
        If the model's tables end too early to be compared.
    """
    said = model.provenance.get("tasks")
    seen = None
    if isinstance(said, list | tuple):
        fitted = frozenset(said)
        seen = sum(task_digest(*task) in fitted for task in cases.tasks)
    scores = model_scores(name, model, recorded)
    return Fixed(name, ModelFile(scores, seen, len(cases.tasks)))
