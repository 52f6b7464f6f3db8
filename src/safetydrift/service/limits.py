"""How much anybody may ask: buckets that fill at a steady rate, one per token or address, in each worker."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.service.settings import Limits

MAX_BUCKETS = 16_384


class Buckets:
    """Buckets of requests by name.

    Parameters
    ----------
    rate, size
        Requests per second, and how many may come at once.
    clock
        Seconds.

    Examples
    --------
    >>> seconds = iter([0.0, 0.0, 0.0, 1.0])
    >>> buckets = Buckets(1.0, 2.0, lambda: next(seconds))
    >>> [buckets.take("anna") for _ in range(4)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, size: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._size, self._clock = rate, size, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Return 0 if a request may be made now, else the seconds until one may."""
        now = self._clock()
        level, at = self._levels.pop(name, (self._size, now))
        level = min(self._size, level + (now - at) * self._rate)
        wait = 0.0 if level >= 1.0 else (1.0 - level) / self._rate
        if len(self._levels) >= MAX_BUCKETS:
            del self._levels[next(iter(self._levels))]
        self._levels[name] = (level - 1.0 if wait == 0.0 else level, now)
        return wait


class Limiter:
    """The bounds of a worker.

    Parameters
    ----------
    limits
        As the settings say.
    """

    def __init__(self, limits: Limits) -> None:
        self.calls = Buckets(limits.calls_per_second, limits.burst)
        self.sign_ins = Buckets(limits.sign_ins_per_minute / 60.0, limits.sign_ins_per_minute)
        self.streams = limits.streams
