"""Review sheets: CSV files on which people say what calls do.

A row names a call and holds a level per dimension, the kinds of violation it would complete, and remarks. An empty
cell is not decided. Only ``sample_id`` and one dimension have to be there, so a sheet can be kept and shared without
any text of the traces.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import ReviewError
from safetydrift.study.review.judgement import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from safetydrift.study.review.excerpt import Excerpt
    from safetydrift.study.review.sampling import DrawnCall

MAX_SHEET_BYTES = 64 << 20
MAX_ROWS = 100_000
NO_KINDS = "none"
"""What stands in the column of kinds when a reviewer says that there are none."""

_GUARDED = ("=", "+", "-", "@", "\t", "\r", "'")
"""What a spreadsheet may take for a formula, and the sign that guards against it."""

_TEXTS = ("task", "arguments", "result")
_YES, _NO = frozenset({"1", "x", "yes", "y", "true", "unsure"}), frozenset({"", "0", "no", "n", "false"})
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reviewer says of one call.

    Parameters
    ----------
    id, source, tool
        Which call; source and tool may be empty.
    levels
        Level by dimension, of those that were decided.
    kinds
        Kinds of violation; None where that was not decided.
    unsure
        Whether the reviewer was.
    alternatives
        Levels by dimension that the reviewer would accept too.
    remark
        In the reviewer's words.
    row
        Where it stands in its sheet; the header is row 1.
    """

    id: str
    source: str
    tool: str
    levels: dict[str, str]
    kinds: frozenset[str] | None
    unsure: bool
    alternatives: dict[str, frozenset[str]]
    remark: str
    row: int

    @property
    def decided(self) -> bool:
        """Whether anything was."""
        return bool(self.levels) or self.kinds is not None

    def judgement(self) -> Judgement:
        """Return what the reviewer says."""
        return Judgement(self.levels, self.kinds, self.alternatives)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The decisions of one reviewer, in the order of their rows.

    Parameters
    ----------
    name
        The file.
    decisions
        By the name of the call.
    """

    name: str
    decisions: dict[str, Decision]

    @property
    def decided(self) -> int:
        """Calls of which anything was decided."""
        return sum(decision.decided for decision in self.decisions.values())


def column(dimension: str) -> str:
    """Return the column of a dimension: its name, save that the one named like a tool's own column gives way.

    >>> column("data"), column("tool")
    ('data', 'tool_level')
    """
    return "tool_level" if dimension == "tool" else dimension


# -- writing --------------------------------------------------------------------------------------------


def guarded(text: str) -> str:
    """Return text that no spreadsheet takes for a formula.

    >>> guarded("=1+1"), guarded("a=b")
    ("'=1+1", 'a=b')
    """
    return f"'{text}" if text.startswith(_GUARDED) else text


def render_sheet(
    calls: Iterable[DrawnCall],
    excerpts: Mapping[str, Excerpt],
    dimensions: Sequence[str],
    *,
    include_effects: bool = False,
) -> str:
    """Return a sheet to fill in, as CSV.

    Parameters
    ----------
    include_effects
        Whether to show what the program says; a reviewer who knows it tends to agree.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    shown = [f"program_{column(name)}" for name in dimensions] if include_effects else []
    empty = [*map(column, dimensions), "kinds", "unsure", "alternative", "remark"]
    writer.writerow(["sample_id", "source", "tool_name", *_TEXTS, *shown, *empty])
    for call in calls:
        texts = excerpts[call.id]
        cells = [call.id, call.source, call.tool, texts.task, texts.arguments, texts.result]
        cells += [call.levels.get(name, "") for name in dimensions] if include_effects else []
        writer.writerow([*map(guarded, cells), *[""] * len(empty)])
    return out.getvalue()


# -- reading --------------------------------------------------------------------------------------------


def read_sheet(path: Path, scales: Mapping[str, tuple[str, ...]]) -> Sheet:
    """Read a sheet.

    Parameters
    ----------
    scales
        Levels by dimension.

    Raises
    ------
    ReviewError
        If it is no such sheet; the message names the file and the row.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SHEET_BYTES + 1)
    except OSError as error:
        raise ReviewError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_SHEET_BYTES:
        raise ReviewError(f"{path}: a sheet has at most {MAX_SHEET_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReviewError(f"{path}: not UTF-8 ({error}); save it as CSV in UTF-8") from error
    return parse_sheet(text, scales, str(path))


def parse_sheet(text: str, scales: Mapping[str, tuple[str, ...]], name: str = "sheet") -> Sheet:
    """Read a sheet from its text; like `read_sheet`."""
    rows = _rows(text, name)
    header = next(rows, (1, []))[1]
    columns = _Columns(header, scales, name)
    decisions: dict[str, Decision] = {}
    for number, cells in rows:
        if not any(cells):
            continue
        decision = columns.read(number, cells)
        if decision.id in decisions:
            first = decisions[decision.id].row
            raise ReviewError(
                f"{name}: row {number}: {decision.id!r} stands in row {first} already; keep one"
            )
        decisions[decision.id] = decision
    return Sheet(name, _with_unsaid_kinds(decisions))


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every row with its number; the delimiter is the one that the header has most of."""
    counts = Counter(text[: text.find("\n") if "\n" in text else len(text)])
    delimiter = max(_DELIMITERS, key=lambda sign: counts[sign])
    number = 0
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        for number, cells in enumerate(reader, 1):  # told of by the message
            if number > MAX_ROWS:
                raise ReviewError(f"{name}: a sheet has at most {MAX_ROWS:,} rows")
            yield number, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise ReviewError(f"{name}: row {number + 1}: not CSV: {error}") from error


