"""The one way along a recorded run: where it stands before each call, and what is called next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.states.trajectory import Move, Trajectory

Place = TypeVar("Place")


class Follower(Protocol[Place]):
    """What can follow a run: a monitor, or anything else that says where a run begins and what a call makes of it."""

    def begin(self, run: Trajectory) -> Place:
        """Return where a run stands before its first call."""
        ...

    def follow(self, place: Place, move: Move, /) -> Place:
        """Return where it stands after a call."""
        ...


def walk(
    follower: Follower[Place], run: Trajectory, points: int | None = None
) -> Iterator[tuple[Place, Move | None]]:
    """Yield where a run stands, and the call that it makes next; None behind the last call.

    Parameters
    ----------
    follower
        Says where the run stands.
    points
        How many places to yield at most, the first being that before the first call; all of them if None.
    """
    moves, n_points = run.moves, len(run.moves) + 1
    place = follower.begin(run)
    for point in range(n_points if points is None else min(points, n_points)):
        if point:
            place = follower.follow(place, moves[point - 1])
        yield place, moves[point] if point < len(moves) else None
