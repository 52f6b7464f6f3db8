"""The features of the risk score: each one way to look at a run, or at a call that it proposes.

A feature puts every run into exactly one of its cells, and the model has a weight for each cell. What a feature has to
remember from call to call it tracks itself. A model file names the features it has weights for, so a new one is a class
here, in `CURRENT` or `PROPOSAL`, and a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from msgspec.structs import replace

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.history.provenance import ORIGINS
from safetydrift.effects.history.sources import MOST, N_SOURCES, unpacked
from safetydrift.errors import ModelFileError, SnapshotError, SpaceMismatchError
from safetydrift.monitor.facts import Facts, likeness_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Move, Trajectory

_REMEMBERED = 1 << 13
"""Ways from what was tracked before a call to what is after it that are remembered."""

FITS = ("not at all", "in part", "by all of its words", "as it stands")
"""How well a tool's name fits some words, by `safetydrift.monitor.facts.likeness_of`."""


class Levels:
    """The levels that a state, or an effect, has in the dimensions that features look at, by index.

    Raises
    ------
    SpaceMismatchError
        If the space lacks one of them; `flow` has them all.
    """

    __slots__ = ("data", "origin", "reach", "reversibility", "space", "tool", "untrusted")

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
        self.reach = tuple([4 * row + tool for row, tool in zip(self.reversibility, self.tool, strict=True)])


