"""A rate that carries its counts, so that no table shows a share without saying of how many; results as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import nan, sqrt
from statistics import NormalDist
from typing import Any


@dataclass(frozen=True, slots=True)
class Rate:
    """Hits out of a total.

    Parameters
    ----------
    hits, total
        Non-negative counts; hits is at most total.

    Examples
    --------
    >>> str(Rate(36, 38))
    '36/38 = 94.7 % [82.7, 98.5]'
    >>> Rate(0, 0).value
    nan
    """

    hits: int
    total: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.total:
            raise ValueError(f"hits must lie between 0 and the total, got {self.hits} of {self.total}")

    @property
    def value(self) -> float:
        """The share, from 0 to 1; undefined, and therefore nan, for a total of 0."""
        return self.hits / self.total if self.total else nan

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the Wilson score interval; (0, 1) for a total of 0.

        Notes
        -----
        Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
        """
        if not self.total:
            return 0.0, 1.0
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        n, share = self.total, self.value
        centre = share + z * z / (2 * n)
        spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        scale = 1 + z * z / n
        low = 0.0 if self.hits == 0 else (centre - spread) / scale
        high = 1.0 if self.hits == n else (centre + spread) / scale
        return low, high

    def as_dict(self) -> dict[str, float | int]:
        """Return counts, share and interval as plain data."""
        low, high = self.interval()
        return {"hits": self.hits, "total": self.total, "value": self.value, "low": low, "high": high}

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.hits + other.hits, self.total + other.total)

    def __str__(self) -> str:
        if not self.total:
            return "0/0"
        low, high = self.interval()
        return f"{self.hits:,}/{self.total:,} = {self.value:.1%} [{100 * low:.1f}, {100 * high:.1f}]".replace(
            "%", " %"
        )


def plain(value: object) -> Any:
    """Return results as plain data, for scripts.

    A result becomes a mapping of its fields by name, unless it has a method ``as_dict`` that says it better.
    """
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {f"{key:g}" if isinstance(key, float) else str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    return value.value if isinstance(value, Enum) else value
