"""A table that says on what it rests, for people and for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from safetydrift.evaluation.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

Cell: TypeAlias = str | int | float | Rate | None
"""One entry of a table: words, a count, a figure (nan where undefined), a share with its counts, or nothing."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of one analysis.

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
        return {
            "title": self.title,
            "note": self.note,
            "columns": list(self.columns),
            "rows": [
                {column: _plain(cell) for column, cell in zip(self.columns, row, strict=True)}
                for row in self.rows
            ],
        }

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return one column, from the first row to the last; ValueError if there is none of that name."""
        position = self.columns.index(name)
        return tuple(row[position] for row in self.rows)

    def records(self) -> Iterator[dict[str, Cell]]:
        """Iterate over the rows as mappings of column to entry."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))


def _plain(cell: Cell) -> object:
    return cell.as_dict() if isinstance(cell, Rate) else cell
