"""The monitor that looks further: tables of the chain, and a risk score of what the chain does not know.

Beside the safety state it follows how a run came there (`Facts`), and turns it into one score by looking up a number
per feature. Scores are rounded, so that a verdict is still built once and found again: per category, state and score
instead of per category and state.
"""

from __future__ import annotations

from functools import lru_cache
from math import nan
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from safetydrift.errors import SnapshotError
from safetydrift.monitor.features import Features
from safetydrift.monitor.intervals import Deviation, ends
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.outlook import with_risk_score
from safetydrift.monitor.policy import Bound
from safetydrift.monitor.scoring import Curves, Score, by_feature, probability
from safetydrift.monitor.verdict import Basis, Intervention
from safetydrift.states.task_words import bins, task_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from safetydrift.effects.labeler import Labeler
    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.features import Look
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.outlook import Outlook
    from safetydrift.monitor.pipelines import Traits
    from safetydrift.monitor.policy import Policy
    from safetydrift.monitor.risk_score import Side
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import Move, Trajectory

_MEMO = 1 << 16


def monitor_for(
    model: Model, policy: Policy | None = None, labeler: Labeler | None = None, *, intervals: bool = False
) -> LookupMonitor:
    """Return the monitor that makes the most of a model: with its risk score, if it has one.

    Parameters
    ----------
    model, policy, labeler
        As for `LookupMonitor`.
    intervals
        As for `ForesightMonitor`; the verdicts of tables have theirs in any case.
    """
    if model.risk_score is None:
        return LookupMonitor(model, policy, labeler)
    return ForesightMonitor(model, policy, labeler, intervals=intervals)


class Reason(NamedTuple):
    """What one feature adds to a risk score.

    Attributes
    ----------
    feature
        Its name.
    words
        What it found.
    adds
        Log odds.
    """

    feature: str
    words: str
    adds: float


