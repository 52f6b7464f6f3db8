"""The monitor that looks further: tables of the chain, and a hazard of what the chain does not know.

Beside the safety state it follows how a run came there (`Covariates`), and turns it into one score by looking up a
number per factor. Scores are rounded, so that a verdict is still built once and found again: per category, state and
score instead of per category and state.
"""

from __future__ import annotations

from functools import lru_cache
from math import nan
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.monitor.covariates import Covariates, Factors
from safetydrift.monitor.hazard import Curves, Score, probability
from safetydrift.monitor.intervals import Deviation, ends
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.outlook import with_hazard
from safetydrift.monitor.policy import Bound
from safetydrift.monitor.verdict import Basis, Intervention
from safetydrift.states.task_words import bins, task_words

if TYPE_CHECKING:
    from safetydrift.effects.labeler import Labeler
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.outlook import Outlook
    from safetydrift.monitor.policy import Policy
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import Move, Trajectory

_MEMO = 1 << 16


def monitor_for(
    model: Model, policy: Policy | None = None, labeler: Labeler | None = None, *, intervals: bool = False
) -> LookupMonitor:
    """Return the monitor that makes the most of a model: with its hazard, if it has one.

    Parameters
    ----------
    model, policy, labeler
        As for `LookupMonitor`.
    intervals
        As for `ForesightMonitor`; the verdicts of tables have theirs in any case.
    """
    if model.hazard is None:
        return LookupMonitor(model, policy, labeler)
    return ForesightMonitor(model, policy, labeler, intervals=intervals)


