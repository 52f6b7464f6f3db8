"""Runs from spans: what the agent proposed, from its model's messages, joined with what its tools' spans tell.

A call shows up twice, proposed in a message and executed as a span, and every message shows up again in the input of
each later model call. So calls and words are taken from what is new in each model call; spans of tools are joined to
calls by id, else by name and arguments, else by name; those that nobody proposed are calls of their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from safetydrift.formats.format import Place
from safetydrift.formats.history import Flat, History
from safetydrift.formats.messages import (
    AGENT,
    USER,
    Message,
    Result,
    arguments_of,
    call_of,
    decoded,
    has_failed,
    messages_of,
    text_of_result,
    tools_of,
)
from safetydrift.formats.run_builder import RESULT, RunBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account
    from safetydrift.trace import ToolCall, Trace

MODEL, TOOL, SUBAGENT, WORDS, OTHER = "model", "tool", "agent", "words", "other"
"""What a span can be: a call of a model, of a tool, the run of an agent, words of the user, or none of these."""
MAX_ANCESTORS = 256
MAX_LOOKED_AT = 16
Key = tuple[str, str]
_MAIN: Key = ("", "")


class Span(msgspec.Struct):
    """A span, whatever format and conventions it came in.

    Attributes
    ----------
    trace, id, parent
        Identifiers; ``parent`` is empty at the root.
    kind
        One of the kinds above.
    place
        Where it stands; None for a span of which nothing but its ids is read.
    name
        The tool's name.
    start, end
        In seconds since 1970; None where not told.
    session
        The conversation that the span says it belongs to.
    model, tools
        The model that answered, and the definitions of the tools on offer, in any shape.
    inputs, outputs
        What went in and came out: JSON (as text, bytes or decoded), `Flat` messages, or None if not recorded. Of a
        tool's span, its arguments and its result; of words, the words.
    call_id
        Of a tool's span, the id of the call.
    error
        What went wrong, or None.
    refused_by
        Who refused the call, ``""`` if it was let through, None if nothing is said of it.
    repeats
        Whether this tells again of the call that the tool's span around it tells of.
    adds
        Whether this is an event, which adds to the span of the same id and is counted where it is read.
    """

    trace: str
    id: str
    kind: str
    place: Place | None = None
    parent: str = ""
    name: str = ""
    start: float | None = None
    end: float | None = None
    session: str = ""
    model: str = ""
    tools: Any = None
    inputs: Any = None
    outputs: Any = None
    call_id: str = ""
    error: str | None = None
    refused_by: str | None = None
    repeats: bool = False
    adds: bool = False

    @property
    def key(self) -> Key:
        """What no other span has."""
        return self.trace, self.id

    def fill(self, other: Span) -> None:
        """Take from another record of the same span what this one does not say."""
        for name in _FILLED:
            if getattr(self, name) in _NOTHING:
                setattr(self, name, getattr(other, name))
        if self.kind == OTHER:
            self.kind = other.kind


def _together(events: list[Span]) -> dict[Key, Span]:
    """Return what events add to every span, their messages in the order of their times."""
    found: dict[Key, Span] = {}
    seen: set[tuple[object, ...]] = set()
    for event in sorted(events, key=lambda one: one.start or 0.0):
        content = msgspec.json.encode((event.kind, event.name, event.call_id, event.inputs, event.outputs))
        told = (event.trace, event.id.partition("#")[0], event.start, content)
        if event.start is not None and told in seen:
            continue
        seen.add(told)
        first = found.setdefault(event.key, event)
        if first is not event:
            for name in ("inputs", "outputs"):
                before, more = getattr(first, name), getattr(event, name)
                if isinstance(before, list) and isinstance(more, list):
                    setattr(first, name, [*before, *more])
            first.fill(event)
    return found


_FILLED = (
    "parent",
    "name",
    "start",
    "end",
    "session",
    "model",
    "tools",
    "inputs",
    "outputs",
    "call_id",
    "error",
)
_NOTHING: tuple[object, ...] = (None, "", [])


def runs_of(spans: Iterable[Span], name: str, source: str, account: Account) -> Iterator[Trace]:
    """Yield the runs that the spans of one session make up: the main one, then those of subagents.

    Parameters
    ----------
    spans
        In the order of their files; they are put in the order of their start.
    name
        What to call the main run.
    source
        The format.
    """
    tree = _Tree(spans, account)
    groups = tree.groups()
    main = _Run(groups.pop(_MAIN, []), tree)
    if not main.builder.is_empty:
        yield main.builder.trace(name, source)
    for owner, group in groups.items():
        agent = tree.spans[owner]
        caller = tree.enclosing(agent, TOOL)
        starter = tree.starters[owner]
        run = _Run(group, tree, main, agent.start)
        if not run.builder.is_empty:
            yield run.builder.trace(
                f"{name}/{agent.id}",
                source,
                task=run.delegated,
                parent=name if starter == _MAIN else f"{name}/{tree.spans[starter].id}",
                parent_call="" if caller is None else caller.call_id,
            )


class _Tree:
    """Spans by their ids, each once and in the order of their start, with their ancestors.

    Attributes
    ----------
    spans, ordered, roots
        The spans, by key and by start, and those of them that lie in no other.
    starters
        For agents with a run of their own, the agent in whose run they were started.
    """

    def __init__(self, spans: Iterable[Span], account: Account) -> None:
        self.starters: dict[Key, Key] = {}
        found: dict[Key, Span] = {}
        events: list[Span] = []
        for span in spans:
            if span.adds:
                events.append(span)
                continue
            first = found.setdefault(span.key, span)
            if span.place is None:
                continue
            if first is span:
                account.used()
            else:
                account.skipped("the same span again", span.place)
                last, other = (first, span) if first.end is not None else (span, first)
                last.fill(other)
                found[span.key] = last
        for key, event in _together(events).items():
            whole = found.setdefault(key, event)
            if whole is not event:
                whole.fill(event)
        self.spans = found
        self.ordered = sorted(found.values(), key=lambda one: (one.start is None, one.start or 0.0))
        self.roots = [one for one in self.ordered if (one.trace, one.parent) not in found]

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the spans around a span, the nearest first; a circle ends where it closes."""
        seen = {span.key}
        around = self.spans.get((span.trace, span.parent)) if span.parent else None
        while around is not None and around.key not in seen and len(seen) < MAX_ANCESTORS:
            yield around
            seen.add(around.key)
            around = self.spans.get((around.trace, around.parent)) if around.parent else None

    def enclosing(self, span: Span, kind: str) -> Span | None:
        """Return the nearest span of a kind around a span."""
        return next((one for one in self.ancestors(span) if one.kind == kind), None)

    def groups(self) -> dict[Key, list[Span]]:
        """Return the spans of every run by the agent whose run it is.

        An agent inside another has a run of its own if the outer one calls models or tools itself. One that only
        starts others has none: what they do is its run.
        """
        nearest = {
            one.key: one if one.kind == SUBAGENT else self.enclosing(one, SUBAGENT) for one in self.ordered
        }
        acting = {
            agent.key for one in self.ordered if one.kind in {MODEL, TOOL} and (agent := nearest[one.key])
        }
        owners = {one.key: self._owner(one, acting) for one in self.ordered if one.kind == SUBAGENT}
        groups: dict[Key, list[Span]] = {}
        for one in self.ordered:
            agent = nearest[one.key]
            groups.setdefault(_MAIN if agent is None else owners[agent.key], []).append(one)
        return groups

    def _owner(self, agent: Span, acting: set[Key]) -> Key:
        around = [one.key for one in self.ancestors(agent) if one.kind == SUBAGENT and one.key in acting]
        outer = around[0] if len(around) > 1 else _MAIN
        if agent.key not in acting or not around:
            return outer
        self.starters[agent.key] = outer
        return agent.key


