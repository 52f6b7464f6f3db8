"""Evidence as a document: what was found, and as plainly what it does not show, in words, tables and drawings."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.evaluation.comparison import REFERENCE
from safetydrift.evaluation.document import Document, Drawing, Section, Table, figure
from safetydrift.evaluation.predictors import PREDICTORS
from safetydrift.evaluation.rate import plain
from safetydrift.formats.corpus import corpus_credits
from safetydrift.states.trajectory import Notion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from safetydrift.evaluation.comparison import Comparison, PredictorResult, SplitComparison
    from safetydrift.evaluation.document import Cell, Part
    from safetydrift.evaluation.evidence import Evidence

DRAWN = (
    "foresight",
    "monitor",
    "logistic-hazard",
    "boosting",
    "coarse-published-by-category",
    "model-rate",
    REFERENCE,
)
"""Predictors whose curves are drawn, where they are among those compared; models and files of the user come first."""
MOST_DRAWN = 6

COLUMNS: Mapping[str, str] = {
    "AUROC": "step.{h}.auroc",
    "within category": "step.{h}.within_category",
    "within task": "step.{h}.within_task",
    "within model": "step.{h}.within_model",
    "equal step": "step.{h}.equal_step",
    "Brier skill": "step.{h}.brier_skill",
    "ECE": "",
    "recall at 5 %": "run.recall_at_0.05",
    "whole runs": "run.within_category",
}
"""The figures of the compact table, by its headings; ``{h}`` is the horizon. ECE has no interval."""

EXPLAINED = (
    "AUROC: the share of pairs of moments, one before a violation within {h} steps and one not, in which the former is "
    "given the higher risk; 0.5 is chance. Within category, task or model: only pairs of one, where knowing which one "
    "it is is worth exactly 0.5 (within model: of one category and model). Equal step: only pairs after equally many "
    "calls. Brier skill: 0 is no better than saying the base rate, 1 is perfect, below 0 is worse than the base rate. "
    "ECE: mean distance between forecast and frequency. Recall at 5 %: violated runs with an alarm strictly before the "
    "violating call, when 5 % of the other runs may alarm. Whole runs: AUROC of a run's highest risk, within category. "
    "In brackets 95 % intervals over resampled tasks; a star marks a difference whose interval excludes zero."
)


def evidence_document(evidence: Evidence) -> Document:
    """Return evidence as a document: what was found first, and as plainly what it does not show."""
    splits = evidence.comparison.splits
    return Document(
        "How well violations are foretold",
        (" ".join([evidence.comparison.finding(), *_comparisons(evidence)]),),
        (
            Section("What this does not show", (tuple(caveats(evidence)),)),
            Section("What was read", (sources_table(evidence), *_left_out(evidence))),
            *(_section(evidence, split) for split in splits),
            Section("Figures", tuple(_drawings(evidence))),
            Section("Where this comes from", (tuple(_provenance(evidence)),)),
        ),
    )


def sources_table(evidence: Evidence) -> Table:
    """Return what the runs are."""
    told = (
        "what the source of a run labelled as one, at its onset"
        if evidence.notion is Notion.LABEL
        else "what the rules of the state space call one"
    )
    rows = [(name, one.runs, one.violated, one.onset_known) for name, one in evidence.sources.items()]
    columns = ("source", "runs", "violated, of usable runs", "violating call known")
    return Table("", f"A violation is {told}.", columns, tuple(rows))


def _left_out(evidence: Evidence) -> Iterator[str]:
    if evidence.left_out:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in evidence.left_out.items())
        yield f"Left out: {reasons}."


def _provenance(evidence: Evidence) -> Iterator[str]:
    yield f"SafetyDrift {__version__}"
    for name, value in evidence.provenance.items():
        yield f"{name.replace('_', ' ')}: {plain(value)}"
    for name, credit in corpus_credits().items():
        if name in evidence.sources:
            yield f"{credit['title']}: {credit['authors']}, {credit['repository']}, {credit['license']}"


def _section(evidence: Evidence, split: SplitComparison) -> Section:
    horizon, runs = evidence.comparison.horizon, split.violated
    text = (
        f"{runs.total:,} runs of {split.tasks:,} tasks, {runs.hits:,} violated; {split.by_step.hits:,} by step; "
        f"{split.background:,} further runs without an attack; each predictor fitted {split.folds} times."
    )
    heading = split.name[:1].upper() + split.name[1:]
    parts: list[Part] = [text, summary(split, horizon)]
    if any(one.differences for one in split.predictors):
        parts.append(differences(split, evidence.comparison))
    return Section(heading, (*parts, *split.notes, EXPLAINED.format(h=horizon)))


def summary(split: SplitComparison, horizon: int) -> Table:
    """Return the compact table of a split, a row per predictor."""
    rows: list[tuple[Cell, ...]] = []
    for result in split.predictors:
        figures = result.measures.figures()
        calibration = result.measures.steps[horizon].calibration
        ece = float("nan") if calibration is None else calibration.ece
        rows.append(
            (
                _named(split, result.name),
                *(figures.get(name.format(h=horizon)) if name else ece for name in COLUMNS.values()),
            )
        )
    return Table("", "", ("predictor", *COLUMNS), tuple(rows))


def differences(split: SplitComparison, comparison: Comparison) -> Table:
    """Return the same figures minus the reference's, a row per other predictor."""
    headings = [heading for heading, name in COLUMNS.items() if name]
    rows = []
    for result in split.predictors:
        if result.differences:
            names = [COLUMNS[heading].format(h=comparison.horizon) for heading in headings]
            rows.append((_named(split, result.name), *(_signed(result, name) for name in names)))
    return Table(f"Minus {comparison.reference}", "", ("predictor", *headings), tuple(rows))


