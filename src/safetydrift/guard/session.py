"""The state of one guarded run: where it stands, what was proposed and is not settled, what was answered."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import DecodeError, Meta, Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import replace

from safetydrift.errors import SnapshotError
from safetydrift.guard.decision import Decision
from safetydrift.monitor.session import Pending, TrajectoryState
from safetydrift.monitor.verdict import Intervention
from safetydrift.states.bounded import Count

if TYPE_CHECKING:
    from safetydrift.states.space import StateSpace

SESSION_FORMAT = b"safetydrift.session/3"
MAX_BYTES = 8 << 20
"""A larger snapshot is refused; what a history remembers is bounded well below."""
MAX_ANSWERS = 128
"""Calls whose answers are remembered; those that are not settled are never forgotten."""
MAX_RESERVED = 64
"""Calls that may be under way at once; beyond it the oldest is taken to have been made."""
DIGEST_LENGTH = 32

Status = Literal["open", "confirmed", "released", "refused"]
OPEN: Status = "open"
CONFIRMED: Status = "confirmed"
RELEASED: Status = "released"
REFUSED: Status = "refused"
"""What has become of a call: under way or waiting for a person, made, not made, not allowed."""


class Given(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The answer to a call, and what has become of it.

    Parameters
    ----------
    decision
        The answer.
    status
        One of `OPEN`, `CONFIRMED`, `RELEASED` and `REFUSED`.
    tool
        The tool's name.
    answered_at
        When a person answered, in seconds since the epoch; 0 if nobody did.
    replaced
        Whether another question was open under the same identifier when this one was asked.
    result
        A digest of what came back.
    """

    decision: Decision
    status: Status
    tool: str = ""
    answered_at: float = 0.0
    replaced: bool = False
    result: str = ""

    def answers(self, digest: str, now: float, lasts: float) -> bool:
        """Return whether this is the answer to a proposal: to the same call, which was neither made nor taken back.

        Parameters
        ----------
        digest
            Of the call proposed.
        now
            Seconds since the epoch.
        lasts
            For how many seconds a person's yes holds.
        """
        if self.decision.digest != digest or self.status in {CONFIRMED, RELEASED}:
            return False
        if self.answered_at and self.decision.allowed:
            return 0.0 <= now - self.answered_at <= lasts
        return True


class Reserved(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A call that is under way.

    Parameters
    ----------
    pending
        What was read of it.
    guard
        The number of the guard that waits for its result.
    """

    pending: Pending
    guard: int

    def stored(self) -> Reserved:
        """Return it without anything that is written in the arguments."""
        effect = self.pending.proposal.effect
        return Reserved(self.pending.stored(), self.guard) if effect.reasons or effect.destinations else self


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
        self.reserved: dict[str, Reserved] = {}
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

    def unused_id(self) -> str:
        """Return an identifier for the next call, under which nothing is remembered."""
        number = self.proposals + 1
        while f"#{number}" in self.answers or f"#{number}" in self.reserved:
            number += 1
        return f"#{number}"

    def confirm(self, call_id: str, result: str, tool: str) -> None:
        """Note that a call was made.

        Parameters
        ----------
        result
            A digest of what came back.
        tool
            The tool's name, for a call that nobody proposed.
        """
        given = self.answers.get(call_id)
        if given is not None:
            self.answers[call_id] = Given(
                given.decision, CONFIRMED, given.tool, given.answered_at, given.replaced, result
            )
        else:
            nothing = Decision(Intervention.ALLOW, rule="never proposed", key=self.key, call_id=call_id)
            self.remember(call_id, Given(nothing, CONFIRMED, tool, result=result))

    def settle(self, call_id: str, status: Status) -> None:
        """Note what has become of a call under way; what was settled before stays as it is."""
        given = self.answers.get(call_id)
        if given is not None and given.status == OPEN:
            self.answers[call_id] = replace(given, status=status)

    # -- storing it ---------------------------------------------------------------------------------------

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
        self.reserved = {name: one.stored() for name, one in self.reserved.items()}
        self.answers = {
            call_id: replace(given, decision=given.decision.stored()) if given.decision.plain else given
            for call_id, given in self.answers.items()
        }
        stored = _Stored(model, *[getattr(self, name) for name in _STORED])
        try:
            body = _encode(stored)
        except (UnicodeEncodeError, OverflowError) as error:
            raise SnapshotError(f"the state of a run cannot be kept: {error}") from error
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
        try:
            stored = _decode(_body(data))
        except DecodeError as error:
            raise SnapshotError(f"not the state of a guarded run: {error}") from error
        if stored.model != model:
            raise SnapshotError(f"the state of a run under model {stored.model!r}, not {model!r}")
        stored.position.require(space)
        for one in stored.reserved.values():
            one.pending.require(space)
        session = cls(stored.key, stored.position, stored.parent)
        for name in _STORED:
            setattr(session, name, getattr(stored, name))
        return session


_STORED = ("key", "parent", "position", "reserved", "answers", "proposals", "doubt")


class _Stored(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A session as it is written."""

    model: str
    key: str
    parent: str
    position: TrajectoryState
    reserved: Annotated[dict[str, Reserved], Meta(max_length=MAX_RESERVED)]
    answers: Annotated[dict[str, Given], Meta(max_length=MAX_ANSWERS)]
    proposals: Count
    doubt: str


_encode = Encoder().encode
_decode = Decoder(_Stored).decode


def _digest(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:DIGEST_LENGTH].encode()


def _body(data: Any) -> bytes:
    if not isinstance(data, bytes) or len(data) > MAX_BYTES:
        raise SnapshotError("not the state of a guarded run, or too large to be one")
    header, _, body = data.partition(b"\n")
    name, _, digest = header.partition(b" ")
    if name != SESSION_FORMAT:
        raise SnapshotError(f"not the state of a guarded run: it begins with {header[:40]!r}")
    if digest != _digest(body):
        raise SnapshotError("the state of a guarded run, but damaged")
    return body
