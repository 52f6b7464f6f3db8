"""An event loop in a thread of its own.

So a judge can be asked from anywhere: by code that waits, by code that awaits on a loop of its own, and by several
threads at once.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

    Result = TypeVar("Result")

_PATIENCE = 10.0


class Background:
    """Runs coroutines; the thread starts with the first of them and ends with `close`, or with the process."""

    __slots__ = ("__weakref__", "_finalizer", "_lock", "_loop")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and return what it returns; if the caller is interrupted, it is cancelled."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def wait_async(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and return what it returns, without blocking the caller's own loop."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Stop the loop and its thread."""
        with self._lock:
            finalizer, self._finalizer, self._loop = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    @property
    def started(self) -> bool:
        """Whether the loop is running."""
        return self._loop is not None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name="safetydrift-judge", daemon=True)
                thread.start()
                self._finalizer = weakref.finalize(self, _stop, loop, thread)
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    if threading.current_thread() is not thread:
        thread.join(_PATIENCE)