def _named(split: SplitComparison, name: str) -> str:
    """Return a predictor's name with what has to be known of it."""
    if name in split.in_sample:
        return f"{name} (in-sample)"
    return f"{name} (tasks unknown)" if name in split.unverified else name


def _signed(result: PredictorResult, name: str) -> str | None:
    difference = result.differences.get(name)
    return None if difference is None else difference.written(signed=True)


def _drawings(evidence: Evidence) -> Iterator[Drawing]:
    split, horizon = evidence.comparison.splits[0], evidence.comparison.horizon
    names = [one.name for one in split.predictors if one.name not in split.in_sample]
    own = [name for name in names if name not in PREDICTORS]
    chosen = {
        name: split.predictor(name).measures
        for name in [*own, *(name for name in DRAWN if name in names)][:MOST_DRAWN]
    }
    yield Drawing(
        "recall",
        "Violations detected against false alarms",
        f"On {split.name}, over all thresholds. The horizontal axis is stretched towards zero.",
        "; ".join(f"{name}: {one.runs.recall[0.05]} at 5 %" for name, one in chosen.items()),
        figure("recall_figure", {name: one.runs.sweep for name, one in chosen.items()}),
    )
    curves = {
        name: calibration.reliability
        for name, one in chosen.items()
        if (calibration := one.steps[horizon].calibration) is not None
    }
    yield Drawing(
        "reliability",
        "Forecast and frequency",
        f"On {split.name}. Points on the dashed line mean what they say; bins hold about equally many moments.",
        "; ".join(f"{name}: {len(curve)} bins" for name, curve in curves.items()),
        figure("reliability_figure", curves),
    )


# -- sentences ------------------------------------------------------------------------------------------------

PRIORS = frozenset({"silent", "category-prior", "task-rate", "model-rate", "run-length"})
"""Predictors that look at no call: they know what was asked, who acts, or how many calls were made."""
_DERIVED = frozenset({"agentdojo", "agentdyn"})
"""Sources that name no violating call: it is derived from the attacker's goal."""
_OF_DERIVED_ONSETS = """\
Onsets of AgentDojo and AgentDyn are derived: the first call that fits the attacker's goal. An attempt that failed the \
source's own check counts as no violation, and an alarm there as a false one."""
_ALWAYS = """\
Attacks of benchmarks are fixed and known to model makers; an attacker who adapts to a monitor is not in them, and \
neither are the base rates of any deployment.
Recall at a budget uses thresholds chosen on the very runs tried. It compares predictors and promises no rate elsewhere.
Intervals draw tasks again, not models, sources or attacks: they say how sure a figure is for more tasks like \
these.""".splitlines()


