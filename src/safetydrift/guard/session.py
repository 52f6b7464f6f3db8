"""The state of one guarded run: where it stands, what was proposed and is not settled, what was answered."""

from __future__ import annotations

import json
from hashlib import sha256
from math import isfinite, nan

from safetydrift.errors import SnapshotError
from safetydrift.guard.decision import Decision
from safetydrift.monitor.session import TrajectoryState
from safetydrift.monitor.verdict import Intervention
from safetydrift.states.effect import Effect
from safetydrift.value import Value, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from safetydrift.states.space import StateSpace

SESSION_FORMAT = b"safetydrift.session/1"
MAX_BYTES = 8 << 20
"""A larger snapshot is refused; what a history remembers is bounded well below."""
MAX_ANSWERS = 128
"""Calls whose answers are remembered; those that are not settled are never forgotten."""
MAX_RESERVED = 64
"""Calls that may be under way at once; beyond it the oldest is taken to have been made."""
MAX_TEXT = 4096
"""Characters of a reason that are remembered."""
DIGEST_LENGTH = 32

OPEN, CONFIRMED, RELEASED, REFUSED = "open", "confirmed", "released", "refused"
"""What has become of a call: under way or waiting for a person, made, not made, not allowed."""


class Reservation(Value):
    """A call that was allowed, or is being asked about, and of which no result is known yet.

    Parameters
    ----------
    tool
        Its name. Its arguments are not kept.
    effect
        What it was taken to do.
    """

    __slots__ = ("effect", "tool")
    tool: str
    effect: Effect

    def __init__(self, tool: str, effect: Effect) -> None:
        set_field(self, "tool", tool)
        set_field(self, "effect", effect)


class Given(Value):
    """The answer to a call, and what has become of it.

    Parameters
    ----------
    digest
        Of the call: another call under the same id is another call.
    decision
        The answer.
    status
        One of `OPEN`, `CONFIRMED`, `RELEASED` and `REFUSED`.
    """

    __slots__ = ("decision", "digest", "status")
    digest: str
    decision: Decision
    status: str

    def __init__(self, digest: str, decision: Decision, status: str) -> None:
        set_field(self, "digest", digest)
        set_field(self, "decision", decision)
        set_field(self, "status", status)


class Session:
    """One guarded run; changed only by the guard that holds its lock.

    Attributes
    ----------
    key, parent
        Its own key, and that of the run it is a part of; empty for a run of its own.
    position
        Where the monitor sees it: calls with a result, and calls said to have been made.
    reserved
        Calls under way by id, the oldest first.
    answers
        Answers given by call id, the oldest first.
    proposals
        Calls proposed so far.
    doubt
        Why the position cannot be trusted any more; empty while it can.
    """

    __slots__ = ("answers", "doubt", "key", "parent", "position", "proposals", "reserved")

    def __init__(self, key: str, position: TrajectoryState, parent: str = "") -> None:
        self.key = key
        self.parent = parent
        self.position = position
        self.reserved: dict[str, Reservation] = {}
        self.answers: dict[str, Given] = {}
        self.proposals = 0
        self.doubt = ""

    def remember(self, call_id: str, given: Given) -> None:
        """Keep the answer to a call; the oldest settled ones are forgotten first."""
        answers = self.answers
        answers.pop(call_id, None)  # its place is now the last
        if len(answers) >= MAX_ANSWERS:
            for old in answers:
                if old not in self.reserved:
                    del answers[old]
                    break
        answers[call_id] = given

    def settle(self, call_id: str, status: str) -> None:
        """Note what has become of a call that was answered."""
        given = self.answers.get(call_id)
        if given is not None and given.status != status:
            self.answers[call_id] = Given(given.digest, given.decision, status)

    # -- keeping it ---------------------------------------------------------------------------------------

    def to_bytes(self, model: str) -> bytes:
        """Return the session as bytes that hold no arguments and no results.

        Parameters
        ----------
        model
            The identity of the model whose states it speaks of.

        Raises
        ------
        SnapshotError
            If there would be more than `MAX_BYTES` of them.
        """
        body = json.dumps(
            {
                "model": model,
                "key": self.key,
                "parent": self.parent,
                "position": self.position.snapshot(),
                "reserved": [
                    [call_id, one.tool, *_effect_parts(one.effect)] for call_id, one in self.reserved.items()
                ],
                "answers": [
                    [call_id, given.digest, given.status, *_decision_parts(given.decision)]
                    for call_id, given in self.answers.items()
                ],
                "proposals": self.proposals,
                "doubt": self.doubt,
            },
            separators=(",", ":"),
        ).encode("ascii")
        data = SESSION_FORMAT + b" " + _digest(body) + b"\n" + body
        if len(data) > MAX_BYTES:
            raise SnapshotError(
                f"the state of a run would take {len(data)} bytes, of which {MAX_BYTES} are kept"
            )
        return data

    @classmethod
    def from_bytes(cls, data: bytes, model: str, space: StateSpace) -> Session:
        """Return the session that `to_bytes` wrote.

        Raises
        ------
        SnapshotError
            If the bytes are damaged, of another version, of another model, or no session at all.
        """
        whole = _body(data)
        try:
            _same_model(whole["model"], model)
            session = cls(_text(whole["key"]), TrajectoryState.restore(whole["position"], space))
            session.parent = _text(whole["parent"])
            session.doubt = _text(whole["doubt"])
            session.proposals = _count(whole["proposals"])
            for call_id, tool, *parts in _bounded(whole["reserved"], MAX_RESERVED):
                session.reserved[_text(call_id)] = Reservation(_text(tool), _effect(parts, space))
            for call_id, digest, status, *parts in _bounded(whole["answers"], MAX_ANSWERS):
                decision = _decision(parts, session.key, _text(call_id))
                session.answers[call_id] = Given(_text(digest), decision, _status(status))
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SnapshotError(f"not the state of a guarded run: {error!r}") from error
        return session