class _Columns:
    """Where everything stands in the rows of one sheet."""

    def __init__(self, header: list[str], scales: Mapping[str, tuple[str, ...]], name: str) -> None:
        self.header, self.scales, self.name = header, scales, name
        names = [cell.lower() for cell in header]
        doubled = [cell for cell, count in Counter(names).items() if count > 1 and cell]
        if doubled:
            raise ReviewError(f"{name}: row 1: the column {doubled[0]!r} is there twice")
        self.at = {cell: position for position, cell in enumerate(names) if cell}
        if "sample_id" not in self.at:
            raise ReviewError(f"{name}: row 1: lacks the column 'sample_id'; this is no review sheet")
        known = {"sample_id", "source", "tool_name", "kinds", "unsure", "alternative", "remark", *_TEXTS}
        self.of_dimension = {one: self.at[column(one)] for one in scales if column(one) in self.at}
        wanted = ", ".join(map(column, scales))
        if not self.of_dimension:
            raise ReviewError(f"{name}: row 1: lacks a column of levels, such as {wanted}")
        known |= set(map(column, scales))
        unknown = [one for one in self.at if one not in known and not one.startswith("program_")]
        if unknown:
            raise ReviewError(f"{name}: row 1: unknown column {unknown[0]!r}; levels stand under {wanted}")

    def read(self, number: int, cells: list[str]) -> Decision:
        """Return the decision of a row."""
        where = f"{self.name}: row {number}"
        if len(cells) > len(self.header) and any(cells[len(self.header) :]):
            raise ReviewError(f"{where}: has {len(cells)} cells under {len(self.header)} columns")
        name = _unguarded(self._cell(cells, "sample_id"))
        if not name:
            raise ReviewError(f"{where}: lacks a sample_id")
        return Decision(
            id=name,
            source=_unguarded(self._cell(cells, "source")),
            tool=_unguarded(self._cell(cells, "tool_name")),
            levels=self._levels(cells, where),
            kinds=_kinds(self._cell(cells, "kinds"), where),
            unsure=_flag(self._cell(cells, "unsure"), where),
            alternatives=self._alternatives(_unguarded(self._cell(cells, "alternative")), where),
            remark=_unguarded(self._cell(cells, "remark")),
            row=number,
        )

    def _levels(self, cells: list[str], where: str) -> dict[str, str]:
        levels = {}
        for name, position in self.of_dimension.items():
            level = cells[position].lower() if position < len(cells) else ""
            if level and level not in self.scales[name]:
                raise ReviewError(
                    f"{where}: {self.header[position]}: there is no level {cells[position]!r}; "
                    f"it has: {', '.join(self.scales[name])}"
                )
            if level:
                levels[name] = level
        return levels

    def _alternatives(self, cell: str, where: str) -> dict[str, frozenset[str]]:
        """Read ``tool=network; data=public``; words without a sign, and kinds, are the reviewer's own affair."""
        found: dict[str, frozenset[str]] = {}
        for part in cell.lower().split(";"):
            header, sign, level = (word.strip() for word in part.partition("="))
            name = next((one for one in self.scales if header in {one, column(one)}), "")
            if not sign or not name:
                continue
            if level not in self.scales[name]:
                raise ReviewError(
                    f"{where}: alternative: there is no level {level!r} of {name}; "
                    f"it has: {', '.join(self.scales[name])}"
                )
            found[name] = found.get(name, frozenset()) | {level}
        return found

    def _cell(self, cells: list[str], name: str) -> str:
        position = self.at.get(name)
        return cells[position] if position is not None and position < len(cells) else ""


def _unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_GUARDED) else cell


def _kinds(cell: str, where: str) -> frozenset[str] | None:
    """Read kinds of violation, parted by blanks or signs; None for an empty cell."""
    for sign in ",;|/+":
        cell = cell.replace(sign, " ")
    words = cell.lower().split()
    if not words:
        return None
    if words == [NO_KINDS]:
        return frozenset()
    unknown = [word for word in words if word not in KINDS]
    if unknown:
        raise ReviewError(
            f"{where}: kinds: there is no kind {unknown[0]!r}; there are: {', '.join(KINDS)}, or {NO_KINDS!r} alone"
        )
    return frozenset(words)


def _flag(cell: str, where: str) -> bool:
    if cell.lower() in _YES:
        return True
    if cell.lower() in _NO:
        return False
    raise ReviewError(f"{where}: unsure: expected 1 or nothing, got {cell!r}")


def _with_unsaid_kinds(decisions: dict[str, Decision]) -> dict[str, Decision]:
    """On a sheet that names kinds but never says that there are none, an empty cell of a decided call says so."""
    said = [decision.kinds for decision in decisions.values() if decision.kinds is not None]
    if not said or not all(said):
        return decisions
    return {
        name: replace(decision, kinds=frozenset()) if decision.kinds is None and decision.levels else decision
        for name, decision in decisions.items()
    }
