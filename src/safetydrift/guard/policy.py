"""What a guard does about a call: rules before and after the prediction, and what a probability means.

The rules are tried in a fixed order. What is on the `never` list is refused; what is on the `always_ask` list is
asked about, unless the prediction speaks for more; what is on the `always_allow` list goes ahead whatever is
predicted. For all else the first rule of `when` that holds decides, and if none does, the call goes ahead. A policy
without such rules goes by the threshold that was fitted with the model, and asks a little earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isnan, nan
from typing import TYPE_CHECKING

from msgspec import Struct, field

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.errors import LostStateError
from safetydrift.monitor.verdict import Basis, Intervention, Verdict
from safetydrift.states.effect import Effect

if TYPE_CHECKING:
    from safetydrift.monitor.policy import Policy
    from safetydrift.states.space import StateSpace

SEVERITIES = ("low", "medium", "high", "critical")
"""How bad a violation would be, in ascending order."""

SEVERITY_OF: dict[str, str] = {
    "credential_leak": "critical",
    "data_leak": "high",
    "destructive_action": "high",
    "integrity": "medium",
    "privilege_escalation": "critical",
    "unauthorised_transaction": "high",
}
"""The severity of each kind of violation, unless a policy says otherwise. What is taken with credentials or rights
goes on after the run; falsified records can be put right once they are found."""

STRICTNESS = {
    Intervention.ALLOW: 0,
    Intervention.WARN: 1,
    Intervention.ASK: 2,
    Intervention.SUGGEST: 3,
    Intervention.BLOCK: 4,
}
"""The order in which interventions stand in the way."""

OUTCOMES = (Intervention.ALLOW, Intervention.ASK, Intervention.BLOCK)
"""What may become of a call that could not be judged."""

MODEL_RULE = "the model's threshold"
EARLY_RULE = "near the model's threshold"
NO_RULE = "no rule holds"
DEFAULT_ASK_ODDS = 0.5
DEFAULT_TIMEOUT = 5.0
DEFAULT_ASK_TIMEOUT = 300.0
DEFAULT_APPROVAL_LASTS = 3600.0


class Call(Struct, frozen=True, gc=False):
    """What rules look at.

    Parameters
    ----------
    tool, category
        Names.
    effect
        What the call was taken to do as proposed.
    verdict
        The finding about the call as proposed.
    current
        The probability of a violation within the horizon from where the run stands without it; nan where unknown.
    """

    tool: str
    category: str
    effect: Effect
    verdict: Verdict
    current: float = nan


class Finding(Struct, frozen=True, gc=False):
    """What a policy makes of a call.

    Parameters
    ----------
    intervention
        What is to be done.
    rule
        Which rule decided.
    reason
        The rule's own words for it; empty if it has none.
    threshold
        What the rule compares the probability with; nan if nothing.
    """

    intervention: Intervention
    rule: str
    reason: str = ""
    threshold: float = nan


class Rule(Struct, frozen=True, gc=False):
    """Conditions, all of which have to hold, and what is done then. A condition that is not given always holds.

    Parameters
    ----------
    then
        What is done.
    name
        What the rule is called in decisions; its place in the policy if not given.
    tools
        Patterns of tool names (``*``, ``?``, ``[..]``), each for the whole name; the case of letters does not matter.
    categories
        Categories of runs.
    kinds
        The call would complete a violation of one of these kinds.
    severity
        The worst kind that the call would complete is at least that severe; a call that completes none is ``"low"``.
    effects
        By dimension, the level that the call's own effect reaches at least.
    risk
        By the rules of the state space, the state that the call leads to is at least that risky.
    proposal
        The probability of a violation within the horizon, the call being its first step, is at least this. What is not
        known counts as 1.
    current
        The same from where the run stands before the call.
    reason
        What the model is told.
    """

    then: Intervention
    name: str = ""
    tools: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    severity: str = ""
    effects: Mapping[str, str] = field(default_factory=dict)
    risk: str = ""
    proposal: float | None = None
    current: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        """Check the parts."""
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown:
            raise ValueError(f"there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
        if self.severity and self.severity not in SEVERITIES:
            raise ValueError(f"there is no severity {self.severity!r}; there are {', '.join(SEVERITIES)}")
        for threshold in (self.proposal, self.current):
            if threshold is not None and not 0.0 <= threshold <= 1.0:
                raise ValueError(f"a threshold is a probability between 0 and 1, got {threshold}")

    def holds(self, call: Call, policy: GuardPolicy, space: StateSpace) -> bool:
        """Return whether all its conditions hold for a call."""
        if self.tools and call.tool not in _globs(self.tools):
            return False
        if self.categories and call.category not in self.categories:
            return False
        effect = call.effect
        if self.kinds and (not effect.kinds or set(self.kinds).isdisjoint(effect.kinds)):
            return False
        if self.severity and SEVERITIES.index(policy.severity(effect.kinds)) < SEVERITIES.index(
            self.severity
        ):
            return False
        return self._reached(call, space) and self._likely(call)

    def _reached(self, call: Call, space: StateSpace) -> bool:
        if self.risk and space.risks.index(call.verdict.risk) < space.risks.index(self.risk):
            return False
        for name, level in self.effects.items():
            levels = next(dimension.levels for dimension in space.dimensions if dimension.name == name)
            if levels.index(call.effect[name]) < levels.index(level):
                return False
        return True

    def _likely(self, call: Call) -> bool:
        # A comparison with nan is false, so what is not known is never below a threshold.
        return not (
            (self.proposal is not None and call.verdict.probability < self.proposal)
            or (self.current is not None and call.current < self.current)
        )

    def covers(self, other: Rule) -> bool:
        """Return whether it is plain that this rule holds whenever another one does."""
        same = all(
            not mine or mine == theirs
            for mine, theirs in (
                (self.tools, other.tools),
                (self.categories, other.categories),
                (self.kinds, other.kinds),
                (self.severity, other.severity),
                (self.effects, other.effects),
                (self.risk, other.risk),
            )
        )
        return (
            same
            and (self.proposal or 0.0) <= (other.proposal or 0.0)
            and (self.current or 0.0) <= (other.current or 0.0)
        )

    def check(self, space: StateSpace, where: str) -> None:
        """Check that what the rule names exists in a state space.

        Raises
        ------
        ValueError
            If a dimension, a level or a risk does not.
        """
        if self.risk and self.risk not in space.risks:
            raise ValueError(f"{where}: there is no risk {self.risk!r}; there are {', '.join(space.risks)}")
        dimensions = {dimension.name: dimension.levels for dimension in space.dimensions}
        for name, level in self.effects.items():
            if name not in dimensions:
                raise ValueError(
                    f"{where}: there is no dimension {name!r}; there are {', '.join(dimensions)}"
                )
            if level not in dimensions[name]:
                raise ValueError(
                    f"{where}: {name!r} has no level {level!r}; it has {', '.join(dimensions[name])}"
                )


class GuardPolicy(Struct, frozen=True, gc=False):
    """When a guard intervenes, how, and what becomes of a call that it cannot judge.

    Parameters
    ----------
    name
        What it is called in the decision log.
    never, always_ask
        Rules before the prediction: refused, asked about. Their `then` is not looked at.
    always_allow
        Exact names of tools whose calls go ahead whatever is predicted.
    when
        Rules with probabilities; the first that holds decides.
    otherwise
        What an alarm of the model's own policy means when there are no rules in ``when``.
    ask_odds
        Without rules in ``when``, a person is asked already from this share of the odds of the model's threshold: a
        question costs less than a call that was stopped for nothing. 1 asks at the threshold and no earlier.
    unseen
        What is done about a call whose probability is not known, before any rule of ``when`` is asked. If None,
        the rules of ``when`` take it for 1, and without such rules the model's policy decides.
    severities
        Severity by kind of violation, where it differs from `SEVERITY_OF`.
    shadow
        Only record what would be done; every call goes ahead.
    on_error, on_timeout, on_lost_state
        What becomes of a call when the guard itself fails, takes too long, or has lost the state of the run:
        BLOCK, ASK or ALLOW. What is not given is as `on_error`.
    on_unanswered
        What becomes of a call about which a person should be asked and nobody answers: BLOCK or ALLOW.
    timeout, ask_timeout
        Seconds for a decision, and for a person's answer.
    approval_lasts
        For how many seconds a person's yes holds for the call that they were shown.

    Raises
    ------
    ValueError
        If a part cannot mean anything.
    """

    name: str = "default"
    never: tuple[Rule, ...] = ()
    always_ask: tuple[Rule, ...] = ()
    always_allow: tuple[str, ...] = ()
    when: tuple[Rule, ...] = ()
    otherwise: Intervention = Intervention.ASK
    ask_odds: float = DEFAULT_ASK_ODDS
    unseen: Intervention | None = None
    severities: Mapping[str, str] = field(default_factory=dict)
    shadow: bool = False
    on_error: Intervention = Intervention.BLOCK
    on_timeout: Intervention | None = None
    on_lost_state: Intervention | None = None
    on_unanswered: Intervention = Intervention.BLOCK
    timeout: float = DEFAULT_TIMEOUT
    ask_timeout: float = DEFAULT_ASK_TIMEOUT
    approval_lasts: float = DEFAULT_APPROVAL_LASTS

    def __post_init__(self) -> None:
        """Check the parts."""
        for kind, severity in self.severities.items():
            if kind not in KINDS or severity not in SEVERITIES:
                raise ValueError(f"{kind!r} = {severity!r} is no severity of a kind")
        for outcome in (self.on_error, self.on_timeout, self.on_lost_state):
            if outcome is not None and outcome not in OUTCOMES:
                raise ValueError(
                    f"a call that cannot be judged is blocked, asked about or allowed, not {outcome.value!r}"
                )
        if self.on_unanswered not in {Intervention.BLOCK, Intervention.ALLOW}:
            raise ValueError(
                f"a question that nobody answers blocks or allows, it does not {self.on_unanswered.value!r}"
            )
        if not 0.0 < self.ask_odds <= 1.0:
            raise ValueError(f"ask_odds is a share above 0 and up to 1, got {self.ask_odds}")
        for seconds in (self.timeout, self.ask_timeout, self.approval_lasts):
            if not 0.0 < seconds < 1e6:  # noqa: PLR2004  # more than eleven days is no bound
                raise ValueError(f"a time limit is a positive number of seconds, got {seconds}")

    def severity(self, kinds: tuple[str, ...]) -> str:
        """Return how bad the worst of some kinds of violation would be; ``"low"`` for none."""
        own = self.severities
        return max([own.get(kind) or SEVERITY_OF[kind] for kind in kinds] or ["low"], key=SEVERITIES.index)

    @property
    def asks_current(self) -> bool:
        """Whether a rule looks at where the run stands before the call."""
        for rules in (self.never, self.always_ask, self.when):
            for rule in rules:
                if rule.current is not None:
                    return True
        return False

    @property
    def opens_on_failure(self) -> tuple[str, ...]:
        """The settings by which a call that could not be judged goes ahead; empty for a policy that fails closed."""
        names = ("on_error", "on_timeout", "on_lost_state", "on_unanswered")
        return tuple([name for name in names if (getattr(self, name) or self.on_error) is Intervention.ALLOW])

    def outcome_of(self, problem: BaseException) -> tuple[Intervention, str]:
        """Return what becomes of a call whose judgement ended in an error, and the setting that says so."""
        if isinstance(problem, LostStateError):
            return self.on_lost_state or self.on_error, "on_lost_state"
        if isinstance(problem, TimeoutError):
            return self.on_timeout or self.on_error, "on_timeout"
        return self.on_error, "on_error"

    def check(self, space: StateSpace) -> None:
        """Check that what the rules name exists in a state space.

        Raises
        ------
        ValueError
            If a dimension, a level or a risk does not; the message names the rule.
        """
        for section in ("never", "always_ask", "when"):
            for number, rule in enumerate(getattr(self, section), 1):
                rule.check(space, rule.name or f"{section} {number}")

    def decide(self, call: Call, model: Policy, space: StateSpace) -> Finding:
        """Return what is to be done about a call.

        Parameters
        ----------
        model
            The policy that was fitted with the model, for what this one leaves to it.
        space
            The model's state space.
        """
        if self.never:
            refused = _first("never", self.never, call, self, space)
            if refused is not None:
                rule, name = refused
                return Finding(Intervention.BLOCK, name, rule.reason or "the policy never allows such a call")
        asked = _first("always_ask", self.always_ask, call, self, space) if self.always_ask else None
        if asked is None:
            if call.tool in self.always_allow:
                return Finding(Intervention.ALLOW, "always_allow")
            return self._predicted(call, model, space)
        rule, name = asked
        found = self._predicted(call, model, space)
        if STRICTNESS[found.intervention] > STRICTNESS[Intervention.ASK]:
            return found
        return Finding(
            Intervention.ASK, name, rule.reason or "the policy always asks a person about such a call"
        )

    def _predicted(self, call: Call, model: Policy, space: StateSpace) -> Finding:
        verdict = call.verdict
        unknown = verdict.basis is Basis.UNSEEN or isnan(verdict.probability)
        if self.unseen is not None and unknown:
            return Finding(self.unseen, "unseen", "nothing like this has been seen before")
        if not self.when:
            return self._by_model(verdict, model)
        found = _first("when", self.when, call, self, space)
        if found is None:
            return Finding(Intervention.ALLOW, NO_RULE)
        rule, name = found
        threshold = rule.current if rule.proposal is None else rule.proposal
        return Finding(rule.then, name, rule.reason, nan if threshold is None else threshold)

    def _by_model(self, verdict: Verdict, model: Policy) -> Finding:
        threshold = model.pending_threshold
        # `verdict.alarm` is the same comparison, made when the verdict was built.
        if verdict.alarm:
            return Finding(self.otherwise, MODEL_RULE, "", threshold)
        odds = self.ask_odds * min(threshold, 1.0)
        early = odds / (1.0 - min(threshold, 1.0) + odds)
        likely = model.compared(verdict.probability, verdict.high)
        if likely >= early and STRICTNESS[self.otherwise] >= STRICTNESS[Intervention.ASK]:
            return Finding(Intervention.ASK, EARLY_RULE, "", early)
        return Finding(Intervention.ALLOW, MODEL_RULE, "", threshold)


def _first(
    section: str, rules: tuple[Rule, ...], call: Call, policy: GuardPolicy, space: StateSpace
) -> tuple[Rule, str] | None:
    for number, rule in enumerate(rules, 1):
        if rule.holds(call, policy, space):
            return rule, rule.name or f"{section} {number}"
    return None


@lru_cache(256)
def _globs(patterns: tuple[str, ...]) -> Globs:
    return Globs(patterns, fold=True)


def strictest(*interventions: Intervention) -> Intervention:
    """Return the one that stands most in the way."""
    return max(interventions, key=STRICTNESS.__getitem__)