class _Event(NamedTuple):
    """What happened in a run at a time: words of the user, a message of the agent, or a call nobody proposed."""

    time: float
    number: int
    words: str = ""
    message: Message | None = None
    calls: tuple[_Call, ...] = ()


class _Call:
    """A call and all that is told of it."""

    __slots__ = ("call", "result", "spans", "time", "trace")

    def __init__(self, call: ToolCall, trace: str, time: float) -> None:
        self.call, self.trace, self.time = call, trace, time
        self.spans: list[Span] = []
        self.result: Result | None = None


class _Run:
    """One run, put together."""

    def __init__(
        self, spans: list[Span], tree: _Tree, main: _Run | None = None, start: float | None = None
    ) -> None:
        self.builder: RunBuilder = RunBuilder("" if main is None else main.builder.said_before(start))
        self.delegated = ""
        self.history: History = History(None if main is None else main.history)
        self._tree = tree
        self._inherited = None if main is None else main.builder.words
        self._heard_in: set[str] = set()
        self._tools: Any = None
        self._events: list[_Event] = []
        self._clock = 0.0
        self._calls = _Calls()
        for span in spans:
            if span.kind == MODEL:
                self._model_call(span)
            elif span.kind == WORDS and isinstance(span.inputs, str):
                self._hear(span.inputs, span)
            elif span.kind == WORDS:
                self.builder.unread += 1
        if main is None:
            self._hear_agents(spans)
        for span in spans:
            if span.kind == TOOL:
                self._tool(span)
        self._events.sort(key=lambda event: event[:2])
        for event in self._events:
            self._replay(event)
        self.builder.unread += self.history.unread
        if spans and self._has_answered(spans[0]):
            self.builder.spoke()

    def _has_answered(self, outermost: Span) -> bool:
        """Return whether the span around all others says that the agent came to its end and what it answered."""
        ended = outermost.end is not None and outermost.error is None and outermost.outputs is not None
        return ended and outermost.kind in {SUBAGENT, OTHER} and len(self._tree.roots) == 1

    def _at(self, time: float | None, **what: Any) -> None:
        self._clock = self._clock if time is None else time
        self._events.append(_Event(self._clock, len(self._events), **what))

    def _hear(self, words: str, span: Span) -> None:
        """Take words of the user; a subagent's prompts are words of the agent that started it."""
        if self._inherited is None:
            self._heard_in.add(span.trace)
            self._at(span.start, words=words)
        elif words not in self._inherited:
            self.delegated = self.delegated or words

    def _model_call(self, span: Span) -> None:
        outer = self._tree.enclosing(span, MODEL)
        if outer is not None and outer.outputs is not None:
            return  # a client's span inside a framework's: the same call again
        self.builder.unread += span.outputs is None and span.error is None
        for message in self.history.fresh(span.inputs):
            self._message(message, span, span.start, came_out=False)
        for message in self._content(span.outputs, AGENT):
            message.role = AGENT
            self.history.tell(message)
            self._message(message, span, span.start if span.end is None else span.end, came_out=True)
        self.builder.model = self.builder.model or span.model or self.history.model
        for tools in (span.tools, self.history.tools):
            if tools and tools != self._tools:
                self._tools = tools
                self.builder.offers(tools_of(tools.whole() if isinstance(tools, Flat) else tools))

    def _content(self, value: object, role: str) -> list[Message]:
        read, whole = decoded(value.whole() if isinstance(value, Flat) else value)
        found = messages_of(read, role)
        if isinstance(read, dict):
            self.builder.offers(tools_of(read))
            if not self.builder.model and isinstance(name := read.get("model"), str):
                self.builder.model = name
        self.builder.unread += not whole or (not found and read not in _NOTHING)
        return found

    def _message(self, message: Message, span: Span, time: float | None, *, came_out: bool) -> None:
        self.builder.offers(message.tools)
        if message.role == AGENT:
            at = self._clock if time is None else time
            calls = self._calls.propose(message, span, at, came_out=came_out)
            self._at(time, message=message, calls=calls)
        elif message.role == USER and message.text:
            self._hear(message.text, span)
        for result in message.results:
            self._calls.answer(result)

    def _hear_agents(self, spans: list[Span]) -> None:
        """Take the user's words from what went into agents, in traces whose model calls tell of none."""
        for span in spans:
            is_root = (span.trace, span.parent) not in self._tree.spans
            if span.inputs is None or span.trace in self._heard_in:
                continue
            if span.kind == SUBAGENT or (span.kind == OTHER and is_root):
                for message in self._content(span.inputs, USER):
                    if message.role == USER and message.text:
                        self._hear(message.text, span)

    def _tool(self, span: Span) -> None:
        call = self._calls.join(span, self._tree)
        if call is not None:
            self._at(span.start, calls=(call,))

    def _replay(self, event: _Event) -> None:
        if event.words:
            self.builder.user(event.words, event.time)
        if event.calls or (event.message is not None and not event.message.calls):
            self.builder.agent()
        for one in event.calls:
            _tell(one, self.builder, event.time)


