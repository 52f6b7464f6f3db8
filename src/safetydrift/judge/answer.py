"""An answer of a judge, checked field by field: what a model says is untrusted like any other input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Struct

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import CatalogueError
from safetydrift.states.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.catalogue.scales import Scales

MAX_REASON = 400
"""Characters of a reason; a longer one is cut."""
MAX_REPLY = 64 * 1024
"""Characters of a reply that is looked at."""
_QUOTED = 20
_TELLING = 7
_WITHHELD = "the judge's reason quoted the call and was left out"

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Kind = Literal[
    "credential_leak",
    "data_leak",
    "destructive_action",
    "integrity",
    "privilege_escalation",
    "unauthorised_transaction",
]


class AnswerError(ValueError):
    """A reply that is no answer. The message says why and holds nothing of the reply."""


class Answer(Struct, frozen=True, gc=False, kw_only=True):
    """What a judge said of one call.

    Parameters
    ----------
    levels
        Dimension and level, in alphabetical order of the dimensions.
    kinds
        Kinds of violation, in alphabetical order.
    external
        Whether the call reaches beyond the operator's own hosts and accounts.
    reason
        Why, in a sentence that holds no text of the call.
    confidence
        The judge's own confidence, from 0 to 1.
    model, prompt
        The model, as it was named, and the version of the prompt.
    usage
        Tokens of the requests that led here: in, out.
    """

    levels: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...] = ()
    external: bool = False
    reason: str
    confidence: float
    model: str
    prompt: str
    usage: tuple[int, int] = (0, 0)

    def effect(self) -> Effect:
        """Return the effect that the judge saw."""
        return Effect(
            self.levels,
            "judge",
            (self.reason,),
            kinds=self.kinds,
            external=self.external,
            confidence=self.confidence,
        )


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """What a model is asked to fill in."""

    levels: dict[str, str]
    kinds: Annotated[list[Kind], msgspec.Meta(max_length=len(KINDS))]
    external: bool
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    confidence: Share


def read_reply(text: str, seen: Sequence[str], scales: Scales) -> Reply:
    """Return a reply as it was checked; its reason is one line and quotes nothing.

    Parameters
    ----------
    text
        What the model wrote: one JSON object.
    seen
        The texts of the call that it was shown, for its reason must not repeat them.

    Raises
    ------
    AnswerError
        If it is no answer.
    """
    if len(text) > MAX_REPLY:
        raise AnswerError(f"it is longer than {MAX_REPLY} characters")
    try:
        reply = msgspec.json.decode(text, type=Reply)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise AnswerError("it is not one JSON object with exactly the fields asked for") from None
    check_levels(reply.levels, scales)
    reply.kinds = sorted(set(reply.kinds))
    reply.reason = _harmless(reply.reason, seen)
    return reply


def check_levels(levels: dict[str, str], scales: Scales) -> tuple[tuple[str, str], ...]:
    """Return levels in the order of `Answer.levels`.

    Raises
    ------
    AnswerError
        If one is unknown or missing.
    """
    try:
        scales.read(levels, "levels")
    except CatalogueError:
        raise AnswerError("its levels are not exactly one known level in each dimension") from None
    if len(levels) != len(scales.required):
        raise AnswerError("its levels name a dimension that was not asked for")
    return tuple(sorted(levels.items()))


def _harmless(reason: str, seen: Sequence[str]) -> str:
    """Return a reason on one line, unless it repeats the call: answers are kept where the call may not be."""
    line = " ".join("".join([char if char.isprintable() else " " for char in reason]).split())
    if not line:
        raise AnswerError("its reason is empty")
    line = line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 3]}..."
    return _WITHHELD if _quotes(line, seen) else line


def _quotes(line: str, seen: Sequence[str]) -> bool:
    """Return whether a line repeats a stretch of the call, or a word of it that looks like a name or number."""
    stretches = [line[start : start + _QUOTED] for start in range(len(line) - _QUOTED + 1)]
    words = [word for raw in line.split() if _is_telling(word := raw.strip(".,;:!?'\"()[]`"))]
    return any(part in text for text in seen for part in (*stretches, *words))


def _is_telling(word: str) -> bool:
    return len(word) >= _TELLING and not word.replace("-", "").isalpha()
