"""Rates with their intervals, and the counts of outcomes that the tables show."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from everyday.runs import Outcome

_Z = NormalDist().inv_cdf(0.975)


class Rate(NamedTuple):
    """So many hits out of a number of trials."""

    hits: int
    total: int

    @property
    def share(self) -> float:
        """The share; nan without trials."""
        return self.hits / self.total if self.total else nan

    def wilson(self) -> tuple[float, float]:
        """Return the Wilson score interval at 95 % (Wilson 1927); nan without trials."""
        if not self.total:
            return nan, nan
        n, p = self.total, self.share
        middle = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z / (1 + _Z * _Z / n) * sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if not self.total:
            return "-"
        low, high = self.wilson()
        return f"{100 * self.share:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed; nan without values."""
    if not values:
        return nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


class Counted:
    """What the outcomes of one group and variant add up to."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes = list(outcomes)
        self.runs = len(self.outcomes)
        self.calls = sum(outcome.calls for outcome in self.outcomes)
        marked = [{stop.intervention for stop in outcome.stops if stop.marked} for outcome in self.outcomes]
        self.stopped = Rate(sum(map(bool, marked)), self.runs)
        self.asked = Rate(sum("ask" in some for some in marked), self.runs)
        self.blocked = Rate(sum(not some.isdisjoint(("block", "suggest")) for some in marked), self.runs)
        self.interrupted_runs = Rate(sum(bool(outcome.stops) for outcome in self.outcomes), self.runs)
        stops = [stop for outcome in self.outcomes for stop in outcome.stops]
        self.interruptions = Rate(len(stops), self.calls)
        kinds = Counter(stop.intervention for stop in stops)
        self.asks = Rate(kinds["ask"], self.calls)
        self.blocks = Rate(kinds["block"] + kinds["suggest"], self.calls)
        others = sum(outcome.calls - outcome.marked for outcome in self.outcomes)
        self.around = Rate(sum(not stop.marked for stop in stops), others)
        clusters: defaultdict[str, bool] = defaultdict(bool)
        for outcome in self.outcomes:
            clusters[outcome.cluster or outcome.name] |= bool(outcome.stops)
        self.clusters = Rate(sum(clusters.values()), len(clusters))
        self.errors = sum(bool(stop.failed) for stop in stops)

    def plain(self) -> dict[str, object]:
        """Return the counts as plain data."""
        rates = {
            name: {"hits": rate.hits, "total": rate.total, "share": rate.share, "wilson": rate.wilson()}
            for name, rate in vars(self).items()
            if isinstance(rate, Rate)
        }
        times = {
            f"{name}_p{percent}": quantile(
                [one for outcome in self.outcomes for one in getattr(outcome, name)], percent / 100
            )
            for name in ("seconds", "cpu")
            for percent in (50, 99)
        }
        return {"runs": self.runs, "calls": self.calls, "guard_errors": self.errors, **times, **rates}
