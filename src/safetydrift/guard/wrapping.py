"""Guarding plain Python functions: they ask the guard before they run, and tell it what came of it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from functools import wraps
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from safetydrift.errors import CallRefusedError
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token

    from safetydrift.guard.asynchronous import AsyncGuard
    from safetydrift.guard.decision import Decision

_RUNNING: ContextVar[str] = ContextVar("safetydrift_run", default="")


def running_now() -> str:
    """Return the run of the surrounding `Guard.running` block; empty outside of one."""
    return _RUNNING.get()


class Running:
    """A block in which guarded functions belong to a run; for ``with`` and ``async with``."""

    def __init__(self, guard: AsyncGuard, key: str, task: str, options: dict[str, str]) -> None:
        self._guard, self.key = guard, key
        self._task, self._options = task, options
        self._token: Token[str] | None = None

    def __enter__(self) -> Self:
        self._guard.session(self.key, self._task, **self._options)
        self._token = _RUNNING.set(self.key)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _RUNNING.reset(self._token)

    async def __aenter__(self) -> Self:
        await self._guard.asession(self.key, self._task, **self._options)
        self._token = _RUNNING.set(self.key)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def wrap(
    guard: AsyncGuard, tools: Any, key: str = "", *, refusals: str = "raise", name: str = "", **session: str
) -> Any:
    """Return guarded callables in the shape they were given in.

    Parameters
    ----------
    guard
        Who decides.
    tools
        A callable, or a list, tuple or mapping of them. In a mapping, the keys are the tools' names.
    key
        The run they belong to; see `Guard.wrap`.
    refusals
        ``"raise"``: a refused call raises `CallRefusedError`. ``"return"``: it returns the reason as its result, for
        loops that hand results to the model as they are.
    name
        The name of a single callable, if not its own.
    session
        How the run is opened if it is not open: ``task``, ``category``, ``pipeline``, ``parent``.

    Raises
    ------
    TypeError
        If something among them cannot be called.
    """
    if refusals not in {"raise", "return"}:
        raise ValueError(f"refusals are raised or returned, not {refusals!r}")
    how = _How(guard, key, session, returns=refusals == "return")
    if isinstance(tools, Mapping):
        return {label: how.guarded(tool, str(label)) for label, tool in tools.items()}
    if isinstance(tools, list | tuple):
        return type(tools)([how.guarded(tool, "") for tool in tools])
    return how.guarded(tools, name)


class _How:
    """What the functions of one `wrap` share."""

    def __init__(self, guard: AsyncGuard, key: str, session: dict[str, str], *, returns: bool) -> None:
        self.guard, self.returns = guard, returns
        self._session = session
        self._given = key
        self._own = ""

    def key(self) -> str:
        """Return the run that a call belongs to now; one that was named here is opened when it is first needed."""
        surrounding = "" if self._given else _RUNNING.get()
        if surrounding:
            return surrounding
        if not self._own:
            own = self._given or f"run-{token_hex(8)}"
            self.guard.session(own, **self._session)
            self._own = own
        return self._own

    def guarded(self, tool: Any, name: str) -> Callable[..., Any]:
        if not callable(tool):
            raise TypeError(f"{tool!r} is no tool: it cannot be called")
        name = name or getattr(tool, "__name__", "") or type(tool).__name__
        self.guard.tools.add(name)
        signature = _signature(tool)
        if inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None)):  # noqa: B004
            return self._asynchronous(tool, name, signature)
        return self._synchronous(tool, name, signature)

    def _synchronous(
        self, tool: Callable[..., Any], name: str, signature: inspect.Signature | None
    ) -> Callable[..., Any]:
        @wraps(tool)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            guard = self.guard
            call = _call(name, signature, args, kwargs)
            key = self._key_or_lost()
            decision = guard.propose(key, call)
            if decision.asks:
                decision = guard.answer(key, decision.call_id, None)
            if not decision.allowed:
                return self._refusal(decision)
            try:
                result = tool(*args, **kwargs)
            except BaseException as error:
                guard.confirm(key, decision.call_id, error=error)
                raise
            guard.confirm(key, decision.call_id, result)
            return _with_warning(decision, result)

        return guarded

    def _asynchronous(
        self, tool: Callable[..., Any], name: str, signature: inspect.Signature | None
    ) -> Callable[..., Any]:
        @wraps(tool)
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            guard = self.guard
            call = _call(name, signature, args, kwargs)
            key = self._key_or_lost()
            decision = await guard.apropose(key, call)
            if decision.asks:
                decision = await guard.aanswer(key, decision.call_id, None)
            if not decision.allowed:
                return self._refusal(decision)
            try:
                result = await tool(*args, **kwargs)
            except BaseException as error:  # cancelled, too: it may have done half of it
                guard.confirm(key, decision.call_id, error=error)
                raise
            await guard.aconfirm(key, decision.call_id, result)
            return _with_warning(decision, result)

        return guarded

    def _key_or_lost(self) -> str:
        """Return the run, or a key that is not open if it cannot be opened: the policy decides what that means."""
        try:
            return self.key()
        except Exception:  # noqa: BLE001  # a store that fails must not let the call through by an error of ours
            return self._given or "run-not-opened"

    def _refusal(self, decision: Decision) -> str:
        if self.returns:
            return decision.reason
        raise CallRefusedError(decision)


def _signature(tool: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(tool)
    except (TypeError, ValueError):  # some built-in functions have none
        return None


def _call(
    name: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ToolCall:
    """Return a call with its arguments by name; those that do not fit are as good as undecodable."""
    if signature is None:
        return ToolCall(name, {str(number): value for number, value in enumerate(args)} | kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return ToolCall(name, {}, malformed="arguments that do not fit the tool")
    found = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name in found:
            found |= found.pop(parameter.name)
    return ToolCall(name, found)


def _with_warning(decision: Decision, result: Any) -> Any:
    """Return a result with the warning behind it, where it is a text; other results cannot carry one."""
    if decision.intervention is Intervention.WARN and isinstance(result, str):
        return warned(result, decision.reason)
    return result


def warned(result: str, reason: str) -> str:
    """Return a tool's result with a warning behind it."""
    return f"{result}\n\n[SafetyDrift: {reason}]"
