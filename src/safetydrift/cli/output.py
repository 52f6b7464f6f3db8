"""How results reach a person or a script: tables, JSON, files, and progress on the way."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from safetydrift.evaluation import document as documents
from safetydrift.evaluation.rate import plain
from safetydrift.evaluation.text import printable

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
    return Group(*([Text(shown(title), style="bold")] if title else []), result)


def show(document: documents.Document) -> None:
    """Show a report in the terminal; its drawings are for files."""
    say(f"{document.title}\n", style="bold")
    for paragraph in document.lead:
        say(paragraph)
    for section in document.sections:
        parts = [part for part in section.parts if not isinstance(part, documents.Drawing)]
        if parts:
            say(f"\n{section.heading}", style="bold underline")
        for part in parts:
            show_part(part)


def show_part(part: documents.Part) -> None:
    """Show a paragraph, a list or a table."""
    if isinstance(part, documents.Table):
        rows = [[documents.written(cell) for cell in row] for row in part.rows]
        console.print(table(f"\n{part.title}" if part.title else "", part.columns, rows))
        if part.note:
            say(part.note)
    elif isinstance(part, tuple):
        for item in part:
            say(f"- {item}")
    else:
        say(str(part))


def say(text: str, *, style: str = "") -> None:
    """Print a line of text as it is, without what a terminal would obey."""
    console.print(shown(text), markup=False, style=style)


def remark(text: str, *, style: str = "") -> None:
    """Print a remark to standard error, without what a terminal would obey."""
    notes.print(shown(text), markup=False, style=style)


def shown(text: str) -> str:
    """Return text fit for a terminal: names in traces are the work of others, and may hold control sequences."""
    return "\n".join(map(printable, text.split("\n")))


def figure(value: object) -> str:
    """Write a value as tables show it; what is undefined is a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float):
        return f"{value:.3f}" if isfinite(value) else "-"
    return f"{value:,}" if isinstance(value, int) else shown(str(value))


def percent(value: float) -> str:
    """Write a probability as a percentage; what is undefined is a dash."""
    return f"{100 * value:.1f} %" if isfinite(value) else "-"


def emit_json(value: object, output: Path | None = None) -> None:
    """Write results as JSON to standard output or a file; nan and infinity become null."""
    text = json.dumps(finite(plain(value)), indent=2, ensure_ascii=False, allow_nan=False)
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
    columns = (SpinnerColumn(), TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with _bar(columns, quiet=quiet) as progress:
        yield lambda done, total: progress("", done, total)


@contextmanager
def work_progress(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show what is being done, and how many pieces of work are done of how many."""
    columns = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with _bar(columns, quiet=quiet) as progress:
        yield progress


@contextmanager
def _bar(columns: Sequence[Any], *, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show a bar; it starts with the first piece of work, so that processes forked before know nothing of it."""
    if quiet or not notes.is_terminal:
        yield lambda _what, _done, _total: None
        return
    progress = Progress(*columns, console=notes, transient=True)
    task = progress.add_task("", total=None)

    def on(what: str, done: int, total: int | None) -> None:
        progress.start()
        progress.update(task, description=shown(what), completed=done, total=total)

    try:
        yield on
    finally:
        progress.stop()
