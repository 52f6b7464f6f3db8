"""Delivers what the outbox holds, each thing until it has arrived, later and later each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetydrift.service.runtime import Runtime


class Delivery:
    """Tells others.

    Parameters
    ----------
    runtime
        The worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def turn(self) -> None:
        """Deliver what is due."""

    async def close(self) -> None:
        """Let go of connections."""
