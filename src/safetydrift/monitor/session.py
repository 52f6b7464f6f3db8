"""Where one run stands: a small immutable value that the caller keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, ValidationError
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import replace

from safetydrift.authority.ledger import Ledger
from safetydrift.authority.run import Plan
from safetydrift.authority.score import Assessment
from safetydrift.effects.history import History
from safetydrift.effects.history.sources import N_SOURCES
from safetydrift.effects.proposal import Proposal
from safetydrift.errors import SnapshotError, SpaceError
from safetydrift.monitor.categories import Belief
from safetydrift.monitor.facts import Facts
from safetydrift.states.bounded import Count
from safetydrift.states.trajectory import Move

if TYPE_CHECKING:
    from safetydrift.states.space import StateSpace


class TrajectoryState(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The state of one run between two calls.

    Parameters
    ----------
    category
        The category whose tables are used; unknown ones stand for the aggregate.
    state
        Index of the safety state.
    steps
        Calls made so far.
    since
        Per dimension, the step that last raised its level (0: never raised).
    violated
        Whether the rules have been violated; only ever set for models that go by the rules, and never unset.
    history
        What the run has shown so far; None for models whose states do not depend on it.
    facts, pipeline
        What a risk score looks at beside the state, and which model acts; None for models without one.
    belief
        What there is to tell the run's category by; None where the category is known, or the model has no soft ones.
    ledger
        Who asked for what so far; None where nobody asks about authority.
    """

    category: str
    state: Count
    steps: Count
    since: tuple[Count, ...]
    violated: bool = False
    history: History | None = None
    facts: Facts | None = None
    pipeline: tuple[Count, ...] | None = None
    belief: Belief | None = None
    ledger: Ledger | None = None

    def stored(self) -> TrajectoryState:
        """Return what is stored of it: no text that came back from a tool."""
        return self if self.ledger is None else replace(self, ledger=self.ledger.kept())

    def snapshot(self) -> bytes:
        """Return the state as bytes, which `restore` reads."""
        return _encode(self.stored())

    @classmethod
    def restore(cls, data: bytes, space: StateSpace) -> TrajectoryState:
        """Return a state from what `snapshot` gave; a monitor of the same model judges the two alike.

        Parameters
        ----------
        space
            The state space of that model.

        Raises
        ------
        SnapshotError
            If it is no such data, or no state of that space.
        """
        try:
            found = _decode(data)
        except (ValidationError, DecodeError, TypeError) as error:
            raise SnapshotError(f"not the state of a run: {error}") from error
        found.require(space)
        return found

    def require(self, space: StateSpace) -> None:
        """Check that it is a state of a space.

        Raises
        ------
        SnapshotError
            If it is none.
        """
        path = () if self.belief is None else self.belief.path
        if max((self.state, *path)) >= space.n_states or len(self.since) != len(space.dimensions):
            raise SnapshotError("not the state of a run in this state space")


class Pending(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A proposed call whose result is awaited.

    Parameters
    ----------
    proposal
        What was read of it.
    move
        The same in the numbers of the monitor's state space.
    plan, assessment
        What it adds to the ledger, and how probable unauthorised harm is; None where nobody asks about authority.
    """

    proposal: Proposal
    move: Move
    plan: Plan | None = None
    assessment: Assessment | None = None

    def stored(self) -> Pending:
        """Return what is stored until the result comes: nothing that is written in the arguments."""
        return Pending(self.proposal.stored(), self.move, None if self.plan is None else self.plan.kept())

    def require(self, space: StateSpace) -> None:
        """Check that it is a call in a space.

        Raises
        ------
        SnapshotError
            If it is none.
        """
        try:
            known = space.effect_index(self.proposal.effect) == self.move.proposed == self.move.effect
        except SpaceError as error:
            raise SnapshotError(f"not a call in this state space: {error}") from error
        if not known or self.move.sources != self.proposal.sources or self.move.sources >= N_SOURCES:
            raise SnapshotError("not a call in this state space")


_encode = Encoder().encode
_decode = Decoder(TrajectoryState).decode
