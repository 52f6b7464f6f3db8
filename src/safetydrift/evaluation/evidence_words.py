"""Evidence in words and tables: what was found, and as plainly what it does not show."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from safetydrift.evaluation.metrics.resampling import Estimate
from safetydrift.evaluation.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.evaluation.comparison import PredictorResult, SplitComparison
    from safetydrift.evaluation.evidence import Evidence
    from safetydrift.study.analyses.analysis import Cell

COLUMNS: dict[str, str] = {
    "AUROC": "step.{h}.auroc",
    "within category": "step.{h}.within_category",
    "within task": "step.{h}.within_task",
    "within model": "step.{h}.within_model",
    "equal step": "step.{h}.equal_step",
    "Brier skill": "step.{h}.brier_skill",
    "recall at 5 %": "run.recall_at_0.05",
    "whole runs": "run.within_category",
}
"""The figures of the compact table, by its headings; ``{h}`` is the horizon. ``ECE``, which has no interval, follows
the Brier skill."""

EXPLAINED = (
    "AUROC: the share of pairs of moments, one before a violation within {h} steps and one not, in which "
    "the former is given the higher risk; 0.5 is chance. Within category, task or model: only pairs of one, "
    "where knowing which one it is is worth exactly 0.5 (within model: of one category and model). Equal "
    "step: only pairs after equally many calls. Brier skill: 0 is no better than saying the base rate, 1 is "
    "perfect, below 0 is worse than the base rate. ECE: mean distance between forecast and frequency. "
    "Recall at 5 %: violated runs with an alarm strictly before the violating call, when 5 % of the other "
    "runs may alarm. Whole runs: AUROC of a run's highest risk, within category. In brackets 95 % intervals "
    "over resampled tasks."
)

PRIORS = (
    "silent",
    "category-prior",
    "category-run-rate",
    "task-rate",
    "model-rate",
    "run-length",
    "kaplan-meier",
)
"""Predictors that look at no call: they know what was asked, who acts, or how many calls were made."""

PUBLISHED_CHAINS = ("coarse-published", "coarse-published-by-category", "coarse-published-second-order")
DASH = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the compact table.

    Parameters
    ----------
    name
        The predictor.
    remark
        What has to be known of it; empty for most.
    cells
        By heading: what was measured, None where there is nothing of the kind.
    """

    name: str
    remark: str
    cells: dict[str, Estimate | float | None]


def summary(split: SplitComparison, horizon: int) -> list[Row]:
    """Return the compact table of a split, a row per predictor."""
    rows = []
    for result in split.predictors:
        figures = result.measures.figures()
        cells: dict[str, Estimate | float | None] = {}
        for heading, name in COLUMNS.items():
            cells[heading] = figures.get(name.format(h=horizon))
            if heading == "Brier skill":
                calibration = result.measures.steps[horizon].calibration
                cells["ECE"] = None if calibration is None else calibration.ece
        rows.append(Row(result.name, remark(split, result.name), cells))
    return rows


def differences(split: SplitComparison, horizon: int) -> list[Row]:
    """Return the same figures minus the reference's, a row per other predictor."""
    return [
        Row(
            result.name,
            remark(split, result.name),
            {heading: result.differences.get(name.format(h=horizon)) for heading, name in COLUMNS.items()},
        )
        for result in split.predictors
        if result.differences
    ]


def remark(split: SplitComparison, name: str) -> str:
    """Return what has to be known of a predictor under a split; empty for most."""
    if name in split.in_sample:
        return "in-sample"
    return "tasks unknown" if name in split.unverified else ""


def written(cell: Estimate | float | None, *, signed: bool = False) -> str:
    """Write a figure with its interval; an undefined one is a dash. A difference not zero for sure has a star."""
    if cell is None or isnan(value := cell.value if isinstance(cell, Estimate) else cell):
        return DASH
    figure = f"{value:+.3f}" if signed else f"{value:.3f}"
    if not isinstance(cell, Estimate) or isnan(cell.interval()[0]):
        return figure
    low, high = cell.interval()
    star = "*" if signed and cell.excludes_zero else ""
    return f"{figure} [{low:.2f}, {high:.2f}]{star}"


def cell_written(cell: Cell) -> str:
    """Write an entry of an analysis."""
    if cell is None:
        return ""
    if isinstance(cell, Rate):
        return str(cell)
    if isinstance(cell, float):
        return DASH if isnan(cell) else f"{cell:.3g}" if 0 < abs(cell) < 0.001 else f"{cell:,.3f}"  # noqa: PLR2004
    return f"{cell:,}" if isinstance(cell, int) else cell


# -- sentences --------------------------------------------------------------------------------------------


def finding(evidence: Evidence) -> str:
    """Say in one paragraph what was found."""
    return " ".join([evidence.comparison.finding(), *_standing(evidence)])


def caveats(evidence: Evidence) -> list[str]:
    """Say what the figures do not show, one paragraph each; those that were measured come first."""
    derived = (_OF_DERIVED_ONSETS,) if _DERIVED & evidence.sources.keys() else ()
    return [*_no_skill(evidence), *_random(evidence), *_unknown_onset(evidence), *derived, *_ALWAYS]


