"""The labeler: what a call does, before and after it is executed.

Three questions, in this order. What does the call do by itself (`Labeler._alone`): exact names of the catalogue,
the languages that arguments are written in, then patterns, the tool's own annotations, the cautious default. What do
its arguments and its result hold (`safetydrift.effects.content`). And what does it do in view of the run so far
(`safetydrift.effects.history`): on whose word it acts, and whether it carries out what was read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.effects.arguments import case_of, prose, receivers, server, table, texts
from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.scales import join, overlay
from safetydrift.effects.content.scan import Scanner
from safetydrift.effects.history.delegation import read_by
from safetydrift.effects.history.fingerprints import carries, fingerprint
from safetydrift.effects.history.history import NAMED, History
from safetydrift.effects.history.instructions import InstructionReader
from safetydrift.effects.history.provenance import decisive, origin_of, scalars
from safetydrift.effects.history.sources import sources_of
from safetydrift.effects.languages import READERS
from safetydrift.effects.reading import MAX_TEXT, Reading, UnreadableError, shown
from safetydrift.states.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.entries import ToolCase, ToolEntry
    from safetydrift.effects.catalogue.globs import Globs
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.content.scan import Findings
    from safetydrift.states.space import StateSpace
    from safetydrift.trace import Step, ToolCall

_MEMO_TEXT = 4096
_MEMO_SIZE = 1024
_MEMO_LONG = 4
"""Of longer texts, as many as one step asks about more than once."""
_CREDENTIALS = {"data": "credentials"}


class Labeler:
    """Says what a tool call does, before and after it is executed.

    Parameters
    ----------
    catalogue
        The reviewed data.
    boundary
        Which hosts and people are inside, and which servers are trusted: MCP tools of such a server are named
        ``mcp__<server>__<tool>``. By default everything but this host is outside.

    Notes
    -----
    No input raises: what cannot be read is taken for the worst that the catalogue's default says. Work per call is
    bounded, since arguments and results may come from an adversary.

    Examples
    --------
    >>> from safetydrift.formats.catalogue_file import load_catalogue
    >>> from safetydrift.trace import ToolCall
    >>> labeler = Labeler(load_catalogue())
    >>> effect = labeler.propose(ToolCall("bash", {"command": "cat ~/.ssh/id_rsa"}))
    >>> effect["data"], effect["tool"], effect["reversibility"]
    ('credentials', 'read_only', 'fully_reversible')
    """

    __slots__ = (
        "_by_name",
        "_by_path",
        "_in_language",
        "_instructions",
        "_plain",
        "_scan",
        "_scan_long",
        "_scanner",
        "boundary",
        "catalogue",
    )

    def __init__(self, catalogue: Catalogue, boundary: Boundary | None = None) -> None:
        self.catalogue = catalogue
        self.boundary = Boundary() if boundary is None else boundary
        self._plain = _plain_effects(catalogue, self.boundary)
        self._by_name = lru_cache(_MEMO_SIZE)(self._guess)
        self._by_path = lru_cache(_MEMO_SIZE)(catalogue.path)
        self._in_language = lru_cache(_MEMO_SIZE)(self._read_language)
        self._scanner = Scanner(catalogue)
        self._scan = lru_cache(_MEMO_SIZE)(self._scanner.scan)
        self._scan_long = lru_cache(_MEMO_LONG)(self._scanner.scan)
        self._instructions = InstructionReader(catalogue.marks)

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

    def needs_history(self, space: StateSpace) -> bool:
        """Return whether states of a space depend on what came before in a run."""
        contextual = set(self.catalogue.scales.names) - set(self.catalogue.scales.required)
        return not contextual.isdisjoint(dimension.name for dimension in space.dimensions)

    # -- before and after a call --------------------------------------------------------------------------

    def propose(self, call: ToolCall, history: History | None = None) -> Effect:
        """Return what a call will do if it is executed: its arguments are known, its result is not.

        Parameters
        ----------
        history
            What the run has shown so far. Without it, the effect is that of the call alone, and nothing is said
            about where its values come from or what it carries out.
        """
        effect = self._alone(call)
        args = table(call.args)
        if not args:
            return effect
        entry = self._entry(call)
        effect = self._with_content(effect, args, entry)
        if history is None:
            return effect
        sources = sources_of(args, decisive(args, self.catalogue.roles), history)
        effect = self._in_view_of(history, effect, args, entry)
        return replace(effect, sources=sources) if sources else effect

    def effect(self, step: Step, proposed: Effect | None = None, history: History | None = None) -> Effect:
        """Return what a step did.

        A call that failed read nothing and changed nothing, but the capability it reached for stays. Text in
        a language is the exception: a script that fails half-way has done its first half, so it counts as
        proposed. So does a call without a result: whether it was executed is unknown.

        Parameters
        ----------
        proposed
            What `propose` said of the call, where that is known already.
        history
            What the run had shown before the call.
        """
        effect = proposed or self.propose(step.call, history)
        if step.error is not None:
            effect = self._after_failure(step, effect)
        result = step.result
        if not isinstance(result, str) or not result:
            return effect
        effect = self._with_level(effect, result, incoming=True)
        if history is None or self._delegated(history, step, effect):
            return effect
        if self._orders(step.call, result):
            effect = self._raised(effect, {"untrusted": "instructed"}, ("the result speaks to the agent",))
        return effect

    def remember(self, history: History, step: Step, effect: Effect) -> History:
        """Return the history after a step.

        Parameters
        ----------
        history
            What the run had shown before; the user's words since then (`Step.said`) have been heard already.
        effect
            What the step did.
        """
        result = step.result
        if not isinstance(result, str) or not result:
            return history
        files = self._delegated(history, step, effect)
        if files:
            return history.hears_through(files, result)
        sensitive = None
        findings = self._found_in(result)
        whole = effect["data"] in self.catalogue.leaks
        if whole or findings.items:
            sensitive = fingerprint(
                effect["data"] if whole else findings.level,
                result if whole else "",
                [result[item.start : item.end] for item in findings.items],
            )
        passages = self._orders(step.call, result)
        own = not passages and self._own(step.call)
        return history.sees(result, own=own, passages=passages, sensitive=sensitive)

    def _delegated(self, history: History, step: Step, effect: Effect) -> frozenset[str]:
        """Return the files in which the user said that the task stands, if the call read one of them and no more."""
        if not history.delegated or step.error is not None:
            return frozenset()
        reads = effect["tool"] == self.catalogue.scales.levels("tool")[0]
        args = table(step.call.args) if reads else None
        return read_by((text for _, text in scalars(args or {})), history.delegated)

    def scan(self, text: str) -> Findings:
        """Return what a text holds (`safetydrift.effects.content`)."""
        findings: Findings = self._found_in(text)
        return findings

    def _own(self, call: ToolCall) -> bool:
        """Whether what a call brings back was written by nobody outside."""
        entry = self._entry(call)
        return (entry is not None and entry.own) or server(str(call.name)) in self.boundary.servers

    def _orders(self, call: ToolCall, result: str) -> Sequence[str]:
        """Return the parts of a result that speak to the agent.

        Nothing is an order that a server of the operator says, or that the agent said itself with a tool that reads
        nothing. The operator's own records are looked at like all others: in a list of names or a balance nobody
        entitled to it speaks to the agent.
        """
        entry = self._entry(call)
        if server(str(call.name)) in self.boundary.servers:
            return ()
        if entry is not None and entry.own and self._reads_nothing(entry):
            return ()
        passages: Sequence[str] = self._instructions.passages(result)
        return passages

    def _reads_nothing(self, entry: ToolEntry) -> bool:
        scales = self.catalogue.scales
        return entry.ranks is not None and scales.level(entry.ranks, "data") == scales.levels("data")[0]

    def _entry(self, call: ToolCall) -> ToolEntry | None:
        """Return the entry of a tool by its exact name; a name that is no text has none."""
        name: object = call.name
        return self.catalogue.tools.get(name) if isinstance(name, str) else None

    # -- what arguments and results hold ------------------------------------------------------------------

    def _with_content(self, effect: Effect, args: Mapping[str, object], entry: ToolEntry | None) -> Effect:
        """Return an effect with the level of what the arguments hold; recipients are no content."""
        for name, text in prose(args, self._receiving(entry)):
            if name in self.catalogue.roles.secret:
                effect = self._raised(
                    effect, _CREDENTIALS, (f"{shown(name)} is a password, a key or a code",)
                )
            effect = self._with_level(effect, text)
        return effect

    def _receiving(self, entry: ToolEntry | None) -> Globs | tuple[str, ...]:
        """Return the names of the arguments that say who receives: those of a tool nobody listed go by their names."""
        return self.catalogue.roles.to if entry is None else entry.to

    def _with_level(self, effect: Effect, text: str, *, incoming: bool = False) -> Effect:
        """Return an effect with the level of a text; what comes back is not what goes out."""
        findings = self._found_in(text)
        if not findings.items:
            return effect
        raised = self._raised(effect, {"data": findings.level}, findings.reasons())
        return replace(raised, kinds=effect.kinds) if incoming else raised

    def _found_in(self, text: str) -> Any:
        return self._scan(text) if len(text) <= _MEMO_TEXT else self._scan_long(text)

    def _raised(self, effect: Effect, levels: dict[str, str], reasons: tuple[str, ...]) -> Effect:
        """Return an effect that is at least as high; as it was, if it is that high already."""
        scales = self.catalogue.scales
        before = scales.ranks(effect)
        after = join(before, scales.read(levels, "content", whole=False))
        if after == before:
            return effect
        raised = replace(effect, levels=scales.pairs(after), reasons=(*effect.reasons, *reasons))
        return _with_leak(raised, self.catalogue)

    # -- in view of the run so far ------------------------------------------------------------------------

    def _in_view_of(
        self, history: History, effect: Effect, args: Mapping[str, object], entry: ToolEntry | None
    ) -> Effect:
        if effect["tool"] == self.catalogue.scales.levels("tool")[0]:
            return effect
        in_language = entry is not None and bool(entry.language)
        values = effect.destinations if in_language else decisive(args, self.catalogue.roles)
        origin, value = origin_of(values, history, self.boundary)
        if origin == NAMED:
            if history.task_known and not in_language:
                effect = self._authorised(effect)
        else:
            effect = self._raised(effect, {"provenance": origin}, (f"{shown(value)}: {_ORIGINS[origin]}",))
        return self._carrying(history, effect, args, entry) if effect.leaves else effect

    def _authorised(self, effect: Effect) -> Effect:
        """Return the effect of an act whose every decisive value the user has named: only a leak is still one."""
        leaks = set(self.catalogue.leaks.values())
        kinds = tuple([kind for kind in effect.kinds if kind in leaks])
        return effect if kinds == effect.kinds else replace(effect, kinds=kinds)

    def _carrying(
        self, history: History, effect: Effect, args: Mapping[str, object], entry: ToolEntry | None
    ) -> Effect:
        """Return the effect of an outgoing call that may contain what was read before; recipients are no content."""
        if not history.sensitive:
            return effect
        levels = self.catalogue.scales.levels("data")
        outgoing = "\n".join(text for _, text in prose(args, self._receiving(entry)))
        found = [levels.index(level) for level in carries(history.sensitive, outgoing, history.repeatable)]
        if not found:
            return effect
        level = levels[max(found)]
        what = {"data": level, "carried": level}
        return self._raised(effect, what, (f"carries {level} content that was read before",))

    # -- the call alone -----------------------------------------------------------------------------------

    def _alone(self, call: ToolCall) -> Effect:
        """Return what a call does, whatever came before and whatever its texts hold."""
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

    def _after_failure(self, step: Step, effect: Effect) -> Effect:
        entry = self._entry(step.call)
        if entry is not None and entry.language and entry.language != "http":
            return _because(effect, "it failed, but what ran before the failure counts")
        scales = self.catalogue.scales
        return replace(
            effect,
            levels=scales.pairs(overlay(scales.ranks(effect), self.catalogue.failed)),
            reasons=("the call failed, so it read and changed nothing", *effect.reasons),
            kinds=(),
        )

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
        return _with_leak(guessed, self.catalogue)

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

    def __reduce__(self) -> tuple[Any, ...]:
        return Labeler, (self.catalogue, self.boundary)

    def __repr__(self) -> str:
        return f"<Labeler on {self.catalogue!r}>"


_ORIGINS = {
    "own": "stands in the operator's own records, not in the task",
    "unknown": "stands in nothing the user said and in nothing that came back",
    "foreign": "stands only in content from outside",
    "instructed": "stands in a passage from outside that tells the agent what to do",
}


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
                first = _with_leak(known, catalogue)
            effects[name] = first
    return effects


def _with_leak(effect: Effect, catalogue: Catalogue) -> Effect:
    """Return an effect with the leak it would be, if it takes sensitive content outside."""
    leak = catalogue.leaks.get(effect["data"])
    if leak is None or not effect.leaves or leak in effect.kinds:
        return effect
    return replace(effect, kinds=tuple(sorted({*effect.kinds, leak})))


def _because(effect: Effect, reason: str) -> Effect:
    return replace(effect, reasons=(*effect.reasons, reason))
