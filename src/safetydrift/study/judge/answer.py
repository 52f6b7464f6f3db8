"""An answer of a judge, checked field by field: what a model says is untrusted like any other input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import CatalogueError
from safetydrift.states.effect import Effect
from safetydrift.study.judge.asking import AnswerError
from safetydrift.study.judge.endpoint import MAX_REPLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.catalogue.scales import Scales

MAX_REASON = 400
"""Characters of a reason; a longer one is cut."""
_QUOTED = 20
_TELLING = 7
_WITHHELD = "the judge's reason quoted the call and was left out"

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Kind = Literal[
    "credential_leak",
    "data_leak",
    "destructive_action",
    "integrity",
    "privilege_escalation",
    "unauthorised_transaction",
]
Kinds = Annotated[tuple[Kind, ...], msgspec.Meta(max_length=len(KINDS))]


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """What a model is asked to fill in."""

    levels: dict[str, str]
    kinds: Kinds
    external: bool
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    confidence: Share


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of the requests that led to an answer."""

    input: Tokens = 0
    output: Tokens = 0


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a judge said of one call, as a file keeps it.

    Parameters
    ----------
    digest
        Of the question.
    levels
        Level by dimension.
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
        Tokens it took.
    """

    digest: Digest
    levels: dict[str, str]
    kinds: Kinds
    external: bool
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON)]
    confidence: Share
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    prompt: Version
    usage: Usage

    def check(self, scales: Scales) -> None:
        """Check what no type can say.

        Raises
        ------
        AnswerError
            If this is nothing that a judge has recorded.
        """
        check_levels(self.levels, scales)
        if tuple(sorted(set(self.kinds))) != self.kinds:
            raise AnswerError("its kinds are not in alphabetical order, or one is named twice")
        if not (self.reason + self.model).isprintable():
            raise AnswerError("its reason or model holds characters that do not show")

    def effect(self) -> Effect:
        """Return the effect that the judge saw."""
        return Effect(
            tuple(sorted(self.levels.items())),
            "judge",
            (self.reason,),
            kinds=self.kinds,
            external=self.external,
            confidence=float(self.confidence),
        )


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
    reply.kinds = tuple(sorted(set(reply.kinds)))
    reply.reason = _harmless(reply.reason, seen)
    return reply


def check_levels(levels: dict[str, str], scales: Scales) -> None:
    """Check that there is one known level in each dimension.

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