class ForesightMonitor(LookupMonitor):
    """Follow trajectories with a fitted model that has a risk score.

    Parameters
    ----------
    model, policy, labeler
        As for `LookupMonitor`.
    intervals
        Whether verdicts say between which probabilities theirs lies. That takes a little longer, and is done in any
        case if the policy compares the upper end. Scores that were fitted without cannot say; theirs are nan.

    Raises
    ------
    ValueError
        If the model has no risk score, or the policy compares upper ends of intervals and the score gives none.
    """

    def __init__(
        self,
        model: Model,
        policy: Policy | None = None,
        labeler: Labeler | None = None,
        *,
        intervals: bool = False,
    ) -> None:
        found = model.risk_score
        if found is None:
            raise ValueError("this model is nothing but tables; LookupMonitor follows with it")
        self._risk = found
        super().__init__(model, policy, labeler)
        self._intervals = intervals or self.policy.bound is Bound.UPPER
        current = found.current.weights.cells
        added = [name for name in found.proposal.weights.cells if name not in current]
        self._features = Features(model.space, current, added)
        self._current = _Scored(found.current, found.traits, self._features.current)
        self._proposal = _Scored(
            found.proposal, found.traits, self._features.current, self._features.proposal
        )
        self._informed_current = lru_cache(_MEMO)(self._of_current)
        self._informed_proposal = lru_cache(_MEMO)(self._of_proposal)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: what is remembered need not travel."""
        return _monitor, (self.model, self.policy, self.labeler, self._intervals)

    # -- following one trajectory -----------------------------------------------------------------------

    def start(
        self, category: str = AGGREGATE, task: str = "", pipeline: str = "", trust: float = 1.0
    ) -> TrajectoryState:
        """Return the state of a run that has not made a call yet.

        Parameters
        ----------
        category
            One the model does not know is no error. The risk score asks for none; the outlook does.
        task
            What the user asked for, in their words.
        pipeline
            The name of the model that acts, with a defence around it if there is one, such as ``gpt-4o-tool_filter``.
            What of it is not known counts for nothing; a name that says nothing known is taken for the mean of them.
        trust
            As for `LookupMonitor.start`.
        """
        return self._with_facts(super().start(category, task, trust=trust), task_words(task), pipeline)

    def hear(self, state: TrajectoryState, text: str) -> TrajectoryState:
        """Return the state after the user has said something more."""
        later = super().hear(state, text)
        facts, before = state.facts, state.history
        if facts is None or before is None or later.history is None:
            return later
        if state.steps:
            words = bins(later.history.heard_since(before))
            return replace(later, facts=self._features.hear(facts, words)) if words else later
        return replace(later, facts=replace(facts, task_words=facts.task_words.union(task_words(text))))

    def require(self, state: TrajectoryState) -> None:
        """Check that a state is one of this monitor; the errors are those of `LookupMonitor.require`."""
        super().require(state)
        if state.facts is None or max(state.pipeline or (0,)) >= max(len(self._risk.traits), 1):
            raise SnapshotError("not the state of a run that a risk score follows")
        self._features.require(state.facts)

    def verdict(self, state: TrajectoryState) -> Verdict:
        """Return the finding about where a run stands."""
        facts, pipeline = state.facts, state.pipeline
        if facts is None or pipeline is None:
            return super().verdict(state)
        seen = self._features.see(state.state, facts)
        tools = facts.last, facts.before
        place = self._current.place(seen, facts, pipeline, tools)
        steps = self._current.steps(seen, facts, pipeline, tools) if self._intervals else None
        return self._informed_current(state.category, state.state, place, state.violated, steps)

    def foresee(self, state: TrajectoryState, move: Move) -> Verdict:
        """Return the verdict on a call as it was proposed."""
        facts, pipeline = state.facts, state.pipeline
        if facts is None or pipeline is None:
            return super().foresee(state, move)
        here = state.state
        seen = self._features.see(here, facts)
        call = self._features.see_call(seen, here, facts, move)
        tools = move.tool, facts.last
        place = self._proposal.place(seen, facts, pipeline, tools, call)
        steps = self._proposal.steps(call, facts, pipeline, tools) if self._intervals else None
        after = here if state.violated else self._space.successors(here)[move.proposed]
        return self._informed_proposal(state.category, after, place, steps)

    def outlook(self, state: TrajectoryState) -> Outlook:
        """Return how a run may go on: how likely and how soon by the risk score, of which kinds by the chain."""
        chain, verdict = super().outlook(state), self.verdict(state)
        facts, pipeline = state.facts, state.pipeline
        if state.violated or facts is None or pipeline is None or verdict.basis is Basis.VIOLATED:
            return chain
        asked = self._features.see(state.state, facts), facts, pipeline, (facts.last, facts.before)
        steps = self._current.steps(*asked)
        low, high = self._current.ends(self._current.place(*asked), None, steps)
        eventually = verdict.eventually
        return with_risk_score(chain, verdict.within, eventually, min(low, eventually), max(high, eventually))

    def reasons(self, state: TrajectoryState, move: Move | None = None) -> list[Reason]:
        """Return what each feature adds to the score of where a run stands, or of a call it proposes, most first."""
        facts = state.facts
        if facts is None:
            return []
        seen = self._features.see(state.state, facts)
        looks, side = self._features.current, self._risk.current
        if move is not None:
            seen = self._features.see_call(seen, state.state, facts, move)
            looks, side = self._features.all, self._risk.proposal
        added = by_feature(side.weights, looks, seen)
        reasons = [Reason(name, look.says(look.cell(seen)), added[name]) for name, look in looks.items()]
        return sorted(reasons, key=lambda reason: -reason.adds)

    # -- along a recorded run ---------------------------------------------------------------------------

    def begin(self, run: Trajectory) -> TrajectoryState:
        """Return the state of a recorded run before its first call."""
        return self._with_facts(super().begin(run), run.words, run.model)

    # -- inside -----------------------------------------------------------------------------------------

    def _with_facts(self, state: TrajectoryState, words: tuple[int, ...], pipeline: str) -> TrajectoryState:
        return replace(state, facts=self._features.start(words), pipeline=self._risk.traits.of(pipeline))

    def _facts(self, state: TrajectoryState, move: Move) -> Facts | None:
        return None if state.facts is None else self._features.follow(state.facts, move)

    def _require_bounds(self) -> None:
        if self.policy.bound is Bound.UPPER and self._risk.current.learned is None:
            raise ValueError(
                "the risk score of this model was fitted without intervals, so a policy can only compare the mean; "
                "fit it again to compare upper ends"
            )

    def _of_current(
        self, category: str, state: int, place: int, violated: bool, steps: int | None
    ) -> Verdict:
        base = self._built(category, state, pending=False)
        return self._informed(base, self._current, place, steps, keep_end=violated, pending=False)

    def _of_proposal(self, category: str, state: int, place: int, steps: int | None) -> Verdict:
        base = self._built(category, state, pending=True)
        return self._informed(base, self._proposal, place, steps, keep_end=False, pending=True)

    def _informed(
        self, base: Verdict, side: _Scored, place: int, steps: int | None, *, keep_end: bool, pending: bool
    ) -> Verdict:
        """Return a verdict of the tables with what the risk score says in its place."""
        if base.basis is Basis.VIOLATED:
            return base
        curve = side.curves[place]
        eventually = base.eventually if keep_end else side.eventually(place)
        likely = curve[base.horizon]
        low, high = side.ends(place, base.horizon, steps)
        low, high = min(low, likely), max(high, likely)  # of nan and a number, both give nan
        basis = Basis.BORROWED if base.basis is Basis.UNSEEN else base.basis
        alarm = self.policy.alarms(likely, basis, pending=pending, high=high)
        return replace(
            base,
            probability=likely,
            within=curve,
            eventually=max(eventually, curve[-1]),
            low=low,
            high=high,
            uncertain=0.0,
            basis=basis,
            alarm=alarm,
            intervention=self.policy.intervention if alarm else Intervention.ALLOW,
        )


class _Scored:
    """One side of a risk score, ready to be asked; what is seen is as in `Score`."""

    __slots__ = ("_deviation", "_looks", "_score", "_side", "_traits", "curves")

    def __init__(
        self,
        side: Side,
        traits: Traits,
        current: Mapping[str, Look],
        proposal: Mapping[str, Look] | None = None,
    ) -> None:
        self._side, self._traits = side, traits
        self._looks = {**current, **(proposal or {})}
        self._score = Score(side.weights, traits, current, proposal)
        self.curves = Curves(side.within)
        self._deviation: Deviation | None = None

    def place(
        self,
        seen: tuple[int, ...],
        facts: Facts,
        pipeline: tuple[int, ...],
        tools: tuple[str, str],
        call: tuple[int, ...] | None = None,
    ) -> int:
        """Return the rounded score, as the row of the curves."""
        return self.curves.place(self._score(seen, facts, pipeline, tools, call))

    def steps(
        self, seen: Sequence[int], facts: Facts, pipeline: tuple[int, ...], tools: tuple[str, str]
    ) -> int | None:
        """Return the score's standard deviation, rounded; None if it is not known."""
        learned = self._side.learned
        if learned is None:
            return None
        if self._deviation is None:
            sizes = {name: look.size for name, look in self._looks.items()}
            self._deviation = Deviation(self._side.weights, learned, sizes, self._traits)
        cells = [look.cell(seen) for look in self._looks.values()]
        return self._deviation(cells, facts, pipeline, tools)

    def eventually(self, place: int) -> float:
        """Return the probability that the run ends violated."""
        return probability(self.curves.score(place), self._side.eventually)

    def ends(self, place: int, horizon: int | None, steps: int | None) -> tuple[float, float]:
        """Return between which probabilities that within a horizon lies, or that in the end; nan where not known."""
        if steps is None:
            return nan, nan
        link = self._side.eventually if horizon is None else self._side.within[horizon - 1]
        return ends(self.curves.score(place), link, steps)


def _monitor(model: Model, policy: Policy, labeler: Labeler, intervals: bool) -> ForesightMonitor:
    return ForesightMonitor(model, policy, labeler, intervals=intervals)
