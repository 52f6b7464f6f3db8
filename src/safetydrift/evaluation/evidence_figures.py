"""Evidence in drawings: the figures of the published study on our runs, and those that compare predictors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib import style

from safetydrift.evaluation import figures
from safetydrift.evaluation.evidence_words import cell_written
from safetydrift.evaluation.palette import STYLE
from safetydrift.markov.reference_chains import published_chain
from safetydrift.monitor.model import AGGREGATE
from safetydrift.study.published import MEAN_LEAD_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

    from safetydrift.evaluation.comparison import PredictorResult
    from safetydrift.evaluation.evidence import Evidence

_USUAL = 0.05


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with what is to be said of it.

    Parameters
    ----------
    key
        Its file name, without a suffix.
    title, caption
        What it is, and how to read it.
    spoken
        The figures in it, for those who cannot see them.
    figure
        The figure itself.
    published
        Whether it is one of the published study.
    """

    key: str
    title: str
    caption: str
    spoken: str
    figure: Figure
    published: bool = False


def drawings(evidence: Evidence) -> list[Drawing]:
    """Draw all that was gathered: first what compares predictors, then the figures of the published study."""
    return [*_ours(evidence), *_published(evidence)]


def save_figures(
    drawn: list[Drawing], folder: Path, suffixes: tuple[str, ...] = ("svg", "png")
) -> list[Path]:
    """Write every drawing into a folder, in each format; return what was written. The same evidence, the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for drawing in drawn:
        for suffix in suffixes:
            path = folder / f"{drawing.key}.{suffix}"
            metadata = {"Date": None, "Creator": None} if suffix == "svg" else {"Software": None}
            with style.context(["default", STYLE]):
                drawing.figure.savefig(path, format=suffix, metadata=metadata)
            written.append(path)
    return written


def _ours(evidence: Evidence) -> Iterator[Drawing]:
    split, horizon = evidence.comparison.splits[0], evidence.comparison.horizon
    chosen = {
        one.name: one
        for name in evidence.drawn
        for one in split.predictors
        if one.name == name and name not in split.in_sample
    }
    if not chosen:
        return
    where = f"On {split.name}."
    bands = {name: evidence.drawn[name].band for name in chosen}
    yield Drawing(
        "recall",
        "Violations detected against false alarms",
        f"{where} Over all thresholds; the vertical line is the budget of 5 % that tables use, bands are 95 "
        "% intervals over resampled tasks, the dashed line is chance. The horizontal axis is stretched "
        "towards zero.",
        "; ".join(
            f"{name}: {one.measures.runs.recall[_USUAL].value:.3f} at 5 %"
            for name, one in chosen.items()
            if _USUAL in one.measures.runs.recall
        ),
        figures.recall_figure(bands),
    )
    curves = {
        name: calibration.reliability
        for name, one in chosen.items()
        if (calibration := one.measures.steps[horizon].calibration) is not None and calibration.reliability
    }
    if curves:
        yield Drawing(
            "reliability",
            "Forecast and frequency",
            f"{where} Points on the dashed line mean what they say; bins hold about equally many moments, bars are "
            "95 % Wilson intervals as if moments were independent, which they are not.",
            "; ".join(f"{name}: {len(curve)} bins" for name, curve in curves.items()),
            figures.reliability_figure(curves),
        )
    yield from _warnings(chosen, where)
    yield Drawing(
        "categories",
        "Category by category",
        f"{where} Ranking of moments within each category, with 95 % intervals over tasks; 0.5 is chance. Categories "
        "without both outcomes, or whose violating calls are not known, are left out.",
        "See the table of categories in the output of --json.",
        figures.panel_figure({name: one.measures.panels for name, one in chosen.items()}, horizon),
    )
    for name in list(chosen)[:2]:
        yield Drawing(
            f"risk-by-step-{_slug(name)}",
            f"How the risk goes along: {name}",
            f"{where} Risk of a violation within {horizon} steps after each call: median, middle half, and from the "
            "twentieth to the last but twentieth, of the runs still going.",
            "Quantiles are in the output of --json.",
            figures.fan_figure(evidence.drawn[name].fan),
        )


def _warnings(chosen: dict[str, PredictorResult], where: str) -> Iterator[Drawing]:
    surviving = {}
    for name, one in chosen.items():
        found = one.measures.runs.at_budget.get(_USUAL)
        if found is None or not found.foreseeable.total:
            continue
        runs = found.lead_times_foreseeable.runs
        surviving[name] = [
            sum(count for lead, count in runs.items() if lead >= steps) / found.foreseeable.total
            for steps in range(1, 13)
        ]
    if surviving:
        yield Drawing(
            "warning",
            "How early",
            f"{where} Share of the violations that could be foreseen (known violating call, not the first) "
            "that were warned of so many steps ahead or more, when 5 % of the other runs may alarm. 1 is an "
            "alarm just before the violating call is proposed.",
            "; ".join(f"{name}: {curve[0]:.3f} with any warning" for name, curve in surviving.items()),
            figures.warning_figure(surviving),
        )


def _published(evidence: Evidence) -> Iterator[Drawing]:
    yield from _chain_figures(evidence)
    makers: tuple[tuple[str, str, str, Callable[..., Figure]], ...] = (
        (
            "thresholds",
            "Detection and false alarms by threshold (figure 4)",
            "Grey: as published.",
            figures.threshold_figure,
        ),
        (
            "ablation",
            "Without one dimension after another (figure 6)",
            "Hollow: as published.",
            figures.ablation_figure,
        ),
        (
            "learning-curve",
            "Foresight by training runs (figure 7)",
            "Hollow: as published.",
            figures.learning_figure,
        ),
    )
    for key, title, caption, draw in makers:
        analysis = evidence.analyses.get(key)
        if analysis is not None:
            spoken = "; ".join(", ".join(map(cell_written, row[:3])) for row in analysis.rows)
            yield Drawing(key, title, f"{caption} {analysis.note}", spoken, draw(analysis), published=True)


def _chain_figures(evidence: Evidence) -> Iterator[Drawing]:
    if not evidence.chains:
        return
    table, printed = evidence.chains[AGGREGATE], published_chain()
    construction = "Published construction (violation the only end) on all these runs, none held out."
    yield Drawing(
        "matrix",
        "From one risk level to the next (figure 1)",
        f"{construction} Below each share, small and grey, the published one.",
        f"{len(table.chain.names)} levels",
        figures.matrix_figure(table.chain, evidence.departures, published=printed.chain),
        published=True,
    )
    yield Drawing(
        "horizons",
        "A violation within the next steps (figure 2)",
        f"{construction} Hollow marks at 5 steps: as published.",
        "; ".join(
            f"{name} {100 * float(table.probability()[5, state]):.1f} % within 5"
            for state, name in enumerate(table.chain.names)
            if state in table.chain.transient
        ),
        figures.horizon_figure(table, published=printed.within_5_steps),
        published=True,
    )
    parts = {name: part for name, part in evidence.chains.items() if name != AGGREGATE}
    if parts:
        yield Drawing(
            "horizons-by-category",
            "The same by category (figure 3)",
            f"{construction} One scale for all; levels that a category never left are missing.",
            f"{len(parts)} categories",
            figures.horizon_grid_figure(parts),
            published=True,
        )
    yield from _lead_times(evidence)


def _lead_times(evidence: Evidence) -> Iterator[Drawing]:
    split = evidence.comparison.splits[0]
    ours = next((one for one in split.predictors if one.name in evidence.drawn), None)
    found = None if ours is None else ours.measures.runs.at_budget.get(_USUAL)
    if ours is not None and found is not None:
        leads = found.lead_times
        yield Drawing(
            "lead-times",
            "Steps of warning (figure 5)",
            f"{ours.name} on {split.name}, when 5 % of the other runs may alarm: runs by steps from the first alarm to "
            "the violating call.",
            f"mean {leads.mean:.1f}, mode {leads.mode}",
            figures.lead_time_figure(leads.runs, published_mean=MEAN_LEAD_TIME),
            published=True,
        )


def _slug(name: str) -> str:
    """Return a name fit for a file: the user may call his models what he likes."""
    return (
        "".join(char if char.isascii() and char.isalnum() else "-" for char in name)[:40].strip("-") or "own"
    )
