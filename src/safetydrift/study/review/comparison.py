"""How far two judges of the same calls agree: in each dimension, over all and apart by source and by layer.

The judges are a reviewer and the program, or two reviewers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.evaluation.rate import Rate
from safetydrift.study.review.kappa import SEED, Kappa, Weights, cohen_kappa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.study.review.sheets import Decision, Sheet

UNKNOWN = "?"
"""Stands for a source or layer that is not known."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of a call.

    Parameters
    ----------
    levels
        Level by dimension, where the judge says one.
    kinds
        Kinds of violation; None where the judge says nothing about them.
    alternatives
        Levels by dimension that the judge would accept too.
    """

    levels: Mapping[str, str]
    kinds: frozenset[str] | None = None
    alternatives: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def accepts(self, dimension: str, level: str) -> bool:
        """Return whether the judge gives or would accept a level."""
        return level == self.levels[dimension] or level in self.alternatives.get(dimension, ())


@dataclass(frozen=True, slots=True)
class Pair:
    """One call as two judges see it.

    Parameters
    ----------
    id, source, layer, tool
        Which call, and which layer of the program decided its effect (`UNKNOWN` where that is not known).
    first, second
        The reviewer, and the program or another reviewer.
    unsure
        Whether the reviewer, or either of them, was.
    remark
        What they remarked.
    stands_for
        The stratum it was drawn from and how many calls that has; None where that is not known.
    """

    id: str
    source: str
    layer: str
    tool: str
    first: Judgement
    second: Judgement
    unsure: bool = False
    remark: str = ""
    stands_for: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LevelAgreement:
    """Agreement in one dimension, over some calls.

    Parameters
    ----------
    levels
        The scale, lowest first.
    table
        Calls by the first judge's level (row) and the second's (column).
    same
        Calls on which they agree.
    same_when_sure
        Those among them that nobody was unsure of.
    accepted
        Calls on which one of them would at least accept what the other says.
    kappa, weighted_kappa
        Agreement beyond chance: every disagreement counted alike, or by the square of its distance.
    """

    levels: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    same: Rate
    same_when_sure: Rate
    accepted: Rate
    kappa: Kappa
    weighted_kappa: Kappa

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain data."""
        return {
            "levels": self.levels,
            "table": self.table,
            "same": self.same.as_dict(),
            "same_when_sure": self.same_when_sure.as_dict(),
            "accepted": self.accepted.as_dict(),
            "kappa": self.kappa.as_dict(),
            "weighted_kappa": self.weighted_kappa.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A call on which two judges differ: by dimension, what the first and the second said."""

    pair: Pair
    levels: dict[str, tuple[str, str]]
    kinds: tuple[frozenset[str], frozenset[str]] | None

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "id": self.pair.id,
            "source": self.pair.source,
            "layer": self.pair.layer,
            "tool": self.pair.tool,
            "levels": self.levels,
            "kinds": None if self.kinds is None else [sorted(kinds) for kinds in self.kinds],
            "unsure": self.pair.unsure,
            "remark": self.pair.remark,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two judges of the same calls.

    Parameters
    ----------
    pairs
        The calls both have seen, whatever was decided.
    scales
        Levels by dimension.
    judges
        What the two are called.
    seed
        Of the bootstrap.
    """

    pairs: tuple[Pair, ...]
    scales: Mapping[str, tuple[str, ...]]
    judges: tuple[str, str] = ("reviewer", "program")
    seed: int = SEED

    def agreement(self, dimension: str, pairs: Iterable[Pair] | None = None) -> LevelAgreement:
        """Return the agreement in a dimension, over those pairs (all by default) in which both give a level."""
        levels = self.scales[dimension]
        table = np.zeros((len(levels), len(levels)), dtype=np.int64)
        sure, accepted = Rate(0, 0), Rate(0, 0)
        for pair in self._judged(dimension, self.pairs if pairs is None else pairs):
            one, other = pair.first.levels[dimension], pair.second.levels[dimension]
            table[levels.index(one), levels.index(other)] += 1
            accepts = pair.first.accepts(dimension, other) or pair.second.accepts(dimension, one)
            accepted += Rate(accepts, 1)
            if not pair.unsure:
                sure += Rate(one == other, 1)
        return LevelAgreement(
            levels,
            tuple(tuple(row) for row in table.tolist()),
            Rate(int(np.trace(table)), int(table.sum())),
            sure,
            accepted,
            cohen_kappa(table, Weights.EQUAL, seed=self.seed),
            cohen_kappa(table, Weights.QUADRATIC, seed=self.seed),
        )

    def by_source(self, dimension: str) -> dict[str, LevelAgreement]:
        """Return the agreement in a dimension by source."""
        return self._apart(dimension, lambda pair: pair.source or UNKNOWN)

    def by_layer(self, dimension: str) -> dict[str, LevelAgreement]:
        """Return the agreement in a dimension by the layer that decided the program's effect."""
        return self._apart(dimension, lambda pair: pair.layer or UNKNOWN)

    def of_all_calls(self, dimension: str) -> float:
        """Estimate the share of all calls that were drawn from on which the two would agree.

        A sample shows rare tools more often than they are called; here each stratum counts as often as it has calls.
        Strata of which no call was judged are left out. nan where it is not known what the calls stand for.
        """
        judged: defaultdict[tuple[int, int], list[bool]] = defaultdict(list)
        for pair in self._judged(dimension, self.pairs):
            if pair.stands_for is None:
                return nan
            judged[pair.stands_for].append(pair.first.levels[dimension] == pair.second.levels[dimension])
        total = sum(calls for _, calls in judged)
        same = sum(calls * sum(agreed) / len(agreed) for (_, calls), agreed in judged.items())
        return same / total if total else nan

    @property
    def everywhere(self) -> Rate:
        """Of the calls judged by both in every dimension, those on which they agree in all of them."""
        whole = [
            pair
            for pair in self.pairs
            if self.scales.keys() <= pair.first.levels.keys() & pair.second.levels.keys()
        ]
        same = sum(
            all(pair.first.levels[name] == pair.second.levels[name] for name in self.scales) for pair in whole
        )
        return Rate(same, len(whole))

    def kinds(self) -> dict[str, LevelAgreement]:
        """Return, by kind of violation, how far the two agree whether a call would complete it."""
        both = [pair for pair in self.pairs if None not in {pair.first.kinds, pair.second.kinds}]
        if not both:
            return {}
        asked = Comparison(
            tuple(_by_kind(pair) for pair in both), dict.fromkeys(KINDS, ("no", "yes")), seed=self.seed
        )
        return {kind: asked.agreement(kind) for kind in KINDS}

    def disagreements(self) -> list[Disagreement]:
        """Return the calls on which the two differ, in their order."""
        found = []
        for pair in self.pairs:
            one, other = pair.first, pair.second
            levels = {
                name: (one.levels[name], other.levels[name])
                for name in self.scales
                if one.levels.get(name, other.levels.get(name))
                != other.levels.get(name, one.levels.get(name))
            }
            kinds = (
                (one.kinds, other.kinds)
                if one.kinds is not None and other.kinds is not None and one.kinds != other.kinds
                else None
            )
            if levels or kinds:
                found.append(Disagreement(pair, levels, kinds))
        return found

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain data."""
        return {
            "judges": self.judges,
            "calls": len(self.pairs),
            "unsure": sum(pair.unsure for pair in self.pairs),
            "intervals": {
                "same": "Wilson, 95 %",
                "analytic": "large-sample, 95 % (Fleiss, Cohen and Everitt 1969)",
                "bootstrap": f"percentile over resampled calls, 95 %, seed {self.seed}",
            },
            "dimensions": {
                name: {
                    "all": self.agreement(name).as_dict(),
                    "of_all_calls": self.of_all_calls(name),
                    "by_source": _plain(self.by_source(name)),
                    "by_layer": _plain(self.by_layer(name)),
                }
                for name in self.scales
            },
            "every_dimension": self.everywhere.as_dict(),
            "kinds": _plain(self.kinds()),
            "disagreements": [one.as_dict() for one in self.disagreements()],
        }

    def _judged(self, dimension: str, pairs: Iterable[Pair]) -> list[Pair]:
        return [pair for pair in pairs if dimension in pair.first.levels and dimension in pair.second.levels]

    def _apart(self, dimension: str, part: Callable[[Pair], str]) -> dict[str, LevelAgreement]:
        parts = Counter(part(pair) for pair in self._judged(dimension, self.pairs))
        return {
            name: self.agreement(dimension, [pair for pair in self.pairs if part(pair) == name])
            for name in sorted(parts)
        }


def judgement(decision: Decision) -> Judgement:
    """Return what a reviewer says."""
    return Judgement(decision.levels, decision.kinds, decision.alternatives)


def compare_sheets(first: Sheet, second: Sheet, scales: Mapping[str, Sequence[str]]) -> Comparison:
    """Return how far two reviewers agree on the calls that stand on both their sheets."""
    pairs = []
    for name, one in first.decisions.items():
        other = second.decisions.get(name)
        if other is not None and one.decided and other.decided:
            pairs.append(
                Pair(
                    name,
                    one.source or other.source,
                    UNKNOWN,
                    one.tool or other.tool,
                    judgement(one),
                    judgement(other),
                    unsure=one.unsure or other.unsure,
                    remark=" / ".join(filter(None, (one.remark, other.remark))),
                )
            )
    return Comparison(
        tuple(pairs),
        {name: tuple(levels) for name, levels in scales.items()},
        (first.name, second.name),
    )


def _by_kind(pair: Pair) -> Pair:
    """Return a pair whose dimensions are the kinds of violation, each with the levels no and yes."""
    first, second = (
        Judgement({kind: "yes" if kind in (one.kinds or ()) else "no" for kind in KINDS})
        for one in (pair.first, pair.second)
    )
    return Pair(pair.id, pair.source, pair.layer, pair.tool, first, second, pair.unsure)


def _plain(parts: Mapping[str, LevelAgreement]) -> dict[str, object]:
    return {name: part.as_dict() for name, part in parts.items()}
