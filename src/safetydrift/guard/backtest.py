"""A backtest of a policy: what it would have done in runs of the past.

Every call of a run is judged as the guard would have, on where the run stood after the calls before it. What a policy
stops, asks about, warns of or lets through in a run is the strictest thing it does before or at the violating call;
what comes after that call says nothing about the policy. A run that is stopped would have gone on differently, so its
later calls count no more; neither does anybody's answer to a question.
"""

from __future__ import annotations

from collections import Counter
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from safetydrift.guard.policy import STRICTNESS, Call
from safetydrift.monitor.verdict import Intervention
from safetydrift.monitor.walk import walk
from safetydrift.states.effect import Effect
from safetydrift.states.trajectory import Notion, observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.states.trajectory import Trajectory

GROUPS = ("violating", "not violating")


class Outcome(NamedTuple):
    """What a policy would have done in one run.

    Attributes
    ----------
    strictest
        The strictest intervention in the run.
    rule
        The rule behind it.
    call
        The call it is about, counted from 1; 0 where every call was allowed.
    questions
        How often a person would have been asked.
    """

    strictest: Intervention
    rule: str
    call: int
    questions: int


class Backtest:
    """Counts what one policy would have done in runs, and optionally what another one does in the same.

    Parameters
    ----------
    monitor
        What follows the runs.
    policy, current
        The policy that is tried, and the one it is compared with.
    """

    def __init__(
        self, monitor: LookupMonitor, policy: GuardPolicy, current: GuardPolicy | None = None
    ) -> None:
        self._monitor, self.policy, self.current = monitor, policy, current
        self.runs: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, Intervention]] = Counter()
        self.before: Counter[tuple[str, Intervention]] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self.questions: Counter[str] = Counter()
        self.changed: Counter[tuple[str, Intervention, Intervention]] = Counter()
        self.left_out: Counter[str] = Counter()

    def add(self, runs: Iterable[Trajectory]) -> None:
        """Try the policies on runs; those without a usable label are counted apart."""
        space = self._monitor.model.space
        for run in runs:
            seen = observe(run, space, Notion.LABEL, self._monitor.model.unknown_onset)
            if seen.left_out:
                self.left_out[seen.left_out] += 1
                continue
            group = GROUPS[seen.onset is None]
            self._count(run, group, seen.onset)

    def _count(self, run: Trajectory, group: str, onset: int | None) -> None:
        self.runs[group] += 1
        outcome = outcome_of(run, onset, self._monitor, self.policy)
        self.outcomes[group, outcome.strictest] += 1
        self.questions[group] += outcome.questions
        if outcome.call:
            self.rules[group, outcome.rule] += 1
        if self.current is not None:
            before = outcome_of(run, onset, self._monitor, self.current)
            self.before[group, before.strictest] += 1
            if before.strictest is not outcome.strictest:
                self.changed[group, before.strictest, outcome.strictest] += 1

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            group.replace(" ", "_"): {
                "runs": self.runs[group],
                "outcomes": {one.value: self.outcomes[group, one] for one in Intervention},
                "questions": self.questions[group],
                "rules": {rule: n for (where, rule), n in sorted(self.rules.items()) if where == group},
            }
            | (
                {}
                if self.current is None
                else {
                    "current": {one.value: self.before[group, one] for one in Intervention},
                    "changed": [
                        {"from": old.value, "to": new.value, "runs": n}
                        for (where, old, new), n in self.changed.most_common()
                        if where == group
                    ],
                }
            )
            for group in GROUPS
        } | {"left_out": dict(self.left_out)}


def outcome_of(run: Trajectory, onset: int | None, monitor: LookupMonitor, policy: GuardPolicy) -> Outcome:
    """Return what a policy would have done in a run.

    Parameters
    ----------
    onset
        The violating call, counted from 1; later calls are not looked at.
    """
    strictest, rule, at, questions = Intervention.ALLOW, "", 0, 0
    for number, asked in enumerate(_calls(run, monitor, current=policy.asks_current), 1):
        if onset is not None and number > onset:
            break
        found = policy.decide(asked, monitor.policy, monitor.model.space)
        questions += found.intervention is Intervention.ASK
        if STRICTNESS[found.intervention] > STRICTNESS[strictest]:
            strictest, rule, at = found.intervention, found.rule, number
        if STRICTNESS[strictest] > STRICTNESS[Intervention.ASK]:
            break
    return Outcome(strictest, rule, at, questions)


def _calls(run: Trajectory, monitor: LookupMonitor, *, current: bool) -> Iterator[Call]:
    space = monitor.model.space
    for state, move in walk(monitor, run, run.n_steps):
        assert move is not None  # noqa: S101  # only behind the last call
        effect = Effect.of(space.decode(move.proposed), kinds=move.kinds)
        likely = monitor.verdict(state).probability if current else nan
        yield Call(move.tool, state.category, effect, monitor.foresee(state, move), likely)
