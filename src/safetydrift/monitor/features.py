"""The features of the risk score: each one way to look at a run, or at a call that it proposes.

A feature puts every run into exactly one of its cells, and the model has a weight for each cell. What a feature has to
remember from call to call it tracks itself. A model file names the features it has weights for, so a new one is a class
here, in `CURRENT` or `PROPOSAL`, and a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.history.provenance import ORIGINS
from safetydrift.effects.history.sources import MOST, N_SOURCES, unpacked
from safetydrift.errors import ModelFileError, SpaceMismatchError
from safetydrift.monitor.facts import Facts, likeness_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Move, Trajectory

FITS = ("not at all", "in part", "by all of its words", "as it stands")
"""How well a tool's name fits some words, by `safetydrift.monitor.facts.likeness_of`."""


class Levels:
    """The levels that a state, or an effect, has in the dimensions that features look at, by index.

    Raises
    ------
    SpaceMismatchError
        If the space lacks one of them; `flow` has them all.
    """

    __slots__ = ("data", "origin", "reversibility", "space", "tool", "untrusted")

    def __init__(self, space: StateSpace) -> None:
        column = {dimension.name: place for place, dimension in enumerate(space.dimensions)}
        needed = ("data", "provenance", "reversibility", "tool", "untrusted")
        missing = sorted(set(needed) - set(column))
        if missing:
            raise SpaceMismatchError(
                f"a risk score looks at {missing[0]!r}, which space {space.name!r} does not have; space 'flow' has it"
            )
        self.space = space
        digits = [space.digits(state) for state in range(space.n_states)]
        self.data, self.origin, self.reversibility, self.tool, self.untrusted = (
            tuple([row[column[name]] for row in digits]) for name in needed
        )


class Proposed(Struct, frozen=True, gc=False):
    """What features look at in a proposed call.

    Parameters
    ----------
    effect, state
        The effect it is proposed with, and the state that it leads to.
    kinds
        The kinds of violation that it would complete, a bit each in the order of `KINDS`.
    origin
        The most worrying origin of its deciding values, by the state space.
    reach
        How far it goes: reversibility and capability.
    instructed, asked
        How well its tool fits the injected instructions, and the task (`FITS`).
    used
        Whether its tool was used before.
    share, said, count, worst, named
        Where the words of its arguments come from (`safetydrift.effects.history.sources.unpacked`).
    """

    effect: int
    state: int
    kinds: int
    origin: int
    reach: int
    instructed: int
    asked: int
    used: bool
    share: int
    said: int
    count: int
    worst: int
    named: int


class Feature:
    """A way to look at a run: a name, cells, and perhaps a value that it tracks from call to call.

    Attributes
    ----------
    name
        What the model file and explanations call it.
    size
        How many cells it has.
    words
        What each of them is called; their numbers if empty.
    start
        The value it tracks, before the first call; None if it tracks none.
    place
        Where in `Facts.tracked` that stands.
    """

    name: ClassVar[str] = ""
    words: ClassVar[Sequence[str]] = ()
    start: ClassVar[int | None] = None
    size: int = 0

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.place = -1
        self.size = self.size or len(self.words)

    def parts(self) -> Iterable[Feature]:
        """Return the features it is made of: itself, or those that it crosses."""
        return (self,)

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        """Return the value it tracks after a call.

        Parameters
        ----------
        value
            The one before the call.
        before
            The facts before the call.
        likeness
            How well the call's tool fits the injected instructions read before it.
        """
        return value

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        """Return the cell of a run that stands in a state, and of the call that it proposes."""
        raise NotImplementedError

    def says(self, cell: int) -> str:
        """Say a cell in words."""
        if self.words:
            return f"{self.name}: {self.words[cell]}"
        return f"{self.name}: {cell}{' or more' if cell == self.size - 1 else ''}"


class Tracked(Feature):
    """The value that it tracks is its cell."""

    start = 0

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return facts.tracked[self.place]


class Counted(Tracked):
    """How often something happened, up to a number that is the last of its cells."""

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        """Return whether a call counts; the arguments are those of `update`."""
        raise NotImplementedError

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        return value + 1 if value < self.size - 1 and self.happens(before, move, likeness) else value


