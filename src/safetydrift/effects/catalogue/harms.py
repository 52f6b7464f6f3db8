"""Harm as entries of a catalogue tell it: what an operation is if nobody with authority asked for it."""

from __future__ import annotations

from safetydrift.effects.operations import ACTIONS, CERTAIN, HARMS, LIKELY, NONE, POSSIBLE, ROLES
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue.plain import Entry

CERTAINTIES = {"none": NONE, "possible": POSSIBLE, "likely": LIKELY, "certain": CERTAIN}
"""How entries write how certain a harm is."""
_SHOWN = 100


class Harm:
    """What an operation does and what it harms.

    Attributes
    ----------
    action
        One of `ACTIONS`; empty where whoever asks knows it.
    role
        One of `ROLES`, what its targets are.
    harm, certainty
        One of `HARMS`, or empty; and how certain it is.
    note
        What it does, in words that complete "this would"; ``{target}`` stands for its target.
    """

    __slots__ = ("action", "certainty", "harm", "note", "role")

    def __init__(
        self, action: str = "", harm: str = "", certainty: int = NONE, note: str = "", role: str = "resource"
    ) -> None:
        self.action, self.harm, self.certainty, self.note, self.role = action, harm, certainty, note, role

    def words(self, target: str) -> str:
        """Return the note for a target."""
        if "{target}" not in self.note:
            return self.note
        return self.note.replace(
            "{target}", target if len(target) <= _SHOWN else f"{target[: _SHOWN - 3]}..."
        )


def read_harm(entry: Entry, *, action: bool = True) -> Harm:
    """Return the harm that an entry's own keys tell: ``action``, ``role``, ``harm``, ``certainty`` and ``would``.

    Parameters
    ----------
    action
        Whether the entry has to name its action.
    """
    said = entry.text("action", required=action)
    harm, role = entry.text("harm"), entry.text("role") or "resource"
    _known(entry, "action", said, ACTIONS)
    _known(entry, "harm", harm, HARMS)
    _known(entry, "role", role, ROLES)
    certainty = read_certainty(entry, "certainty")
    if bool(harm) is not bool(certainty):
        raise CatalogueError(f"{entry.where}: a harm and its certainty go together")
    return Harm(said, harm, certainty, entry.text("would"), role)


def read_targets(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of arguments by the role of what they name, as the table ``targets`` tells them."""
    if entry.get("targets") is None:
        return ()
    part = entry.part("targets")
    found = [(role, part.texts(role)) for role in ROLES]
    part.done()
    return tuple([(role, names) for role, names in found if names])


def read_certainty(entry: Entry, key: str) -> int:
    """Return a certainty; none where it is missing."""
    text = entry.text(key) or "none"
    if text not in CERTAINTIES:
        raise CatalogueError(f"{entry.where}: {key} is one of {', '.join(CERTAINTIES)}, got {text!r}")
    return CERTAINTIES[text]


def _known(entry: Entry, key: str, value: str, known: Iterable[str]) -> None:
    if value and value not in known:
        raise CatalogueError(f"{entry.where}: unknown {key} {value!r}; known: {', '.join(known)}")
