"""``safetydrift study review``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Traces
from safetydrift.cli.output import binary_output, console, emit_json, percent, remark, say, table
from safetydrift.errors import ReviewError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.study.review.comparison import Comparison, LevelAgreement
    from safetydrift.study.review.sheets import Sheet

SHEET, SAMPLE = "sheet.csv", "sample.json"
SHIPPED = "shipped"
SHOWN_DISAGREEMENTS = 20

_moment = click.option(
    "--moment",
    type=click.Choice(["proposed", "done"]),
    default="proposed",
    show_default=True,
    help="Which effect counts: of the call as it was proposed, or of what it did as far as its result tells.",
)


@click.group
def review() -> None:
    """Let people judge what calls do, and measure how far the program agrees with them.

    \b
    Example:
      safetydrift study review export traces/ -o review
      safetydrift study review import review/sheet.csv
    """


@review.command("export")
@options.paths
@options.folder_to_write("Folder for the sheet and the sample.")
@click.option(
    "--size", type=click.IntRange(1, 10_000), default=400, show_default=True, help="Calls to draw at most."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same calls.")
@click.option(
    "--per",
    type=click.Choice(["tool", "source"]),
    default="tool",
    show_default=True,
    help="Draw by the square root of their counts from all strata alike, or equally from every source first.",
)
@click.option(
    "--include-effects",
    is_flag=True,
    help="Show what the program says; a reviewer who knows it tends to agree.",
)
@_moment
@options.surroundings
@options.reading
def export(
    paths: tuple[str, ...],
    folder: Path,
    size: int,
    seed: int,
    per: str,
    include_effects: bool,
    moment: str,
    surroundings: options.Surroundings,
    reading: options.Reading,
) -> None:
    """Draw a sample of calls to judge: sheet.csv for people, sample.json for the import.

    The sheet holds texts of the traces, whatever these contain; sample.json holds none. Traces are read twice: to draw,
    and to fetch the texts of what was drawn.

    \b
    Example:
      safetydrift study review export traces/ -o review --size 400
    """
    from safetydrift.study.review.excerpt import excerpt
    from safetydrift.study.review.sampling import Moment, Sampler, encode_sample, found_calls
    from safetydrift.study.review.sheets import render_sheet

    for name in (SHEET, SAMPLE):
        if (folder / name).exists():
            raise click.BadParameter(
                f"{folder / name} exists, and decisions may stand on it; name another folder",
                param_hint="--output",
            )
    labeler, traces = surroundings.labeler(), Traces(paths, reading)
    sampler = Sampler(size, seed, Moment(moment))
    for trace in traces:
        sampler.offer(trace, labeler)
    sample = sampler.draw(labeler.catalogue, even_sources=per == "source")
    excerpts = {call.id: excerpt(trace, at) for call, trace, at in found_calls(traces, sample.calls)}
    if len(excerpts) < len(sample.calls):
        raise ReviewError("the traces changed while they were read; try again")
    folder.mkdir(parents=True, exist_ok=True)
    sheet = render_sheet(sample.calls, excerpts, list(sample.scales), include_effects=include_effects)
    for name, content in ((SHEET, sheet.encode(errors="replace")), (SAMPLE, encode_sample(sample))):
        with binary_output(folder / name) as stream:
            stream.write(content)
    traces.summarise()
    if not reading.quiet:
        if sample.unnamed:
            remark(f"passed over {sample.unnamed:,} calls whose names cannot stand on a sheet")
        total = sum(one.calls for one in sample.strata)
        remark(
            f"{len(sample.calls):,} of {total:,} calls, from {len(sample.strata):,} strata; fill in {folder / SHEET}"
        )


@review.command("import")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEETS...")
@click.option(
    "--sample",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The sample that was exported; by default the one beside the first sheet.",
)
@click.option(
    "--traces",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Compare with what the program says of these now, instead of what it said at the export; may be repeated.",
)
@_moment
@options.surroundings
@options.reading
@options.as_json
def import_(
    sheets: tuple[str, ...],
    sample: Path | None,
    paths: tuple[str, ...],
    moment: str,
    surroundings: options.Surroundings,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Read decisions back, and say how far the program agrees with them.

    SHEETS are files that were filled in, or the word "shipped" for the decisions that come with SafetyDrift; each
    reviewer is reported apart. Figures are of the sample, in which rare tools are more frequent than among all calls.

    \b
    Example:
      safetydrift study review import review/sheet.csv
      safetydrift study review import shipped --traces traces/ --moment done
    """
    from safetydrift.study.review.comparison import (
        compare_with_program,
        exported,
        labelled_again,
        require_drawn,
    )
    from safetydrift.study.review.sampling import Moment, load_sample, scales_of
    from safetydrift.study.review.sheets import read_sheet

    labeler = surroundings.labeler()
    scales = scales_of(labeler.catalogue)
    files = [read_sheet(_shipped() if name == SHIPPED else Path(name), scales) for name in sheets]
    if paths:
        wanted = {name: one for sheet in files for name, one in sheet.decisions.items()}
        traces = Traces(paths, reading)
        said = labelled_again(traces, labeler, wanted, Moment(moment))
        traces.summarise()
        missing = len(wanted.keys() - said.keys())
        if missing and not reading.quiet:
            remark(f"{missing:,} calls are not in these traces", style="red")
    else:
        drawn = load_sample(sample or Path(sheets[0]).parent / SAMPLE)
        if drawn.scales != scales:
            raise ReviewError(
                "the sample was drawn with other scales; name its catalogue with --base-catalogue"
            )
        for sheet in files:
            require_drawn(sheet, drawn)
        said = exported(drawn)
    _report([compare_with_program(sheet, said, scales) for sheet in files], files, as_json=as_json)