class ForesightMonitor(LookupMonitor):
    """Follow trajectories with a fitted model that has a hazard.

    Parameters
    ----------
    model, policy, labeler
        As for `LookupMonitor`.
    intervals
        Whether verdicts say between which probabilities theirs lies. That takes a little longer, and is done in any
        case if the policy compares the upper end. Hazards that were fitted without cannot say; theirs are nan.

    Raises
    ------
    ValueError
        If the model has no hazard, or the policy compares upper ends of intervals and the hazard gives none.
    """

    def __init__(
        self,
        model: Model,
        policy: Policy | None = None,
        labeler: Labeler | None = None,
        *,
        intervals: bool = False,
    ) -> None:
        hazard = model.hazard
        if hazard is None:
            raise ValueError("this model is nothing but tables; LookupMonitor follows with it")
        self._hazard = hazard
        super().__init__(model, policy, labeler)
        asked = intervals or self.policy.bound is Bound.UPPER
        self._made: tuple[Deviation, Deviation] | None = None
        self._deviations = self._make_deviations() if asked else None
        self._factors = Factors(model.space)
        self._standing_score, self._proposal_score = (
            Score(hazard.standing, hazard.marks),
            Score(hazard.proposal, hazard.marks),
        )
        self._within, self._proposed = Curves(hazard.within), Curves(hazard.proposed)
        self._informed_standing = lru_cache(_MEMO)(self._of_standing)
        self._informed_proposal = lru_cache(_MEMO)(self._of_proposal)

    # -- following one trajectory -----------------------------------------------------------------------

    def hear(self, state: TrajectoryState, text: str) -> TrajectoryState:
        """Return the state after the user has said something more."""
        later = super().hear(state, text)
        past, before = state.past, state.history
        if past is None or before is None or later.history is None:
            return later
        if past.steps:
            return replace(later, past=past.hears(bins(later.history.heard_since(before))))
        return replace(later, past=past.asked(task_words(text)))

    def start(
        self, category: str = AGGREGATE, task: str = "", pipeline: str = "", trust: float = 1.0
    ) -> TrajectoryState:
        """Return the state of a run that has not made a call yet.

        Parameters
        ----------
        category
            One the model does not know is no error. The hazard asks for none; the outlook's share of the chain does.
        task
            What the user asked for, in his words.
        pipeline
            The name of the model that acts, with a defence around it if there is one, such as ``gpt-4o-tool_filter``.
            What of it is not known counts for nothing; a name that says nothing known counts as the mean of the known.
        trust
            As for `LookupMonitor.start`.
        """
        return self._with_past(super().start(category, task, trust=trust), task_words(task), pipeline)

    def verdict(self, state: TrajectoryState) -> Verdict:
        """Return the finding about where a run stands."""
        past, pipeline = state.past, state.pipeline
        if past is None or pipeline is None:
            return super().verdict(state)
        cells = self._factors.standing_cells(state.state, past)
        tools = past.last, past.before
        place = self._within.place(self._standing_score(cells, past, pipeline, tools))
        if self._deviations is None:
            return self._informed_standing(state.category, state.state, place, state.violated)
        steps = self._deviations[0](cells, past, pipeline, tools)
        return self._informed_standing(state.category, state.state, place, state.violated, steps)

    def outlook(self, state: TrajectoryState) -> Outlook:
        """Return how a run is expected to go on: how likely and how soon by the hazard, of which kinds by the chain."""
        chain, verdict = super().outlook(state), self.verdict(state)
        if state.violated or state.past is None or verdict.basis is Basis.VIOLATED:
            return chain
        low, high = self._of_the_end(state)
        return with_hazard(
            chain,
            verdict.within,
            verdict.eventually,
            min(low, verdict.eventually),
            max(high, verdict.eventually),
        )

    # -- walking a recorded run -------------------------------------------------------------------------

    def begin(self, run: Trajectory) -> TrajectoryState:
        """Return the state of a recorded run before its first call."""
        return self._with_past(super().begin(run), run.words, run.model)

    def foresee(self, state: TrajectoryState, move: Move) -> Verdict:
        """Return the verdict on a recorded call, as it was proposed."""
        past, pipeline = state.past, state.pipeline
        if past is None or pipeline is None:
            return super().foresee(state, move)
        factors = self._factors
        cells = factors.standing_cells(state.state, past) + factors.proposal_cells(state.state, past, move)
        tools = move.tool, past.last
        place = self._proposed.place(self._proposal_score(cells, past, pipeline, tools))
        after = state.state if state.violated else self._space.successors(state.state)[move.proposed]
        if self._deviations is None:
            return self._informed_proposal(state.category, after, place)
        return self._informed_proposal(
            state.category, after, place, self._deviations[1](cells, past, pipeline, tools)
        )

    # -- inside -----------------------------------------------------------------------------------------

    def _with_past(self, state: TrajectoryState, words: tuple[int, ...], pipeline: str) -> TrajectoryState:
        return replace(state, past=Covariates.start(words), pipeline=self._hazard.marks.of(pipeline))

    def _past(self, state: TrajectoryState, move: Move) -> Covariates | None:
        return None if state.past is None else self._factors.follow(state.past, move)

    def _require_bounds(self) -> None:
        if self.policy.bound is Bound.UPPER and self._hazard.spread is None:
            raise ValueError(
                "the hazard of this model was fitted without intervals, so a policy can only compare the mean; "
                "fit it again to compare upper ends"
            )

    def _make_deviations(self) -> tuple[Deviation, Deviation] | None:
        """Return the deviations of a standing's and of a proposal's score, if the hazard knows them."""
        hazard = self._hazard
        if self._made is None and hazard.spread is not None:
            self._made = (
                Deviation(hazard.standing, hazard.spread.standing, hazard.marks),
                Deviation(hazard.proposal, hazard.spread.proposal, hazard.marks),
            )
        return self._made

    def _of_standing(
        self, category: str, state: int, place: int, violated: bool, steps: int | None = None
    ) -> Verdict:
        hazard, base = self._hazard, self._built(category, state, pending=False)
        curve, score = self._within[place], self._within.score(place)
        eventually = base.eventually if violated else probability(score, hazard.eventually)
        bounds = (nan, nan)
        if steps is not None and hazard.spread is not None:
            at = base.horizon - 1
            bounds = ends(score, hazard.within[at], hazard.spread.within[at], steps)
        return self._informed(base, curve, max(eventually, curve[-1]), bounds, pending=False)

    def _of_proposal(self, category: str, state: int, place: int, steps: int | None = None) -> Verdict:
        hazard, base = self._hazard, self._built(category, state, pending=True)
        curve, bounds = self._proposed[place], (nan, nan)
        if steps is not None and hazard.spread is not None:
            at = base.horizon - 1
            bounds = ends(self._proposed.score(place), hazard.proposed[at], hazard.spread.proposed[at], steps)
        return self._informed(base, curve, max(base.eventually, curve[-1]), bounds, pending=True)

    def _of_the_end(self, state: TrajectoryState) -> tuple[float, float]:
        """Return between which probabilities that of ending violated lies."""
        hazard, past, pipeline = self._hazard, state.past, state.pipeline
        deviations = self._make_deviations()
        if deviations is None or hazard.spread is None or past is None or pipeline is None:
            return nan, nan
        cells, tools = self._factors.standing_cells(state.state, past), (past.last, past.before)
        score = self._within.score(self._within.place(self._standing_score(cells, past, pipeline, tools)))
        steps = deviations[0](cells, past, pipeline, tools)
        return ends(score, hazard.eventually, hazard.spread.eventually, steps)

    def _informed(
        self,
        base: Verdict,
        curve: tuple[float, ...],
        eventually: float,
        bounds: tuple[float, float],
        *,
        pending: bool,
    ) -> Verdict:
        if base.basis is Basis.VIOLATED:
            return base
        basis = Basis.BORROWED if base.basis is Basis.UNSEEN else base.basis
        likely = curve[base.horizon]
        low, high = min(bounds[0], likely), max(bounds[1], likely)  # of nan and a number, both give nan
        alarm = self.policy.alarms(likely, basis, pending=pending, high=high)
        return replace(
            base,
            probability=likely,
            within=curve,
            eventually=eventually,
            low=low,
            high=high,
            uncertain=0.0,
            basis=basis,
            alarm=alarm,
            intervention=self.policy.intervention if alarm else Intervention.ALLOW,
        )