def caveats(evidence: Evidence) -> list[str]:
    """Say what the figures do not show, one paragraph each; those that were measured come first."""
    derived = (_OF_DERIVED_ONSETS,) if _DERIVED & evidence.sources.keys() else ()
    return [*_no_skill(evidence), *_random(evidence), *_unknown_onset(evidence), *derived, *_ALWAYS]


def _comparisons(evidence: Evidence) -> Iterator[str]:
    """Say how predictors that follow the run compare with knowing only who acts, and with the published chain."""
    split, name = _on_new_tasks(evidence), f"step.{evidence.comparison.horizon}.within_category"
    if split is None:
        return
    figures = {one.name: one.measures.figures()[name] for one in split.predictors}
    ranked = [
        one
        for one in sorted(figures, key=lambda one: -figures[one].value)
        if one not in PRIORS and one not in split.in_sample and not isnan(figures[one].value)
    ]
    if "model-rate" in figures and ranked:
        against = figures[ranked[0]].minus(figures["model-rate"])
        verdict = "does better" if against.value > 0 else "does worse"
        verdict = verdict if against.excludes_zero else "cannot be told apart from it"
        yield (
            f"Knowing only which model acts (model-rate) is worth {figures['model-rate']} within category; of the "
            f"predictors that look at what the run does, the best ({ranked[0]}) {verdict} (difference "
            f"{against.written(signed=True)})."
        )
    published = "coarse-published-by-category"
    if published in figures and (difference := split.predictor(published).differences.get(name)) is not None:
        yield (
            f"The published chain differs from the {evidence.comparison.reference} by "
            f"{difference.written(signed=True)} within category."
        )


def _no_skill(evidence: Evidence) -> Iterator[str]:
    split = _on_new_tasks(evidence)
    if split is None:
        return
    ranking = f"step.{evidence.comparison.horizon}.within_category"
    skill = f"step.{evidence.comparison.horizon}.brier_skill"
    blind, rough = [], []
    for one in split.predictors:
        figures = one.measures.figures()
        low, high = figures[ranking].interval()
        if low < high and low <= 0.5:  # noqa: PLR2004  # what knows no more than the category says one half by itself
            blind.append(one.name)
        if skill in figures and figures[skill].interval()[0] <= 0:
            rough.append(one.name)
    if blind:
        yield (
            f"No foresight within category. On {split.name}, within category, the interval of these reaches 0.5 or "
            f"below, so that nothing shows that they rank better than chance there: {', '.join(blind)}."
        )
    if rough:
        yield (
            "No skill as probabilities. The Brier skill of these is not above 0 for sure: always saying the base rate "
            f"does as well or better: {', '.join(rough)}."
        )


def _random(evidence: Evidence) -> Iterator[str]:
    held_out = _on_new_tasks(evidence)
    random = next((split for split in evidence.comparison.splits if not split.kept_apart), None)
    if held_out is None or random is None:
        return
    name = f"step.{evidence.comparison.horizon}.within_category"
    here = {one.name: one.measures.figures()[name].value for one in held_out.predictors}
    there = {one.name: one.measures.figures()[name].value for one in random.predictors}
    gains = {
        one: there[one] - here[one] for one in there if one in here and not isnan(there[one] - here[one])
    }
    if gains:
        most = max(gains, key=lambda one: gains[one])
        yield (
            f"A random split flatters. With tasks on both sides, as published, {most} reaches {there[most]:.3f} within "
            f"category where held-out tasks leave it {here[most]:.3f}."
        )


def _unknown_onset(evidence: Evidence) -> Iterator[str]:
    sources = evidence.sources.items()
    if unknown := [name for name, one in sources if one.onset_known.total and not one.onset_known.hits]:
        yield (
            f"No onset in {' and '.join(unknown)}. Their violating calls are not known; they are measured over whole "
            "runs, with the violation at the last call, and have no part in figures by step, proposal or lead time."
        )
    if silent := [name for name, one in sources if not one.violated.total]:
        yield f"No labels in {' and '.join(silent)}. Their runs are used, where they are, for false alarms alone."


def _on_new_tasks(evidence: Evidence) -> SplitComparison | None:
    return next((split for split in evidence.comparison.splits if "task" in split.kept_apart), None)