class Crossed(Feature):
    """Features looked at together: a cell for every combination of theirs."""

    def __init__(self, levels: Levels, crosses: Iterable[Maker]) -> None:
        super().__init__(levels)
        self._parts = tuple([part(levels) for part in crosses])
        self.size = prod([part.size for part in self._parts])

    def parts(self) -> Iterable[Feature]:
        return self._parts

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        found = 0
        for part in self._parts:
            found = found * part.size + part.cell(facts, state, call)
        return found

    def says(self, cell: int) -> str:
        said = []
        for part in reversed(self._parts):
            cell, own = divmod(cell, part.size)
            said.append(part.says(own))
        return ", ".join(reversed(said))


Maker = Callable[[Levels], Feature]


def crossing(*crosses: Maker) -> Maker:
    """Return what makes a feature of several looked at together."""
    return lambda levels: Crossed(levels, crosses)


# -- where a run stands -----------------------------------------------------------------------------------


class State(Feature):
    name = "state"

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self.size = levels.space.n_states

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return state

    def says(self, cell: int) -> str:
        return f"state {self.levels.space.describe(cell)}"


class Steps(Feature):
    name = "calls made"
    _BANDS = (0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9, *[10] * 8)
    words = (
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6 or 7",
        "8 or 9",
        "10 to 12",
        "13 to 16",
        "17 to 24",
        "25 or more",
    )

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        steps = facts.steps
        return self._BANDS[steps] if steps < 25 else 11


class InjectedAgo(Feature):
    name = "calls since injected instructions"
    _BANDS = (0, 1, 2, 3, 4, 4, 5, 5, 5, 5)
    words = ("0", "1", "2", "3", "4 or 5", "6 to 9", "10 or more", "there were none")

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        ago = facts.since_injected
        return 7 if not facts.n_injected else self._BANDS[ago] if ago < 10 else 6


class InjectedResults(Feature):
    name, size = "results with injected instructions", 4

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return min(facts.n_injected, 3)


class UntrustedRead(Feature):
    name, words = "untrusted content", ("none", "read", "with instructions")

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return self.levels.untrusted[state]


class OriginOfState(Feature):
    name, words = "origin of the last call's values", ORIGINS

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return self.levels.origin[state]


class LastEffect(Feature):
    name = "last effect"

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self.size = levels.space.n_states + 1

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return facts.last_effect

    def says(self, cell: int) -> str:
        return f"{self.name}: {self.levels.space.describe(cell - 1) if cell else 'none yet'}"


class EffectBefore(LastEffect):
    name = "effect before"

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return facts.effect_before


class NetworkCalls(Counted):
    name, size = "calls that reached the network", 7

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return self.levels.tool[move.effect] == 3  # the highest level


class IrreversibleCalls(Counted):
    name, size = "irreversible calls", 7

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return self.levels.reversibility[move.effect] == 2  # the highest level


class SinceNewTool(Tracked):
    name, start = "calls since a new tool", 5
    words = ("0", "1", "2", "3", "4 or more", "none was used")

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        return min(value + 1, 4) if move.tool in before.tools else 0


class RepeatedCalls(Tracked):
    name, size = "repeated calls of the last tool", 5

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        return min(value + 1, 4) if move.tool == before.last else 0


class FailedCalls(Counted):
    name, size = "failed calls", 5

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return move.effect != move.proposed and self.levels.data[move.effect] == 0  # it read nothing


class ViolatingCalls(Counted):
    name, size = "calls with a kind of violation", 5

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return bool(move.kinds)


class WorstOrigin(Tracked):
    name, words = "worst origin so far", ORIGINS

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        return max(value, self.levels.origin[move.proposed])


class UntrustedValues(Counted):
    name, size = "calls with values from untrusted content", 4

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return self.levels.origin[move.proposed] == ORIGINS.index("foreign")


class InjectedValues(Counted):
    name, size = "calls with values from injected instructions", 4

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return self.levels.origin[move.proposed] == ORIGINS.index("instructed")


class ToolsUsed(Feature):
    name, size = "tools used", 9

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return min(len(facts.tools), 8)


class FollowingCalls(Counted):
    name, size = "calls of tools that injected instructions name", 6

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return likeness >= 2  # every word of its name


class _Closest(Tracked):
    name, words = "best fit of a tool to injected instructions", FITS

    def update(self, value: int, before: Facts, move: Move, likeness: int) -> int:
        return max(value, likeness)


class _LastFit(Feature):
    name, words = "fit of the last tool to injected instructions", FITS

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        return facts.likeness


class UnaskedTools(Counted):
    name, size = "calls of tools that the task does not name", 9

    def happens(self, before: Facts, move: Move, likeness: int) -> bool:
        return not likeness_of(move.tool, before.task_words)


