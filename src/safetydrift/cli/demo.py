"""``safetydrift demo``: the main job."""

from __future__ import annotations

from contextlib import nullcontext
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, notes, percent, table
from safetydrift.cli.tables import NOTION_WORDS, fit_summary, horizon_view, matrix_table
from safetydrift.monitor.model import category_name

if TYPE_CHECKING:
    from safetydrift.evaluation.findings import Findings, HeldOut

SHOWN_POINTS = 12


@click.command
@click.argument("paths", nargs=-1, metavar="[PATHS...]")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("safetydrift-demo"),
    show_default=True,
    help="Folder for the model and the report.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no remarks.")
@options.as_json
def demo(paths: tuple[str, ...], output: Path, quiet: bool, as_json: bool) -> None:
    """Fit on real agent runs, report the findings, replay three of them.

    Without PATHS the shipped corpus is used: runs of real agents, reduced to what the mathematics needs. With the
    raw traces at hand, name their folder instead.

    \b
    Example:
      safetydrift demo
      safetydrift demo traces/ -o my-findings
    """
    from safetydrift.effects.labeler import Labeler
    from safetydrift.evaluation.findings import find
    from safetydrift.evaluation.report import write_report
    from safetydrift.formats import load_catalogue, load_space, save_model
    from safetydrift.monitor.fitting import fit_model

    space, catalogue = load_space("paper"), load_catalogue()
    reading = options.Reading(trace_format=None, skip_bad=False, quiet=quiet)
    inputs = Inputs(paths or ("corpus",), space, Labeler(catalogue), reading)
    trajectories = list(inputs)
    inputs.summarise()
    with notes.status("fitting") if not quiet else nullcontext():
        model, _ = fit_model(trajectories, space, catalogue, provenance=inputs.provenance())
        findings = find(trajectories, space, catalogue, provenance=inputs.provenance())

    if as_json:
        emit_json(findings.as_dict())
    else:
        _show(findings)
        console.print(fit_summary(findings.fine, model))
        _show_examples(findings.held_out)

    output.mkdir(parents=True, exist_ok=True)
    save_model(model, output / "model.json")
    write_report(findings, output / "report.html")
    if not quiet:
        notes.print(f"\nmodel:  {output / 'model.json'}\nreport: {output / 'report.html'}")


def _show(findings: Findings) -> None:
    console.print(f"[bold]{NOTION_WORDS[findings.notion]}[/bold]\n")
    _show_sources(findings)
    _show_categories(findings)
    for category, found in findings.categories.items():
        name = category_name(category)
        evidence = findings.coarse.evidence[category]
        console.print(
            matrix_table(f"\nTransition matrix on risk levels: {name}", found.coarse.chain, evidence)
        )
        console.print(horizon_view(f"\nProbability of a violation within h steps: {name}", found.coarse))
    _show_no_return(findings)
    _show_published(findings)
    _show_held_out(findings.held_out)


def _show_sources(findings: Findings) -> None:
    rows = [
        [name, part.runs, part.steps, str(part.violated), str(part.onset_known), sum(part.left_out.values())]
        for name, part in findings.sources.items()
    ]
    columns = ["source", "runs", "steps", "violated, of usable runs", "violating call known", "left out"]
    console.print(table("What was read", columns, rows))
    rows = [
        [name, str(a.same), a.kappa, str(a.recall), str(a.precision)]
        for name, a in ((name, part.agreement) for name, part in findings.sources.items())
        if a.total
    ]
    columns = [
        "source",
        "same verdict",
        "kappa",
        "labelled violated, rules too",
        "violated by rules, labelled too",
    ]
    console.print(table("\nDo the published rules agree with the label?", columns, rows))


