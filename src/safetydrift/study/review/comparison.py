"""How far two judges of the same calls agree: in each dimension, over all and apart by source and by layer.

The judges are a reviewer and the program, as it was when a sample was drawn or as it is now, or two reviewers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import ReviewError
from safetydrift.evaluation.metrics.resampling import Estimate, ratio
from safetydrift.evaluation.rate import Rate, plain
from safetydrift.study.review.judgement import Judgement
from safetydrift.study.review.sampling import Moment, Stratum, labelled_steps, sample_id, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.effects.labeler import Labeler
    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import FloatArray, IntArray
    from safetydrift.study.review.sampling import Sample
    from safetydrift.study.review.sheets import Decision, Sheet
    from safetydrift.trace import Trace

RESAMPLES, SEED = 2000, 20261121


@dataclass(frozen=True, slots=True)
class Pair:
    """One call as two judges see it.

    Parameters
    ----------
    id, source, layer, tool
        Which call, and what decided the program's effect (empty where that is not known).
    first, second
        The reviewer, and the program or another reviewer.
    unsure
        Whether the reviewer, or either of them, was.
    stratum
        What it was drawn from, and how many calls that has; None where that is not known.
    """

    id: str
    source: str
    layer: str
    tool: str
    first: Judgement
    second: Judgement
    unsure: bool = False
    stratum: tuple[Stratum, int] | None = None


@dataclass(frozen=True, slots=True)
class LevelAgreement:
    """Agreement in one dimension, over some calls.

    Parameters
    ----------
    table
        Calls by the first judge's level (row) and the second's (column), lowest first.
    same
        Calls on which they agree.
    same_when_sure
        Those among them that nobody was unsure of.
    accepted
        Calls on which one of them would at least accept what the other says.
    kappa, weighted_kappa
        Agreement beyond chance: every disagreement counted alike, or by the square of its distance.
    """

    table: tuple[tuple[int, ...], ...]
    same: Rate
    same_when_sure: Rate
    accepted: Rate
    kappa: Estimate
    weighted_kappa: Estimate


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
    """

    pairs: tuple[Pair, ...]
    scales: Mapping[str, tuple[str, ...]]
    judges: tuple[str, str] = ("reviewer", "program")

    def agreement(self, dimension: str, pairs: Iterable[Pair] | None = None) -> LevelAgreement:
        """Return the agreement in a dimension, over those pairs (all by default) in which both give a level."""
        levels = self.scales[dimension]
        table = np.zeros((len(levels), len(levels)), dtype=np.int64)
        sure = accepted = Rate(0, 0)
        for pair in _judged(dimension, self.pairs if pairs is None else pairs):
            one, other = pair.first.levels[dimension], pair.second.levels[dimension]
            table[levels.index(one), levels.index(other)] += 1
            accepts = pair.first.accepts(dimension, other) or pair.second.accepts(dimension, one)
            accepted += Rate(accepts, 1)
            if not pair.unsure:
                sure += Rate(one == other, 1)
        return LevelAgreement(
            tuple(map(tuple, table.tolist())),
            Rate(int(np.trace(table)), int(table.sum())),
            sure,
            accepted,
            cohen_kappa(table),
            cohen_kappa(table, quadratic=True),
        )

    def parts(self, dimension: str) -> dict[str, LevelAgreement]:
        """Return the agreement in a dimension over all calls, by source, and by the layer that decided."""
        judged = _judged(dimension, self.pairs)
        found = {"all": self.agreement(dimension)}
        for what in ("source", "layer"):
            for name in sorted({getattr(pair, what) for pair in judged} - {""}):
                mine = [pair for pair in judged if getattr(pair, what) == name]
                found[f"{what} {name}"] = self.agreement(dimension, mine)
        return found

    def of_all_calls(self, dimension: str) -> float:
        """Estimate the share of all calls that were drawn from on which the two would agree.

        A sample shows rare tools more often than they are called; here each stratum counts as often as it has calls.
        Strata of which no call was judged are left out. nan where it is not known what the calls stand for.
        """
        judged: defaultdict[tuple[Stratum, int], list[bool]] = defaultdict(list)
        for pair in _judged(dimension, self.pairs):
            if pair.stratum is None:
                return nan
            judged[pair.stratum].append(pair.first.levels[dimension] == pair.second.levels[dimension])
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
        same = [all(p.first.levels[name] == p.second.levels[name] for name in self.scales) for p in whole]
        return Rate(sum(same), len(whole))

    def kinds(self) -> dict[str, LevelAgreement]:
        """Return, by kind of violation, how far the two agree whether a call would complete it."""
        both = [pair for pair in self.pairs if None not in {pair.first.kinds, pair.second.kinds}]
        asked = Comparison(tuple(map(_by_kind, both)), dict.fromkeys(KINDS, ("no", "yes")))
        return {kind: asked.agreement(kind) for kind in KINDS} if both else {}

    def disagreements(self) -> list[tuple[Cell, ...]]:
        """Return a row for every call and dimension, or kinds, on which the two differ, in the order of the calls."""
        found: list[tuple[Cell, ...]] = []
        for pair in self.pairs:
            one, other = pair.first, pair.second
            differ = {
                name: (one.levels[name], other.levels[name])
                for name in self.scales
                if name in one.levels and name in other.levels and one.levels[name] != other.levels[name]
            }
            if one.kinds is not None and other.kinds is not None and one.kinds != other.kinds:
                differ["kinds"] = (" ".join(sorted(one.kinds)), " ".join(sorted(other.kinds)))
            found += [
                (pair.tool, name, *said, "unsure" if pair.unsure else "", pair.id)
                for name, said in differ.items()
            ]
        return found

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain data."""
        return {
            "judges": self.judges,
            "calls": len(self.pairs),
            "unsure": sum(pair.unsure for pair in self.pairs),
            "intervals": f"Wilson, and for kappa percentiles over resampled calls, 95 %, seed {SEED}",
            "dimensions": {
                name: {"levels": levels, "of_all_calls": self.of_all_calls(name), **plain(self.parts(name))}
                for name, levels in self.scales.items()
            },
            "every_dimension": self.everywhere,
            "kinds": self.kinds(),
            "disagreements": self.disagreements(),
        }


def cohen_kappa(table: IntArray, *, quadratic: bool = False) -> Estimate:
    """Return kappa of two judges, and the same on resampled calls; nan where chance alone would agree throughout.

    Parameters
    ----------
    table : (n_levels, n_levels) array
        Calls by the level the first judge gave and the second, both in the order of the scale.
    quadratic
        Whether a disagreement counts by the square of its distance.

    Notes
    -----
    Cohen, "Weighted kappa" (1968): 1 less the ratio of the cost observed to the cost by chance. Written for a stack of
    tables, for thousands of resamples are taken at once.
    """
    total = int(table.sum())
    if not total:
        return Estimate(nan, np.full(RESAMPLES, nan))
    drawn = np.random.default_rng(SEED).multinomial(total, table.ravel() / total, size=RESAMPLES)
    values = _kappas(np.vstack([table.ravel(), drawn]).reshape(-1, *table.shape), quadratic=quadratic)
    return Estimate(float(values[0]), values[1:])


def _kappas(tables: IntArray, *, quadratic: bool) -> FloatArray:
    apart = np.abs(np.subtract.outer(np.arange(tables.shape[1]), np.arange(tables.shape[1])))
    costs = apart**2 if quadratic else (apart > 0).astype(np.int64)
    observed = tables.sum(axis=(1, 2)) * (tables * costs).sum(axis=(1, 2))
    by_chance = np.einsum("ti,ij,tj->t", tables.sum(axis=2), costs, tables.sum(axis=1))
    return 1.0 - ratio(observed.astype(np.float64), by_chance.astype(np.float64))


def _judged(dimension: str, pairs: Iterable[Pair]) -> list[Pair]:
    return [pair for pair in pairs if dimension in pair.first.levels and dimension in pair.second.levels]


def _by_kind(pair: Pair) -> Pair:
    """Return a pair whose dimensions are the kinds of violation, each with the levels no and yes."""
    first, second = (
        Judgement({kind: "yes" if kind in (one.kinds or ()) else "no" for kind in KINDS})
        for one in (pair.first, pair.second)
    )
    return Pair(pair.id, pair.source, pair.layer, pair.tool, first, second, pair.unsure)


# -- who is compared with whom ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """What the program says of one call; fields as in `Pair`."""

    source: str
    layer: str
    tool: str
    judgement: Judgement
    stratum: tuple[Stratum, int] | None = None


def exported(sample: Sample) -> dict[str, Said]:
    """Return what the program said when a sample was drawn, by the name of the call."""
    calls = {one.stratum: one.calls for one in sample.strata}
    return {
        call.id: Said(
            call.source,
            call.layer,
            call.tool,
            Judgement(call.levels, frozenset(call.kinds)),
            (call.stratum, calls[call.stratum]),
        )
        for call in sample.calls
    }


def labelled_again(
    traces: Iterable[Trace],
    labeler: Labeler,
    decisions: Mapping[str, Decision],
    moment: Moment = Moment.PROPOSED,
) -> dict[str, Said]:
    """Return what the program says of the decided calls now, by their names on the sheet.

    A call is found by its full name; where the traces name their source otherwise than the sheet does, by the rest of
    it. The first of several runs with one id counts.
    """
    rests: defaultdict[str, list[str]] = defaultdict(list)
    for name, decision in decisions.items():
        if decision.source and name.startswith(f"{decision.source}/"):
            rests[name.removeprefix(f"{decision.source}/")].append(name)
    exact: dict[str, Said] = {}
    otherwise: dict[str, Said] = {}
    for trace in traces:
        full = [sample_id(trace, number) for number in range(1, len(trace.steps) + 1)]
        rest = [rests.get(f"{trace.id}/{number}", []) for number in range(1, len(trace.steps) + 1)]
        if not any(name in decisions or len(others) == 1 for name, others in zip(full, rest, strict=True)):
            continue
        for name, others, (step, effect) in zip(
            full, rest, labelled_steps(trace, labeler, moment), strict=True
        ):
            judgement = Judgement(dict(effect.levels), frozenset(effect.kinds))
            said = Said(trace.source, effect.source, tool_name(step), judgement)
            if name in decisions:
                exact.setdefault(name, said)
            elif len(others) == 1:
                otherwise.setdefault(others[0], said)
    return otherwise | exact


def compare_with_program(
    sheet: Sheet, said: Mapping[str, Said], scales: Mapping[str, tuple[str, ...]]
) -> Comparison:
    """Return how far a reviewer and the program agree on the calls that were decided and are known to the program."""
    pairs = [
        Pair(
            name,
            one.source or found.source,
            found.layer,
            found.tool,
            one.judgement(),
            found.judgement,
            one.unsure,
            found.stratum,
        )
        for name, one in sheet.decisions.items()
        if one.decided and (found := said.get(name)) is not None
    ]
    return Comparison(tuple(pairs), scales, (sheet.name, "program"))


def compare_sheets(first: Sheet, second: Sheet, scales: Mapping[str, Sequence[str]]) -> Comparison:
    """Return how far two reviewers agree on the calls that stand on both their sheets."""
    pairs = [
        Pair(
            name,
            one.source or other.source,
            "",
            one.tool or other.tool,
            one.judgement(),
            other.judgement(),
            one.unsure or other.unsure,
        )
        for name, one in first.decisions.items()
        if (other := second.decisions.get(name)) is not None and one.decided and other.decided
    ]
    known = {name: tuple(levels) for name, levels in scales.items()}
    return Comparison(tuple(pairs), known, (first.name, second.name))


def require_drawn(sheet: Sheet, sample: Sample) -> None:
    """Check that a sheet belongs to a sample.

    Raises
    ------
    ReviewError
        If it decides on a call that was not drawn, or names another tool; the message names the row.
    """
    drawn = {call.id: call for call in sample.calls}
    for name, decision in sheet.decisions.items():
        if name not in drawn:
            raise ReviewError(f"{sheet.name}: row {decision.row}: {name!r} is not in the sample")
        if decision.tool and decision.tool != drawn[name].tool:
            raise ReviewError(
                f"{sheet.name}: row {decision.row}: {name!r} calls {drawn[name].tool!r}, not {decision.tool!r}"
            )
