"""What was decided about one proposed call."""

from __future__ import annotations

from math import nan

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.monitor.verdict import Intervention, Verdict
from safetydrift.states.task_words import writable

# Compared by identity: asked about every call, and an Enum is hashed by a function in Python.
_ALLOW, _WARN = Intervention.ALLOW, Intervention.WARN
_SUGGEST, _BLOCK = Intervention.SUGGEST, Intervention.BLOCK


MAX_TEXT = 4096
"""Characters of a reason that are remembered."""


class Decision(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The answer to one proposal.

    Parameters
    ----------
    intervention
        What is done: ALLOW, WARN (the call goes ahead, `reason` belongs into the model's context), ASK (a person has to
        agree first), SUGGEST (refused, `alternative` names something safer) or BLOCK (refused).
    reason
        Why, in words that the model can act on; empty when the call goes ahead without a remark.
    rule
        The rule that decided, such as ``"when 2"``, ``"never 1"``, ``"the model's threshold"`` or ``"on_error"``.
    probability
        Of a violation within the horizon, the proposed call being its first step; nan where unknown.
    threshold
        What the rule compares it with; nan for rules that compare none.
    error
        What went wrong when the decision rests on a failure of the guard itself; empty otherwise.
    explanation
        What the finding rests on; empty for calls that go ahead without a remark.
    alternative
        A safer tool at hand; empty if none is known.
    would_be
        In shadow mode, the intervention that was only recorded; None otherwise.
    answered_by
        Who answered when a person was asked; empty otherwise.
    verdict
        The finding about the call; None if there is none, or if this is an answer given before.
    repeated
        Whether this is the answer that was given to the same call before.
    latency
        How long it took, in seconds, without the time a person was waited for.
    key, call_id
        Whose call it was.
    digest
        Which call it was: another one under the same identifier has another digest.
    unauthorised
        The probability that the call is harm that nobody with authority asked for; nan where unknown.
    harm
        The kind of that harm (`safetydrift.effects.operations.HARMS`); empty where it would harm nobody.
    brief
        The reason without anything that is written in the arguments: what a store keeps of it.
    """

    intervention: Intervention
    reason: str = ""
    rule: str = ""
    probability: float = nan
    threshold: float = nan
    error: str = ""
    explanation: str = ""
    alternative: str = ""
    would_be: Intervention | None = None
    answered_by: str = ""
    verdict: Verdict | None = None
    repeated: bool = False
    latency: float = 0.0
    key: str = ""
    call_id: str = ""
    digest: str = ""
    unauthorised: float = nan
    harm: str = ""
    brief: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the call may be made now. False while a person has yet to agree."""
        return self.intervention is _ALLOW or self.intervention is _WARN

    @property
    def refused(self) -> bool:
        """Whether the call must not be made, whatever a person might say."""
        return self.intervention is _BLOCK or self.intervention is _SUGGEST

    @property
    def asks(self) -> bool:
        """Whether a person has to agree before the call is made."""
        return self.intervention is Intervention.ASK

    @property
    def plain(self) -> bool:
        """Whether the call goes ahead and there is nothing to say about it but what was found."""
        return (
            self.intervention is _ALLOW
            and self.would_be is None
            and self.verdict is not None
            and not (self.reason or self.explanation or self.alternative or self.error or self.answered_by)
        )

    def stored(self) -> Decision:
        """Return what is remembered of it, and given again to the same call.

        Texts are of bounded length; the finding stays with what a person has yet to decide.
        """
        return replace(
            self,
            reason=writable((self.brief or self.reason)[:MAX_TEXT]),
            rule=writable(self.rule[:MAX_TEXT]),
            error=writable(self.error[:MAX_TEXT]),
            alternative=writable(self.alternative[:MAX_TEXT]),
            answered_by=writable(self.answered_by[:MAX_TEXT]),
            explanation="" if self.brief or not self.asks else writable(self.explanation[:MAX_TEXT]),
            verdict=self.verdict if self.asks else None,
            latency=0.0,
        )

    def __str__(self) -> str:
        return f"{self.intervention.value}: {self.reason}" if self.reason else self.intervention.value
