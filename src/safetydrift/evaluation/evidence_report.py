"""Evidence written down: as one HTML file that needs nothing but itself, or as a page of documentation with figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.errors import MissingExtraError
from safetydrift.evaluation.evidence_figures import drawings, save_figures
from safetydrift.evaluation.evidence_words import (
    EXPLAINED,
    caveats,
    cell_written,
    differences,
    finding,
    summary,
    written,
)
from safetydrift.evaluation.inline_svg import inline_svg
from safetydrift.formats.corpus import corpus_credits

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError as error:
    raise MissingExtraError("jinja2", "report", "the report") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from safetydrift.evaluation.comparison import SplitComparison
    from safetydrift.evaluation.evidence import Evidence
    from safetydrift.evaluation.evidence_figures import Drawing
    from safetydrift.evaluation.evidence_words import Row

_MARKS = "\\`*_[]<>|#"


def write_evidence_report(evidence: Evidence, path: Path, drawn: list[Drawing] | None = None) -> None:
    """Write evidence as one HTML file; the same evidence gives the same bytes.

    Parameters
    ----------
    evidence
        What to show.
    path
        The file to write.
    drawn
        Its drawings, if they are made already.
    """
    path.write_text(render_evidence(evidence, drawn), encoding="utf-8", newline="\n")


def render_evidence(evidence: Evidence, drawn: list[Drawing] | None = None) -> str:
    """Return evidence as the text of one HTML file."""
    pages = Environment(
        loader=PackageLoader("safetydrift.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters.update(written=written, cell=cell_written, number=lambda value: f"{value:,}")
    horizon = evidence.comparison.horizon
    drawn = drawings(evidence) if drawn is None else drawn
    text = pages.get_template("evidence.html.jinja").render(
        version=__version__,
        evidence=evidence,
        horizon=horizon,
        finding=finding(evidence),
        caveats=caveats(evidence),
        explained=EXPLAINED.format(h=horizon),
        tables=[
            (split, summary(split, horizon), differences(split, horizon))
            for split in evidence.comparison.splits
        ],
        drawings=[
            (one, inline_svg(one.figure, key=one.key, title=one.title, description=one.spoken))
            for one in drawn
        ],
        credits={name: credit for name, credit in corpus_credits().items() if name in evidence.sources},
    )
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


def write_evidence_page(evidence: Evidence, path: Path, drawn: list[Drawing] | None = None) -> None:
    """Write evidence as a page of Markdown, its figures as SVG files in a folder beside it that is named like it.

    Parameters
    ----------
    evidence
        What to show.
    path
        The page to write.
    drawn
        Its drawings, if they are made already.
    """
    drawn = drawings(evidence) if drawn is None else drawn
    folder = path.with_suffix("")
    save_figures(drawn, folder, ("svg",))
    lines = _page(evidence, drawn, folder.name)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


# -- Markdown ---------------------------------------------------------------------------------------------


def _page(evidence: Evidence, drawn: Sequence[Drawing], folder: str) -> Iterator[str]:
    made_by = f"Written by `safetydrift evaluate --evidence`, SafetyDrift {__version__}; do not edit."
    yield from ("# Evidence", "", f"{made_by} `make evidence` writes it for the shipped corpus.", "")
    yield from (_plain(finding(evidence)), "", "## What it does not show", "")
    yield from (f"- {_plain(caveat)}" for caveat in caveats(evidence))
    yield from ("", "## What was read", "")
    yield from _table(
        ["source", "runs", "violated, of usable runs", "violating call known"],
        (
            [name, f"{facts.runs:,}", str(facts.violated), str(facts.onset_known)]
            for name, facts in evidence.sources.items()
        ),
    )
    if evidence.left_out:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in evidence.left_out.items())
        yield from ("", f"Left out: {_plain(reasons)}.")
    for split in evidence.comparison.splits:
        yield from _split(evidence, split)
    yield from ("", _plain(EXPLAINED.format(h=evidence.comparison.horizon)))
    yield from ("", "A star marks a difference whose interval excludes zero.")
    for heading, published in (("Figures", False), ("The published study, on these runs", True)):
        chosen = [one for one in drawn if one.published == published]
        if chosen:
            yield from ("", f"## {heading}")
        for one in chosen:
            yield from (
                "",
                f"### {_plain(one.title)}",
                "",
                f"![{_plain(one.title)}]({folder}/{one.key}.svg)",
                "",
            )
            yield _plain(one.caption)
    if evidence.analyses:
        yield from ("", "## The published study in tables")
    for analysis in evidence.analyses.values():
        yield from (
            "",
            "<details>",
            f"<summary>{_plain(analysis.title)}</summary>",
            "",
            _plain(analysis.note),
            "",
        )
        yield from _table(analysis.columns, (map(cell_written, row) for row in analysis.rows))
        yield from ("", "</details>")
    yield from ("", "## Where this comes from", "")
    for name, value in evidence.provenance.items():
        yield f"- {_plain(name.replace('_', ' '))}: {_plain(str(value))}"


def _split(evidence: Evidence, split: SplitComparison) -> Iterator[str]:
    horizon = evidence.comparison.horizon
    heading = split.name[:1].upper() + split.name[1:]
    yield from ("", f"## {_plain(heading)}", "")
    runs, by_step = split.violated, split.by_step.hits
    yield (
        f"{runs.total:,} runs of {split.tasks:,} tasks, {runs.hits:,} violated; {by_step:,} runs measured by step; "
        f"{split.background:,} further runs without an attack; each predictor fitted {split.folds} times."
    )
    yield ""
    yield from _rows(summary(split, horizon), "predictor")
    if minus := differences(split, horizon):
        yield from ("", f"Minus {_plain(evidence.comparison.reference)}:", "")
        yield from _rows(minus, "predictor", signed=True)
    yield from (f"\n{_plain(note)}" for note in split.notes)


def _rows(rows: Sequence[Row], first: str, *, signed: bool = False) -> Iterator[str]:
    headings = [first, *(rows[0].cells if rows else ())]
    yield from _table(
        headings,
        (
            [
                f"{row.name} ({row.remark})" if row.remark else row.name,
                *(written(cell, signed=signed) for cell in row.cells.values()),
            ]
            for row in rows
        ),
    )


def _table(columns: Sequence[str], rows: Iterator[Iterator[str] | list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_plain, columns)) + " |"
    yield "| --- |" + " ---: |" * (len(columns) - 1)
    for row in rows:
        yield "| " + " | ".join(map(_plain, row)) + " |"


def _plain(text: str) -> str:
    """Return text that Markdown takes for nothing but text: names come from files of others."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return "".join(f"\\{char}" if char in _MARKS else char for char in line)
