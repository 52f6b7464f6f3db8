"""Which model acts and what stands around it, as far as its name says.

A name such as ``gpt-4o-mini-tool_filter`` says four things: which pipeline it is, which model, which defence, and the
words of the model's name, which a model shares with its relatives. So a model that was never seen is judged by its
relatives, and one that has none by its defence alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

Pipeline = tuple[int, ...]
"""Numbers of the traits that a name bears."""

DEFENCE, MODEL, PIPELINE, WORD = TRAIT_KINDS = ("defence", "model", "pipeline", "word")

_WORDS = re.compile(r"[^\W\d_]+|\d+[^\W\d_]*")


class Traits(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What names of pipelines can say, numbered.

    Parameters
    ----------
    traits
        Each as its kind and a name, such as ``"defence tool_filter"``; its number is its place.
    """

    traits: Annotated[tuple[str, ...], Meta(max_length=10_000)]

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Traits:
        """Return the traits that some names bear, those of a kind one after the other in the order of `TRAIT_KINDS`.

        What follows a name that is listed itself, after a hyphen, is a defence: with ``gpt-4o`` in the list,
        ``gpt-4o-tool_filter`` has the defence ``tool_filter``.

        Examples
        --------
        >>> Traits.of_names(["gpt-4o", "gpt-4o-filter", "GPT-5"]).named("defence")
        ('filter',)
        """
        known = {name.lower() for name in names if name}
        found = set()
        for name in known:
            base = _base(name, known)
            found.update(_borne(name, base, name[len(base) + 1 :]))
        return cls(tuple(sorted(found)))

    def __len__(self) -> int:
        return len(self.traits)

    def named(self, kind: str) -> tuple[str, ...]:
        """Return the names of all traits of a kind."""
        prefix = f"{kind} "
        return tuple([trait[len(prefix) :] for trait in self.traits if trait.startswith(prefix)])

    def pipelines(self) -> list[Pipeline]:
        """Return the traits of every pipeline that is known by its name."""
        return [traits for traits in map(self.of, self.named(PIPELINE)) if traits]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of every trait."""
        return tuple([trait.partition(" ")[0] for trait in self.traits])

    def of(self, name: str) -> Pipeline:
        """Return the traits of a name; what is not known is left out.

        Examples
        --------
        >>> traits = Traits.of_names(["gpt-4o", "gpt-4o-filter"])
        >>> [traits.traits[number] for number in traits.of("GPT-5-filter")]
        ['defence filter', 'word gpt']
        """
        name = name.lower()
        known = {trait: number for number, trait in enumerate(self.traits)}
        base, defence = name, ""
        if f"{MODEL} {name}" not in known:
            defence = next((one for one in self.named(DEFENCE) if name.endswith(f"-{one}")), "")
            base = name[: -len(defence) - 1] if defence else name
        return tuple(sorted([known[trait] for trait in _borne(name, base, defence) if trait in known]))


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
