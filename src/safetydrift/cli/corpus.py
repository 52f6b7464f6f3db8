"""``safetydrift corpus``."""

from __future__ import annotations

from pathlib import Path

import click

from safetydrift.cli.output import console, emit_json, notes, table


@click.group
def corpus() -> None:
    """Build or describe the shipped corpus of derived runs.

    \b
    Example:
      safetydrift corpus info
      safetydrift corpus build traces/ -o my-corpus
    """


@corpus.command
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def info(as_json: bool) -> None:
    """Say what the shipped corpus holds, of what it was derived, and whom it is owed to."""
    from safetydrift.formats.corpus import corpus_credits, corpus_manifest

    manifest, owed = corpus_manifest(), corpus_credits()
    if as_json:
        emit_json({**manifest, "credits": owed})
        return
    columns = ["source", "runs", "steps", "violated", "onset known", "not violated", "no usable label"]
    rows = [
        [
            name,
            part["runs"],
            part["steps"],
            part["violated"],
            part["violated_with_known_onset"],
            part["not_violated"],
            sum(part["without_usable_label"].values()),
        ]
        for name, part in manifest["sources"].items()
    ]
    console.print(table("The shipped corpus", columns, rows))
    credit_rows = [
        [part["title"], part["authors"], part["repository"], part["license"]] for part in owed.values()
    ]
    console.print(table("\nCredits", ["benchmark", "authors", "runs from", "licence"], credit_rows, left=4))


@corpus.command
@click.argument("root", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write."
)
@click.option(
    "--space", default="flow", show_default=True, help="State space: a shipped name or a TOML file."
)
def build(root: Path, output: Path, space: str) -> None:
    """Derive a corpus from ROOT, a folder that holds one folder of traces per source."""
    from safetydrift.formats import load_catalogue, load_space
    from safetydrift.formats.corpus import build_corpus

    manifest = build_corpus(
        root, output, load_space(space), load_catalogue(), lambda name: notes.print(f"reading {name} ..")
    )
    total = sum(part["runs"] for part in manifest["sources"].values())
    size = (output / "runs.jsonl.xz").stat().st_size
    notes.print(f"{total:,} runs in {size / 1e6:.1f} MB written to {output}")