def _show_categories(findings: Findings) -> None:
    rows = []
    for category, found in findings.categories.items():
        steps = dict(
            zip(found.ends.chain.transient.tolist(), found.ends.expected_steps.tolist(), strict=True)
        )
        rows.append(
            [
                category_name(category),
                str(found.violated),
                str(found.censored),
                percent(float(found.coarse.within(5)[0]) if 0 in steps else nan),
                percent(float(found.ends.probability("violated")[0]) if 0 in steps else nan),
                f"{steps[0]:.1f}" if 0 in steps else "-",
                len(found.no_return),
            ]
        )
    columns = [
        "category",
        "violated",
        "cut off",
        "within 5 of start",
        "eventually",
        "expected steps",
        "no return",
    ]
    console.print(table("\nBy category (chain on risk levels; points of no return on states)", columns, rows))


def _show_no_return(findings: Findings) -> None:
    points = [
        (category_name(category), *point)
        for category, found in findings.categories.items()
        for point in found.no_return
    ]
    points.sort(key=lambda point: (-point[3], point[1]))
    if not points:
        console.print("\n[bold]Points of no return (85 % or more within 5 steps): none[/bold]")
        return
    rows = [[where, state, percent(risk), count] for where, state, risk, count in points[:SHOWN_POINTS]]
    title = f"\nPoints of no return: {len(points)} (85 % or more within 5 steps), the best supported first"
    console.print(table(title, ["category", "state", "within 5", "seen leaving"], rows, left=2))


def _show_published(findings: Findings) -> None:
    levels = range(len(findings.coarse.rows.names) - 1)  # the last is the one the rules call violated
    rows = []
    for category, found in findings.published.items():
        chain, risk = found.coarse.chain, found.coarse.within(5)
        known = [percent(float(risk[level])) if level in chain.transient else "-" for level in levels]
        names = [chain.names[level] for level in found.coarse.points_of_no_return()]
        rows.append(
            [category_name(category), str(found.violated), *known, len(found.no_return), ", ".join(names)]
        )
    columns = [
        "category",
        "violated by the rules",
        *(f"within 5 of {findings.coarse.rows.names[n]}" for n in levels),
    ]
    title = "\nThe published method on the same runs (violation by the rules, and the only end)"
    console.print(table(title, [*columns, "no return (states)", "no return (levels)"], rows))


def _show_held_out(held_out: HeldOut) -> None:
    if not held_out.tasks_tried:
        console.print(f"\n[bold]Of {held_out.tasks_fitted} tasks, no task is left to hold out[/bold]")
        return
    policy = held_out.monitor.policy
    rows = [
        ["violations foreseen (alarm before the violating call)", str(held_out.detected)],
        ["violations stopped when the call was proposed", str(held_out.stopped_at_proposal)],
        ["runs without a violation: false alarm", str(held_out.false_alarms)],
        ["runs without a violation: false alarm at a proposal", str(held_out.false_proposals)],
    ]
    prior = held_out.prior
    flagged = ", ".join(map(category_name, prior.flagged)) or "nothing"
    rows += [
        [f"beside it, a rule that flags every run of {flagged}: violations", str(prior.detected)],
        ["the same rule: false alarms", str(prior.false_alarms)],
    ]
    title = (
        f"\nOn {held_out.tasks_tried} held-out tasks (fitted on {held_out.tasks_fitted} others), "
        f"thresholds {policy.threshold:.3f} and {policy.pending_threshold:.3f}"
    )
    console.print(table(title, ["", "runs"], rows))
    within = [
        [category_name(category), str(detected), str(false_alarms)]
        for category, (detected, false_alarms) in held_out.by_category.items()
    ]
    title = "\nThe same within each category, where knowing the category is worth nothing"
    console.print(table(title, ["category", "violations foreseen", "false alarms"], within))
    if held_out.lead_times:
        leads = ", ".join(f"{steps}: {runs}" for steps, runs in held_out.lead_times.items())
        console.print(f"steps of warning: {leads}")


def _show_examples(held_out: HeldOut) -> None:
    from safetydrift.cli.replay import outcome, replay_view

    if held_out.examples:
        console.print("\n[bold]Runs on tasks the monitor was not fitted on[/bold]")
    for example in held_out.examples:
        console.print(replay_view(example, held_out.monitor))
        console.print(outcome(example))
