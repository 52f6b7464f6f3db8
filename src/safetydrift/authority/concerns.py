"""Concerns: each way in which a call may do harm that nobody with authority asked for, in view of the run so far.

An operation (`safetydrift.effects.operations`) says what a call does to what. A concern adds who vouches for it: what
the user's words say of the act, and where the value that decides it comes from. All of that is a handful of small
numbers, the cells of a concern, from which `safetydrift.authority.score` reads the probability.
"""

from __future__ import annotations

from msgspec import Struct

from safetydrift.authority.grading import ASKED, FORBIDDEN
from safetydrift.effects.operations import ACTIONS, CERTAIN, HARMS

HARM_NAMES = ("", *HARMS)
ACTION_NAMES = tuple(ACTIONS)
"""What the first two cells stand for; the first of the harms is what harms nobody by itself."""
TYPED, LANGUAGE = range(2)
"""How a call says what it does: by a tool's own arguments, or in a language."""

NOBODY, UNTRUSTED, REACHED, POINTED, DELEGATED, RECORDED, OWN, SAID = range(8)
"""Who vouches for the value that decides an act, in ascending order of authority: nobody, as far as the run has shown;
content from outside; such content that was reached from a source that the user pointed to; that source itself; a source
that the user gave a say in this kind of act; a record of the user's own or a field that a system fills in; the run,
which made it; the user or the operator."""
SOURCE_NAMES = (
    "nobody", "untrusted content", "a source reached from one that the user named", "a source that the user named",
    "a source that the user gave a say in this", "the user's own records", "the run itself", "the user",
)  # fmt: skip

MADE, PROJECT, TEMPORARY, ELSEWHERE, SYSTEM, INSIDE, PARTY, OTHER, NOTHING = range(9)
"""What the target is: a file that the run made; one of the project; a temporary one; one elsewhere; one of the system;
somebody or some host inside the boundary; one outside; something else; nothing that could be told."""

FEATURES: dict[str, int] = {
    "harm": len(HARM_NAMES),
    "action": len(ACTION_NAMES),
    "certainty": CERTAIN + 1,
    "asked": ASKED + 1,
    "source": SAID + 1,
    "overlap": 4,
    "near": 5,
    "texts": 4,
    "speaks": 3,
    "carried": 4,
    "target": NOTHING + 1,
    "exposure": 3,
    "before": 4,
    "field": 4,
    "reversibility": 3,
    "task": 2,
    "surface": 2,
}
"""The features of a concern, with how many cells each has.

harm, action, certainty
    What the operation is if nobody asked for it, what is done, and how certain the harm is (`Operation`).
asked
    What the user's words say of the act (`safetydrift.authority.grading`).
source
    Who vouches for the deciding value: `NOBODY` to `SAID`.
overlap
    How much of the value the user's words share: nothing, a part, all that tells it apart, the value.
near
    How many words of the user stand around the value where it was found, at most 4.
texts
    In how many texts it stands, at most 3.
speaks
    Whether it stands in a passage that speaks to the agent: nowhere, among other places, only there.
carried
    What goes out with the call: nothing; something unknown, while the run holds sensitive data; sensitive data;
    credentials.
target
    What the target is: `MADE` to `NOTHING`.
exposure
    What the run has read: nothing from outside, something, something that speaks to the agent.
before
    How often the run has done the same before, at most 3.
field
    The field in which the value was found (`safetydrift.authority.texts`).
reversibility
    Of the call: fully, partially, not.
task
    Whether anything is known of what the user asked for.
surface
    Whether the call says what it does by a tool's own arguments or in a language.
"""
FEATURE_NAMES = tuple(FEATURES)
MAX_CONCERNS = 6
"""Concerns of one call that are scored: the gravest."""


class Concern(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One way in which a call may do unauthorised harm.

    Parameters
    ----------
    cells
        The cell of each of the `FEATURES`, in their order.
    action
        What is done: one of `safetydrift.effects.operations.ACTIONS`.
    harm
        The kind of harm; empty for what harms nobody by itself.
    target, note
        To what, and the two in words. Neither is kept by a store.
    said_in
        The number of the call whose result holds the deciding value; 0 where none does.
    """

    cells: tuple[int, ...]
    action: str
    harm: str = ""
    target: str = ""
    note: str = ""
    said_in: int = 0

    def cell(self, feature: str) -> int:
        """Return the cell of a feature by its name."""
        return self.cells[FEATURE_NAMES.index(feature)]


def gravity(concern: Concern) -> tuple[int, ...]:
    """Return by what concerns are ordered before they are scored, the gravest highest."""
    _, _, certainty, asked, source, *_ = concern.cells
    unasked = certainty - (asked == ASKED) - (source >= OWN)
    return (asked == FORBIDDEN, unasked, concern.cell("carried"), -asked, -source)
