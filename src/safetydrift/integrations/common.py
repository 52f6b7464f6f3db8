"""What the adapters of agent frameworks have in common: a gate between a framework and the guard.

A gate knows which run a call belongs to, opens it with what the user said, asks the guard, and tells it what came of
the call. Nothing here raises because of what a model wrote, or because the guard cannot work: what cannot be judged
gets what the policy says of it, and that is a refusal unless it says otherwise.
"""

from __future__ import annotations

import json
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from weakref import ref

from safetydrift.guard.asynchronous import off_loop
from safetydrift.guard.wrapping import running_now, warned
from safetydrift.integrations.claude_code import as_read
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard

MAX_MALFORMED = 4096
"""Characters that are kept of arguments that cannot be decoded."""
_MAX_RUNS = 16_384
_MAX_WARNINGS = 4096


class Gate:
    """A guard as an adapter uses it.

    Parameters
    ----------
    guard
        Who decides.
    key
        The run that every call belongs to. If empty: that of the surrounding `Guard.running` block, or what the
        framework calls the run, or else a run of the adapter's own.
    task
        What the user asked for, where the framework does not show it.
    about
        What else the run is opened with: ``category``, ``pipeline``, ``parent``.
    """

    def __init__(self, guard: Guard, key: str = "", task: str = "", **about: str) -> None:
        self.guard = guard
        self._given, self._task, self._about = key, task, about
        self._own = ""
        self._heard: dict[str, int] = {}
        self._warnings: dict[tuple[str, str], str] = {}
        self._runs: dict[int, tuple[ref[Any], str]] = {}

    # -- runs ---------------------------------------------------------------------------------------------

    def key(self, native: str = "") -> str:
        """Return the run that a call belongs to now.

        Parameters
        ----------
        native
            What the framework calls the run, if it has a name for it.
        """
        if self._given:
            return self._given
        key = running_now() or native
        if not key:
            self._own = key = self._own or f"run-{token_hex(8)}"
        return key

    def key_of(self, run: object, resumed: Callable[[], str] = str) -> str:
        """Return a name for a run that is known only by an object that lives as long as it does.

        Parameters
        ----------
        resumed
            Returns the name of the run that a new object goes on with; empty if there is none.
        """
        number = id(run)
        found = self._runs.get(number)
        if found is None:
            forget = self._runs.pop
            found = ref(run, lambda _: forget(number, None)), resumed() or f"run-{token_hex(8)}"
            self._runs[number] = found
        return found[1]

    def listen(self, key: str, said: Sequence[str] = ()) -> None:
        """Open a run with what the user said first, and take note of what he has said since; nothing raises.

        A run that cannot be opened is judged as one whose state is lost.

        Parameters
        ----------
        said
            All that the user has said so far, the oldest first.
        """
        try:
            self._listen(key, [text for text in said if text])
        except Exception:  # noqa: BLE001  # a store that fails must not let a call through by an error of ours
            self._heard.pop(key, None)

    def _listen(self, key: str, said: list[str]) -> None:
        guard, heard = self.guard, self._heard.get(key)
        if heard is None:
            task = self._task or (said.pop(0) if said else "")
            offset = 0 if self._task else bool(task)
            guard.session(key, task, **self._about)
            for text in said:
                guard.hear(key, text)
            if len(self._heard) >= _MAX_RUNS:
                self._heard.pop(next(iter(self._heard)))
            self._heard[key] = len(said) + offset
        elif len(said) > heard:
            guard.quiet(key)
            for text in said[heard:]:
                guard.hear(key, text)
            self._heard[key] = len(said)

    async def alisten(self, key: str, said: Sequence[str] = ()) -> None:
        """As `listen`, without blocking the loop."""
        await off_loop(self.guard, lambda: self.listen(key, said))

    # -- calls --------------------------------------------------------------------------------------------

    def propose(self, key: str, call: ToolCall, call_id: str, *, final: bool = True) -> Decision:
        """Return the decision about a call.

        Parameters
        ----------
        final
            Whether nobody else can be asked: a question that the guard's own approver does not answer counts then as
            one that nobody answered.
        """
        guard = self.guard
        decision = guard.propose(key, call, call_id)
        if final and decision.asks:
            decision = guard.answer(key, decision.call_id, None)
        return self._noted(decision)

    async def apropose(self, key: str, call: ToolCall, call_id: str, *, final: bool = True) -> Decision:
        """As `propose`, without blocking the loop."""
        guard = self.guard
        decision = await guard.apropose(key, call, call_id)
        if final and decision.asks:
            decision = await guard.aanswer(key, decision.call_id, None)
        return self._noted(decision)

    def _noted(self, decision: Decision) -> Decision:
        if decision.intervention is Intervention.WARN:
            if len(self._warnings) >= _MAX_WARNINGS:
                self._warnings.pop(next(iter(self._warnings)))
            self._warnings[decision.key, decision.call_id] = decision.reason
        return decision

    def warning(self, key: str, call_id: str) -> str:
        """Return the warning that goes with a call's result, once; empty if there is none."""
        return self._warnings.pop((key, call_id), "")

    def with_warning(self, key: str, call_id: str, result: str) -> str:
        """Return a call's result with its warning behind it, if there is one."""
        reason = self.warning(key, call_id)
        return warned(result, reason) if reason else result


def proposed(name: object, arguments: object, call_id: object = "") -> ToolCall:
    """Return a call from a name and arguments in any shape; what cannot be decoded is malformed.

    Parameters
    ----------
    arguments
        A table, or JSON text of one. Text that says a name twice is malformed: readers differ in which they believe.

    Examples
    --------
    >>> proposed("send", '{"to": "anna"}').args
    {'to': 'anna'}
    >>> proposed("send", '{"to": "anna", "to": "eve"}').malformed
    '{"to": "anna", "to": "eve"}'
    """
    decoded: Any = arguments
    if isinstance(arguments, str | bytes | bytearray):
        try:
            decoded = json.loads(arguments or "{}", object_pairs_hook=_once)
        except (ValueError, RecursionError):
            decoded = None
    call_id = call_id if isinstance(call_id, str) else ""
    if isinstance(decoded, dict):
        return ToolCall(str(name), decoded, id=call_id)
    raw = arguments if isinstance(arguments, str) else repr(arguments)
    return ToolCall(str(name), id=call_id, malformed=raw[:MAX_MALFORMED])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name is said twice")
    return table


def field(value: object, name: str) -> Any:
    """Return a field of a typed object or of a table; None if it has none."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def user_words(messages: Iterable[object]) -> list[str]:
    """Return what users say in messages, as typed objects or tables with a role and a content."""
    found = []
    for message in messages:
        if (field(message, "role") or field(message, "type")) in {"user", "human"}:
            content = field(message, "content")
            if isinstance(content, list):
                content = "\n".join(text for part in content if (text := _text_of(part)))
            if isinstance(content, str) and content:
                found.append(content)
    return found


def _text_of(part: object) -> str:
    if isinstance(part, str):
        return part
    kind, text = field(part, "type"), field(part, "text")
    return text if kind in {"text", "input_text"} and isinstance(text, str) else ""


def text_of(result: object) -> str:
    """Return a tool's result as the model reads it: of structured content, its texts one after the other."""
    if result is None or isinstance(result, str):
        return result or ""
    dump: Callable[..., Any] | None = getattr(result, "model_dump", None)
    if dump is not None:
        return as_read(dump(mode="json"))
    if isinstance(result, list):
        return as_read([one.model_dump(mode="json") if hasattr(one, "model_dump") else one for one in result])
    return as_read(result) if isinstance(result, dict) else str(result)
