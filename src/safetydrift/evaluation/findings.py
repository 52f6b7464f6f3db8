"""A first look at a corpus: the published chain and the shipped kind of model on held-out tasks, and what is behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any
from zlib import crc32

from msgspec import structs

from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.chain_tables import horizons_table, matrix_table, percent
from safetydrift.evaluation.comparison import REFERENCE, compare
from safetydrift.evaluation.document import Drawing, Section, Table, figure
from safetydrift.evaluation.evidence import Evidence, facts_of
from safetydrift.evaluation.evidence_document import sources_table, summary
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.scores import Fixed
from safetydrift.evaluation.splits import held_out_tasks
from safetydrift.markov.horizon import horizon_table
from safetydrift.monitor.fitting import fit_chains
from safetydrift.monitor.model import AGGREGATE, category_name
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.monitor.tabulation import ends_of
from safetydrift.states.projection import project, projection
from safetydrift.states.trajectory import VIOLATED, Notion, observe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.cases import Case, CaseSet
    from safetydrift.evaluation.comparison import SplitComparison
    from safetydrift.evaluation.document import Cell
    from safetydrift.evaluation.metrics.levels import Measures
    from safetydrift.evaluation.predictors import MonitorScores
    from safetydrift.markov.absorption import Absorption
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

NO_RETURN_PROBABILITY = 0.85
"""A state is a point of no return when a violation within 5 steps is at least this likely (paper, A3)."""
PUBLISHED, SCORE = "paper's chain", "risk score"
MOST_FITTED = 8_000
"""Runs that the risk score is fitted on at most, so that the first look takes a minute or two."""
RESAMPLES = 50
BUDGET = 0.05


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found.

    Parameters
    ----------
    compared
        The published chain, the risk score, and a rule that knows nothing but the category, on held-out tasks.
    fitted_on
        On how many runs the risk score was fitted.
    monitor
        The risk score, fitted without the tasks tried.
    tried
        The runs of the held-out tasks.
    opening
        The comparison, for readers who want one table.
    tables
        What stands behind it: what was read, chains, horizons, and the comparison in full.
    """

    compared: SplitComparison
    fitted_on: int
    monitor: LookupMonitor
    tried: CaseSet
    opening: Table
    tables: tuple[Section, ...]

    def measured(self, name: str) -> Measures:
        """Return the figures of one predictor: `PUBLISHED`, `SCORE` or the reference; KeyError if it is another."""
        return self.compared.predictor(name).measures


def find(
    trajectories: Sequence[Trajectory],
    space: StateSpace,
    published: StateSpace,
    catalogue: Catalogue,
    provenance: Mapping[str, object] | None = None,
) -> Findings:
    """Fit the published chain and the shipped kind of model on four tasks in five, try both on the fifth.

    Parameters
    ----------
    trajectories
        Runs labelled in ``space``.
    space
        The space of the shipped model, `flow` or one with its dimensions.
    published
        The space of the published chain, whose dimensions ``space`` has as well.

    Raises
    ------
    ChainError
        If no run can be used under its source's label, or none of those fitted on is violated.
    SplitError
        If there are too few tasks to hold any out.
    """
    given = Circumstances(space, catalogue, published)
    cases, left_out = cases_of(trajectories, space)
    split = held_out_tasks(cases).first()
    (fold,) = split.folds
    training = drawn(fold.train, MOST_FITTED)
    score = given.monitor(SCORE, risk_score=True).fit(training)
    chain = predictor("coarse-published-by-category", given)
    tried = [
        predictor(REFERENCE, given),
        Fixed(PUBLISHED, _told(chain.fit(fold.train), PUBLISHED, fold.train)),
        Fixed(SCORE, _told(score, SCORE, fold.train)),
    ]
    compared = compare(tried, split, n_resamples=RESAMPLES)
    evidence = Evidence(Notion.LABEL, facts_of(trajectories, cases), left_out, compared, provenance or {})
    (result,) = compared.splits
    effect_of = projection(space, published)
    runs = [project(run, effect_of, published) for run in trajectories]
    return Findings(
        compared=result,
        fitted_on=len(training),
        monitor=score.monitor,
        tried=fold.test,
        opening=_opening(result, compared.horizon),
        tables=(
            Section("What was read", (sources_table(evidence), _agreement(runs, published))),
            *_chains(runs, published),
            Section(
                f"The comparison in full, on {result.tasks:,} held-out tasks",
                (compared.finding(), summary(result, compared.horizon), _within(result)),
            ),
        ),
    )