CURRENT: dict[str, Maker] = {
    State.name: State,
    Steps.name: Steps,
    "injected instructions": crossing(InjectedAgo, InjectedResults),
    "injected instructions and origin": crossing(InjectedAgo, UntrustedRead, OriginOfState),
    LastEffect.name: LastEffect,
    EffectBefore.name: EffectBefore,
    NetworkCalls.name: NetworkCalls,
    IrreversibleCalls.name: IrreversibleCalls,
    SinceNewTool.name: SinceNewTool,
    RepeatedCalls.name: RepeatedCalls,
    FailedCalls.name: FailedCalls,
    ViolatingCalls.name: ViolatingCalls,
    WorstOrigin.name: WorstOrigin,
    UntrustedValues.name: UntrustedValues,
    InjectedValues.name: InjectedValues,
    ToolsUsed.name: ToolsUsed,
    "calls made and injected instructions": crossing(Steps, InjectedAgo),
    FollowingCalls.name: FollowingCalls,
    "closest call to injected instructions": crossing(_Closest, InjectedAgo),
    "last call and injected instructions": crossing(_LastFit, InjectedAgo),
    UnaskedTools.name: UnaskedTools,
}
"""The features of where a run stands."""


# -- a proposed call --------------------------------------------------------------------------------------


class Aspect(Feature):
    """A field of `Proposed`."""

    field: ClassVar[str] = ""

    def cell(self, facts: Facts, state: int, call: Proposed | None) -> int:
        found: int = getattr(call, self.field)
        return found


class ProposedEffect(Aspect):
    name, field = "proposed effect", "effect"

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self.size = levels.space.n_states

    def says(self, cell: int) -> str:
        return f"{self.name}: {self.levels.space.describe(cell)}"


class ProposedState(ProposedEffect):
    name, field = "state it leads to", "state"


class Kinds(Aspect):
    name, field, size = "kinds of violation", "kinds", 1 << len(KINDS)

    def says(self, cell: int) -> str:
        named = [kind for place, kind in enumerate(KINDS) if cell >> place & 1]
        return f"{self.name}: {', '.join(named) or 'none'}"


class _Origin(Aspect):
    name, field, words = "origin of its values", "origin", ORIGINS


class _Reach(Aspect):
    name, field, size = "reversibility and capability", "reach", 12

    def says(self, cell: int) -> str:
        levels = {dimension.name: dimension.levels for dimension in self.levels.space.dimensions}
        return f"{levels['reversibility'][cell // 4]} {levels['tool'][cell % 4]}"


class _Instructed(Aspect):
    name, field, words = "its tool fits injected instructions", "instructed", FITS


class _Asked(Aspect):
    name, field, words = "its tool fits the task", "asked", FITS


class _Used(Aspect):
    name, field, words = "its tool was used before", "used", ("no", "yes")


class _InjectedShare(Aspect):
    name, field = "share of its words that only injected instructions said", "share"
    words = ("none", "some", "15 % or more", "35 % or more", "60 % or more", "85 % or more")


class _SaidShare(Aspect):
    name, field, words = "share of its words that the user said", "said", _InjectedShare.words


class InjectedCount(Aspect):
    name, field = "words that only injected instructions said", "count"
    words = ("0", "1", "2", "3 or 4", "5 to 8", "9 to 16", "17 or more")


class _WorstValue(Aspect):
    name, field, words = "worst of its values", "worst", ORIGINS


class _NamedValues(Aspect):
    name, field, size = "values that stand in injected instructions", "named", MOST + 1


PROPOSAL: dict[str, Maker] = {
    ProposedEffect.name: ProposedEffect,
    ProposedState.name: ProposedState,
    Kinds.name: Kinds,
    "origin and fit to injected instructions": crossing(_Origin, _Instructed),
    "fit to injected instructions and task": crossing(_Instructed, _Asked),
    "fit to injected instructions and task, tool used before, injected instructions": crossing(
        _Instructed, _Asked, _Used, InjectedAgo
    ),
    "origin, reversibility, capability": crossing(_Origin, _Reach),
    "origin, kinds, fit to injected instructions": crossing(_Origin, Kinds, _Instructed),
    "words of injected instructions, words of the user": crossing(_InjectedShare, _SaidShare),
    InjectedCount.name: InjectedCount,
    "worst value, values from injected instructions": crossing(_WorstValue, _NamedValues),
    "words of and fit to injected instructions": crossing(_InjectedShare, _Instructed),
    "words of injected instructions, reversibility, capability": crossing(_InjectedShare, _Reach),
    "words of and fit to injected instructions, fit to the task": crossing(
        _InjectedShare, _Instructed, _Asked
    ),
    "worst value, reversibility, capability": crossing(_WorstValue, _Reach),
    "words of injected instructions, worst value": crossing(_InjectedShare, _WorstValue),
}
"""The features that a proposed call adds to those of where the run stands."""


