"""``safetydrift analyze``."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, percent, say, show_part, table
from safetydrift.monitor.model import category_name
from safetydrift.states.trajectory import VIOLATED

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.monitor.evidence import Evidence
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.settings import FitSettings

PUBLISHED = "published"


@click.command
@options.paths
@options.output("JSON file to write.")
@options.fitting
@click.option("--category", help="Only this category; all runs together by default.")
@options.labelling()
@options.reading
@options.as_json
def analyze(
    paths: tuple[str, ...],
    output: Path | None,
    category: str | None,
    labelling: options.Labelling,
    reading: options.Reading,
    as_json: bool,
    settings: FitSettings,
) -> None:
    """Print what a chain says: the matrix, finite-horizon curves, absorption, points of no return.

    PATHS may also be the word "published": the paper's aggregate matrix, with the published figures beside; or a
    model file: what it was fitted on, its policy, and what is promised about its thresholds.

    \b
    Example:
      safetydrift analyze published
      safetydrift analyze corpus --states coarse --category banking --json
      safetydrift analyze model.json
    """
    from safetydrift.formats.model_file import is_model_file

    report: _Report | _ModelReport
    if paths == (PUBLISHED,):
        report = _published(settings.max_horizon)
    elif len(paths) == 1 and is_model_file(paths[0]):
        report = _ModelReport(paths[0])
    else:
        from safetydrift.monitor.fitting import fit_chains

        space, labeler = labelling.load()
        inputs = Inputs(paths, space, labeler, reading, output)
        fitted = fit_chains(inputs, space, settings)
        inputs.summarise()
        report = _fitted(fitted, category or "")
    if as_json or output is not None:
        emit_json(report, output)
    if not as_json:
        report.show()


class _Report:
    """One chain, its curves and its ends."""

    def __init__(
        self,
        title: str,
        chain: AbsorbingChain,
        max_horizon: int,
        extra: dict[str, Any],
        evidence: Evidence | None = None,
    ) -> None:
        from safetydrift.markov.horizon import horizon_table
        from safetydrift.monitor.tabulation import ends_of

        self.title, self.chain, self.extra, self.evidence = title, chain, extra, evidence
        self.horizons = horizon_table(chain, max_horizon)
        self.ends = ends_of(chain)
        self.no_return = [chain.names[state] for state in self.horizons.points_of_no_return()]

    def as_dict(self) -> dict[str, Any]:
        chain, curves, ends = self.chain, self.horizons.probability(VIOLATED), self.ends
        transient = ends.chain.transient.tolist()
        steps = dict(zip(transient, ends.expected_steps.tolist(), strict=True))
        spread = dict(zip(transient, ends.variance_of_steps.tolist(), strict=True))
        return {
            "chain": self.title,
            **self.extra,
            "states": chain.names,
            "absorbing": {name: list(states) for name, states in chain.absorbing.items()},
            "transitions": chain.transitions.tolist(),
            "visited": chain.visited.tolist(),
            "observed": self._observed(),
            "violation_within": {
                name: {
                    str(h): nan if state in chain.unseen else float(curves[h, state])
                    for h in range(1, len(curves))
                }
                for state, name in enumerate(chain.names)
            },
            "absorption": {
                name: {end: float(ends.probability(end)[state]) for end in chain.class_names}
                for state, name in enumerate(chain.names)
            },
            "expected_steps": {name: steps.get(state, nan) for state, name in enumerate(chain.names)},
            "variance_of_steps": {name: spread.get(state, nan) for state, name in enumerate(chain.names)},
            "points_of_no_return": self.no_return,
        }

    def _observed(self) -> dict[str, Any] | None:
        """Return counts and 95 % Wilson intervals of the observed shares, by cell."""
        if self.evidence is None:
            return None
        from safetydrift.markov.estimation import row_intervals

        counts = self.evidence.counts
        bounds = row_intervals(counts)
        return {"counts": counts.matrix.tolist(), "low": bounds.low.tolist(), "high": bounds.high.tolist()}

    def show(self) -> None:
        from safetydrift.evaluation.chain_tables import ends_table, horizons_table, matrix_table

        say(self.title, style="bold")
        title = "Transition matrix" + (
            ", with 95 % intervals of the observed shares" if self.evidence else ""
        )
        show_part(matrix_table(title, self.chain, self.evidence, intervals=True))
        show_part(horizons_table("Probability of a violation within h steps", self.horizons))
        show_part(ends_table("How runs end", self.chain))
        names = ", ".join(self.no_return) or "none"
        say(f"\nPoints of no return (85 % or more within 5 steps): {names}")
        if published := self.extra.get("published"):
            within = self.horizons.probability(VIOLATED)[5]
            rows = [
                [name, percent(within[self.chain.names.index(name)]), percent(value)]
                for name, value in published["violation_within_5"].items()
            ]
            title = "\nWithin 5 steps, beside the published figure"
            console.print(table(title, ["from", "computed", "published"], rows))
            say(published["note"])


class _ModelReport:
    """A model as its file tells of it."""

    def __init__(self, path: str) -> None:
        from safetydrift.formats import load_model

        self.path, self.model = path, load_model(path)

    def as_dict(self) -> dict[str, Any]:
        model = self.model
        tasks = {"tasks": len(model.provenance.get("tasks", ()))}
        return {
            "model": self.path,
            "space": model.space.name,
            "notion": model.notion.value,
            "policy": model.policy.definition(),
            "settings": dict(model.settings),
            "provenance": {**model.provenance, **tasks},
        }

    def show(self) -> None:
        from safetydrift.cli.calibrate import show_promises

        model, policy, told = self.model, self.model.policy, self.model.provenance
        say(f"{self.path}: {model!r}, fitted on {len(told.get('tasks', ())):,} tasks")
        rows = [
            [category_name(category), *(ends.get(end, 0) for end in (VIOLATED, "completed", "censored"))]
            for category, ends in told.get("runs", {}).items()
        ]
        columns = ["category", "violated", "completed", "cut off"]
        console.print(table("\nRuns it was fitted on", columns, rows))
        say(
            f"\nAlarms at {policy.threshold:g} or more within {policy.horizon} steps, for a proposed call at "
            f"{policy.pending_threshold:g}"
        )
        say(str(told.get("threshold", "thresholds given by hand")))
        show_promises(model)


def _published(max_horizon: int) -> _Report:
    from safetydrift.markov.reference_chains import published_chain

    reference = published_chain()
    note = (
        "The published figures come from the unrounded matrix, the computed ones from the two decimals in print.\n"
        "Violation is the only end of this chain, so every state is absorbed by it: a property of the construction."
    )
    published = {"violation_within_5": dict(reference.within_5_steps), "note": note}
    title = "published: aggregate chain of the paper"
    return _Report(title, reference.chain, max_horizon, {"published": published})


def _fitted(fitted: FittedChains, category: str) -> _Report:
    from safetydrift.evaluation.chain_tables import NOTION_WORDS

    if category not in fitted.chains:
        known = ", ".join(sorted(name for name in fitted.chains if name))
        raise click.BadParameter(f"no category {category!r}; there are: {known}", param_hint="--category")
    settings, ends = fitted.settings, fitted.evidence[category].ends
    extra = {
        "category": category_name(category),
        "settings": settings.definition(),
        "runs": dict(ends),
        "left_out": dict(fitted.left_out),
    }
    runs, notion = sum(ends.values()), NOTION_WORDS[settings.notion]
    title = f"{category_name(category)}: {runs:,} runs, {notion}, {settings.estimator.value}"
    return _Report(title, fitted.chains[category], settings.max_horizon, extra, fitted.evidence[category])
