"""``safetydrift card``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import binary_output, remark

MAX_EVALUATION_BYTES = 256 << 20


@click.command
@options.model_argument
@options.output("Markdown file to write; standard output if not given.")
@click.option("--name", help="What the model is called; by default as its file.")
@click.option(
    "--evaluation",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Figures to tell: the JSON that safetydrift evaluate --json wrote.",
)
def card(model: str, output: Path | None, name: str | None, evaluation: Path | None) -> None:
    """Write the card of a model: data, settings, promises, figures, limits.

    MODEL is a model file, or "default" for the shipped one.

    \b
    Example:
      safetydrift evaluate traces/ --model model.json --json > figures.json
      safetydrift card model.json --evaluation figures.json -o card.md
    """
    from safetydrift.evaluation.document import to_markdown
    from safetydrift.evaluation.model_card import model_card
    from safetydrift.formats import load_model

    document = model_card(load_model(model), name or Path(model).stem, _read(evaluation))
    with binary_output(output) as stream:
        stream.write(to_markdown(document).encode())
    if output is not None:
        remark(f"card written to {output}")


def _read(path: Path | None) -> Any:
    from safetydrift.errors import ScoresError

    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return json.loads(file.read(MAX_EVALUATION_BYTES))
    except (ValueError, RecursionError) as error:
        raise ScoresError(f"{path}: cannot be read as JSON: {error}") from error