def _standing(evidence: Evidence) -> Iterator[str]:
    """Say how predictors that follow the run stand against knowing only who acts, and the published chain."""
    split = _on_new_tasks(evidence)
    if split is None:
        return
    followers = [
        one for one in split.predictors if one.name not in PRIORS and one.name not in split.in_sample
    ]
    model_rate = _result(split, "model-rate")
    name = f"step.{evidence.comparison.horizon}.within_category"
    ranked = sorted(
        (one for one in followers if not isnan(one.measures.figures()[name].value)),
        key=lambda one: -one.measures.figures()[name].value,
    )
    if model_rate is not None and ranked:
        best = ranked[0]
        against = best.measures.figures()[name].minus(model_rate.measures.figures()[name])
        verdict = (
            "cannot be told apart from it"
            if not against.excludes_zero
            else "does better"
            if against.value > 0
            else "does worse"
        )
        yield (
            f"Knowing only which model acts (model-rate) is worth "
            f"{written(model_rate.measures.figures()[name])} within category; of the predictors that look at what the "
            f"run does, the best ({best.name}) {verdict} (difference {written(against, signed=True).rstrip('*')})."
        )
    for chain in (one for one in followers if one.name == "coarse-published-by-category"):
        difference = chain.differences.get(name)
        if difference is not None:
            yield (
                f"The published chain differs from the {evidence.comparison.reference} by "
                f"{written(difference, signed=True).rstrip('*')} within category."
            )


def _no_skill(evidence: Evidence) -> Iterator[str]:
    split = _on_new_tasks(evidence)
    if split is None:
        return
    horizon = evidence.comparison.horizon
    blind = [one.name for one in split.predictors if _ranks(one, horizon) and not _above(one, horizon)]
    if blind:
        yield (
            f"No foresight within category. On {split.name}, within category, the interval of these reaches "
            "0.5 or below, so that nothing shows that they rank better than chance there: "
            f"{', '.join(blind)}."
        )
    rough = [one.name for one in split.predictors if _skill(one, horizon) <= 0]
    if rough:
        yield (
            "No skill as probabilities. The Brier skill of these is not above 0 for sure: always saying the base rate "
            f"does as well or better: {', '.join(rough)}."
        )


def _ranks(result: PredictorResult, horizon: int) -> bool:
    """Whether it tells runs of a category apart; what knows no more than the category says one half by itself."""
    low, high = result.measures.figures()[f"step.{horizon}.within_category"].interval()
    return low < high


def _above(result: PredictorResult, horizon: int) -> bool:
    return result.measures.figures()[f"step.{horizon}.within_category"].interval()[0] > 0.5  # noqa: PLR2004


def _skill(result: PredictorResult, horizon: int) -> float:
    """Return the lower bound of the Brier skill; positive for scores that are no probabilities."""
    skill = result.measures.figures().get(f"step.{horizon}.brier_skill")
    low = 1.0 if skill is None else skill.interval()[0]
    return 1.0 if isnan(low) else low


def _random(evidence: Evidence) -> Iterator[str]:
    held_out = _on_new_tasks(evidence)
    random = next((split for split in evidence.comparison.splits if not split.apart), None)
    if held_out is None or random is None:
        return
    name = f"step.{evidence.comparison.horizon}.within_category"
    gains = [
        (one.name, one.measures.figures()[name].value, other.measures.figures()[name].value)
        for one in random.predictors
        if (other := _result(held_out, one.name)) is not None
    ]
    gains = [gain for gain in gains if not isnan(gain[1] - gain[2])]
    if gains:
        most, there, here = max(gains, key=lambda gain: gain[1] - gain[2])
        yield (
            "A random split flatters. With tasks on both sides, as published, "
            f"{most} reaches {there:.3f} within category where held-out tasks leave it {here:.3f}."
        )


def _unknown_onset(evidence: Evidence) -> Iterator[str]:
    unknown = [
        name
        for name, facts in evidence.sources.items()
        if facts.onset_known.total and not facts.onset_known.hits
    ]
    if unknown:
        yield (
            f"No onset in {' and '.join(unknown)}. Their violating calls are not known; they are measured "
            "over whole runs, with the violation at the last call, and have no part in figures by step, by "
            "proposal or of lead time."
        )
    silent = [name for name, facts in evidence.sources.items() if not facts.violated.total]
    if silent:
        yield f"No labels in {' and '.join(silent)}. Their runs are used, where they are, for false alarms alone."


_DERIVED = frozenset({"agentdojo", "agentdyn"})
"""Sources that name no violating call: it is derived from the attacker's goal."""

_OF_DERIVED_ONSETS = (
    "Onsets of AgentDojo and AgentDyn are derived: the first call that fits the attacker's goal. An attempt "
    "that failed the source's own check counts as no violation, and an alarm there as a false one."
)

_ALWAYS = (
    (
        "Attacks of benchmarks are fixed and known to model makers; an attacker who adapts to a monitor "
        "is not in them, and neither are the base rates of any deployment."
    ),
    (
        "Recall at a budget uses thresholds chosen on the very runs tried. It compares predictors and promises no rate "
        "elsewhere."
    ),
    (
        "Intervals draw tasks again, not models, sources or attacks: they say how sure a figure is for more "
        "tasks like these."
    ),
    (
        "Published figures come from other runs, other labels and a random split. They stand beside ours to be looked "
        "at, not to be met."
    ),
)


def _on_new_tasks(evidence: Evidence) -> SplitComparison | None:
    return next((split for split in evidence.comparison.splits if "task" in split.apart), None)


def _result(split: SplitComparison, name: str) -> PredictorResult | None:
    return next((one for one in split.predictors if one.name == name), None)