class Proposed(NamedTuple):
    """What features look at in a proposed call.

    Attributes
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
    share, said, n_words, worst, named
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
    n_words: int
    worst: int
    named: int


class Made(NamedTuple):
    """What features that track something see of a call that was made.

    Attributes
    ----------
    effect, proposed
        The effect it had, and the one it was proposed with.
    before
        The effect of the call before it, counted from 1; 0 for none.
    violating
        Whether it would complete a kind of violation.
    followed, asked
        How well its tool fits the injected instructions read before it, and the task (`FITS`).
    new, again
        Whether its tool was not used before, and whether it is that of the call before.
    injected
        Whether its result held injected instructions.
    """

    effect: int
    proposed: int
    before: int
    violating: bool
    followed: int
    asked: int
    new: bool
    again: bool
    injected: bool


class Feature:
    """A way to look at a run: a name, and cells of which every run is in one.

    Attributes
    ----------
    name
        What the model file and explanations call it.
    size
        How many cells it has.
    words
        What each of them is called; their numbers if empty.
    """

    name: ClassVar[str] = ""
    words: ClassVar[Sequence[str]] = ()
    size: int = 0

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.size = self.size or len(self.words)

    def cell(self, value: int) -> int:
        """Return the cell of a value; most are their own."""
        return value

    def says(self, cell: int) -> str:
        """Say a cell in words."""
        if self.words:
            return f"{self.name}: {self.words[cell]}"
        return f"{self.name}: {cell}{' or more' if cell == self.size - 1 else ''}"


class OfState(Feature):
    """What the safety state says by itself."""

    def of(self, state: int) -> int:
        """Return the value for a state."""
        raise NotImplementedError


class Tracked(Feature):
    """What a run tells from call to call.

    Attributes
    ----------
    start
        The value before the first call.
    """

    start: int = 0

    def update(self, value: int, call: Made) -> int:
        """Return the value after a call, given the one before. Nothing but these two may count."""
        raise NotImplementedError

    def heard(self, value: int) -> int:
        """Return the value after the user has said something between two calls."""
        return value

    @property
    def highest(self) -> int:
        """The highest value there is."""
        return self.size - 1


class Counted(Tracked):
    """How often something happened, up to a number that is the last of its cells."""

    def counts(self, call: Made) -> bool:
        """Return whether a call counts."""
        raise NotImplementedError

    def update(self, value: int, call: Made) -> int:
        return value + 1 if value < self.size - 1 and self.counts(call) else value


class Aspect(Feature):
    """What a proposed call is like: a field of `Proposed`."""

    field: ClassVar[str] = ""


Maker = Callable[["Levels"], Feature]
Crossing = tuple[Maker, ...]
"""Features that are looked at together, with a cell for every combination of theirs; often it is one alone."""


# -- where a run stands -----------------------------------------------------------------------------------


class State(OfState):
    name = "state"

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self.size = levels.space.n_states

    def of(self, state: int) -> int:
        return state

    def says(self, cell: int) -> str:
        return f"state {self.levels.space.describe(cell)}"


class UntrustedRead(OfState):
    name, words = "untrusted content", ("none", "read", "with instructions")

    def of(self, state: int) -> int:
        return self.levels.untrusted[state]


class OriginOfState(OfState):
    name, words = "origin of the last call's values", ORIGINS

    def of(self, state: int) -> int:
        return self.levels.origin[state]


class Steps(Tracked):
    name, highest = "calls made", 25
    _BANDS = (0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9, *[10] * 8, 11)
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

    def update(self, value: int, call: Made) -> int:
        return min(value + 1, self.highest)

    def cell(self, value: int) -> int:
        return self._BANDS[value]


class InjectedAgo(Tracked):
    name, highest, start = "calls since injected instructions", 11, 11
    _BANDS = (0, 1, 2, 3, 4, 4, 5, 5, 5, 5, 6, 7)
    words = ("0", "1", "2", "3", "4 or 5", "6 to 9", "10 or more", "there were none")

    def update(self, value: int, call: Made) -> int:
        return 0 if call.injected else value if value == self.start else min(value + 1, 10)

    def cell(self, value: int) -> int:
        return self._BANDS[value]


class InjectedResults(Counted):
    name, size = "results with injected instructions", 4

    def counts(self, call: Made) -> bool:
        return call.injected


class LastEffect(Tracked):
    name = "last effect"

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self.size = levels.space.n_states + 1

    def update(self, value: int, call: Made) -> int:
        return call.effect + 1

    def says(self, cell: int) -> str:
        return f"{self.name}: {self.levels.space.describe(cell - 1) if cell else 'none yet'}"


class EffectBefore(LastEffect):
    name = "effect before"

    def update(self, value: int, call: Made) -> int:
        return call.before


class NetworkCalls(Counted):
    name, size = "calls that reached the network", 7

    def counts(self, call: Made) -> bool:
        return self.levels.tool[call.effect] == 3  # the highest level


class IrreversibleCalls(Counted):
    name, size = "irreversible calls", 7

    def counts(self, call: Made) -> bool:
        return self.levels.reversibility[call.effect] == 2  # the highest level


class SinceNewTool(Tracked):
    name, start = "calls since a new tool", 5
    words = ("0", "1", "2", "3", "4 or more", "none was used")

    def update(self, value: int, call: Made) -> int:
        return 0 if call.new else min(value + 1, 4)


class RepeatedCalls(Tracked):
    name, size = "repeated calls of the last tool", 5

    def update(self, value: int, call: Made) -> int:
        return min(value + 1, 4) if call.again else 0


class FailedCalls(Counted):
    name, size = "failed calls", 5

    def counts(self, call: Made) -> bool:
        return call.effect != call.proposed and self.levels.data[call.effect] == 0  # it read nothing


class ViolatingCalls(Counted):
    name, size = "calls with a kind of violation", 5

    def counts(self, call: Made) -> bool:
        return call.violating


class WorstOrigin(Tracked):
    name, words = "worst origin so far", ORIGINS

    def update(self, value: int, call: Made) -> int:
        return max(value, self.levels.origin[call.proposed])


class UntrustedValues(Counted):
    name, size = "calls with values from untrusted content", 4

    def counts(self, call: Made) -> bool:
        return self.levels.origin[call.proposed] == ORIGINS.index("foreign")


class InjectedValues(Counted):
    name, size = "calls with values from injected instructions", 4

    def counts(self, call: Made) -> bool:
        return self.levels.origin[call.proposed] == ORIGINS.index("instructed")


class ToolsUsed(Counted):
    name, size = "tools used", 9

    def counts(self, call: Made) -> bool:
        return call.new


class FollowingCalls(Counted):
    name, size = "calls of tools that injected instructions name", 6

    def counts(self, call: Made) -> bool:
        return call.followed >= 2  # every word of its name


class _Closest(Tracked):
    name, words = "best fit of a tool to injected instructions", FITS

    def update(self, value: int, call: Made) -> int:
        return max(value, call.followed)


class _LastFit(Tracked):
    name, words = "fit of the last tool to injected instructions", FITS

    def update(self, value: int, call: Made) -> int:
        return call.followed


class UnaskedTools(Counted):
    name, size = "calls of tools that the task does not name", 9

    def counts(self, call: Made) -> bool:
        return not call.asked


CURRENT: dict[str, Crossing] = {
    State.name: (State,),
    Steps.name: (Steps,),
    "injected instructions": (InjectedAgo, InjectedResults),
    "injected instructions and origin": (InjectedAgo, UntrustedRead, OriginOfState),
    LastEffect.name: (LastEffect,),
    EffectBefore.name: (EffectBefore,),
    NetworkCalls.name: (NetworkCalls,),
    IrreversibleCalls.name: (IrreversibleCalls,),
    SinceNewTool.name: (SinceNewTool,),
    RepeatedCalls.name: (RepeatedCalls,),
    FailedCalls.name: (FailedCalls,),
    ViolatingCalls.name: (ViolatingCalls,),
    WorstOrigin.name: (WorstOrigin,),
    UntrustedValues.name: (UntrustedValues,),
    InjectedValues.name: (InjectedValues,),
    ToolsUsed.name: (ToolsUsed,),
    "calls made and injected instructions": (Steps, InjectedAgo),
    FollowingCalls.name: (FollowingCalls,),
    "closest call to injected instructions": (_Closest, InjectedAgo),
    "last call and injected instructions": (_LastFit, InjectedAgo),
    UnaskedTools.name: (UnaskedTools,),
}
"""The features of where a run stands."""


# -- a proposed call --------------------------------------------------------------------------------------


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
    name, field = "words that only injected instructions said", "n_words"
    words = ("0", "1", "2", "3 or 4", "5 to 8", "9 to 16", "17 or more")


class _WorstValue(Aspect):
    name, field, words = "worst of its values", "worst", ORIGINS


class _NamedValues(Aspect):
    name, field, size = "values that stand in injected instructions", "named", MOST + 1


PROPOSAL: dict[str, Crossing] = {
    ProposedEffect.name: (ProposedEffect,),
    ProposedState.name: (ProposedState,),
    Kinds.name: (Kinds,),
    "origin and fit to injected instructions": (_Origin, _Instructed),
    "fit to injected instructions and task": (_Instructed, _Asked),
    "fit to injected instructions and task, tool used before, injected instructions": (
        _Instructed,
        _Asked,
        _Used,
        InjectedAgo,
    ),
    "origin, reversibility, capability": (_Origin, _Reach),
    "origin, kinds, fit to injected instructions": (_Origin, Kinds, _Instructed),
    "words of injected instructions, words of the user": (_InjectedShare, _SaidShare),
    InjectedCount.name: (InjectedCount,),
    "worst value, values from injected instructions": (_WorstValue, _NamedValues),
    "words of and fit to injected instructions": (_InjectedShare, _Instructed),
    "words of injected instructions, reversibility, capability": (_InjectedShare, _Reach),
    "words of and fit to injected instructions, fit to the task": (_InjectedShare, _Instructed, _Asked),
    "worst value, reversibility, capability": (_WorstValue, _Reach),
    "words of injected instructions, worst value": (_InjectedShare, _WorstValue),
}
"""The features that a proposed call adds to those of where the run stands."""


class Look:
    """Features that are looked at together.

    Parameters
    ----------
    features
        One or more of them.
    places
        Where their values stand in what is seen of a run (`Features.see`), or of a run and a call.

    Attributes
    ----------
    size
        How many combinations of their cells there are.
    """

    __slots__ = ("features", "places", "size")

    def __init__(self, features: Sequence[Feature], places: Sequence[int]) -> None:
        self.features, self.places = features, tuple(places)
        self.size = prod([feature.size for feature in features])

    def cell(self, seen: Sequence[int]) -> int:
        """Return the combination of what is seen."""
        found = 0
        for place, feature in zip(self.places, self.features, strict=True):
            found = found * feature.size + feature.cell(seen[place])
        return found

    def says(self, cell: int) -> str:
        """Say a combination in words."""
        said = []
        for feature in reversed(self.features):
            cell, own = divmod(cell, feature.size)
            said.append(feature.says(own))
        return ", ".join(reversed(said))


class Features:
    """The features of one model, ready to be asked.

    Parameters
    ----------
    space
        The state space.
    current, proposal
        Names of the features of where a run stands, and of those that a proposed call adds; all there are if not given.

    Attributes
    ----------
    current, proposal
        The features, by name.

    Raises
    ------
    SpaceMismatchError
        If the space lacks a dimension that features look at.
    ModelFileError
        If there is no such feature.
    """

    __slots__ = (
        "_last_effect",
        "_levels",
        "_of_state",
        "_start",
        "_tracked",
        "_tracking",
        "current",
        "proposal",
    )

    def __init__(
        self, space: StateSpace, current: Iterable[str] | None = None, proposal: Iterable[str] | None = None
    ) -> None:
        self._levels = levels = Levels(space)
        crossings = _chosen(CURRENT, current), _chosen(PROPOSAL, proposal)
        made = {
            maker: maker(levels)
            for makers in (*crossings[0].values(), *crossings[1].values(), (LastEffect,))
            for maker in makers
        }
        of_state = [feature for feature in made.values() if isinstance(feature, OfState)]
        self._tracking = tuple([feature for feature in made.values() if isinstance(feature, Tracked)])
        self._last_effect = next(
            place for place, feature in enumerate(self._tracking) if type(feature) is LastEffect
        )
        self._start = tuple([feature.start for feature in self._tracking])
        self._of_state = [
            tuple([feature.of(state) for feature in of_state]) for state in range(space.n_states)
        ]
        self._tracked = lru_cache(_REMEMBERED)(self._track)
        order = [*of_state, *self._tracking]
        place = {feature: number for number, feature in enumerate(order)} | {
            feature: len(order) + Proposed._fields.index(feature.field)
            for feature in made.values()
            if isinstance(feature, Aspect)
        }
        self.current, self.proposal = (
            {
                name: Look([made[maker] for maker in makers], [place[made[maker]] for maker in makers])
                for name, makers in chosen.items()
            }
            for chosen in crossings
        )

    @property
    def all(self) -> dict[str, Look]:
        """The features that a proposal is judged by: those of where the run stands, and those of the call."""
        return self.current | self.proposal

    def require(self, facts: Facts) -> None:
        """Check that facts are what these features track.

        Raises
        ------
        SnapshotError
            If they are something else.
        """
        found = facts.tracked
        if len(found) != len(self._tracking) or any(
            value > feature.highest for feature, value in zip(self._tracking, found, strict=True)
        ):
            raise SnapshotError("not the facts that the features of this model track")

    # -- along a run --------------------------------------------------------------------------------------

    def start(self, task_words: Iterable[int] = ()) -> Facts:
        """Return the facts of a run that has not made a call yet."""
        return Facts(task_words=frozenset(task_words), tracked=self._start)

    def begin(self, run: Trajectory) -> Facts:
        """Return the facts of a recorded run before its first call."""
        return self.start(run.words)

    def hear(self, facts: Facts, words: Iterable[int]) -> Facts:
        """Return the facts after the user has said something between two calls."""
        each = zip(self._tracking, facts.tracked, strict=True)
        tracked = tuple([feature.heard(value) for feature, value in each])
        return replace(facts, heard_words=facts.heard_words.union(words), tracked=tracked)

    def follow(self, facts: Facts, move: Move) -> Facts:
        """Return the facts after a call."""
        tool, tools, injected, tracked = move.tool, facts.tools, facts.injected_words, facts.tracked
        new = tool not in tools
        made = Made(
            move.effect,
            move.proposed,
            tracked[self._last_effect],
            bool(move.kinds),
            likeness_of(tool, injected) if injected else 0,
            likeness_of(tool, facts.task_words),
            new,
            tool == facts.last,
            bool(move.injected),
        )
        after = Facts(
            facts.task_words,
            facts.heard_words,
            injected.union(move.injected) if move.injected else injected,
            tools | {tool} if new else tools,
            tool,
            facts.last,
            self._tracked(tracked, made),
        )
        return self.hear(after, move.heard) if move.heard else after

    def _track(self, before: tuple[int, ...], call: Made) -> tuple[int, ...]:
        """Return what features track after a call."""
        each = zip(self._tracking, before, strict=True)
        return tuple([feature.update(value, call) for feature, value in each])

    def see(self, state: int, facts: Facts) -> tuple[int, ...]:
        """Return what is seen of a run that stands in a state: a value for each feature that looks at runs."""
        return self._of_state[state] + facts.tracked

    def see_call(self, seen: tuple[int, ...], state: int, facts: Facts, move: Move) -> tuple[int, ...]:
        """Return what is seen of a run and of the call that it proposes.

        Parameters
        ----------
        seen
            What is seen of the run.
        """
        levels, tool, effect, injected = self._levels, move.tool, move.proposed, facts.injected_words
        return seen + Proposed(
            effect,
            levels.space.successors(state)[effect],
            sum([_BIT[kind] for kind in move.kinds]) if move.kinds else 0,
            levels.origin[effect],
            levels.reach[effect],
            likeness_of(tool, injected) if injected else 0,
            likeness_of(tool, facts.task_words),
            tool in facts.tools,
            *_SOURCES[move.sources],
        )


def _chosen(known: Mapping[str, Crossing], names: Iterable[str] | None) -> dict[str, Crossing]:
    chosen = list(known if names is None else names)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ModelFileError(
            f"its risk score looks at {unknown[0]!r}, which this version does not know; fit the model again"
        )
    return {name: known[name] for name in chosen}


_BIT = {kind: 1 << place for place, kind in enumerate(KINDS)}
_SOURCES = tuple(map(unpacked, range(N_SOURCES)))
