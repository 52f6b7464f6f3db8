"""What a call does by itself, whatever came before and whatever its texts hold.

Exact names of the catalogue come first, with the languages that arguments are written in; then patterns of names, the
tool's own annotations, and the cautious default.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.effects.arguments import case_of, receivers, server, table, texts
from safetydrift.effects.catalogue.scales import join, overlay
from safetydrift.effects.history.provenance import scalars
from safetydrift.effects.languages import READERS
from safetydrift.effects.reading import MAX_TEXT, ONE_LINER, Reading, UnreadableError, shown
from safetydrift.effects.tool_operations import (
    edited,
    harm_of,
    tool_operations,
    unpacked,
    with_edits,
)
from safetydrift.states.effect import Effect
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.entries import PatternEntry, ToolCase, ToolEntry
    from safetydrift.effects.catalogue.harms import Harm
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.operations import Operation

_MEMO_TEXT = 4096
_MAX_POSITIONS = 16
_CHANGING = frozenset(("edit", "move", "publish"))
_WRAPPERS = frozenset(
    ("params", "input", "args", "arguments", "kwargs", "parameters", "tool_input", "payload")
)
"""Names of arguments that hold all others."""
_STATEMENTS = ("sql", "query", "statement", "sql_query", "sql_statement")
_STATEMENT = re.compile(
    r"\s{0,64}(?:SELECT\s+[^?]{1,4096}\sFROM\s|SELECT\s+[\w.]{1,64}\s?\(|INSERT\s+INTO\s|UPDATE\s+\S{1,128}\s+SET\s|DELETE\s+FROM\s|REPLACE\s+INTO\s"
    r"|(?:DROP|ALTER|CREATE|TRUNCATE|LOCK)\s+(?:OR\s+REPLACE\s+)?(?:TABLE|DATABASE|SCHEMA|USER|ROLE|VIEW|INDEX|FUNCTION|EXTENSION|TRIGGER|LOGIN)\b"
    r"|(?:GRANT|REVOKE)\s+[\w ,*.]{1,256}\s(?:ON|TO|FROM)\s|COPY\s+[(\w]|MERGE\s+INTO\s|WITH\s+\w{1,64}\s+AS\s*\()",
    re.IGNORECASE,
)
"""How statements of SQL begin that are hardly anything else."""
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

    __slots__ = ("_by_name", "_by_path", "_in_language", "_pattern", "_plain", "boundary", "catalogue")

    def __init__(self, catalogue: Catalogue, boundary: Boundary) -> None:
        self.catalogue, self.boundary = catalogue, boundary
        self._plain = _plain_effects(catalogue, boundary)
        self._by_name = lru_cache(_MEMO_SIZE)(self._guess)
        self._pattern = lru_cache(_MEMO_SIZE)(catalogue.pattern)
        self._by_path = lru_cache(_MEMO_SIZE)(catalogue.path)
        self._in_language = lru_cache(_MEMO_SIZE)(self._read_language)

    def of(self, call: ToolCall) -> Effect:
        """Return what a call does, and to what."""
        call = self._opened(call)
        try:
            effect = self._plain.get(call.name)
            entry = self.catalogue.tools.get(call.name)
        except TypeError:  # a name that is no text and cannot even be looked up
            effect = entry = None
        if entry is None:
            effect = self._uncatalogued(call)
        elif effect is None:
            effect = self._read(call, entry)
        elif call.malformed is not None:
            effect = because(effect, "the arguments could not be decoded, but do not matter")
        if effect.operations:
            return effect
        operations = self._operations(call, entry, effect)
        if any(one.action in _CHANGING and one.role == "path" for one in operations):
            text = "\n".join([text for _, text in scalars(table(call.args) or {})])
            operations = with_edits(self.catalogue, operations, text)
        effect = replace(effect, operations=operations)
        return self._with_paths(effect) if entry is None else effect

    def _opened(self, call: ToolCall) -> ToolCall:
        """Return a call whose arguments stand in one that only wraps them, as if they were given by themselves."""
        args = table(call.args)
        if args is None or len(args) != 1 or call.malformed is not None or not isinstance(call.name, str):
            return call
        ((name, value),) = args.items()
        entry = self.catalogue.tools.get(call.name)
        if name not in _WRAPPERS or (entry is not None and name in entry.arguments):
            return call
        inner = unpacked(value) if isinstance(value, str) else value
        if isinstance(inner, list | tuple):
            inner = self._by_position(call.name, entry, inner)
        inside = table(inner)
        return call if not inside else ToolCall(call.name, inside, call.id, hints=call.hints)

    def _by_position(
        self, name: str, entry: ToolEntry | None, values: Sequence[object]
    ) -> dict[str, object] | None:
        """Return the text among arguments without names under the name that the tool has for it, if it has one."""
        pattern = self._known(name) if entry is None else None
        language = entry.language if entry is not None else pattern.language if pattern is not None else ""
        names = entry.arguments if entry is not None else pattern.arguments if pattern is not None else ()
        given = [value for value in values[:_MAX_POSITIONS] if isinstance(value, str)]
        statement = next(filter(_STATEMENT.match, given), "") if language in {"", "sql"} else ""
        if statement and not language:
            return {_STATEMENTS[0]: statement}
        if not given or language in {"", "http"} or not names:
            return None
        return {names[0]: statement or max(given, key=len)}

    def language(self, call: ToolCall) -> str:
        """Return the language of the text that a call runs; empty if it runs none."""
        name: object = call.name
        if not isinstance(name, str):
            return ""
        entry = self.catalogue.tools.get(name)
        if entry is not None:
            return entry.language
        pattern = self._known(name)
        return pattern.language if pattern is not None and self._given(pattern, call) is not None else ""

    def _operations(self, call: ToolCall, entry: ToolEntry | None, effect: Effect) -> tuple[Operation, ...]:
        """Return what a call does to the values that its arguments name."""
        args = table(call.args) or {}
        harm: Harm | None = None
        targets: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if entry is not None:
            case = case_of(args, entry) if entry.cases else None
            harm = case.harm if case is not None and case.harm.action else entry.harm
            targets = entry.targets
        elif isinstance(call.name, str):
            pattern = self._known(call.name)
            harm = pattern.harm if pattern is not None else None
        if harm is None or not harm.action:
            harm = self._derived(effect)
        return tool_operations(self.catalogue, self.boundary, harm, targets, args, tool=call.name)

    def _with_paths(self, effect: Effect) -> Effect:
        """Return the effect of a tool nobody listed with what the paths tell that it is given."""
        ranks, reasons = self.catalogue.scales.ranks(effect), list(effect.reasons)
        for operation in effect.operations:
            told = self._by_path(operation.target) if operation.role == "path" else None
            if told is not None:
                ranks = join(ranks, told.ranks)
                reasons.append(f"{shown(operation.target)}: {told.note}")
        if len(reasons) == len(effect.reasons):
            return effect
        raised = replace(effect, levels=self.catalogue.scales.pairs(ranks), reasons=tuple(reasons))
        return with_leak(raised, self.catalogue)

    def _derived(self, effect: Effect) -> Harm:
        """Return what a call does, as far as its effect tells it."""
        scales = self.catalogue.scales
        return harm_of(
            scales.levels("tool").index(effect["tool"]),
            effect.kinds,
            leaves=effect.leaves,
            changes=effect["reversibility"] != scales.levels("reversibility")[0],
        )

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
        reading.exact, reading.code = isinstance(text, str) and len(text) <= ONE_LINER, True
        try:
            READERS[language](reading, text)
        except UnreadableError as problem:
            reading.unreadable(f"the {language} text cannot be read: {problem}")
        if not reading.operations:
            reading.note("run", "", "text")
        if isinstance(text, str):
            reading.beside += edited(self.catalogue, list(reading.operations), text)
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
        if not isinstance(name, str):
            reading = self._open()
            reading.unreadable("the tool's name is no text")
            return reading.effect()
        read = self._in_its_language(name, call)
        if read is not None:
            return read
        reading = self._open()
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

    def _in_its_language(self, name: str, call: ToolCall) -> Effect | None:
        """Return the effect of the text that a tool is given to run, as its name tells; None if there is none."""
        pattern = self._known(name)
        text = self._given(pattern, call) if pattern is not None else None
        language = pattern.language if pattern is not None else ""
        if text is None:
            language, text = "sql", self._statement(call)
        if text is None:
            return None
        reader = self._in_language if len(text) <= _MEMO_TEXT else self._read_language
        read: Effect = reader(language, text)
        sure = min(read.confidence, self.catalogue.confidence["pattern"])
        source = "pattern" if read.source == "rule" else read.source
        return replace(read, source=source, confidence=sure)

    def _statement(self, call: ToolCall) -> str | None:
        """Return the argument that is a statement of SQL by its name and its form; None if there is none."""
        args = table(call.args)
        if args is None:
            return None
        for name in _STATEMENTS:
            text = args.get(name)
            if isinstance(text, str) and len(text) <= MAX_TEXT and _STATEMENT.match(text):
                return text
        return None

    def _given(self, pattern: PatternEntry, call: ToolCall) -> str | None:
        """Return the text that a tool is given to run; None if there is none, or too much of it."""
        args = table(call.args) if pattern.language else None
        if not args:
            return None
        text = next((args[key] for key in pattern.arguments if isinstance(args.get(key), str)), None)
        return text if isinstance(text, str) and len(text) <= MAX_TEXT else None

    def _known(self, name: str) -> PatternEntry | None:
        return self._pattern(name) if len(name) <= _MEMO_TEXT else self.catalogue.pattern(name)

    def _guess(self, name: str) -> tuple[Ranks, str, str, tuple[str, ...], bool]:
        entry = self._known(name)
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
