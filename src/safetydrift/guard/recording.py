"""Recording what a guard does: in its decision log, and for telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.guard.failing import said

if TYPE_CHECKING:
    from safetydrift.guard.decision import Decision
    from safetydrift.guard.decision_log import DecisionLog
    from safetydrift.guard.redacting import Redactor
    from safetydrift.guard.telemetry import Telemetry
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.trace import ToolCall


class Recorder:
    """Tells a decision log and telemetry what was decided.

    Parameters
    ----------
    log, telemetry
        Who is told; None for nobody.
    redactor
        Takes secrets out of what is said.
    model
        The identity of the model.
    """

    __slots__ = ("_failed", "_model", "_redactor", "log", "telemetry")

    def __init__(
        self, log: DecisionLog | None, telemetry: Telemetry | None, redactor: Redactor, model: str
    ) -> None:
        self.log, self.telemetry = log, telemetry
        self._redactor, self._model = redactor, model
        self._failed = False

    def decided(
        self,
        decision: Decision,
        call: ToolCall | None = None,
        position: TrajectoryState | None = None,
        policy: str = "",
    ) -> None:
        """Record a decision; what fails in telemetry is said once, and changes nothing.

        Parameters
        ----------
        call, position
            What it is about and where the run stood; None for a person's answer.
        policy
            The name of the policy in force.

        Raises
        ------
        DecisionLogError
            If the log cannot be written.
        """
        if self.log is not None:
            self.log.decision(decision, call, position, policy, self._redactor)
        if self.telemetry is not None:
            try:
                self.telemetry.decided(decision, call, policy, self._model, self._redactor)
            except Exception as problem:  # noqa: BLE001  # whoever looks on has no say
                if not self._failed:  # said once, so that it cannot fill the log
                    self.event("telemetry failed", decision.key, decision.call_id, said(problem))
                self._failed = True

    def event(self, what: str, key: str = "", call_id: str = "", detail: str = "") -> None:
        """Record something that is no decision; that it cannot be written is no error."""
        if self.log is not None:
            from contextlib import suppress  # noqa: PLC0415  # seldom

            with suppress(Exception):
                self.log.event(what, key=key, call_id=call_id, detail=self._redactor.text(detail))