def _tell(one: _Call, builder: RunBuilder, time: float) -> None:
    """Tell a call with what its message and its spans say of it."""
    starts = [time or None, *[span.start for span in one.spans]]
    found = builder.add(one.call, min((start for start in starts if start is not None), default=None))
    if one.result is not None:
        found.answer(one.result.text, one.result.error, refused_by=one.result.refused_by)
    refused = [span for span in one.spans if span.refused_by is not None]
    if refused and refused[-1].refused_by:
        found.answer(None, refused[-1].error or "refused", refused[-1].end, refused[-1].refused_by)
        return
    for span in one.spans:
        read = decoded(span.outputs)[0]
        text = None if read is None else text_of_result(read, span.outputs)
        # What was refused at first and let through in the end did not fail.
        error = None if span.refused_by else span.error
        found.answer(text, text if error is None and has_failed(read) else error, span.end)
    if found.is_open and any(span.end is not None for span in one.spans):
        found.misses(RESULT)


class _Calls:
    """The calls of a run, found again by id, by name and arguments, or by name.

    Some providers number the calls of every answer anew, so an id may stand for several calls, one after the other.
    """

    def __init__(self) -> None:
        self._by_id: defaultdict[str, list[_Call]] = defaultdict(list)
        self._all: list[_Call] = []
        self._like: defaultdict[tuple[object, ...], deque[_Call]] | None = None
        self._unanswered: deque[_Call] = deque()
        self._of_span: dict[Key, _Call] = {}

    def propose(self, message: Message, span: Span, time: float, *, came_out: bool) -> tuple[_Call, ...]:
        """Take the calls of a message, and return those that were not known.

        Parameters
        ----------
        came_out
            Whether the message came out of the model in this call of it, or was part of its history.
        """
        found = []
        for call in message.calls:
            known = self._by_id[call.id] if call.id else []
            if known and _is_same(call, known[-1].call) and not (came_out and known[-1].result is not None):
                continue
            if not came_out and any(_is_same(call, one.call) for one in known[-MAX_LOOKED_AT:]):
                continue
            one = _Call(call, span.trace, time)
            (known if call.id else self._unanswered).append(one)
            self._all.append(one)
            found.append(one)
        return tuple(found)

    def answer(self, result: Result) -> None:
        """Take a result; one without an id answers the first call without one."""
        known = self._by_id.get(result.call_id)
        if known:
            found: _Call | None = known[-1]
        else:
            found = self._unanswered.popleft() if self._unanswered else None
        if found is not None and found.result is None:
            found.result = result

    def join(self, span: Span, tree: _Tree) -> _Call | None:
        """Join a tool's span to its call; return a new call if nobody proposed it."""
        arguments = arguments_of(span.inputs)
        found = self._named(span) or self._around(span, tree) or self._alike(span, arguments)
        new = found is None
        if found is None:
            found = _Call(call_of(span.name, arguments, span.call_id), span.trace, span.start or 0.0)
            if span.call_id:
                self._by_id[span.call_id].append(found)
        elif found.call.malformed is not None and isinstance(arguments, dict):
            found.call = call_of(found.call.name, arguments, found.call.id)
        found.spans.append(span)
        self._of_span[span.key] = found
        return found if new else None

    def _named(self, span: Span) -> _Call | None:
        """Return the latest call of the span's id that was proposed before the span began."""
        known = self._by_id.get(span.call_id) if span.call_id else None
        if not known:
            return None
        before = (
            len(known) if span.start is None else bisect_right(known, span.start, key=lambda one: one.time)
        )
        return known[max(before - 1, 0)]

    def _around(self, span: Span, tree: _Tree) -> _Call | None:
        """Return the call of the tool's span around another that tells of the same call again."""
        for outer in tree.ancestors(span):
            if outer.kind == TOOL:
                is_other = outer.name != span.name and not span.repeats
                is_other = is_other or bool(span.call_id and outer.call_id and span.call_id != outer.call_id)
                return None if is_other else self._of_span.get(outer.key)
            if outer.kind in {MODEL, SUBAGENT}:
                return None
        return None

    def _alike(self, span: Span, arguments: object) -> _Call | None:
        """Return the first call of that name without a span, with the same arguments if there is one."""
        if self._like is None:
            self._like = defaultdict(deque)
            for one in self._all:
                has_id = bool(one.call.id)
                self._like[one.trace, one.call.name, has_id].append(one)
                self._like[one.trace, one.call.name, has_id, _canonical(one.call.args)].append(one)
        ids = (False,) if span.call_id else (True, False)
        for more in ((_canonical(arguments),), ()):
            for has_id in ids:
                waiting = self._like.get((span.trace, span.name, has_id, *more), ())
                while waiting:
                    found = waiting.popleft()
                    if not found.spans:
                        return found
        return None


def _is_same(call: ToolCall, other: ToolCall) -> bool:
    if call.name != other.name:
        return False
    return call.args == other.args or call.malformed is not None or other.malformed is not None


def _canonical(arguments: object) -> bytes:
    return msgspec.json.encode(arguments, order="deterministic")
