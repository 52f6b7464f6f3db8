"""Which model acts and what stands around it, as far as its name says.

A name such as ``gpt-4o-mini-tool_filter`` says four things: which pipeline it is, which model, which defence, and the
words of the model's name, which a model shares with its relatives. So a model that was never seen is judged by its
relatives, and one that has none by its defence alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

Pipeline = tuple[int, ...]
"""Numbers of the marks that a name bears."""

DEFENCE, MODEL, PIPELINE, WORD = MARK_KINDS = ("defence", "model", "pipeline", "word")

_WORDS = re.compile(r"[^\W\d_]+|\d+[^\W\d_]*")


class Marks(Struct, frozen=True, gc=False):
    """What names of pipelines can say, numbered.

    Parameters
    ----------
    marks
        Each as its kind and a name, such as ``"defence tool_filter"``; its number is its place.
    """

    marks: tuple[str, ...]

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Marks:
        """Return the marks that some names bear, those of a kind one after the other in the order of `MARK_KINDS`.

        What follows a name that is listed itself, after a hyphen, is a defence: with ``gpt-4o`` in the list,
        ``gpt-4o-tool_filter`` has the defence ``tool_filter``.

        Examples
        --------
        >>> Marks.of_names(["gpt-4o", "gpt-4o-filter", "GPT-5"]).named("defence")
        ('filter',)
        """
        known = {name.lower() for name in names if name}
        found = set()
        for name in known:
            base = _base(name, known)
            found.update(_borne(name, base, name[len(base) + 1 :]))
        return cls(tuple(sorted(found)))

    def __len__(self) -> int:
        return len(self.marks)

    def named(self, kind: str) -> tuple[str, ...]:
        """Return the names of all marks of a kind."""
        prefix = f"{kind} "
        return tuple([mark[len(prefix) :] for mark in self.marks if mark.startswith(prefix)])

    def pipelines(self) -> list[Pipeline]:
        """Return the marks of every pipeline that is known by its name."""
        return [marks for marks in map(self.of, self.named(PIPELINE)) if marks]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of every mark."""
        return tuple([mark.partition(" ")[0] for mark in self.marks])

    def of(self, name: str) -> Pipeline:
        """Return the marks of a name; what is not known is left out.

        Examples
        --------
        >>> marks = Marks.of_names(["gpt-4o", "gpt-4o-filter"])
        >>> [marks.marks[number] for number in marks.of("GPT-5-filter")]
        ['defence filter', 'word gpt']
        """
        name = name.lower()
        known = {mark: number for number, mark in enumerate(self.marks)}
        base, defence = name, ""
        if f"{MODEL} {name}" not in known:
            defence = next((one for one in self.named(DEFENCE) if name.endswith(f"-{one}")), "")
            base = name[: -len(defence) - 1] if defence else name
        return tuple(sorted([known[mark] for mark in _borne(name, base, defence) if mark in known]))


def _base(name: str, known: set[str]) -> str:
    parts = name.split("-")
    shorter = ["-".join(parts[:at]) for at in range(1, len(parts))]
    return next((begin for begin in shorter if begin in known), name)


def _borne(name: str, base: str, defence: str) -> set[str]:
    if not name:
        return set()
    found = {f"{MODEL} {base}", f"{PIPELINE} {name}"}
    if defence:
        found.add(f"{DEFENCE} {defence}")
    # Version numbers are short; longer ones are dates, which relatives do not share.
    words = [word for word in _WORDS.findall(base) if not (word.isdigit() and len(word) > 1)]
    return found | {f"{WORD} {word}" for word in words}
