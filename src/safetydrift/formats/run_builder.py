"""Putting a run together from records that tell of it in order: words, calls, and what came back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from safetydrift.trace import Ending, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.trace import ToolCall

ARGUMENTS, RESULT = "arguments", "result"
"""What a step may have unread (`Step.unread`)."""
MAX_TOOLS = 4096
"""Names of tools on offer that are kept of one run."""
FINISHES = frozenset({"finish", "task_complete", "submit", "final_answer", "attempt_completion"})
"""Tools by which agents say that they are done."""
_CUT = 64


class Proposal:
    """A call that is told, and what is known of it so far."""

    __slots__ = ("call", "ended", "error", "refused_by", "result", "said", "started", "turn", "unread")

    def __init__(self, call: ToolCall, turn: int, said: str, started: float | None) -> None:
        self.call, self.turn, self.said, self.started = call, turn, said, started
        self.result: str | None = None
        self.error: str | None = None
        self.ended: float | None = None
        self.refused_by = ""
        self.unread: tuple[str, ...] = (ARGUMENTS,) if lacks_arguments(call) else ()

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of what came back."""
        return self.result is None and self.error is None and RESULT not in self.unread

    def answer(
        self, result: str | None, error: str | None = None, ended: float | None = None, refused_by: str = ""
    ) -> None:
        """Add what came back; what is known already stands."""
        if refused_by:
            self.refused_by, self.error, self.result = refused_by, error or result or "refused", None
        elif not self.refused_by:
            self.result = result if self.result is None else self.result
            self.error = error if self.error is None else self.error
            if result is not None and is_cut(result):
                self.misses(RESULT)
        self.ended = ended if self.ended is None else self.ended

    def misses(self, what: str) -> None:
        """Mark a part that existed and is not in the record, or only in part."""
        if what not in self.unread:
            self.unread = (*self.unread, what)

    def step(self) -> Step:
        """Return the step as it is known now."""
        return Step(
            self.call,
            self.result,
            self.error,
            self.turn,
            self.said,
            self.started,
            self.ended,
            self.refused_by,
            self.unread,
        )


def is_cut(text: str) -> bool:
    """Return whether a text says at its end that the rest was left out."""
    return "truncated" in text[-_CUT:].lower()


def lacks_arguments(call: ToolCall) -> bool:
    """Return whether the arguments of a call are not in the record, or were cut off there."""
    if not call.malformed:
        return call.malformed is not None
    try:
        msgspec.json.decode(call.malformed)
    except msgspec.DecodeError as error:
        return call.malformed[0] == "{" and "truncated" in str(error)
    except RecursionError:
        return False
    return False


class RunBuilder:
    """Takes a run as its source tells it.

    Attributes
    ----------
    model
        The first model named.
    tools
        Names of the tools on offer, in order.
    prompt, messages
        What the user said first, and how many messages they sent.
    heard
        What the user had said before the run began, where it goes on from another.
    turn
        Index of the agent's latest message; -1 before the first.
    unread
        How many messages or model calls could not be read.
    """

    def __init__(self, heard: str = "") -> None:
        self.model = ""
        self.tools: dict[str, None] = {}
        self.prompt = heard
        self.messages = 0
        self.turn = -1
        self.unread = 0
        self.proposals: list[Proposal] = []
        self._said: list[str] = [heard] if heard else []
        self._all_said: list[tuple[float, str]] = [(0.0, heard)] if heard else []
        self._by_id: dict[str, Proposal] = {}
        self._first_open = 0
        self._agent_spoke_last = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was told that an agent or a user did."""
        return self.turn < 0 and not self.proposals and not self.messages

    @property
    def words(self) -> frozenset[str]:
        """What the user said, message by message."""
        return frozenset(text for _, text in self._all_said)

    def said_before(self, time: float | None) -> str:
        """Return what the user had said at a time; all of it where the time is not known."""
        return "\n".join([text for at, text in self._all_said if time is None or at <= time])

    def user(self, text: str, at: float | None = None) -> None:
        """Tell what the user said."""
        self.messages += 1
        self.prompt = self.prompt or text
        self._said.append(text)
        self._all_said.append((at or 0.0, text))
        self._agent_spoke_last = False

    def agent(self) -> None:
        """Tell that the agent began another message."""
        self.turn += 1
        self._first_open = len(self.proposals)
        self._agent_spoke_last = True

    def offers(self, tools: Iterable[object]) -> None:
        """Tell of tools on offer."""
        for name in tools:
            if isinstance(name, str) and len(self.tools) < MAX_TOOLS:
                self.tools[name] = None

    def call(self, call: ToolCall, started: float | None = None) -> Proposal:
        """Tell a call of a source whose ids are its alone: one with a known id is the same again."""
        known = self._by_id.get(call.id) if call.id else None
        if known is None:
            return self.add(call, started)
        if known.call.malformed is not None and call.malformed is None:
            known.call, known.unread = call, tuple(x for x in known.unread if x != ARGUMENTS)
        return known

    def add(self, call: ToolCall, started: float | None = None) -> Proposal:
        """Tell a call that was not told before, whatever its id; some providers number the calls of each answer."""
        found = Proposal(call, max(self.turn, 0), "\n".join(self._said), started)
        self._said.clear()
        self.proposals.append(found)
        if call.id:
            self._by_id[call.id] = found
        self._agent_spoke_last = False
        return found

    def knows(self, call_id: str) -> bool:
        """Return whether a call of this id was told."""
        return call_id in self._by_id

    def find(self, call_id: str | None) -> Proposal | None:
        """Return the call that a result answers: by id, else the first of the latest message that has none."""
        if call_id and call_id in self._by_id:
            return self._by_id[call_id]
        while self._first_open < len(self.proposals) and not self.proposals[self._first_open].is_open:
            self._first_open += 1
        if self._first_open == len(self.proposals):
            return None
        found = self.proposals[self._first_open]
        return None if call_id and found.call.id else found

    def spoke(self) -> None:
        """Tell that the agent said something, after its calls."""
        self._agent_spoke_last = True

    def cut_off(self) -> None:
        """Tell that the run was broken off here."""
        self._agent_spoke_last = False

    def trace(
        self,
        name: str,
        source: str,
        *,
        task: str = "",
        parent: str = "",
        parent_call: str = "",
        ending: Ending | None = None,
    ) -> Trace:
        """Return the run. Unless said otherwise it is complete if the agent spoke last."""
        finished = bool(self.proposals) and self.proposals[-1].call.name in FINISHES
        spoke = Ending.COMPLETED if self._agent_spoke_last or finished else Ending.CENSORED
        return Trace(
            name,
            tuple([one.step() for one in self.proposals]),
            source=source,
            task=task,
            model=self.model,
            prompt=self.prompt,
            ending=spoke if ending is None else ending,
            tools=tuple(self.tools),
            parent=parent,
            parent_call=parent_call,
            messages=self.messages,
            unread=self.unread,
        )
