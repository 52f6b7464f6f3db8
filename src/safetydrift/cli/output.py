"""How results reach a person or a script: tables, JSON, files."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import IO

WIDTH = 200
"""Tables keep their natural width: in a narrow terminal lines wrap, and no cell is cut."""

notes = Console(stderr=True, highlight=False, soft_wrap=True)
"""Where progress and remarks go, so that standard output holds results alone."""

console = Console(highlight=False, soft_wrap=True, width=WIDTH)
"""Where results for people go."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> Group:
    """Build a table under its title; the first ``left`` columns are text, the others figures."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
    for position, column in enumerate(columns):
        result.add_column(column, justify="left" if position < left else "right", no_wrap=True)
    for row in rows:
        result.add_row(*[cell if isinstance(cell, Text) else Text(figure(cell)) for cell in row])
    return Group(Text(shown(title), style="bold"), result)


def shown(text: str) -> str:
    """Return text fit for a terminal: names in traces are the work of others, and may hold control sequences."""
    return "".join(
        [char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text]
    )


def figure(value: object) -> str:
    """Write a value as tables show it; what is undefined is a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float):
        return f"{value:.3f}" if isfinite(value) else "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def percent(value: float) -> str:
    """Write a probability as a percentage; what is undefined is a dash."""
    return f"{100 * value:.1f} %" if isfinite(value) else "-"


def emit_json(value: object, output: Path | None = None) -> None:
    """Write JSON to standard output or a file; nan and infinity become null."""
    text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    if output is None:
        click.echo(text)
    else:
        with binary_output(output) as stream:
            stream.write(text.encode() + b"\n")


def finite(value: Any) -> Any:
    """Return plain data with null in place of nan and infinity."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


@contextmanager
def binary_output(output: Path | None) -> Iterator[IO[bytes]]:
    """Open where lines go: standard output, or a file that appears only when complete (.gz, .xz, .zst compress)."""
    if output is None or str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from safetydrift.formats.files import complete_or_absent

    with complete_or_absent(output) as stream:
        yield stream


@contextmanager
def reading_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar over the bytes of the input while it is read."""
    if quiet or not notes.is_terminal:
        yield lambda _done, _total: None
        return
    columns = (SpinnerColumn(), TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