def drawn(cases: CaseSet, most: int) -> CaseSet:
    """Return about ``most`` of the cases, chosen by a digest of their ids so that their order does not matter."""
    share = most / max(len(cases), 1)
    return cases.select([crc32(case.run.id.encode()) / 2**32 < share for case in cases.cases])


def _told(scores: Any, name: str, train: CaseSet) -> MonitorScores:
    told: MonitorScores = replace(scores, name=name, trained_on=train.tasks)
    return told


def _opening(split: SplitComparison, horizon: int) -> Table:
    """Return the comparison in short: a row per measure, a column per predictor."""
    measures = [split.predictor(name).measures for name in (REFERENCE, PUBLISHED, SCORE)]
    alarms = [one.runs.at_budget[BUDGET] for one in measures]
    proposals = [None if one.proposals is None else one.proposals.at_budget[BUDGET] for one in measures]
    figures = [one.figures() for one in measures]
    rows: tuple[tuple[Cell, ...], ...] = (
        ("violations foreseen", *(one.detected for one in alarms)),
        ("false alarms", *(one.false_alarms for one in alarms)),
        ("mean steps of warning", *(one.lead_times.mean for one in alarms)),
        ("violating calls recognised", *(None if one is None else one.stopped for one in proposals)),
        ("ranking (AUROC)", *(one.get(f"step.{horizon}.auroc") for one in figures)),
        ("ranking within category", *(one.get(f"step.{horizon}.within_category") for one in figures)),
    )
    note = (
        "Thresholds are set so that 5 % of the runs without a violation may alarm. Foreseen: an alarm before the "
        "violating call was proposed. Recognised: an alarm when it was proposed. Ranking: the share of pairs of "
        f"moments in which the one before a violation within {horizon} steps has the higher probability; 0.5 is chance."
    )
    return Table("", note, ("measure", "category alone", PUBLISHED, SCORE), rows)


def _chains(runs: Sequence[Trajectory], space: StateSpace) -> tuple[Section, ...]:
    """Return what the chains of all runs say, none held out."""
    coarse = FitSettings(granularity=Granularity.COARSE)
    by_label = fit_chains(runs, space, coarse)
    by_rules = structs.replace(coarse, notion=Notion.RULES, estimator=Estimator.PUBLISHED)
    table = horizon_table(by_label.chains[AGGREGATE], by_label.settings.max_horizon)
    matrix = matrix_table("", table.chain, by_label.evidence[AGGREGATE])
    steps = horizons_table("Probability within h steps, all runs", table)
    return (
        Section("By category", (_categories(by_label, fit_chains(runs, space)),)),
        Section(
            "From one risk level to the next",
            (matrix, _drawn("matrix", "Transition matrix on risk levels, all runs", matrix, table.chain)),
        ),
        Section(
            "A violation within the next steps",
            (
                steps,
                _drawn("horizons", "Probability of a violation within h steps", steps, {"all runs": table}),
            ),
        ),
        Section("The published method on the same runs", (_published(fit_chains(runs, space, by_rules)),)),
    )


def _drawn(key: str, title: str, table: Table, given: object) -> Drawing:
    spoken = "; ".join(", ".join(map(str, row)) for row in table.rows)
    return Drawing(key, title, "All runs, none held out.", spoken, figure(f"{key}_figure", given))


