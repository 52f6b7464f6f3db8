"""What of a run's past its safety state does not hold, and the cells in which that is looked up.

A *factor* is one way to look at where a run stands, with a small number of *cells*: how many calls were made, how long
ago strangers last gave orders and how many did, what the last call did. Every factor puts a run into exactly one of its
cells, so a score is a sum of numbers looked up, one per factor. Fitting and live use walk a run with the same
`Covariates.after`; nothing here looks ahead.
"""
# ruff: noqa: FURB136, PLR2004  # cells are asked for at every step, where `min` is slow; the last of each is literal

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple
from zlib import crc32

from msgspec import Meta

from safetydrift.effects.history.sources import N_SOURCES, unpacked
from safetydrift.errors import SpaceMismatchError
from safetydrift.states.bounded import Count, Words
from safetydrift.states.task_words import WORD_BINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Move, Trajectory

LONG_AGO = 99
"""Calls since something that has not happened yet."""

_STEPS = (0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9)
_MOST_STEPS, _FAR = 16, 11
_AGES = (0, 1, 2, 3, 4, 4, 5, 5, 5, 5)
_OLD, _NEVER = 6, 7
_TOOL_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_FEWEST_LETTERS = 2
_NO_WORDS: frozenset[int] = frozenset()
_as_tuple = tuple.__new__

NAMES = (
    "state",
    "steps",
    "orders",
    "orders, origin",
    "last effect",
    "effect before",
    "network calls",
    "irreversible calls",
    "calls since a new tool",
    "repeated calls",
    "failed calls",
    "calls with a kind of violation",
    "worst origin so far",
    "calls on a stranger's word",
    "calls on a stranger's orders",
    "tools used",
    "steps, orders",
    "calls that orders name",
    "closest call to orders",
    "last call and orders",
    "calls the task does not name",
)
"""The factors of a standing, in the order of `standing_cells`."""

PROPOSAL_NAMES = (
    "proposed effect",
    "state it leads to",
    "kinds of violation",
    "origin, named in orders",
    "named in orders and task",
    "named in orders and task, tool used before, orders",
    "origin, reversibility, capability",
    "origin, kinds, named in orders",
    "words of orders, words of the user",
    "how many words of orders",
    "worst value, values from orders",
    "words of orders, named in orders",
    "words of orders, reversibility, capability",
    "words of orders, named in orders and task",
    "worst value, reversibility, capability",
    "words of orders, worst value",
)
"""The factors that a proposed call adds, in the order of `proposal_cells`."""

KINDS = (
    "credential_leak",
    "data_leak",
    "destructive_action",
    "integrity",
    "privilege_escalation",
    "unauthorised_transaction",
)
_BIT = {kind: 1 << position for position, kind in enumerate(KINDS)}

_UpTo3 = Annotated[int, Meta(ge=0, le=3)]
_UpTo4 = Annotated[int, Meta(ge=0, le=4)]


class Covariates(NamedTuple):
    """What of a run's past its safety state does not hold.

    Parameters
    ----------
    steps
        Calls made.
    order_age, n_orders, order_words
        Calls since a result last spoke to the agent (`LONG_AGO` if none did), how many did, and their words.
    task_words
        The words of the task.
    tools
        Names of the tools used.
    new_age, repeats
        Calls since a tool was used for the first time; how often the last tool was used in a row before.
    failures, network, irreversible, flagged
        Calls that failed (they read nothing, unlike what was proposed), that reached the network, that were
        irreversible, that would complete a violation.
    worst_origin, foreign, instructed
        The most worrying origin of a proposed call's values so far, and how many came from strangers and from orders.
    followed, closest, closeness
        Calls whose tool the orders name; how well any and the last call fit the orders (0 to 3).
    off_task
        Calls whose tool the task names with no word.
    last, before, last_effect, effect_before
        The last two tools, and the effects of the last two calls counted from 1; empty and 0 before the first.
    heard_words
        The words that the user has said since the task, himself or through a file that he said the task stands in.
    """

    steps: Count
    order_age: Count
    n_orders: Count
    order_words: Words
    task_words: Words
    tools: frozenset[str]
    new_age: Count
    repeats: Count
    failures: Count
    network: Count
    irreversible: Count
    flagged: Count
    worst_origin: _UpTo4
    foreign: Count
    instructed: Count
    followed: Count
    closest: _UpTo3
    closeness: _UpTo3
    off_task: Count
    last: str
    before: str
    last_effect: Count
    effect_before: Count
    heard_words: Words

    @classmethod
    def start(cls, task_words: Sequence[int] = ()) -> Covariates:
        """Return the covariates of a run that has not made a call yet."""
        return cls(
            0, LONG_AGO, 0, _NO_WORDS, frozenset(task_words), frozenset(),
            LONG_AGO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", 0, 0, _NO_WORDS,
        )  # fmt: skip

    def asked(self, words: Sequence[int]) -> Covariates:
        """Return the covariates with more words of the task."""
        return self._replace(task_words=self.task_words.union(words))

    def hears(self, words: Sequence[int]) -> Covariates:
        """Return the covariates after the user has said something more."""
        return self._replace(heard_words=self.heard_words.union(words)) if words else self


