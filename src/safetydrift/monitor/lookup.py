"""The monitor that looks up: one prebuilt verdict per (category, state).

A verdict depends only on where a run stands, so every one of them is built before it is needed, and a check is:
read the effect, join it to the state, index a tuple. Where nobody says of which category a run is, the verdicts of the
categories are mixed by how much each is believed (`safetydrift.monitor.categories`).
"""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.effects.history import History
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import made, move_of
from safetydrift.errors import HorizonError
from safetydrift.monitor.categories import Belief
from safetydrift.monitor.mixing import mixed_outlook, mixed_verdict
from safetydrift.monitor.mixture import NEGLIGIBLE, mixture_of
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.outlook import Alternative, Outlook
from safetydrift.monitor.policy import Bound
from safetydrift.monitor.session import Pending, TrajectoryState
from safetydrift.monitor.verdict import Basis, Intervention, Verdict
from safetydrift.states.task_words import task_words
from safetydrift.states.trajectory import Notion
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.model import Model, RiskTable
    from safetydrift.monitor.policy import Policy
    from safetydrift.states.effect import Effect
    from safetydrift.states.trajectory import Move, Trajectory
    from safetydrift.trace import Step

MOST_REMEMBERED = 1 << 14
NONE_RAISED = (False,)


class LookupMonitor:
    """Follow trajectories with the tables of a fitted model.

    Parameters
    ----------
    model
        The fitted model.
    policy
        When to intervene; the model's own if not given.
    labeler
        Reads what a call does; by default with the catalogue the model was fitted with.

    Raises
    ------
    HorizonError
        If the policy looks further ahead than the model's tables reach, or compares upper bounds at a horizon for
        which the model has none.
    CatalogueError
        If the labeler's catalogue does not know the dimensions of the model's space.

    Examples
    --------
    >>> from safetydrift import Step, ToolCall, load_model
    >>> monitor = LookupMonitor(load_model())
    >>> state = monitor.start("banking")
    >>> state, verdict = monitor.check(state, Step(ToolCall("get_most_recent_transactions"), "..."))
    >>> state.steps, verdict.risk
    (1, 'mild')
    """

    def __init__(self, model: Model, policy: Policy | None = None, labeler: Labeler | None = None) -> None:
        self.model = model
        self.policy = model.policy if policy is None else policy
        if self.policy.horizon > model.max_horizon:
            raise HorizonError(
                f"horizon {self.policy.horizon} exceeds the model's maximum {model.max_horizon}; "
                f"fit it with a maximum horizon of {self.policy.horizon} or more"
            )
        self._require_bounds()
        self.labeler = Labeler(model.catalogue) if labeler is None else labeler
        self.labeler.require_cover(model.space)
        self._space = model.space
        self._follows = self.labeler.needs_history(model.space)
        self._by_rules = model.notion is Notion.RULES
        self._current_verdicts: dict[str, tuple[Verdict, ...]] = {}
        self._pending_verdicts: dict[str, tuple[Verdict, ...]] = {}
        self._mixture = mixture_of(model)
        self._raised: dict[tuple[int, int], tuple[bool, ...]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: what is remembered need not travel."""
        return LookupMonitor, (self.model, self.policy, self.labeler)

    # -- following one trajectory -----------------------------------------------------------------------

    def start(
        self,
        category: str = AGGREGATE,
        task: str = "",
        pipeline: str = "",  # noqa: ARG002  # tables do not ask for it
        trust: float = 1.0,
    ) -> TrajectoryState:
        """Return the state of a run that has not made a call yet.

        Parameters
        ----------
        category
            One the model does not know, or none, is no error: the words of the task and what the run does then tell how
            much each category is believed. For a model without soft categories, the aggregate tables stand in.
        task
            What the user asked for, in his words. A model whose states tell who named a value needs it.
        pipeline
            The name of the model that acts, with a defence around it if there is one. Tables do not ask for it.
        trust
            Probability that the category given is right. Below one, a model with soft categories takes it for no more
            than that, and can be convinced of another.
        """
        return self.hear(self._starting(category, trust), task)

    def hear(self, state: TrajectoryState, text: str) -> TrajectoryState:
        """Return the state after the user has said something; nothing changes for models that do not ask for it."""
        if text and state.belief is not None and not state.steps:
            state = _asked(state, task_words(text))
        if not self._follows or not text:
            return state if state.history or not self._follows else replace(state, history=History())
        return replace(state, history=(state.history or History()).hears(text))

    def verdict(self, state: TrajectoryState) -> Verdict:
        """Return the finding about where a run stands."""
        if state.belief is not None:
            return self._mixed(state.belief, state.state, pending=False)
        return self.current_verdicts(state.category)[state.state]

    def read_call(self, state: TrajectoryState, call: ToolCall) -> Pending:
        """Read a call before it is made, in view of all that the run has shown. Nothing is recorded."""
        proposal = self.labeler.read_call(call, state.history)
        return Pending(proposal, move_of(proposal, self._space))

    def read_result(
        self, state: TrajectoryState, pending: Pending, result: str | None, error: str | None = None
    ) -> TrajectoryState:
        """Return where a run stands after a call that was made.

        Parameters
        ----------
        pending
            What `read_call` said of the call, when it was proposed.
        result, error
            What came back, as in `safetydrift.trace.Step`.
        """
        history = state.history
        effect, after = self.labeler.read_result(pending.proposal, result, error, history)
        move = made(pending.move, effect, history, after, self._space)
        return self.follow(state, move, after)

    def read_more(self, tool: str) -> Pending:
        """Return the reading of a call that was recorded, and of which more comes back: only that counts."""
        proposal = self.labeler.read_more(tool)
        return Pending(proposal, move_of(proposal, self._space))

    def follow_unread(self, state: TrajectoryState, pending: Pending) -> TrajectoryState:
        """Return where a run stands after a call that was made, and whose result nobody could read."""
        effect, after = self.labeler.leave_unread(pending.proposal, state.history)
        return self.follow(state, made(pending.move, effect, state.history, after, self._space), after)

    def require(self, state: TrajectoryState) -> None:
        """Check that a state is one of this monitor.

        Raises
        ------
        SnapshotError
            If it is none.
        """
        state.require(self._space)

    def check_pending(self, state: TrajectoryState, call: ToolCall) -> Verdict:
        """Judge a call before it is made: its effect is read as proposed, and nothing is recorded.

        The verdict is about the state the call would lead to, and its probability includes that the call
        itself is the violation.
        """
        return self.foresee(state, self.read_call(state, call).move)

    def check(self, state: TrajectoryState, step: Step) -> tuple[TrajectoryState, Verdict]:
        """Record a call with its result; return where the run stands now, and the finding about it."""
        state = self.hear(state, step.said) if step.said else state
        after = self.read_result(state, self.read_call(state, step.call), step.result, step.error)
        return after, self.verdict(after)

    # -- the same along a recorded run ------------------------------------------------------------------

    def begin(self, run: Trajectory) -> TrajectoryState:
        """Return the state of a recorded run before its first call."""
        return _asked(self._starting(run.category), run.words)

    def foresee(self, state: TrajectoryState, move: Move) -> Verdict:
        """Return the verdict on a call as it was proposed."""
        after = state.state if state.violated else self._space.successors(state.state)[move.proposed]
        belief = state.belief
        if belief is not None:
            return self._mixed(belief if state.violated else belief.after(after), after, pending=True)
        return self.pending_verdicts(state.category)[after]

    def follow(self, state: TrajectoryState, move: Move, history: History | None = None) -> TrajectoryState:
        """Return where a run stands after a call.

        Parameters
        ----------
        history
            What the run has shown by then; as before if not given.
        """
        steps, before, since, belief = state.steps + 1, state.state, state.since, state.belief
        after, violated = before, state.violated
        if not violated:
            after = self._space.successors(before)[move.effect]
            if after != before:
                raised = self._raised.get((before, after)) or self._raises(before, after)
                if raised is not NONE_RAISED:
                    since = tuple(
                        [steps if higher else step for higher, step in zip(raised, since, strict=True)]
                    )
            violated = self._by_rules and after in self._space.violated
            if belief is not None:
                belief = belief.after(after)
        return TrajectoryState(
            state.category,
            after,
            steps,
            since,
            violated,
            history or state.history,
            self._facts(state, move),
            state.pipeline,
            belief,
        )

    def _facts(self, state: TrajectoryState, move: Move) -> Facts | None:  # noqa: ARG002  # tables ask for none
        """Return what of a run's past counts after a call, beside its state."""
        return None

    def _raises(self, before: int, after: int) -> tuple[bool, ...]:
        """Return which dimensions are higher after than before, and remember it."""
        if len(self._raised) >= MOST_REMEMBERED:
            self._raised.clear()
        digits = self._space.digits
        raised = tuple([new > old for old, new in zip(digits(before), digits(after), strict=True)])
        found = self._raised[before, after] = raised if any(raised) else NONE_RAISED
        return found

    # -- the tables -------------------------------------------------------------------------------------

    def current_verdicts(self, category: str) -> tuple[Verdict, ...]:
        """Return the verdict about every state, by index: the look-up itself."""
        verdicts = self._current_verdicts.get(category)
        if verdicts is None:
            verdicts = self._current_verdicts[category] = self._build(category, pending=False)
        return verdicts

    def pending_verdicts(self, category: str) -> tuple[Verdict, ...]:
        """Return the verdict about a call that would lead to each state, by index."""
        verdicts = self._pending_verdicts.get(category)
        if verdicts is None:
            verdicts = self._pending_verdicts[category] = self._build(category, pending=True)
        return verdicts

    def outlook(self, state: TrajectoryState) -> Outlook:
        """Return how a run is expected to go on from where it stands."""
        if state.violated:
            return Outlook(violates=1.0, low=1.0, high=1.0, completes=0.0, steps=0.0, kinds=())
        if state.belief is None:
            return self._outlook(state.category, state.state)
        believed = self._believed(state.belief)
        return mixed_outlook([(share, self._outlook(name, state.state)) for share, name in believed])

    def _outlook(self, category: str, state: int) -> Outlook:
        table = self.model.tables.get(category) or self.model.tables[AGGREGATE]
        row, bounds, endings = self.model.row_of[state], table.bounds, table.endings
        violates = table.eventually[row]
        return Outlook(
            violates=violates,
            low=nan if bounds is None else min(bounds.eventually_low[row], violates),
            high=nan if bounds is None else max(bounds.eventually_high[row], violates),
            completes=nan if endings is None else endings.completes[row],
            steps=nan if endings is None else endings.steps[row],
            kinds=() if endings is None else endings.kinds_of(row),
        )

    def mixes(self, category: str) -> bool:
        """Return whether runs said to be of a category are followed by all of them."""
        return self._mixture is not None and (category == AGGREGATE or category not in self.model.tables)

    def categories(self, state: TrajectoryState) -> tuple[tuple[str, float], ...]:
        """Return of which categories a run may be and how much each is believed, the likeliest first.

        The empty name stands for none of them. The category of a run that was told is certain.
        """
        mixture = self._mixture
        if state.belief is None or mixture is None:
            return ((state.category, 1.0),)
        pairs = zip(mixture.names, mixture.shares(state.belief), strict=True)
        return tuple(sorted(pairs, key=_most_believed))

    def kinds(self, state: TrajectoryState) -> tuple[tuple[str, float], ...]:
        """Return the kinds of violation to expect from where a run stands, with their shares, the likeliest first."""
        return self.outlook(state).kinds

    def alternatives(self, state: TrajectoryState, tools: Iterable[str]) -> list[Alternative]:
        """Rank the tools at hand by the probability of a violation within the horizon after calling them.

        Parameters
        ----------
        state
            Where the run stands.
        tools
            Their names. What each does is read from the catalogue alone, its arguments being unknown.

        Returns
        -------
        list
            The safest first; what nobody ever went on from comes last, and names decide between equals.
        """
        now = self.verdict(state)
        ranked = []
        for tool in sorted(set(tools)):
            call = ToolCall(tool)
            pending = self.read_call(state, call)
            verdict = self.foresee(state, pending.move)
            ranked.append(Alternative(tool, pending.proposal.effect, verdict, _reason(verdict, now)))
        return sorted(ranked, key=_danger)

    def explain(self, state: TrajectoryState, verdict: Verdict, effect: Effect | None = None) -> str:
        """Say in words what a verdict rests on.

        Parameters
        ----------
        state
            Where the run stands (before the call, for a pending one).
        verdict
            The finding to explain.
        effect
            For a pending call, what it would do.
        """
        parts = [
            f"{dimension.title} {dimension.levels[digit]} since step {step}"
            for dimension, digit, step in zip(
                self._space.dimensions, self._space.digits(state.state), state.since, strict=True
            )
            if digit and step
        ]
        if effect is not None:
            parts.append("next: " + ", ".join(level for _, level in effect.levels))
        parts.append(f"risk by the rules: {verdict.risk}")
        parts.append(str(verdict))
        from safetydrift.monitor.guarantee import promises_of  # noqa: PLC0415  # a hook that explains nothing needs none

        promise = promises_of(self.model.provenance).get("current" if effect is None else "proposal")
        if promise is not None and self.policy == self.model.policy:
            parts.append(f"threshold {promise.threshold:g}: {promise}")
        return "; ".join(parts)

    def _require_bounds(self) -> None:
        bounds, horizon = self.model.tables[AGGREGATE].bounds, self.policy.horizon
        if self.policy.bound is Bound.UPPER and (bounds is None or bounds.horizon != horizon):
            raise HorizonError(
                f"the policy compares upper bounds within {horizon} steps, and the model's are for "
                f"{'no horizon' if bounds is None else bounds.horizon}; fit it with that horizon"
            )

    def _starting(self, category: str, trust: float = 1.0) -> TrajectoryState:
        space = self._space
        known = category if category in self.model.tables else AGGREGATE
        belief: Belief | None = None
        if self.mixes(known) or (self._mixture is not None and trust < 1.0):
            belief = Belief(known, trust if known else 0.0, frozenset(), (space.start,))
        return TrajectoryState(known, space.start, 0, (0,) * len(space.dimensions), belief=belief)

    def _believed(self, belief: Belief) -> list[tuple[float, str]]:
        """Return the categories that have a part in a verdict, with how much each is believed."""
        mixture = self._mixture
        if mixture is None:  # the state is another model's
            return [(1.0, AGGREGATE)]
        shares = mixture.shares(belief)
        least = NEGLIGIBLE * max(shares)
        return [pair for pair in zip(shares, mixture.names, strict=True) if pair[0] >= least]

    def _mixed(self, belief: Belief, state: int, *, pending: bool) -> Verdict:
        tables = self.pending_verdicts if pending else self.current_verdicts
        parts = [(share, tables(name)[state]) for share, name in self._believed(belief)]
        return mixed_verdict(parts, self.policy, pending=pending)

    def _built(self, category: str, state: int, *, pending: bool) -> Verdict:
        """Return the verdict of the tables about one state, without building those about all others."""
        table = self.model.tables.get(category) or self.model.tables[AGGREGATE]
        row = self.model.row_of[state]
        return self._verdict(
            table, tuple([curve[row] for curve in table.within]), state, row, pending=pending
        )

    def _build(self, category: str, *, pending: bool) -> tuple[Verdict, ...]:
        table = self.model.tables.get(category) or self.model.tables[AGGREGATE]
        curves = tuple(zip(*table.within, strict=True))
        return tuple(
            [
                self._verdict(table, curves[row], state, row, pending=pending)
                for state, row in enumerate(self.model.row_of)
            ]
        )

    def _verdict(
        self, table: RiskTable, within: tuple[float, ...], state: int, row: int, *, pending: bool
    ) -> Verdict:
        horizon = self.policy.horizon
        low, high = self._bounds(table, row, pending=pending)
        if self._by_rules and state in self._space.violated:
            basis, within, eventually, uncertain = Basis.VIOLATED, (1.0,) * len(table.within), 1.0, 0.0
            low, high = 1.0, 1.0
        else:
            basis = table.basis(row)
            eventually = table.eventually[row]
            uncertain = table.uncertain[horizon][row]
            if pending:
                violates = table.arrival[row]
                if isnan(violates):
                    basis = Basis.UNSEEN
                within = (0.0, *[violates + (1.0 - violates) * later for later in within[:-1]])
                eventually = violates + (1.0 - violates) * eventually
        probability = nan if basis is Basis.UNSEEN else within[horizon]
        if basis is Basis.UNSEEN:
            low, high = nan, nan
        # In the file both are rounded, to different digits. Of nan and a number, both give nan.
        low, high = min(low, probability), max(high, probability)
        alarm = self.policy.alarms(probability, basis, pending=pending, high=high)
        return Verdict(
            state=state,
            risk=self._space.risk_name(state),
            probability=probability,
            horizon=horizon,
            within=within,
            eventually=eventually,
            uncertain=uncertain,
            basis=basis,
            alarm=alarm,
            intervention=self.policy.intervention if alarm else Intervention.ALLOW,
            low=low,
            high=high,
        )

    def _bounds(self, table: RiskTable, row: int, *, pending: bool) -> tuple[float, float]:
        bounds = table.bounds
        if bounds is None or bounds.horizon != self.policy.horizon:
            return nan, nan
        if pending:
            return bounds.pending_low[row], bounds.pending_high[row]
        return bounds.low[row], bounds.high[row]


def _asked(state: TrajectoryState, words: Iterable[int]) -> TrajectoryState:
    """Return the state of a run with more words of its task."""
    return state if state.belief is None else replace(state, belief=state.belief.asked(words))


def _most_believed(pair: tuple[str, float]) -> tuple[float, str]:
    return -pair[1], pair[0]


def _danger(alternative: Alternative) -> tuple[bool, float, str]:
    probability = alternative.verdict.probability
    unknown = isnan(probability)
    return unknown, 0.0 if unknown else probability, alternative.tool


def _reason(verdict: Verdict, now: Verdict) -> str:
    if isnan(verdict.probability) or verdict.basis is Basis.VIOLATED:
        return str(verdict)
    where = "unknown" if isnan(now.probability) else f"{now.probability:.2f}"
    return f"{verdict}, against {where} where the run stands; it would be {verdict.risk} by the rules"
