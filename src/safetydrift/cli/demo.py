"""``safetydrift demo``: the main job."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, notes, remark, say, show


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
@options.quiet
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
    from safetydrift.cli.replay import outcome, replay_view
    from safetydrift.effects.labeler import Labeler
    from safetydrift.evaluation.document import to_html
    from safetydrift.evaluation.findings import find
    from safetydrift.formats import load_catalogue, load_space, save_model
    from safetydrift.monitor.fitting import fit_model

    space, catalogue = load_space("paper"), load_catalogue()
    inputs = Inputs(paths or ("corpus",), space, Labeler(catalogue), options.Reading(quiet=quiet))
    trajectories = list(inputs)
    inputs.summarise()
    with notes.status("fitting") if not quiet else nullcontext():
        model, _ = fit_model(trajectories, space, catalogue, provenance=inputs.provenance())
        findings = find(trajectories, space, catalogue, inputs.provenance())

    if as_json:
        emit_json(findings.document)
    else:
        show(findings.document)
        say("\nRuns on tasks the monitor was not fitted on", style="bold underline")
        for example in findings.examples:
            console.print(replay_view(example, findings.monitor))
            say(outcome(example))

    output.mkdir(parents=True, exist_ok=True)
    save_model(model, output / "model.json")
    (output / "report.html").write_text(to_html(findings.document), encoding="utf-8", newline="\n")
    if not quiet:
        remark(f"\nmodel:  {output / 'model.json'}\nreport: {output / 'report.html'}")
