"""``safetydrift review``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.output import binary_output, notes, reading_progress, shown
from safetydrift.cli.review_tables import report
from safetydrift.errors import NoRunsError, ReviewError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.effects.labeler import Labeler
    from safetydrift.formats.reading import TraceReader
    from safetydrift.study.review.comparison import Comparison
    from safetydrift.study.review.exceptions import Corrections
    from safetydrift.study.review.sample_file import SampleFile
    from safetydrift.study.review.sampling import Sample, Sampler
    from safetydrift.study.review.sheets import Sheet
    from safetydrift.trace import Trace

SHEET, PAGE, SAMPLE, SAVED = "sheet.csv", "sheet.html", "sample.json", "decisions.csv"
SHIPPED = "shipped"
SHOWN_BAD = 10


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
      safetydrift review export traces/ -o review
      safetydrift review import review
    """


@review.command("export")
@options.paths
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the sheet, the page and the sample.",
)
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
@options.catalogue
@options.config
@options.reading
def export(
    paths: tuple[str, ...],
    folder: Path,
    size: int,
    seed: int,
    per: str,
    include_effects: bool,
    moment: str,
    base_catalogue: str,
    additions: tuple[str, ...],
    config: str | None,
    reading: options.Reading,
) -> None:
    """Draw a sample of calls to judge: sheet.csv and sheet.html for people, sample.json for the import.

    The two sheets hold texts of the traces, whatever these contain; sample.json holds none. The page works without a
    network and is driven by keys. Traces are read twice: to draw, and to fetch the texts of what was drawn.

    \b
    Example:
      safetydrift review export traces/ -o review --size 400
    """
    from safetydrift.study.review.excerpt import excerpt
    from safetydrift.study.review.page import render_page
    from safetydrift.study.review.sample_file import encode_sample, sample_file
    from safetydrift.study.review.sampling import Moment, Sampler, found_calls
    from safetydrift.study.review.sheets import render_sheet, scales_of

    taken = [name for name in (SHEET, PAGE, SAMPLE, SAVED) if (folder / name).exists()]
    if taken:
        raise click.BadParameter(
            f"{folder / taken[0]} exists, and decisions may stand on it; name another folder",
            param_hint="--output",
        )
    labeler = options.surroundings(base_catalogue, additions, config)
    traces = _Traces(paths, reading)
    sample = _drawn(traces, labeler, Sampler(size, seed, Moment(moment)), even_sources=per == "source")
    excerpts = {call.id: excerpt(trace, at) for call, trace, at in found_calls(traces, sample.calls)}
    if len(excerpts) < len(sample.calls):
        raise ReviewError("the traces changed while they were read; try again")
    scales = scales_of(labeler.catalogue)
    folder.mkdir(parents=True, exist_ok=True)
    written = {
        SHEET: render_sheet(sample.calls, excerpts, list(scales), include_effects=include_effects),
        PAGE: render_page(sample.calls, excerpts, scales, include_effects=include_effects),
    }
    for name, text in written.items():
        with binary_output(folder / name) as stream:
            stream.write(text.encode(errors="replace"))
    with binary_output(folder / SAMPLE) as stream:
        stream.write(
            encode_sample(sample_file(sample, labeler.catalogue, seed=seed, per=per, moment=Moment(moment)))
        )
    traces.summarise()
    if not reading.quiet:
        if sample.unnamed:
            notes.print(f"passed over {sample.unnamed:,} calls whose names cannot stand on a sheet")
        total = sum(sample.seen.values())
        notes.print(
            f"{len(sample.calls):,} of {total:,} calls, from {len(sample.seen):,} strata; open {folder / PAGE}",
            markup=False,
        )


