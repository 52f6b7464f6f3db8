"""A report as data: paragraphs, lists, tables and drawings in sections. It is written as HTML or as Markdown here.

Names in it come from files of others, so that neither form takes any text for markup, and the page's own security
policy lets it load and run nothing. The same document gives the same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from importlib import import_module
from math import isnan
from typing import TYPE_CHECKING, Any, TypeAlias

from safetydrift._version import __version__
from safetydrift.evaluation.rate import plain
from safetydrift.evaluation.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from safetydrift.evaluation.metrics.resampling import Estimate
    from safetydrift.evaluation.rate import Rate

Cell: TypeAlias = "str | int | float | Rate | Estimate | None"
"""One entry of a table: words, a count, a figure (nan where undefined), a figure with its interval, or nothing."""

DASH = "\N{EN DASH}"
LONGEST = 200
"""Characters of a name that are shown."""
_MARKS = frozenset("\\`*_[]<>|#")
_SMALL = 0.001


@dataclass(frozen=True, slots=True)
class Table:
    """A table that says on what it rests.

    Parameters
    ----------
    title
        What it shows.
    note
        In plain language: which runs, which split, which construction.
    columns
        Names, all distinct. Columns that start with ``published`` hold figures printed in the paper: they come from
        other runs.
    rows
        One entry per column each.

    Raises
    ------
    ValueError
        If two columns share a name, or a row is not as wide as the table.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"columns share a name: {', '.join(self.columns)}")
        uneven = [row for row in self.rows if len(row) != len(self.columns)]
        if uneven:
            raise ValueError(f"{self.title!r} has {len(self.columns)} columns and a row of {len(uneven[0])}")

    def as_dict(self) -> dict[str, object]:
        """Return the table as plain data, each row as a mapping of column to entry."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "note": self.note, "columns": self.columns, "rows": rows}

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return one column, from the first row to the last; ValueError if there is none of that name."""
        position = self.columns.index(name)
        return tuple(row[position] for row in self.rows)


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
    draw
        Draws it.
    """

    key: str
    title: str
    caption: str
    spoken: str
    draw: Callable[[], Figure] = field(repr=False)


def figure(name: str, *given: object, **options: object) -> Callable[[], Figure]:
    """Return what draws a figure of `safetydrift.evaluation.figures`, which is imported only then."""

    def draw() -> Figure:
        drawn: Figure = getattr(import_module("safetydrift.evaluation.figures"), name)(*given, **options)
        return drawn

    return draw


Part: TypeAlias = "str | tuple[str, ...] | Table | Drawing"
"""A paragraph, a list, a table or a drawing."""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading."""

    heading: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Parameters
    ----------
    title
        What it is about.
    lead
        What it says, in a paragraph or a few.
    sections
        The rest.
    """

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]

    def parts(self, kind: type[Any]) -> Iterator[Any]:
        """Yield all parts of a kind."""
        for section in self.sections:
            yield from (part for part in section.parts if isinstance(part, kind))

    def as_dict(self) -> dict[str, object]:
        """Return texts and tables as plain data, by section."""
        told = {
            section.heading: [plain(part) for part in section.parts if not isinstance(part, Drawing)]
            for section in self.sections
        }
        return {"title": self.title, "lead": list(self.lead), "sections": told}


def written(cell: Cell) -> str:
    """Write an entry of a table."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        if isnan(cell):
            return DASH
        return f"{cell:.3g}" if 0 < abs(cell) < _SMALL else f"{cell:,.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


# -- HTML -----------------------------------------------------------------------------------------------------


def to_html(document: Document) -> str:
    """Return a document as the text of one HTML file that needs nothing but itself.

    Raises
    ------
    ModuleNotFoundError
        If jinja2, or matplotlib where there are drawings, is not installed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # of the extra

    pages = Environment(
        loader=PackageLoader("safetydrift.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters.update(written=written, kind=lambda part: type(part).__name__, image=_image)
    return pages.get_template("document.html.jinja").render(document=document, version=__version__)


def _image(drawing: Drawing) -> str:
    """Return a drawing as an address that holds it."""
    from safetydrift.evaluation.figures import encoded  # noqa: PLC0415  # of the extra

    return f"data:image/svg+xml;base64,{b64encode(encoded(drawing.draw(), 'svg')).decode()}"


def save_drawings(
    drawings: Iterable[Drawing], folder: Path, suffixes: Sequence[str] = ("svg", "png")
) -> None:
    """Write every drawing into a folder, in each format."""
    from safetydrift.evaluation.figures import encoded  # noqa: PLC0415  # of the extra

    folder.mkdir(parents=True, exist_ok=True)
    for drawing in drawings:
        for suffix in suffixes:
            (folder / f"{drawing.key}.{suffix}").write_bytes(encoded(drawing.draw(), suffix))


# -- Markdown -------------------------------------------------------------------------------------------------


def to_markdown(document: Document, folder: str = "") -> str:
    """Return a document as Markdown.

    Parameters
    ----------
    folder
        Where its drawings are, seen from the page; they are left out without one.
    """
    lines = [f"# {_marked(document.title)}"]
    for paragraph in document.lead:
        lines += ["", _marked(paragraph)]
    for section in document.sections:
        lines += ["", f"## {_marked(section.heading)}"]
        for part in section.parts:
            lines += _lines_of(part, folder)
    return "\n".join(lines) + "\n"


def _lines_of(part: Part, folder: str) -> list[str]:
    if isinstance(part, str):
        return ["", _marked(part)]
    if isinstance(part, tuple):
        return ["", *(f"- {_marked(item)}" for item in part)]
    if isinstance(part, Drawing):
        image = f"![{_marked(part.spoken)}]({folder}/{part.key}.svg)"
        return ["", f"### {_marked(part.title)}", "", image, "", _marked(part.caption)] if folder else []
    lines = ["", f"### {_marked(part.title)}"] if part.title else []
    lines += ["", _row(part.columns), "| --- |" + " ---: |" * (len(part.columns) - 1)]
    lines += [_row(map(written, row)) for row in part.rows]
    return [*lines, "", _marked(part.note)] if part.note else lines


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join([_marked(cell) for cell in cells]) + " |"


def _marked(text: str) -> str:
    """Return text that Markdown takes for nothing but text."""
    return "".join([f"\\{char}" if char in _MARKS else char for char in printable(text)])
