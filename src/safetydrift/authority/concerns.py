"""Concerns: each way in which a call may do harm that nobody with authority asked for, in view of the run so far.

An operation (`safetydrift.effects.operations`) says what a call does to what. A concern adds who vouches for it: what the
user's words say of the act, and where the value that decides it comes from. All of that is a handful of small numbers,
the cells of a concern, from which `safetydrift.authority.score` reads the probability.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.authority.grading import ASKED, FORBIDDEN
from safetydrift.effects.operations import CERTAIN, HARMS

HARM_NAMES = ("", *HARMS)
"""What the first cell stands for; the first is an operation on somebody or something outside that harms nobody by itself."""

SPEAKS, NOBODY, UNTRUSTED, REACHED, POINTED, RECORDED, OWN, SAID = range(8)
"""Who vouches for the value that decides an act, in ascending order of authority: a passage that speaks to the agent;
nobody, as far as the run has shown; content from outside; such content that was reached from a source that the user
pointed to; that source itself; a record of the user's own or a field that a system fills in; the run, which made it; the
user or the operator."""

MADE, PROJECT, TEMPORARY, ELSEWHERE, SYSTEM, PARTY, OTHER, NOTHING = range(8)
"""What the target is: a file that the run made; one of the project; a temporary one; one elsewhere; one of the system;
somebody or some host; something else; nothing that could be told."""

FEATURES: dict[str, int] = {
    "harm": len(HARM_NAMES),
    "certainty": CERTAIN + 1,
    "asked": ASKED + 1,
    "source": SAID + 1,
    "overlap": 4,
    "near": 5,
    "texts": 4,
    "carried": 4,
    "target": NOTHING + 1,
    "exposure": 3,
    "before": 4,
    "reading": 3,
    "task": 2,
}
"""The features of a concern, with how many cells each has.

harm, certainty
    What the operation is if nobody asked for it, and how certainly (`Operation`).
asked
    What the user's words say of the act (`safetydrift.authority.grading`).
source
    Who vouches for the deciding value: `SPEAKS` to `SAID`.
overlap
    How much of the value the user's words share.
near
    How many words of the user stand around the value where it was found, at most 4.
texts
    In how many texts it stands outside of passages that speak to the agent, at most 3.
carried
    What goes out with the call: nothing known, content that nobody can read, sensitive data, credentials.
target
    What the target is: `MADE` to `NOTHING`.
exposure
    What the run has read: nothing from outside, something, something that speaks to the agent.
before
    How often the run has done the same before, at most 3.
reading
    How well the call could be read: by a rule, by its name, not at all.
task
    Whether anything is known of what the user asked for.
"""

N_CONCERNS = prod(FEATURES.values())
"""How many concerns can be told apart."""
MAX_CONCERNS = 4
"""Concerns of one call that are looked at: the worst."""

_SIZES = tuple(FEATURES.values())


class Concern(Struct, frozen=True, gc=False, array_like=True):
    """One way in which a call may do unauthorised harm.

    Parameters
    ----------
    cells
        The cell of each of the `FEATURES`, in their order.
    action, target, note
        Of the operation: what is done, to what, and the two in words. The last two are not kept by a store.
    said_in
        The number of the call whose result holds the deciding value, where that is where it comes from; 0 otherwise.
    clause
        The number of the user's clause that the act was compared with, from 0; -1 where none speaks of it.
    """

    cells: tuple[int, ...]
    action: str
    target: str = ""
    note: str = ""
    said_in: int = 0
    clause: int = -1

    @property
    def harm(self) -> str:
        """The kind of harm; empty for what harms nobody by itself."""
        return HARM_NAMES[self.cells[0]]

    @property
    def authority(self) -> tuple[int, int]:
        """The grade of the act and that of the value that decides it."""
        return self.cells[2], self.cells[3]

    @property
    def code(self) -> int:
        """The cells as one number below `N_CONCERNS`."""
        number = 0
        for cell, size in zip(self.cells, _SIZES, strict=True):
            number = number * size + cell
        return number

    def kept(self) -> Concern:
        """Return what a store keeps: nothing that is written in the arguments."""
        return replace(self, target="", note="")


def cells_of(code: int) -> tuple[int, ...]:
    """Return the cells that a number stands for (`Concern.code`).

    Examples
    --------
    >>> concern = Concern((3, 3, 1, 0, 0, 0, 0, 0, 4, 2, 0, 0, 1), "delete")
    >>> cells_of(concern.code) == concern.cells
    True
    """
    cells = []
    for size in reversed(_SIZES):
        code, cell = divmod(code, size)
        cells.append(cell)
    return tuple(reversed(cells))


def gravity(cells: tuple[int, ...]) -> tuple[int, ...]:
    """Return by what concerns are ordered before they are scored, the gravest highest."""
    harm, certainty, asked, source, *_ = cells
    return (asked == FORBIDDEN, certainty - (asked == ASKED) - (source >= OWN), -asked, -source, harm > 0)
