"""What a corpus says, for a first look: rates, chains, and a monitor on tasks it was not fitted on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING

from msgspec import structs

from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.chain_tables import horizons_table, matrix_table, percent
from safetydrift.evaluation.comparison import REFERENCE, compare
from safetydrift.evaluation.document import Document, Drawing, Section, Table, figure
from safetydrift.evaluation.evidence import Evidence, facts_of
from safetydrift.evaluation.evidence_document import sources_table, summary
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.replay import Replay, replay
from safetydrift.evaluation.scores import Fixed
from safetydrift.evaluation.splits import held_out_tasks
from safetydrift.markov.horizon import horizon_table
from safetydrift.monitor.fitting import fit_chains
from safetydrift.monitor.model import AGGREGATE, category_name
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.monitor.tabulation import ends_of
from safetydrift.states.trajectory import VIOLATED, Notion, observe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.comparison import SplitComparison
    from safetydrift.evaluation.document import Cell
    from safetydrift.markov.absorption import Absorption
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

NO_RETURN_PROBABILITY = 0.85
"""A state is a point of no return when a violation within 5 steps is at least this likely (paper, A3)."""
RESAMPLES = 50
BUDGET = 0.05


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found.

    Parameters
    ----------
    document
        All of it, to be shown or written.
    monitor
        Fitted without the tasks of the examples.
    examples
        Runs that it was replayed on.
    """

    document: Document
    monitor: LookupMonitor
    examples: tuple[Replay, ...]


def find(
    trajectories: Sequence[Trajectory],
    space: StateSpace,
    catalogue: Catalogue,
    provenance: Mapping[str, object] | None = None,
) -> Findings:
    """Fit chains on a corpus, try a monitor on one task in five, and gather what comes of it.

    Raises
    ------
    ChainError
        If no run can be used under its source's label.
    SplitError
        If there are too few tasks to hold any out.
    """
    given = Circumstances(space, catalogue, space)
    cases, left_out = cases_of(trajectories, space)
    split = held_out_tasks(cases).first()
    (fold,) = split.folds
    fitted = given.monitor("monitor").fit(fold.train)
    tried = Fixed("monitor", replace(fitted, trained_on=fold.train.tasks))
    compared = compare([tried, predictor(REFERENCE, given)], split, n_resamples=RESAMPLES)
    evidence = Evidence(Notion.LABEL, facts_of(trajectories, cases), left_out, compared, provenance or {})
    coarse = FitSettings(granularity=Granularity.COARSE)
    by_label = fit_chains(trajectories, space, coarse)
    by_rules = structs.replace(coarse, notion=Notion.RULES, estimator=Estimator.PUBLISHED)
    table = horizon_table(by_label.chains[AGGREGATE], by_label.settings.max_horizon)
    matrix = matrix_table("", table.chain, by_label.evidence[AGGREGATE])
    (result,) = compared.splits
    document = Document(
        "How agent runs drift towards violations",
        (compared.finding(),),
        (
            Section("What was read", (sources_table(evidence), _agreement(trajectories, space))),
            Section("By category", (_categories(by_label, fit_chains(trajectories, space)),)),
            Section(
                "From one risk level to the next",
                (matrix, _drawn("matrix", "Transition matrix on risk levels, all runs", matrix, table.chain)),
            ),
            Section(
                "A violation within the next steps",
                (
                    steps := horizons_table("Probability within h steps, all runs", table),
                    _drawn(
                        "horizons", "Probability of a violation within h steps", steps, {"all runs": table}
                    ),
                ),
            ),
            Section(
                "The published method on the same runs",
                (_published(fit_chains(trajectories, space, by_rules)),),
            ),
            Section(f"On {result.tasks:,} held-out tasks", _tried(result, compared.horizon)),
        ),
    )
    replays = [replay(case.run, fitted.monitor) for case in fold.test.cases]
    return Findings(document, fitted.monitor, choose_examples(replays))


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


def _tried(split: SplitComparison, horizon: int) -> tuple[Table, ...]:
    return summary(split, horizon), _alarms(split), _within(split)


def _alarms(split: SplitComparison) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in split.predictors:
        runs, proposals = one.measures.runs.at_budget[BUDGET], one.measures.proposals
        stopped = None if proposals is None else proposals.at_budget[BUDGET].stopped
        rows.append((one.name, runs.detected, runs.false_alarms, runs.lead_times.mean, stopped))
    columns = (
        "predictor",
        "violations foreseen",
        "false alarms",
        "mean steps of warning",
        "stopped when proposed",
    )
    return Table("Alarms, when 5 % of the runs without a violation may alarm", "", columns, tuple(rows))


def _within(split: SplitComparison) -> Table:
    panels = [one for one in split.predictor("monitor").measures.panels if one.kind == "category"]
    rows = [(one.name, one.detected, one.false_alarms) for one in panels]
    title = "The same within each category, where knowing the category is worth nothing"
    return Table(title, "", ("category", "violations foreseen", "false alarms"), tuple(rows))


def choose_examples(replays: Sequence[Replay]) -> tuple[Replay, ...]:
    """Pick three runs to show, by rules that favour no result.

    One whose violation was foreseen, one whose violation was not, and one that did not violate: of each kind the run
    in the middle when they are ranked by length and then by id. A kind that does not occur is left out.
    """
    kinds: dict[tuple[bool, bool], list[Replay]] = {(True, True): [], (True, False): [], (False, False): []}
    for run in replays:
        violated = run.onset is not None
        kinds[violated, violated and run.alarm is not None].append(run)
    ranked = [
        sorted(kind, key=lambda run: (run.trajectory.n_steps, run.trajectory.id)) for kind in kinds.values()
    ]
    return tuple(kind[len(kind) // 2] for kind in ranked if kind)
