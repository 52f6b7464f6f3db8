"""Pieces of work done by processes that were forked from this one, and so share what it had read.

Runs are far larger than what is computed of them: a forked process sees the runs as they are, is told which piece is
its own, and sends back the result. Where processes cannot be forked safely, the work is done here, piece after piece.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import active_children, get_all_start_methods, get_context
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")

_shared: list[Any] = []
"""What the processes about to be forked will see; the last entry is that of the innermost `Workers`."""


def usable_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers(Generic[S]):
    """Processes to hand pieces of work to; a context.

    Parameters
    ----------
    shared
        What every piece is given first. Each process has its own copy, as it was when the first piece was handed out.
    processes
        How many; with 1 everything is done in this process, when its result is asked for.
    """

    def __init__(self, shared: S, processes: int = 1) -> None:
        self.shared = shared
        self._executor: ProcessPoolExecutor | None = None
        self._others = set(active_children())
        if processes > 1 and "fork" in get_all_start_methods() and sys.platform != "darwin":
            self._executor = ProcessPoolExecutor(
                processes, mp_context=get_context("fork"), initializer=_leave_interrupts_to_the_parent
            )

    def submit(
        self, work: Callable[Concatenate[S, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Callable[[], T]:
        """Hand out a piece of work; what is returned gives its result, or raises its error, when called.

        Parameters
        ----------
        work
            A function of a module: it is named to the other process, not sent.
        """
        if self._executor is None:
            return lambda: work(self.shared, *arguments, **options)
        with warnings.catch_warnings():
            # Numerical libraries keep threads of their own, which hold no lock that a forked process would need.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            future: Future[T | _Raised] = self._executor.submit(_do, work, arguments, options)
        return lambda: _result(future)

    def __enter__(self) -> Self:
        _shared.append(self.shared)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _shared.pop()
        if self._executor is None:
            return
        if error is not None:
            for child in set(active_children()) - self._others:
                child.terminate()
        self._executor.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error on its way between processes: by its parts, for its class may ask for more than a message."""

    kind: type[Exception]
    arguments: tuple[object, ...]
    attributes: dict[str, object]

    def error(self) -> Exception:
        error = self.kind.__new__(self.kind, *self.arguments)
        error.args = self.arguments
        error.__dict__.update(self.attributes)
        return error


def _do(work: Callable[..., T], arguments: tuple[Any, ...], options: dict[str, Any]) -> T | _Raised:
    try:
        return work(_shared[-1], *arguments, **options)
    except Exception as error:  # noqa: BLE001  # raised again where the result is asked for
        return _Raised(type(error), error.args, error.__dict__)


def _result(future: Future[T | _Raised]) -> T:
    result = future.result()
    if isinstance(result, _Raised):
        raise result.error()
    return result


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
