"""The labeler: what a call does, read once before it is made and once when its result is there.

Three questions, in this order. What does the call do by itself (`safetydrift.effects.call_effect`). What do its
arguments and its result hold (`safetydrift.effects.content`). And what does it do in view of the run so far
(`safetydrift.effects.history`): on whose word it acts, and whether it carries out what was read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from safetydrift.effects.arguments import prose, server, table
from safetydrift.effects.boundary import Boundary
from safetydrift.effects.call_effect import CallEffects, because, with_leak
from safetydrift.effects.catalogue.scales import join, overlay
from safetydrift.effects.content.scan import Scanner
from safetydrift.effects.history.delegation import shown_by
from safetydrift.effects.history.fingerprints import carries, fingerprint
from safetydrift.effects.history.history import INSTRUCTED, NAMED, History
from safetydrift.effects.history.instructions import InstructionReader
from safetydrift.effects.history.provenance import decisive, origin_of, scalars
from safetydrift.effects.history.sources import sources_of
from safetydrift.effects.history.words import digests
from safetydrift.effects.proposal import Proposal
from safetydrift.effects.reading import shown
from safetydrift.states.effect import Effect
from safetydrift.states.task_words import writable
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.entries import ToolEntry
    from safetydrift.effects.catalogue.globs import Globs
    from safetydrift.effects.content.scan import Findings
    from safetydrift.states.space import StateSpace
    from safetydrift.trace import Step

_MEMO_TEXT = 4096
_MEMO_SIZE = 1024
_MEMO_LONG = 4
"""Of longer texts, as many as one step asks about more than once."""
_CREDENTIALS = {"data": "credentials"}

Texts = tuple[tuple[str, str], ...]
"""Texts and numbers of a call's arguments, each with the name it stands under."""


