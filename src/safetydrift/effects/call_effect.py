"""What a call does by itself, whatever came before and whatever its texts hold.

Exact names of the catalogue come first, with the languages that arguments are written in; then patterns of names, the
tool's own annotations, and the cautious default.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.effects.arguments import case_of, receivers, server, table, texts
from safetydrift.effects.catalogue.scales import join, overlay
from safetydrift.effects.languages import READERS
from safetydrift.effects.reading import MAX_TEXT, Reading, UnreadableError, shown
from safetydrift.states.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.entries import ToolCase, ToolEntry
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.trace import ToolCall

_MEMO_TEXT = 4096
_MEMO_SIZE = 1024


class CallEffects:
    """Says what calls do by themselves.

    Parameters
    ----------
    catalogue
        The reviewed data.
    boundary
        Which hosts and people are inside, and which servers are trusted.
    """

    __slots__ = ("_by_name", "_by_path", "_in_language", "_plain", "boundary", "catalogue")

    def __init__(self, catalogue: Catalogue, boundary: Boundary) -> None:
        self.catalogue, self.boundary = catalogue, boundary
        self._plain = _plain_effects(catalogue, boundary)
        self._by_name = lru_cache(_MEMO_SIZE)(self._guess)
        self._by_path = lru_cache(_MEMO_SIZE)(catalogue.path)
        self._in_language = lru_cache(_MEMO_SIZE)(self._read_language)

    def of(self, call: ToolCall) -> Effect:
        """Return what a call does."""
        try:
            effect = self._plain.get(call.name)
            if effect is not None and call.malformed is None:
                return effect
            entry = self.catalogue.tools.get(call.name)
        except TypeError:  # a name that is no text and cannot even be looked up
            entry = None
        if entry is None:
            return self._uncatalogued(call)
        if effect is not None:
            return because(effect, "the arguments could not be decoded, but do not matter")
        return self._read(call, entry)

    def _open(self) -> Reading:
        return Reading(self.catalogue, self.boundary, READERS)

    def _read(self, call: ToolCall, entry: ToolEntry) -> Effect:
        args = table(call.args)
        if call.malformed is not None or args is None:
            return self._cautious(entry, f"the arguments of {call.name} could not be decoded")
        if entry.language == "http":
            reading = self._open()
            READERS["http"](reading, args, entry.http)
            return reading.effect()
        if entry.language:
            return self._text(entry.text(args), entry) if args else self._nothing(entry)
        return self._by_arguments(call, entry, args)

    def _nothing(self, entry: ToolEntry) -> Effect:
        """Return the effect of a call without any argument to a tool that runs a text: there is none to run."""
        reading = self._open()
        reading.act("looks", f"{entry.arguments[0]!r} is not given, so there is nothing to run")
        return reading.effect()

    def _by_arguments(self, call: ToolCall, entry: ToolEntry, args: Mapping[str, object]) -> Effect:
        case = case_of(args, entry)
        reading = self._open()
        self._add_entry(
            reading,
            entry,
            case,
            (case and case.note) or entry.note or f"{call.name} is in the catalogue",
            args,
        )
        for argument in entry.paths:
            paths = texts(args.get(argument))
            if paths is None:
                return self._cautious(entry, f"the argument {argument!r} of {call.name} is too long")
            for path in paths:
                told = (self._by_path if len(path) <= _MEMO_TEXT else self.catalogue.path)(path)
                if told is not None:
                    reading.add(told.ranks, f"{shown(path)}: {told.note}")
        return reading.effect()

    def _add_entry(
        self, reading: Reading, entry: ToolEntry, case: ToolCase | None, note: str, args: Mapping[str, object]
    ) -> None:
        """Add what an entry says, in the case that holds; to people inside the organisation, less is at stake."""
        ranks, kinds, leaves = entry.ranks, entry.kinds, entry.leaves
        assert ranks is not None  # noqa: S101  # an entry without a language has an effect
        if case is not None:
            ranks = overlay(ranks, case.ranks)
            kinds = kinds if case.kinds is None else case.kinds
            leaves = leaves if case.leaves is None else case.leaves
        inside = False
        if entry.to and self.boundary.domains + self.boundary.people:
            addressed = receivers(args, entry.to)
            inside = bool(addressed) and all(map(self.boundary.inside, addressed))
        if inside:
            ranks = overlay(ranks, self.catalogue.inside)
            note = f"{note}; everybody addressed is inside the organisation"
        reaches = ranks[reading.tool] == reading.network
        reading.add(ranks, note, kinds=kinds, external=reaches and not inside, leaves=leaves and not inside)

    def _text(self, text: object, entry: ToolEntry) -> Effect:
        if isinstance(text, str):
            if len(text) <= _MEMO_TEXT:
                return self._in_language(entry.language, text)
            if len(text) <= MAX_TEXT:
                return self._read_language(entry.language, text)
        elif entry.language == "shell" and isinstance(text, list | tuple) and len(text) <= MAX_TEXT:
            return self._read_language(entry.language, text)
        return self._cautious(
            entry, f"{entry.arguments[0]!r} is missing, too long or no {entry.language} text"
        )

    def _read_language(self, language: str, text: object) -> Effect:
        reading = self._open()
        try:
            READERS[language](reading, text)
        except UnreadableError as problem:
            reading.unreadable(f"the {language} text cannot be read: {problem}")
        return reading.effect()

    def _cautious(self, entry: ToolEntry, reason: str) -> Effect:
        reading = self._open()
        if entry.ranks is not None:
            reading.add(entry.ranks, reason, kinds=entry.kinds)
        reading.unreadable(reason)
        return reading.effect()

    # -- names that are not in the catalogue --------------------------------------------------------------

    def _uncatalogued(self, call: ToolCall) -> Effect:
        name: object = call.name
        reading = self._open()
        if not isinstance(name, str):
            reading.unreadable("the tool's name is no text")
            return reading.effect()
        guess = self._by_name if len(name) <= _MEMO_TEXT else self._guess
        ranks, source, reason, kinds, leaves = guess(name)
        reasons = [reason]
        for lowers, upper, why in self._hinted(name, table(call.hints)):
            hinted = overlay(ranks, upper) if lowers else join(ranks, upper)
            if hinted != ranks:
                ranks, source = hinted, "annotation"
                reasons.append(why)
        network = ranks[reading.tool] == reading.network
        guessed = Effect(
            self.catalogue.scales.pairs(ranks),
            source,
            tuple(reasons),
            kinds=kinds,
            external=network,
            leaves=leaves and network,
            confidence=self.catalogue.confidence[source],
        )
        return with_leak(guessed, self.catalogue)

    def _guess(self, name: str) -> tuple[Ranks, str, str, tuple[str, ...], bool]:
        entry = self.catalogue.pattern(name)
        if entry is None:
            reason = f"no entry or pattern knows {shown(name)!r}"
            return self.catalogue.default, "default", reason, (), True
        note = f"the name {shown(name)!r} says: {entry.note}"
        return entry.ranks, "pattern", note, entry.kinds, entry.leaves

    def _hinted(self, name: str, hints: Mapping[str, object] | None) -> list[tuple[bool, Ranks, str]]:
        """Return what the hints that count say; what lowers comes first, so a contradiction is resolved up."""
        if not hints:
            return []
        trusted = server(name) in self.boundary.servers
        said = [
            (entry.lowers, entry.ranks, f"{entry.hint} is {str(entry.value).lower()}: {entry.note}")
            for entry in self.catalogue.annotations
            if hints.get(entry.hint) is entry.value and (trusted or not entry.lowers)
        ]
        return sorted(said, key=lambda hint: not hint[0])


def _plain_effects(catalogue: Catalogue, boundary: Boundary) -> dict[str, Effect]:
    """Return the effects of tools whose name alone decides; names of one entry share one effect."""
    effects: dict[str, Effect] = {}
    network = catalogue.scales.levels("tool")[-1]
    somebody_inside = bool(boundary.domains + boundary.people)
    for name, entry in catalogue.tools.items():
        if entry.plain and entry.ranks is not None and not (entry.to and somebody_inside):
            first = effects.get(entry.names[0])
            if first is None:
                external = catalogue.scales.level(entry.ranks, "tool") == network
                known = Effect(
                    catalogue.scales.pairs(entry.ranks),
                    "rule",
                    (entry.note or f"{entry.names[0]} is in the catalogue",),
                    kinds=entry.kinds,
                    external=external,
                    leaves=entry.leaves,
                    confidence=catalogue.confidence["rule"],
                )
                first = with_leak(known, catalogue)
            effects[name] = first
    return effects


def with_leak(effect: Effect, catalogue: Catalogue) -> Effect:
    """Return an effect with the leak it would be, if it takes sensitive content outside."""
    leak = catalogue.leaks.get(effect["data"])
    if leak is None or not effect.leaves or leak in effect.kinds:
        return effect
    return replace(effect, kinds=tuple(sorted({*effect.kinds, leak})))


def because(effect: Effect, reason: str) -> Effect:
    """Return an effect with one more reason."""
    return replace(effect, reasons=(*effect.reasons, reason))
