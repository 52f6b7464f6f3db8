"""Runs of one space read in another: by the names of their levels, with the states folded anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.errors import SpaceError, SpaceMismatchError
from safetydrift.states.trajectory import fold

if TYPE_CHECKING:
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory


def projection(recorded: StateSpace, space: StateSpace) -> tuple[int, ...]:
    """Return, by effect index of the recorded space, the effect index in the other.

    Raises
    ------
    SpaceMismatchError
        If the space asked for has dimensions or levels the recorded one knows nothing of.
    """
    known = {dimension.name for dimension in recorded.dimensions}
    missing = [dimension.name for dimension in space.dimensions if dimension.name not in known]
    if missing:
        raise SpaceMismatchError(
            f"its runs were labelled without the dimension {missing[0]!r} of space {space.name!r}; "
            "label the traces again in that space"
        )
    mine = {dimension.name for dimension in space.dimensions}
    try:
        return tuple(
            space.encode({name: level for name, level in recorded.decode(effect).items() if name in mine})
            for effect in range(recorded.n_states)
        )
    except SpaceError as error:
        raise SpaceMismatchError(f"its runs cannot be read in space {space.name!r}: {error}") from error


def project(run: Trajectory, effect_of: tuple[int, ...], space: StateSpace) -> Trajectory:
    """Return a run in another space.

    Parameters
    ----------
    effect_of
        What `projection` returned for the run's own space and this one.
    space
        The space to read the run in.
    """
    moves = tuple(
        [
            replace(move, proposed=effect_of[move.proposed], effect=effect_of[move.effect])
            for move in run.moves
        ]
    )
    return replace(run, moves=moves, states=fold(space, [move.effect for move in moves]))