class Outcome(NamedTuple):
    """What a call did, and what the run has shown by then."""

    effect: Effect
    history: History | None


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

    __slots__ = ("_calls", "_instructions", "_scan", "_scan_long", "_scanner", "boundary", "catalogue")

    def __init__(self, catalogue: Catalogue, boundary: Boundary | None = None) -> None:
        self.catalogue = catalogue
        self.boundary = Boundary() if boundary is None else boundary
        self._calls = CallEffects(catalogue, self.boundary)
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

    # -- before a call ------------------------------------------------------------------------------------

    def propose(self, call: ToolCall, history: History | None = None) -> Effect:
        """Return what a call will do if it is executed; the arguments are those of `read_call`."""
        return self.read_call(call, history).effect

    def read_call(self, call: ToolCall, history: History | None = None) -> Proposal:
        """Read a call before it is made: its arguments are known, its result is not.

        Parameters
        ----------
        history
            What the run has shown so far. Without it, the effect is that of the call alone, and nothing is said
            about where its values come from or what it carries out.
        """
        entry = self._entry(call)
        effect = self._alone(call)
        sources, task_files = 0, _NO_FILES
        args = table(call.args)
        if args:
            texts = tuple(scalars(args))
            effect = self._with_content(effect, texts, entry)
            if history is not None:
                if history.instructed:
                    sources = sources_of(texts, decisive(texts, self.catalogue.roles), history)
                if effect["tool"] != self.catalogue.scales.levels("tool")[0]:
                    effect = self._in_view_of(history, effect, texts, entry)
                elif history.delegated:
                    task_files = digests(shown_by([text for _, text in texts], history.delegated))
        trusted = server(str(call.name)) in self.boundary.servers
        own = entry is not None and entry.own
        return Proposal(
            _name(call),
            effect,
            sources,
            partial=entry is not None and bool(entry.language) and entry.language != "http",
            own=own or trusted,
            # Nothing is searched that a server of the operator says, or that the agent said itself with a tool that
            # reads nothing. The operator's own records are: in a list of names nobody entitled to it gives orders.
            searched=not (trusted or (own and self._reads_nothing(entry))),
            task_files=task_files,
        )

    # -- and after it ---------------------------------------------------------------------------------------

    def effect(self, step: Step, history: History | None = None) -> Effect:
        """Return what a step did; the arguments are those of `read_step`."""
        return self.read_step(step, history).effect

    def read_step(self, step: Step, history: History | None = None) -> Outcome:
        """Read a call and its result one after the other.

        Parameters
        ----------
        history
            What the run had shown before the call; the user's words since then (`Step.said`) have been heard already.
        """
        return self.read_result(self.read_call(step.call, history), step.result, step.error, history)

    def read_result(
        self, proposal: Proposal, result: str | None, error: str | None = None, history: History | None = None
    ) -> Outcome:
        """Read what came back from a call.

        A call that failed read nothing and changed nothing, but the capability it reached for stays. Text in
        a language is the exception: a script that fails half-way has done its first half, so it counts as
        proposed. So does a call without a result: whether it was executed is unknown.

        Parameters
        ----------
        proposal
            What was read of the call.
        result
            The text that came back; None or empty if nothing did.
        error
            The tool's own error message if the call failed.
        history
            What the run had shown before the call.
        """
        effect = proposal.effect
        if error is not None:
            effect = self._after_failure(proposal)
        if not isinstance(result, str) or not result:
            return Outcome(effect, history)
        findings = self._found_in(result)
        if findings.items:
            raised = self._raised(effect, {"data": findings.level}, findings.reasons())
            effect = replace(raised, kinds=effect.kinds)  # what comes back is not what goes out
        if history is None:
            return Outcome(effect, None)
        if proposal.task_files and error is None:
            files = frozenset(
                [file for file in history.delegated if digests([file])[0] in proposal.task_files]
            )
            if files:
                return Outcome(effect, history.hears_through(files, result))
        passages: Sequence[str] = self._instructions.passages(result) if proposal.searched else ()
        if passages:
            effect = self._raised(effect, {"untrusted": "instructed"}, ("the result speaks to the agent",))
        sensitive = None
        whole = effect["data"] in self.catalogue.leaks
        if whole or findings.items:
            sensitive = fingerprint(
                effect["data"] if whole else findings.level,
                result if whole else "",
                [result[item.start : item.end] for item in findings.items],
            )
        own = proposal.own and not passages
        return Outcome(effect, history.sees(result, own=own, passages=passages, sensitive=sensitive))

    def leave_unread(self, proposal: Proposal, history: History | None = None) -> Outcome:
        """Return what a call did whose result nobody could read; where that might hold anything, it counts as if.

        Parameters
        ----------
        proposal, history
            As for `read_result`.
        """
        if not proposal.searched:
            return Outcome(proposal.effect, history)
        effect = self._raised(proposal.effect, {"untrusted": "read"}, ("its result could not be read",))
        return Outcome(effect, None if history is None else replace(history, unread=True))

    def read_more(self, tool: str) -> Proposal:
        """Return the reading of a call that has been read with its result, and of which more comes back."""
        scales = self.catalogue.scales
        nothing = Effect(scales.pairs((0,) * len(scales.names)), reasons=("more came back from a call",))
        return replace(self.read_call(ToolCall(tool)), effect=nothing)

    def scan(self, text: str) -> Findings:
        """Return what a text holds (`safetydrift.effects.content`)."""
        findings: Findings = self._found_in(text)
        return findings

    def _reads_nothing(self, entry: ToolEntry | None) -> bool:
        scales = self.catalogue.scales
        return (
            entry is not None
            and entry.ranks is not None
            and scales.level(entry.ranks, "data") == scales.levels("data")[0]
        )

    def _entry(self, call: ToolCall) -> ToolEntry | None:
        """Return the entry of a tool by its exact name; a name that is no text has none."""
        name: object = call.name
        return self.catalogue.tools.get(name) if isinstance(name, str) else None

    def _alone(self, call: ToolCall) -> Effect:
        """Return what a call does, whatever came before and whatever its texts hold."""
        return self._calls.of(call)

    def _after_failure(self, proposal: Proposal) -> Effect:
        effect = proposal.effect
        if proposal.partial:
            return because(effect, "it failed, but what ran before the failure counts")
        scales = self.catalogue.scales
        return replace(
            effect,
            levels=scales.pairs(overlay(scales.ranks(effect), self.catalogue.failed)),
            reasons=("the call failed, so it read and changed nothing", *effect.reasons),
            kinds=(),
        )

    # -- what arguments and results hold ------------------------------------------------------------------

    def _with_content(self, effect: Effect, texts: Texts, entry: ToolEntry | None) -> Effect:
        """Return an effect with the level of what the arguments hold; recipients are no content."""
        for name, text in prose(texts, self._receiving(entry)):
            if name in self.catalogue.roles.secret:
                reason = f"{shown(name)} is a password, a key or a code"
                effect = self._raised(effect, _CREDENTIALS, (reason,))
            findings = self._found_in(text)
            if findings.items:
                effect = self._raised(effect, {"data": findings.level}, findings.reasons())
        return effect

    def _receiving(self, entry: ToolEntry | None) -> Globs | tuple[str, ...]:
        """Return the names of the arguments that say who receives: those of a tool nobody listed go by their names."""
        return self.catalogue.roles.to if entry is None else entry.to

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
        return with_leak(raised, self.catalogue)

    # -- in view of the run so far ------------------------------------------------------------------------

    def _in_view_of(self, history: History, effect: Effect, texts: Texts, entry: ToolEntry | None) -> Effect:
        in_language = entry is not None and bool(entry.language)
        values = effect.destinations if in_language else decisive(texts, self.catalogue.roles)
        origin, value = origin_of(values, history, self.boundary)
        if origin == NAMED:
            if history.task_known and not in_language:
                effect = self._authorised(effect)
        else:
            why = _UNREAD if origin == INSTRUCTED and history.unread else _ORIGINS[origin]
            effect = self._raised(effect, {"provenance": origin}, (f"{shown(value)}: {why}",))
        return self._carrying(history, effect, texts, entry) if effect.leaves else effect

    def _authorised(self, effect: Effect) -> Effect:
        """Return the effect of an act whose every decisive value the user has named: only a leak is still one."""
        leaks = set(self.catalogue.leaks.values())
        kinds = tuple([kind for kind in effect.kinds if kind in leaks])
        return effect if kinds == effect.kinds else replace(effect, kinds=kinds)

    def _carrying(self, history: History, effect: Effect, texts: Texts, entry: ToolEntry | None) -> Effect:
        """Return the effect of an outgoing call that may contain what was read before; recipients are no content."""
        if not history.sensitive:
            return effect
        levels = self.catalogue.scales.levels("data")
        outgoing = "\n".join([text for _, text in prose(texts, self._receiving(entry))])
        found = [levels.index(level) for level in carries(history.sensitive, outgoing, history.repeatable)]
        if not found:
            return effect
        level = levels[max(found)]
        what = {"data": level, "carried": level}
        return self._raised(effect, what, (f"carries {level} content that was read before",))

    def __reduce__(self) -> tuple[Any, ...]:
        return Labeler, (self.catalogue, self.boundary)

    def __repr__(self) -> str:
        return f"<Labeler on {self.catalogue!r}>"


_NO_FILES: tuple[int, ...] = ()
_ORIGINS = {
    "own": "stands in the operator's own records, not in the task",
    "unknown": "stands in nothing the user said and in nothing that came back",
    "foreign": "stands only in content from outside",
    "instructed": "stands in a passage from outside that tells the agent what to do",
}

_UNREAD = "may stand in a result that nobody could read"


def _name(call: ToolCall) -> str:
    """Return a tool's name as it is written down; nothing for one that is no text."""
    name: object = call.name
    return writable(name) if isinstance(name, str) else ""