class Features:
    """The features of one model, ready to be asked.

    Parameters
    ----------
    space
        The state space.
    current, proposal
        Names of the features of where a run stands, and of those that a proposed call adds; all there are if not given.

    Raises
    ------
    SpaceMismatchError
        If the space lacks a dimension that features look at.
    ModelFileError
        If there is no such feature.
    """

    __slots__ = ("_levels", "_start", "_tracking", "current", "proposal")

    def __init__(
        self, space: StateSpace, current: Iterable[str] | None = None, proposal: Iterable[str] | None = None
    ) -> None:
        self._levels = Levels(space)
        self.current = self._made(CURRENT, current)
        self.proposal = self._made(PROPOSAL, proposal)
        parts = [part for feature in self.all.values() for part in feature.parts()]
        self._tracking = tuple([part for part in parts if part.start is not None])
        for place, feature in enumerate(self._tracking):
            feature.place = place
        self._start = tuple([feature.start or 0 for feature in self._tracking])

    @property
    def all(self) -> dict[str, Feature]:
        """The features that a proposal is judged by: those of where the run stands, and those of the call."""
        return self.current | self.proposal

    def _made(self, known: Mapping[str, Maker], names: Iterable[str] | None) -> dict[str, Feature]:
        chosen = list(known if names is None else names)
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise ModelFileError(
                f"its risk score looks at {unknown[0]!r}, which this version does not know; fit the model again"
            )
        return {name: known[name](self._levels) for name in chosen}

    # -- along a run --------------------------------------------------------------------------------------

    def start(self, task_words: Iterable[int] = ()) -> Facts:
        """Return the facts of a run that has not made a call yet."""
        return Facts(task_words=frozenset(task_words), tracked=self._start)

    def begin(self, run: Trajectory) -> Facts:
        """Return the facts of a recorded run before its first call."""
        return self.start(run.words)

    def follow(self, facts: Facts, move: Move) -> Facts:
        """Return the facts after a call."""
        tool, injected, n_injected = move.tool, facts.injected_words, facts.n_injected
        likeness = likeness_of(tool, injected) if injected else 0
        tracked = tuple(
            [
                feature.update(value, facts, move, likeness)
                for feature, value in zip(self._tracking, facts.tracked, strict=True)
            ]
        )
        since = facts.since_injected + 1 if n_injected else 0
        if move.injected:
            injected, n_injected, since = injected.union(move.injected), n_injected + 1, 0
        heard = facts.heard_words
        return Facts(
            facts.steps + 1,
            facts.task_words,
            heard.union(move.heard) if move.heard else heard,
            injected,
            n_injected,
            since,
            likeness,
            facts.tools if tool in facts.tools else facts.tools | {tool},
            tool,
            facts.last,
            move.effect + 1,
            facts.last_effect,
            tracked,
        )

    def current_cells(self, state: int, facts: Facts) -> tuple[int, ...]:
        """Return the cell of every current feature for a run that stands in a state."""
        return tuple([feature.cell(facts, state, None) for feature in self.current.values()])

    def proposal_cells(self, state: int, facts: Facts, move: Move) -> tuple[int, ...]:
        """Return the cell of every proposal feature for a call proposed in a state."""
        call = self._proposed(state, facts, move)
        return tuple([feature.cell(facts, state, call) for feature in self.proposal.values()])

    def _proposed(self, state: int, facts: Facts, move: Move) -> Proposed:
        levels, tool, effect = self._levels, move.tool, move.proposed
        return Proposed(
            effect,
            levels.space.successors(state)[effect],
            sum([_BIT[kind] for kind in move.kinds]) if move.kinds else 0,
            levels.origin[effect],
            4 * levels.reversibility[effect] + levels.tool[effect],
            likeness_of(tool, facts.injected_words) if facts.n_injected else 0,
            likeness_of(tool, facts.task_words),
            tool in facts.tools,
            *_SOURCES[move.sources],
        )


_BIT = {kind: 1 << place for place, kind in enumerate(KINDS)}
_SOURCES = tuple(map(unpacked, range(N_SOURCES)))