def _same_model(found: Any, model: str) -> None:
    if found != model:
        raise SnapshotError(f"the state of a run under model {found!r}, not {model!r}")


def _digest(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:DIGEST_LENGTH].encode()


def _body(data: Any) -> Any:
    if not isinstance(data, bytes) or len(data) > MAX_BYTES:
        raise SnapshotError("not the state of a guarded run, or too large to be one")
    header, _, body = data.partition(b"\n")
    name, _, digest = header.partition(b" ")
    if name != SESSION_FORMAT:
        raise SnapshotError(f"not the state of a guarded run: it begins with {header[:40]!r}")
    if digest != _digest(body):
        raise SnapshotError("the state of a guarded run, but damaged")
    try:
        whole = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("the state of a guarded run, but not JSON") from error
    if not isinstance(whole, dict):
        raise SnapshotError("not the state of a guarded run")
    return whole


def _effect_parts(effect: Effect) -> list[Any]:
    return [dict(effect.levels), effect.source, list(effect.kinds), effect.external, effect.leaves]


def _effect(parts: list[Any], space: StateSpace) -> Effect:
    levels, source, kinds, external, leaves = parts
    pairs = {_text(name): _text(level) for name, level in levels.items()}
    effect = Effect(
        pairs,
        _text(source),
        kinds=tuple(map(_text, kinds)),
        external=external is True,
        leaves=leaves is True,
    )
    space.effect_index(effect)  # refuses levels that the space does not have
    return effect


def _decision_parts(decision: Decision) -> list[Any]:
    return [
        decision.intervention.value,
        decision.reason[:MAX_TEXT],
        decision.rule[:MAX_TEXT],
        _number(decision.probability),
        _number(decision.threshold),
        decision.error[:MAX_TEXT],
        decision.alternative[:MAX_TEXT],
        decision.would_be and decision.would_be.value,
        decision.answered_by[:MAX_TEXT],
    ]


def _decision(parts: list[Any], key: str, call_id: str) -> Decision:
    intervention, reason, rule, probability, threshold, error, alternative, would_be, answered_by = parts
    return Decision(
        Intervention(intervention),
        _text(reason),
        _text(rule),
        probability=nan if probability is None else float(probability),
        threshold=nan if threshold is None else float(threshold),
        error=_text(error),
        alternative=_text(alternative),
        would_be=None if would_be is None else Intervention(would_be),
        answered_by=_text(answered_by),
        repeated=True,
        key=key,
        call_id=call_id,
    )


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def _bounded(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise SnapshotError("not the state of a guarded run: too many calls")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise SnapshotError(f"not the state of a guarded run: {value!r} where a text should be")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise SnapshotError(f"not the state of a guarded run: {value!r} where a count should be")
    return value


def _status(value: Any) -> str:
    if value not in {OPEN, CONFIRMED, RELEASED, REFUSED}:
        raise SnapshotError(f"not the state of a guarded run: a call that is {value!r}")
    return str(value)