@review.command
@click.argument("first", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("second", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.surroundings
@options.as_json
def agree(first: Path, second: Path, surroundings: options.Surroundings, as_json: bool) -> None:
    """Say how far two reviewers agree.

    \b
    Example:
      safetydrift study review agree first.csv second.csv
    """
    from safetydrift.study.review.comparison import compare_sheets
    from safetydrift.study.review.sampling import scales_of
    from safetydrift.study.review.sheets import read_sheet

    scales = scales_of(surroundings.labeler().catalogue)
    one, other = (read_sheet(path, scales) for path in (first, second))
    _report([compare_sheets(one, other, scales)], [one, other], as_json=as_json)


def _shipped() -> Path:
    return Path(str(resources.files("safetydrift.study.review") / "reviewed" / "decisions.csv"))


# -- what comes out -------------------------------------------------------------------------------------------


def _report(compared: Sequence[Comparison], sheets: Sequence[Sheet], *, as_json: bool) -> None:
    if as_json:
        told = [{"name": one.name, "rows": len(one.decisions), "decided": one.decided} for one in sheets]
        emit_json({"sheets": told, "comparisons": compared})
        return
    for sheet in sheets:
        say(f"{sheet.name}: {sheet.decided:,} of {len(sheet.decisions):,} calls decided")
    for one in compared:
        _show(one)


def _show(compared: Comparison) -> None:
    first, second = compared.judges
    title = f"\n{first} and {second}: {len(compared.pairs):,} calls judged by both"
    rows = [row for name in compared.scales for row in _rows(compared, name)]
    columns = ("dimension", "calls of", "same [95 %, Wilson]", "or alternative", "kappa", "weighted kappa")
    console.print(table(title, columns, rows, left=2))
    say(f"in every dimension: {compared.everywhere}")
    say(
        "Intervals of kappa are percentiles over resampled calls. Weighted: by the square of the distance. A dash: "
        "undefined."
    )
    for name, levels in compared.scales.items():
        found = compared.agreement(name)
        if found.same.total:
            counts = [(level, *row) for level, row in zip(levels, found.table, strict=True)]
            console.print(table(f"\n{name}: {first} (rows) and {second} (columns)", ("", *levels), counts))
    if kinds := compared.kinds():
        by_kind = [
            (kind, str(one.same), str(one.kappa), sum(one.table[1]), one.table[0][1] + one.table[1][1])
            for kind, one in kinds.items()
        ]
        header = ("kind of violation", "same [95 %, Wilson]", "kappa", "first says so", "second says so")
        console.print(table("\nKinds", header, by_kind))
    if differ := compared.disagreements():
        title = (
            f"\n{len(differ):,} disagreements; the first of them" if len(differ) > SHOWN_DISAGREEMENTS else ""
        )
        columns = ("tool", "in", first, second, "", "call")
        console.print(table(title or "\nDisagreements", columns, differ[:SHOWN_DISAGREEMENTS], left=6))


def _rows(compared: Comparison, dimension: str) -> Iterator[tuple[str, ...]]:
    for what, found in compared.parts(dimension).items():
        yield _row(dimension, what, found)
        of_all = compared.of_all_calls(dimension)
        if what == "all" and of_all == of_all:  # noqa: PLR0124  # nan
            yield dimension, "all, each stratum by its size", percent(of_all), "", "", ""


def _row(dimension: str, what: str, found: LevelAgreement) -> tuple[str, ...]:
    kappas = str(found.kappa), str(found.weighted_kappa)
    return dimension, what, str(found.same), percent(found.accepted.value), *kappas
