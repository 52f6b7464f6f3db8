"""Scripts played in the sandbox, and a scenario verified by playing every way it documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.formats.space_file import load_space
from safetydrift.study.scenarios.checks import leaks
from safetydrift.study.scenarios.scenario import RISKS
from safetydrift.study.scenarios.tools import use
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.states.space import StateSpace
    from safetydrift.study.scenarios.environment import Environment
    from safetydrift.study.scenarios.scenario import Scenario

ORIGIN = "end-state check"


class Sandbox:
    """One run of a scenario: the environment as it stands, and what was seen of it on the way.

    Parameters
    ----------
    scenario
        What is run.
    seed
        What the sandbox draws chance from.

    Attributes
    ----------
    environment
        As it stands now.
    steps
        The calls so far, with what came back.
    found
        The kinds of violation so far, each with the call (counted from 1) after which it first held.
    """

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        self.scenario = scenario
        self.environment = self._before = scenario.environment(seed)
        self.steps: list[Step] = []
        self.found: dict[str, int] = {}
        self._boundary, self._guards = scenario.boundary(), scenario.guards()
        self._special = scenario.special(self._before)

    def call(self, name: str, args: Mapping[str, Any], call_id: str = "") -> Step:
        """Call a tool; return the step."""
        after, result, error = use(self.environment, name, args, self.scenario.tools, self._special)
        said = "" if self.steps else self.scenario.task
        step = Step(
            ToolCall(name, dict(args), id=call_id),
            None if error is not None else result,
            error,
            turn=len(self.steps),
            said=said,
        )
        self.environment = after
        self.steps.append(step)
        for kind in self._kinds():
            self.found.setdefault(kind, len(self.steps))
        return step

    def refuse(self, name: str, args: Mapping[str, Any], why: str = "refused") -> Step:
        """Record a call that was proposed and not made; return the step."""
        said = "" if self.steps else self.scenario.task
        step = Step(ToolCall(name, dict(args)), None, why, turn=len(self.steps), said=said)
        self.steps.append(step)
        return step

    def _kinds(self) -> list[str]:
        world, scenario = self.environment, self.scenario
        kinds = [
            kind
            for kind, _ in leaks(world, self._guards, self._boundary, scenario.allowed, scenario.published)
        ]
        kinds += [
            one.kind
            for one in scenario.violations
            if all(when.holds(world, self._before) for when in one.when)
        ]
        return kinds

    def done(self, answer: str = "") -> bool:
        """Return whether the task is done, given what the agent says in the end."""
        return all(one.holds(self.environment, self._before, answer) for one in self.scenario.done)

    def label(self) -> Label:
        """Return what the checks say so far."""
        return Label(bool(self.found), onset=min(self.found.values(), default=None), origin=ORIGIN)

    def trace(self, id: str, *, model: str = "", ending: Ending = Ending.COMPLETED) -> Trace:  # noqa: A002
        """Return the run so far as a trace."""
        return Trace(
            id,
            tuple(self.steps),
            source="scenarios",
            task=self.scenario.id,
            category=self.scenario.category,
            model=model,
            prompt=self.scenario.task,
            ending=ending,
            label=self.label(),
        )


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a script.

    Parameters
    ----------
    trace
        The run, labelled by the checks.
    environment
        The sandbox in the end.
    done
        Whether the task is done.
    kinds
        The kinds of violation that happened, in order.
    risks
        By the paper's rules, the risk level at the start and after each call.
    """

    trace: Trace
    environment: Environment
    done: bool
    kinds: tuple[str, ...]
    risks: tuple[str, ...]

    @property
    def highest(self) -> str:
        """The highest of the risk levels."""
        return max(self.risks, key=(*RISKS, "violated").index)

    @property
    def failures(self) -> list[str]:
        """What calls that failed were told."""
        return [f"{step.call.name}: {step.error}" for step in self.trace.steps if step.error is not None]


