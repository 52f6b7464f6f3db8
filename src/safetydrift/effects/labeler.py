"""The labeler: what a step did, by the first layer that knows.

Exact names of the catalogue come first, then its patterns, then the tool's own annotations, then the cautious
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from safetydrift.effects.languages import READERS
from safetydrift.effects.scales import join, overlay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.entries import ToolCase, ToolEntry
    from safetydrift.effects.scales import Ranks
    from safetydrift.states.effect import Effect
    from safetydrift.states.space import StateSpace
    from safetydrift.trace import Step, ToolCall

MAX_ARGUMENT = 64 * 1024
"""Longer arguments are not examined."""
MAX_ITEMS = 256
"""Longer lists are not examined."""
_MEMO_TEXT = 4096
_MEMO_SIZE = 1024
_MAX_SHOWN = 60


class Labeler:
    """Says what a tool call does, before and after it is executed.

    Parameters
    ----------
    catalogue
        The reviewed data.
    trusted_servers
        MCP servers whose annotations may lower an effect; their tools are named ``mcp__<server>__<tool>``.

    Notes
    -----
    An effect never depends on earlier calls, and no input raises: what cannot be read is taken for the worst
    that the catalogue's default says. Work per call is bounded, since arguments may come from an adversary.

    Examples
    --------
    >>> from safetydrift.formats.catalogue_file import load_catalogue
    >>> from safetydrift.trace import ToolCall
    >>> labeler = Labeler(load_catalogue())
    >>> effect = labeler.propose(ToolCall("bash", {"command": "cat ~/.ssh/id_rsa"}))
    >>> effect["data"], effect["tool"], effect["reversibility"]
    ('credentials', 'read_only', 'fully_reversible')
    """

    __slots__ = ("_by_language", "_by_name", "_by_path", "_plain", "catalogue", "trusted_servers")

    def __init__(self, catalogue: Catalogue, trusted_servers: Iterable[str] = frozenset()) -> None:
        self.catalogue = catalogue
        self.trusted_servers = frozenset(trusted_servers)
        self._plain = _plain_effects(catalogue)
        self._by_language: dict[str, Callable[[str], Effect]] = {
            language: lru_cache(_MEMO_SIZE)(partial(reader, catalogue))
            for language, reader in READERS.items()
        }
        self._by_name = lru_cache(_MEMO_SIZE)(self._guess)
        self._by_path = lru_cache(_MEMO_SIZE)(catalogue.path)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions in which effects are given."""
        return self.catalogue.scales.names

    def require_cover(self, space: StateSpace) -> None:
        """Check that the effects mean something in every dimension of a state space.

        Raises
        ------
        CatalogueError
            If the space has a dimension that the catalogue lacks, or the levels of one differ.
        """
        self.catalogue.require_cover(space)

    def propose(self, call: ToolCall) -> Effect:
        """Return what a call will do if it is executed: its arguments are known, its result is not."""
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
            return _because(effect, "the arguments could not be decoded, but do not matter")
        return self._read(call, entry)

    def effect(self, step: Step, proposed: Effect | None = None) -> Effect:
        """Return what a step did.

        A call that failed read nothing and changed nothing, but the capability it reached for stays. Text in
        a language is the exception: a script that fails half-way has done its first half, so it counts as
        proposed. So does a call without a result: whether it was executed is unknown.

        Parameters
        ----------
        proposed
            What `propose` said of the call, where that is known already.
        """
        proposed = proposed or self.propose(step.call)
        if step.error is None:
            return proposed
        if self._in_some_language(step.call.name):
            return _because(proposed, "it failed, but what ran before the failure counts")
        scales = self.catalogue.scales
        reasons = ("the call failed, so it read and changed nothing", *proposed.reasons)
        return scales.effect(overlay(scales.ranks(proposed), self.catalogue.failed), proposed.source, reasons)

    def _in_some_language(self, name: object) -> bool:
        entry = self.catalogue.tools.get(name) if isinstance(name, str) else None
        return entry is not None and bool(entry.language)

    # -- exact entries whose effect depends on arguments --------------------------------------------------

    def _read(self, call: ToolCall, entry: ToolEntry) -> Effect:
        args = _table(call.args)
        if call.malformed is not None or args is None:
            return self._cautious(entry, f"the arguments of {call.name} could not be decoded")
        if entry.ranks is None:
            return self._in_language(args.get(entry.argument), entry)
        case = _case(args, entry)
        ranks = entry.ranks if case is None else overlay(entry.ranks, case.ranks)
        reasons = [(case and case.note) or entry.note or f"{call.name} is in the catalogue"]
        for argument in entry.paths:
            paths = _texts(args.get(argument))
            if paths is None:
                return self._cautious(entry, f"the argument {argument!r} of {call.name} is too long")
            for path in paths:
                told = (self._by_path if len(path) <= _MEMO_TEXT else self.catalogue.path)(path)
                if told is not None and join(ranks, told.ranks) != ranks:
                    ranks = join(ranks, told.ranks)
                    reasons.append(f"{_shown(path)}: {told.note}")
        return self.catalogue.scales.effect(ranks, "rule", tuple(reasons))

    def _in_language(self, text: object, entry: ToolEntry) -> Effect:
        if isinstance(text, str) and len(text) <= _MEMO_TEXT:
            return self._by_language[entry.language](text)
        if isinstance(text, str | list | tuple) and len(text) <= MAX_ARGUMENT:
            return READERS[entry.language](self.catalogue, text)
        return self._cautious(entry, f"{entry.argument!r} is missing, too long or no {entry.language} text")

    def _cautious(self, entry: ToolEntry, reason: str) -> Effect:
        default = self.catalogue.default
        ranks = default if entry.ranks is None else join(default, entry.ranks)
        return self.catalogue.scales.effect(ranks, "default", (reason,))

    # -- names that are not in the catalogue --------------------------------------------------------------

    def _uncatalogued(self, call: ToolCall) -> Effect:
        name: object = call.name
        if not isinstance(name, str):
            return self.catalogue.scales.effect(
                self.catalogue.default, "default", ("the tool's name is no text",)
            )
        guess = self._by_name if len(name) <= _MEMO_TEXT else self._guess
        ranks, source, reason = guess(name)
        reasons = [reason]
        for lowers, upper, why in self._hinted(name, _table(call.hints)):
            hinted = overlay(ranks, upper) if lowers else join(ranks, upper)
            if hinted != ranks:
                ranks, source = hinted, "annotation"
                reasons.append(why)
        return self.catalogue.scales.effect(ranks, source, tuple(reasons))

    def _guess(self, name: str) -> tuple[Ranks, str, str]:
        entry = self.catalogue.pattern(name)
        if entry is None:
            return self.catalogue.default, "default", f"no entry or pattern knows {_shown(name)}"
        return entry.ranks, "pattern", f"the name {_shown(name)} says: {entry.note}"

    def _hinted(self, name: str, hints: Mapping[str, object] | None) -> list[tuple[bool, Ranks, str]]:
        """Return what the hints that count say; what lowers comes first, so a contradiction is resolved up."""
        if not hints:
            return []
        trusted = _server(name) in self.trusted_servers
        said = [
            (entry.lowers, entry.ranks, f"{entry.hint} is {str(entry.value).lower()}: {entry.note}")
            for entry in self.catalogue.annotations
            if hints.get(entry.hint) is entry.value and (trusted or not entry.lowers)
        ]
        return sorted(said, key=lambda hint: not hint[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return Labeler, (self.catalogue, self.trusted_servers)

    def __repr__(self) -> str:
        return f"<Labeler on {self.catalogue!r}>"


def _plain_effects(catalogue: Catalogue) -> dict[str, Effect]:
    """Return the effects of tools whose name alone decides; names of one entry share one effect."""
    effects: dict[str, Effect] = {}
    for name, entry in catalogue.tools.items():
        if entry.plain and entry.ranks is not None:
            first = effects.get(entry.names[0])
            reason = entry.note or f"{entry.names[0]} is in the catalogue"
            effects[name] = first or catalogue.scales.effect(entry.ranks, "rule", (reason,))
    return effects


def _case(args: Mapping[str, object], entry: ToolEntry) -> ToolCase | None:
    for case in entry.cases:
        texts = _texts(args.get(case.argument))
        if texts is not None and case.values.any_of(texts):
            return case
    return None


def _texts(value: object) -> list[str] | None:
    """Return an argument as texts: lists item by item, numbers and truth values as JSON writes them.

    None if it is too long to be examined.
    """
    if isinstance(value, str):
        return [value] if len(value) <= MAX_ARGUMENT else None
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [str(value)] if value.bit_length() <= 64 else None  # noqa: PLR2004
    if isinstance(value, list | tuple):
        texts = [item for item in value[: MAX_ITEMS + 1] if isinstance(item, str)]
        return texts if len(value) <= MAX_ITEMS and sum(map(len, texts)) <= MAX_ARGUMENT else None
    return []


def _table(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _server(name: str) -> str | None:
    parts = name.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else None  # noqa: PLR2004


def _because(effect: Effect, reason: str) -> Effect:
    return effect.replace(reasons=(*effect.reasons, reason))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}...")