@review.command("import")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEETS...", type=click.Path(path_type=Path))
@click.option(
    "--sample",
    type=click.Path(path_type=Path),
    help="The sample that was exported; by default the one beside the first sheet.",
)
@click.option(
    "--against",
    type=click.Choice(["exported", "now"]),
    default="exported",
    show_default=True,
    help="Compare with what the program said at the export, or with what it says now; the latter needs --traces.",
)
@click.option(
    "--traces",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Where the calls are; may be given several times.",
)
@click.option(
    "--exceptions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for additions to the catalogue: tools that all reviewers correct in the same way.",
)
@click.option(
    "--at-least",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Calls of a tool that have to be corrected for that.",
)
@options.catalogue
@options.config
@options.reading
@options.as_json
def import_(
    sheets: tuple[Path, ...],
    sample: Path | None,
    against: str,
    paths: tuple[str, ...],
    exceptions: Path | None,
    at_least: int,
    base_catalogue: str,
    additions: tuple[str, ...],
    config: str | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Read decisions back, and say how far the program agrees with them.

    SHEETS are files that were filled in, or the folders they were exported to; each reviewer is reported apart.
    Figures are of the sample, in which rare tools are more frequent than among all calls.

    \b
    Example:
      safetydrift review import review
      safetydrift review import review --exceptions ours.toml
      safetydrift review import review --against now --traces traces/
    """
    from safetydrift.study.review.against_program import (
        compare_with_program,
        exported,
        labelled_again,
        require_drawn,
    )
    from safetydrift.study.review.exceptions import corrections
    from safetydrift.study.review.sample_file import load_sample
    from safetydrift.study.review.sheets import scales_of

    if (against == "now") != bool(paths):
        raise click.UsageError("--against now and --traces go together")
    labeler = options.surroundings(base_catalogue, additions, config)
    scales = scales_of(labeler.catalogue)
    files = [_filled(path, scales) for path in sheets]
    drawn = load_sample(_sample_of(sample, Path(files[0].name)))
    for sheet in files:
        require_drawn(sheet, drawn)
    _require_scales(drawn, scales)
    seen = exported(drawn)
    if against == "now":
        wanted = {name: one for sheet in files for name, one in sheet.decisions.items()}
        traces = _Traces(paths, reading)
        seen = labelled_again(traces, labeler, wanted, drawn.moment)
        traces.summarise()
    compared = [compare_with_program(sheet, seen, scales) for sheet in files]
    corrected = corrections(compared, labeler.catalogue, at_least=at_least)
    if exceptions is not None:
        _write_exceptions(exceptions, corrected, compared)
    report(compared, files, as_json=as_json, corrected=corrected)
    if exceptions is not None and not reading.quiet:
        notes.print(f"{len(corrected.tools)} tools written to {exceptions}", markup=False)


@review.command
@click.argument("paths", nargs=-1, required=True, metavar="SHEET SHEET | TRACES...", type=options.TracePath())
@click.option(
    "--decisions",
    metavar="FILE|shipped",
    help="Decisions to compare the program with; then PATHS are traces, and the calls are labelled again.",
)
@_moment
@options.catalogue
@options.config
@options.reading
@options.as_json
def agree(
    paths: tuple[str, ...],
    decisions: str | None,
    moment: str,
    base_catalogue: str,
    additions: tuple[str, ...],
    config: str | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Say how far two reviewers agree, or decisions that are kept without any text and the program.

    \b
    Example:
      safetydrift review agree first.csv second.csv
      safetydrift review agree traces/ --decisions decisions.csv
    """
    from safetydrift.study.review.against_program import compare_with_program, labelled_again
    from safetydrift.study.review.comparison import compare_sheets
    from safetydrift.study.review.sampling import Moment
    from safetydrift.study.review.sheets import read_sheet, scales_of

    labeler = options.surroundings(base_catalogue, additions, config)
    scales = scales_of(labeler.catalogue)
    if decisions is None:
        if len(paths) != 2:  # noqa: PLR2004
            raise click.UsageError("name two sheets to compare, or traces and --decisions")
        first, second = (read_sheet(Path(path), scales) for path in paths)
        report([compare_sheets(first, second, scales)], [first, second], as_json=as_json)
        return
    sheet = read_sheet(_shipped_decisions() if decisions == SHIPPED else Path(decisions), scales)
    traces = _Traces(paths, reading)
    seen = labelled_again(traces, labeler, sheet.decisions, Moment(moment))
    traces.summarise()
    compared = compare_with_program(sheet, seen, scales)
    missing = sum(one.decided for one in sheet.decisions.values()) - len(compared.pairs)
    if missing and not reading.quiet:
        notes.print(f"[red]{missing:,} decided calls are not in these traces[/red]")
    report([compared], [sheet], as_json=as_json)


# -- what goes in ---------------------------------------------------------------------------------------


class _Traces:
    """The traces of a command line, read with progress each time they are iterated."""

    def __init__(self, paths: Sequence[str], reading: options.Reading) -> None:
        from safetydrift.formats import read_traces
        from safetydrift.formats.trajectories import CORPUS

        if CORPUS in paths:
            raise click.BadParameter(
                "the corpus holds effects and no calls to look at; name traces", param_hint="PATHS"
            )
        self._paths, self._quiet = tuple(map(str, paths)), reading.quiet
        self._reader: TraceReader = read_traces(paths, format=reading.trace_format, skip_bad=reading.skip_bad)

    def __iter__(self) -> Iterator[Trace]:
        with reading_progress(quiet=self._quiet) as progress:
            self._reader.on_progress = progress
            yield from self._reader
        if not self._reader.report.traces:
            self.summarise()
            raise NoRunsError(self._paths)

    def summarise(self) -> None:
        """Say on standard error what was passed over or skipped."""
        read = self._reader.report
        if self._quiet:
            return
        if read.passed_over:
            notes.print(f"passed over {len(read.passed_over):,} files that hold no traces")
        if read.n_bad:
            notes.print(f"[red]skipped {read.n_bad} bad records:[/red]")
            for bad in read.bad[:SHOWN_BAD]:
                notes.print(shown(f"  {bad}"), markup=False)


def _drawn(traces: _Traces, labeler: Labeler, sampler: Sampler, *, even_sources: bool) -> Sample:
    for trace in traces:
        sampler.offer(trace, labeler)
    return sampler.draw(even_sources=even_sources)


def _filled(path: Path, scales: dict[str, tuple[str, ...]]) -> Sheet:
    """Read a sheet; of a folder, the one that decisions stand on."""
    from safetydrift.study.review.sheets import read_sheet

    if not path.is_dir():
        return read_sheet(path, scales)
    found = [read_sheet(path / name, scales) for name in (SAVED, SHEET) if (path / name).exists()]
    if not found:
        raise ReviewError(f"{path}: holds neither {SAVED} nor {SHEET}")
    filled = [sheet for sheet in found if sheet.decided]
    if len(filled) > 1:
        raise ReviewError(f"{path}: both {SAVED} and {SHEET} hold decisions; name the one that counts")
    return (filled or found)[0]


def _sample_of(given: Path | None, sheet: Path) -> Path:
    path = sheet.parent if given is None else given
    return path / SAMPLE if path.is_dir() else path


def _require_scales(sample: SampleFile, scales: dict[str, tuple[str, ...]]) -> None:
    if sample.scales != scales:
        raise ReviewError("the sample was drawn with other scales; name its catalogue with --base-catalogue")


def _shipped_decisions() -> Path:
    path = Path(str(resources.files("safetydrift.study.review") / "reviewed" / "decisions.csv"))
    if not path.exists():
        raise ReviewError("no decisions are shipped with this version; name a file")
    return path


def _write_exceptions(path: Path, found: Corrections, compared: Sequence[Comparison]) -> None:
    from safetydrift.study.review.exceptions import render_additions

    reviewed = {pair.id for one in compared for pair in one.pairs}
    with binary_output(path) as stream:
        stream.write(render_additions(found, len(reviewed)).encode())