_SOURCE_SIZES = (36, 7, 25, 24, 72, 96, 60, 30)


def _of_sources(sources: int) -> tuple[int, int, int, int, int]:
    ordered, said, count, worst, instructed = unpacked(sources)
    return ordered, 6 * ordered + said, count, 5 * worst + instructed, worst


_SOURCES = tuple([_of_sources(sources) for sources in range(N_SOURCES)])


class Factors:
    """Turns where a run stands into cells, for one state space.

    Parameters
    ----------
    space
        A space with the dimensions data, tool, untrusted, reversibility and provenance, as `flow` has them.

    Raises
    ------
    SpaceMismatchError
        If the space lacks one of them.
    """

    __slots__ = (
        "_data",
        "_origin",
        "_reversibility",
        "_space",
        "_tool",
        "_untrusted",
        "proposal_sizes",
        "standing_sizes",
    )

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        digits = [space.digits(state) for state in range(space.n_states)]
        column = {dimension.name: place for place, dimension in enumerate(space.dimensions)}
        missing = sorted({"data", "tool", "untrusted", "reversibility", "provenance"} - set(column))
        if missing:
            raise SpaceMismatchError(
                f"a hazard looks at {missing[0]!r}, which space {space.name!r} does not have; space 'flow' has it"
            )
        self._tool, self._untrusted, self._reversibility, self._origin = (
            tuple([row[column[name]] for row in digits])
            for name in ("tool", "untrusted", "reversibility", "provenance")
        )
        self._data = tuple([row[column["data"]] for row in digits])
        n = space.n_states
        self.standing_sizes = (n, 12, 32, 120, n + 1, n + 1, 7, 7, 6, 5, 5, 5, 5, 4, 4, 9, 96, 6, 32, 32, 9)
        self.proposal_sizes = (n, n, 64, 20, 16, 256, 60, 5 * 64 * 4, *_SOURCE_SIZES)

    # -- along a run --------------------------------------------------------------------------------------

    def begin(self, run: Trajectory) -> Covariates:
        """Return the covariates of a recorded run before its first call."""
        return Covariates.start(run.words)

    def follow(self, past: Covariates, move: Move) -> Covariates:
        """Return the covariates after a call."""
        (
            steps, order_age, n_orders, order_words, task_words, tools, new_age, repeats, failures, network,
            irreversible, flagged, worst_origin, foreign, instructed, followed, closest, _, off_task, last, _,
            last_effect, _, heard_words,
        ) = past  # fmt: skip
        tool, effect, proposed = move.tool, move.effect, move.proposed
        closeness = likeness(tool, order_words) if order_words else 0
        origin = self._origin[proposed]
        if move.injected:
            order_words, n_orders, order_age = order_words.union(move.injected), n_orders + 1, 0
        elif n_orders:
            order_age += 1
        known = tool in tools
        # One is made at every step; a tuple made at once takes half the time of the named one's own constructor.
        return _as_tuple(
            Covariates,
            (
                steps + 1,
                order_age,
                n_orders,
                order_words,
                task_words,
                tools if known else tools | {tool},
                new_age + 1 if known else 0,
                repeats + 1 if tool == last else 0,
                failures + (effect != proposed and self._data[effect] == 0),
                network + (self._tool[effect] == 3),  # the highest level
                irreversible + (self._reversibility[effect] == 2),  # the highest level
                flagged + 1 if move.kinds else flagged,
                origin if origin > worst_origin else worst_origin,
                foreign + (origin == 3),  # only strangers said it
                instructed + (origin == 4),  # strangers ordered it
                followed + (closeness >= 2),  # every word of its name
                closeness if closeness > closest else closest,
                closeness,
                off_task + (not likeness(tool, task_words)),
                tool,
                last,
                effect + 1,
                last_effect,
                heard_words.union(move.heard) if move.heard else heard_words,
            ),
        )

    def standing_cells(self, state: int, past: Covariates) -> tuple[int, ...]:
        """Return the cell of every factor of `NAMES` for a run that stands in a state."""
        (
            steps, order_age, n_orders, _, _, tools, new_age, repeats, failures, network, irreversible, flagged,
            worst_origin, foreign, instructed, followed, closest, closeness, off_task, _, _, last_effect, effect_before,
            _,
        ) = past  # fmt: skip
        calls = _STEPS[steps] if steps <= _MOST_STEPS else 10 if steps <= 24 else _FAR
        age = _NEVER if not n_orders else _AGES[order_age] if order_age < 10 else _OLD
        n_tools = len(tools)
        # Asked for at every step, and `min` would take as long as all else here together.
        return (
            state,
            calls,
            4 * age + (n_orders if n_orders < 3 else 3),
            15 * age + 5 * self._untrusted[state] + self._origin[state],
            last_effect,
            effect_before,
            network if network < 6 else 6,
            irreversible if irreversible < 6 else 6,
            new_age if new_age < 4 else 4 if new_age < LONG_AGO else 5,
            repeats if repeats < 4 else 4,
            failures if failures < 4 else 4,
            flagged if flagged < 4 else 4,
            worst_origin,
            foreign if foreign < 3 else 3,
            instructed if instructed < 3 else 3,
            n_tools if n_tools < 8 else 8,
            8 * calls + age,
            followed if followed < 5 else 5,
            8 * closest + age,
            8 * closeness + age,
            off_task if off_task < 8 else 8,
        )

    def proposal_cells(self, state: int, past: Covariates, move: Move) -> tuple[int, ...]:
        """Return the cell of every factor of `PROPOSAL_NAMES` for a call proposed in a state."""
        tool, proposed = move.tool, move.proposed
        n_orders, order_age = past.n_orders, past.order_age
        ordered = likeness(tool, past.order_words) if n_orders else 0
        named = likeness(tool, past.task_words)
        age = _NEVER if not n_orders else _AGES[order_age] if order_age < 10 else _OLD
        origin = self._origin[proposed]
        kinds = sum([_BIT[kind] for kind in move.kinds]) if move.kinds else 0
        change = 4 * self._reversibility[proposed] + self._tool[proposed]
        share, both, count, values, worst = _SOURCES[move.sources]
        return (
            proposed,
            self._space.successors(state)[proposed],
            kinds,
            4 * origin + ordered,
            4 * ordered + named,
            64 * ordered + 16 * named + 8 * (tool in past.tools) + age,
            12 * origin + change,
            256 * origin + 4 * kinds + ordered,
            both,
            count,
            values,
            4 * share + ordered,
            12 * share + change,
            16 * share + 4 * ordered + named,
            12 * worst + change,
            5 * share + worst,
        )


@lru_cache(4096)
def likeness(tool: str, words: frozenset[int]) -> int:
    """Return how well a tool's name fits some words: 3 as it stands, 2 every part of it, 1 some part, 0 none.

    >>> from safetydrift.states.task_words import task_words
    >>> said = frozenset(task_words("please send the money"))
    >>> [likeness(tool, said) for tool in ("send", "send_money", "sendEmail", "read_file")]
    [3, 2, 1, 0]
    """
    whole, parts = _bins(tool)
    if whole in words:
        return 3
    found = len(parts & words)
    return 2 if found and found == len(parts) else 1 if found else 0


@lru_cache(4096)
def _bins(tool: str) -> tuple[int, frozenset[int]]:
    parts = [part.lower() for part in _TOOL_PARTS.findall(tool) if len(part) >= _FEWEST_LETTERS]
    return crc32(tool.lower().encode("utf-8", "replace")) % WORD_BINS, frozenset(
        [crc32(part.encode()) % WORD_BINS for part in parts]
    )
