"""Play runs against a guard, through its public interface alone."""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from everyday.runs import Made, Opened, Outcome, Run, Said, Stop
from safetydrift import ToolCall

if TYPE_CHECKING:
    from safetydrift.guard import Guard

STOPS = frozenset({"ask", "block", "suggest"})
"""The interventions that interrupt; a warning does not."""


class Watch:
    """Adds up the time of what is done in its blocks, by the clock and of this thread's own work, in seconds."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def __enter__(self) -> None:
        self._start = perf_counter(), thread_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += perf_counter() - self._start[0]
        self.cpu += thread_time() - self._start[1]


class Player:
    """Plays runs one after the other; every run has keys of its own and is forgotten when it is over."""

    def __init__(self, guard: Guard, *, categories: bool = False) -> None:
        self.guard, self.categories = guard, categories

    def play(self, run: Run) -> Outcome:
        """Play a run to its end; an attack ends with the first stop of a marked call."""
        outcome = Outcome(run.set, run.group, run.variant, run.name, run.cluster, run.notes)
        root = f"{run.set}/{run.name}/{run.variant}"
        category = run.category if self.categories else ""
        keys = {"": root}
        self.guard.session(root, run.task, category=category)
        for event in run.events:
            if isinstance(event, Opened):
                keys[event.agent] = f"{root}#{event.agent}"
                self.guard.session(keys[event.agent], event.task, parent=root if event.part else "")
            elif isinstance(event, Said):
                self.guard.hear(keys[event.agent], event.text)
            elif self._stopped(keys[event.agent], event, outcome) and run.ends_at_a_stop:
                break
        for key in keys.values():
            self.guard.end(key)
        return outcome

    def _stopped(self, key: str, made: Made, outcome: Outcome) -> bool:
        """Propose a call and go on as the user would; return whether it is marked and was stopped."""
        number = outcome.calls
        call_id = f"call-{number}"
        outcome.calls += 1
        outcome.marked += made.marked
        call = ToolCall(made.tool, made.args, malformed=made.malformed)
        watch = Watch()
        with watch:
            decision = self.guard.propose(key, call, call_id)
        intervention = decision.intervention.value
        stopped = intervention in STOPS
        if stopped:
            outcome.stops.append(
                Stop(
                    number,
                    intervention,
                    made.marked,
                    made.tool,
                    decision.rule,
                    decision.reason,
                    decision.error,
                )
            )
        if intervention == "ask":
            decision = self.guard.answer(key, call_id, True, by="benchmark")  # noqa: FBT003
        if decision.allowed:
            with watch:
                self.guard.confirm(key, call_id, made.result, error=made.error or None)
        else:
            self.guard.release(key, call_id)
        outcome.seconds.append(watch.seconds)
        outcome.cpu.append(watch.cpu)
        return stopped and made.marked
