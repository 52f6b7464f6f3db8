"""The tables of a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.cli.output import console, emit_json, percent, shown, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.study.review.comparison import Comparison, LevelAgreement
    from safetydrift.study.review.exceptions import Corrections
    from safetydrift.study.review.kappa import Kappa
    from safetydrift.study.review.sheets import Sheet

SHOWN_DISAGREEMENTS = 20


def report(
    compared: Sequence[Comparison],
    sheets: Sequence[Sheet],
    *,
    as_json: bool,
    corrected: Corrections | None = None,
) -> None:
    """Print comparisons of the judges of some sheets, and what they would correct in the catalogue."""
    if as_json:
        found: dict[str, object] = {
            "sheets": [
                {"name": sheet.name, "rows": len(sheet.decisions), "decided": sheet.decided}
                for sheet in sheets
            ],
            "comparisons": [one.as_dict() for one in compared],
        }
        if corrected is not None:
            found["corrections"] = {
                one.tool: {"effect": one.levels, "note": one.note} for one in corrected.tools
            }
            found["corrections_by_hand"] = corrected.by_hand
        emit_json(found)
        return
    for sheet in sheets:
        console.print(
            shown(f"{sheet.name}: {sheet.decided:,} of {len(sheet.decisions):,} calls decided"), markup=False
        )
    for one in compared:
        _show(one)
    if corrected is not None and (corrected.tools or corrected.by_hand):
        rows = [(fix.tool, fix.note) for fix in corrected.tools]
        rows += [(tool, f"to be changed by hand: {reason}") for tool, reason in corrected.by_hand.items()]
        console.print(table("\nCorrected with one voice", ("tool", "why"), rows, left=2))


def _show(compared: Comparison) -> None:
    first, second = compared.judges
    title = f"\n{first} and {second}: {len(compared.pairs):,} calls judged by both"
    rows = [row for name in compared.scales for row in _rows(compared, name)]
    columns = (
        "dimension",
        "calls of",
        "same [95 %, Wilson]",
        "or alternative",
        "kappa [95 %]",
        "weighted kappa [95 %]",
    )
    console.print(table(title, columns, rows, left=2))
    console.print(f"in every dimension: {compared.everywhere}", markup=False)
    console.print(
        "The intervals of kappa are large-sample ones (Fleiss, Cohen and Everitt 1969); --json has bootstrap intervals "
        "beside them. Weighted: by the square of the distance. A dash: undefined; --json says why.",
        markup=False,
    )
    for name in compared.scales:
        _show_table(compared.agreement(name), name, compared.judges)
    kinds = [
        (kind, str(one.same), _interval(one.kappa), sum(one.table[1]), one.table[0][1] + one.table[1][1])
        for kind, one in compared.kinds().items()
    ]
    if kinds:
        header = (
            "kind of violation",
            "same [95 %, Wilson]",
            "kappa [95 %]",
            "first says so",
            "second says so",
        )
        console.print(table("\nKinds", header, kinds))
    _show_disagreements(compared)


def _rows(compared: Comparison, dimension: str) -> Iterator[tuple[str, ...]]:
    of_all = compared.of_all_calls(dimension)
    yield _row(dimension, "all", compared.agreement(dimension))
    if of_all == of_all:  # noqa: PLR0124 - nan is not equal to itself
        yield dimension, "all, each stratum by its size", percent(of_all), "", "", ""
    for what, parts in (("source", compared.by_source(dimension)), ("layer", compared.by_layer(dimension))):
        for name, part in parts.items():
            yield _row(dimension, f"{what} {name}", part)


def _row(dimension: str, what: str, found: LevelAgreement) -> tuple[str, ...]:
    kappas = _interval(found.kappa), _interval(found.weighted_kappa)
    return dimension, what, str(found.same), percent(found.accepted.value), *kappas


def _interval(kappa: Kappa) -> str:
    if kappa.value != kappa.value:
        return "-"
    if kappa.analytic is None:
        return f"{kappa.value:.3f} [-]"
    low, high = kappa.analytic
    return f"{kappa.value:.3f} [{low:.2f}, {high:.2f}]"


def _show_table(found: LevelAgreement, dimension: str, judges: tuple[str, str]) -> None:
    if not found.same.total:
        return
    rows = [(level, *counts) for level, counts in zip(found.levels, found.table, strict=True)]
    title = f"\n{dimension}: {judges[0]} (rows) and {judges[1]} (columns)"
    console.print(table(title, ("", *found.levels), rows))


def _show_disagreements(compared: Comparison) -> None:
    found = compared.disagreements()
    if not found:
        return
    more = f"; the first {SHOWN_DISAGREEMENTS} of them" if len(found) > SHOWN_DISAGREEMENTS else ""
    console.print(f"\n[bold]{len(found):,} disagreements{more}[/bold]")
    for one in found[:SHOWN_DISAGREEMENTS]:
        parts = [f"{name}: {first} / {second}" for name, (first, second) in one.levels.items()]
        if one.kinds:
            parts.append("kinds: " + " / ".join(" ".join(sorted(kinds)) or "none" for kinds in one.kinds))
        unsure = " (unsure)" if one.pair.unsure else ""
        console.print(shown(f"{one.pair.tool}{unsure}: {'; '.join(parts)}\n    {one.pair.id}"), markup=False)