def _agreement(trajectories: Sequence[Trajectory], space: StateSpace) -> Table:
    """Return how far the published rules and the label agree, over the runs whose label can be used."""
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for run in trajectories:
        label = observe(run, space, Notion.LABEL)
        if not label.left_out:
            rules = observe(run, space, Notion.RULES)
            counts[run.source, rules.end == VIOLATED, label.end == VIOLATED] += 1
    rows = []
    for source in sorted({source for source, _, _ in counts}):
        both, neither = counts[source, True, True], counts[source, False, False]
        rules_only, label_only = counts[source, True, False], counts[source, False, True]
        same = Rate(both + neither, both + neither + rules_only + label_only)
        rows.append((source, same, Rate(both, both + label_only), Rate(both, both + rules_only)))
    columns = ("source", "same verdict", "labelled violated, rules too", "violated by rules, labelled too")
    return Table("Do the published rules agree with the label?", "", columns, tuple(rows))


def _categories(coarse: FittedChains, fine: FittedChains) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for category, chain in coarse.chains.items():
        ends, found = coarse.evidence[category].ends, ends_of(chain)
        total, steps = sum(ends.values()), dict(_steps(found))
        known = 0 in steps
        rows.append(
            (
                category_name(category),
                Rate(ends[VIOLATED], total),
                Rate(ends["censored"], total),
                percent(float(horizon_table(chain, 5).within(5)[0]) if known else nan),
                percent(float(found.probability(VIOLATED)[0]) if known else nan),
                steps.get(0, nan),
                _points_of_no_return(fine, category),
            )
        )
    columns = (
        "category",
        "violated",
        "cut off",
        "within 5 of start",
        "eventually",
        "expected steps",
        "no return",
    )
    note = "No return: states from which a violation within 5 steps has probability 0.85 or more."
    return Table("", note, columns, tuple(rows))


def _steps(ends: Absorption) -> list[tuple[int, float]]:
    return list(zip(ends.chain.transient.tolist(), ends.expected_steps.tolist(), strict=True))


def _points_of_no_return(fine: FittedChains, category: str) -> int:
    risk = horizon_table(fine.chains[category], 5).within(5)
    departures = fine.evidence[category].counts.departures
    return sum(
        bool(risk[row] >= NO_RETURN_PROBABILITY and departures[row]) for row in range(len(fine.rows.names))
    )


def _published(fitted: FittedChains) -> Table:
    levels = fitted.rows.names[:-1]  # the last is the one the rules call violated
    rows: list[tuple[Cell, ...]] = []
    for category, chain in fitted.chains.items():
        ends, risk = fitted.evidence[category].ends, horizon_table(chain, 5).within(5)
        known = [percent(float(risk[n]) if n in chain.transient else nan) for n in range(len(levels))]
        rows.append((category_name(category), Rate(ends[VIOLATED], sum(ends.values())), *known))
    columns = ("category", "violated by the rules", *(f"within 5 of {level}" for level in levels))
    return Table("", "Violation by the rules, and the only end.", columns, tuple(rows))


def _within(split: SplitComparison) -> Table:
    panels = {
        name: {one.name: one for one in split.predictor(name).measures.panels if one.kind == "category"}
        for name in (PUBLISHED, SCORE)
    }
    rows = [
        (
            category,
            found.detected,
            found.false_alarms,
            panels[SCORE][category].detected,
            panels[SCORE][category].false_alarms,
        )
        for category, found in panels[PUBLISHED].items()
    ]
    columns = ("category", *(f"{name}: {what}" for name in panels for what in ("foreseen", "false alarms")))
    title = "The same within each category, where knowing the category is worth nothing"
    return Table(title, "", columns, tuple(rows))


def middle(cases: Sequence[Case]) -> Case | None:
    """Return the run in the middle when they are ranked by length and then by id, a rule that favours no result."""
    ranked = sorted(cases, key=lambda case: (case.run.n_steps, case.run.id))
    return ranked[len(ranked) // 2] if ranked else None