def play(
    scenario: Scenario,
    script: Sequence[Mapping[str, Any]],
    answer: str = "",
    *,
    name: str = "script",
    seed: int = 0,
    space: StateSpace | None = None,
) -> Played:
    """Play a script in a scenario's sandbox and label the run.

    Parameters
    ----------
    script
        Calls, each with the tool under ``"call"`` and its arguments beside it.
    answer
        What the agent says in the end.
    name
        What the trace calls whoever acted.
    seed
        What the sandbox draws chance from.
    space
        The state space whose rules give the risk levels; the paper's by default.
    """
    sandbox = Sandbox(scenario, seed)
    for step in script:
        sandbox.call(step["call"], {key: value for key, value in step.items() if key != "call"})
    space = load_space("paper") if space is None else space
    trace = sandbox.trace(f"{scenario.id}/{name}/{seed}", model=name)
    run = label_trace(trace, _labeler(scenario.boundary()), space)
    return Played(
        trace,
        sandbox.environment,
        sandbox.done(answer),
        tuple(sandbox.found),
        tuple(space.risk_name(state) for state in run.states),
    )


@lru_cache(8)
def _labeler(boundary: Boundary) -> Labeler:
    return Labeler(load_catalogue(), boundary)


@dataclass(frozen=True, slots=True)
class Verification:
    """What playing a scenario's ways has shown.

    Parameters
    ----------
    id
        Of the scenario.
    problems
        In words; none, if everything is as documented.
    safe
        The highest risk and the number of steps of the safe path.
    drifts
        Per drift opportunity its kind, the call after which it held, and the highest risk by the rules.
    """

    id: str
    problems: tuple[str, ...]
    safe: Mapping[str, Any]
    drifts: tuple[Mapping[str, Any], ...]

    @property
    def ok(self) -> bool:
        """Whether everything is as documented."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "id": self.id,
            "ok": self.ok,
            "problems": list(self.problems),
            "safe": dict(self.safe),
            "drifts": [dict(one) for one in self.drifts],
        }


def verify(scenario: Scenario) -> Verification:
    """Play every documented way of a scenario and compare with what it states.

    The safe path completes the task, is no violation by the checks nor by the paper's rules, and stays within its
    stated risk. Each drift opportunity reaches its kind. No call of either fails, and playing twice gives the same.
    """
    problems = scenario.problems()
    if problems:
        return Verification(scenario.id, tuple(problems), {}, ())
    safe = play(scenario, scenario.safe.script, scenario.safe.answer, name="safe")
    problems += _wrong_with_safe(scenario, safe)
    told = {
        "risk": safe.highest,
        "stated": scenario.safe.risk,
        "steps": len(safe.trace.steps),
        "done": safe.done,
    }
    drifts = []
    for drift in scenario.drifts:
        played = play(scenario, drift.script, drift.answer, name="drift")
        problems += _failed(drift.name, played)
        if drift.kind not in played.kinds:
            problems.append(
                f"drift {drift.name!r} reaches {', '.join(played.kinds) or 'nothing'}, not {drift.kind}"
            )
        drifts.append(
            {
                "name": drift.name,
                "kind": drift.kind,
                "onset": played.trace.label.onset,
                "risk": played.highest,
            }
        )
    return Verification(scenario.id, tuple(problems), told, tuple(drifts))


def _wrong_with_safe(scenario: Scenario, played: Played) -> list[str]:
    problems = _failed("the safe path", played)
    if not played.done:
        problems.append("the safe path does not complete the task")
    if played.kinds:
        problems.append(f"the safe path is a violation: {', '.join(played.kinds)}")
    levels = (*RISKS, "violated")
    if levels.index(played.highest) > levels.index(scenario.safe.risk):
        way = " ".join(played.risks)
        problems.append(
            f"the safe path reaches {played.highest}, above its stated {scenario.safe.risk}: {way}"
        )
    if Sandbox(scenario).done(scenario.safe.answer) and scenario.safe.script and not scenario.safe.answer:
        problems.append("the task is done before anything was done")
    return problems


def _failed(name: str, played: Played) -> list[str]:
    return [f"{name}: a call fails: {failure[:200]}" for failure in played.failures]
