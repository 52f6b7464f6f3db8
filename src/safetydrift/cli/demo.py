"""``safetydrift demo``: the main job."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import emit_json, notes, remark, say, say_wrapped, show_brief

if TYPE_CHECKING:
    from safetydrift.cli.story import Story


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
    """Show on real agent runs where the published chain stops and what the guard stops, and replay three runs.

    Without PATHS the shipped corpus is used: runs of real agents, reduced to what the mathematics needs. With the
    raw traces at hand, name their folder instead. One task in five is held out; the model written is the one that
    was tried on them.

    \b
    Example:
      safetydrift demo
      safetydrift demo traces/ -o my-findings
    """
    from safetydrift.cli.story import tell
    from safetydrift.effects.labeler import Labeler
    from safetydrift.evaluation.document import to_html
    from safetydrift.evaluation.findings import find
    from safetydrift.formats import load_catalogue, load_space, save_model
    from safetydrift.guard import Guard

    space, catalogue = load_space("flow"), load_catalogue()
    inputs = Inputs(paths or ("corpus",), space, Labeler(catalogue), options.Reading(quiet=quiet))
    trajectories = list(inputs)
    inputs.summarise()
    with notes.status("fitting without the held-out tasks") if not quiet else nullcontext():
        findings = find(trajectories, space, load_space("paper"), catalogue, inputs.provenance())
        story = tell(findings, Guard.load())

    if as_json:
        emit_json(story.document)
    else:
        _show(story)
    output.mkdir(parents=True, exist_ok=True)
    save_model(findings.monitor.model, output / "model.json")
    (output / "report.html").write_text(to_html(story.document), encoding="utf-8", newline="\n")
    if not quiet:
        remark(
            f"\nmodel:  {output / 'model.json'}\nreport: {output / 'report.html'} (with the tables behind this)"
        )


def _show(story: Story) -> None:
    say(f"{story.document.title}\n", style="bold")
    for paragraph in story.lead:
        say_wrapped(paragraph)
        say("")
    for section in story.told:
        say(section.heading, style="bold underline")
        for part in section.parts:
            show_brief(part)
        say("")
