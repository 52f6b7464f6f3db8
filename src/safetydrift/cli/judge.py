"""``safetydrift judge``."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.judge_options import endpoint
from safetydrift.cli.output import console, emit_json, notes, reading_progress, shown, table
from safetydrift.errors import JudgeBudgetError, JudgeError, NoRunsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from safetydrift.cli.judge_options import Endpoint
    from safetydrift.effects.labeler import Labeler
    from safetydrift.study.judge.judge import Outcome
    from safetydrift.study.judge.recorded import RecordingJudge
    from safetydrift.trace import ToolCall, Trace

SHOWN_FAILURES = 5


@click.group
def judge() -> None:
    """Ask a language model about calls that no rule decides, or about every step, and record its answers.

    The file of answers holds digests, levels and reasons, and no text of the traces. Labelling and evaluation read
    it in place of the model, so that they stay offline and exact. Keys are taken from the environment alone:
    ANTHROPIC_API_KEY, OPENAI_API_KEY, or the variable named with --api-key-env.

    \b
    Example:
      safetydrift judge record traces/ --model anthropic:NAME -o answers.jsonl
      safetydrift judge record traces/ --model openai-compatible:NAME \\
        --base-url http://localhost:8000/v1 -o answers.jsonl
      safetydrift judge steps traces/ --window 3 --model anthropic:NAME -o judgements.jsonl
    """


@judge.command
@options.paths
@options.output("File of the answers; one that is there goes on where it ended.", required=True)
@endpoint
@click.option("--limit", type=click.IntRange(min=1), help="Ask about this many calls at most.")
@click.option("--all", "every", is_flag=True, help="Ask about every call, not only those no rule decides.")
@options.catalogue
@options.config
@options.reading
@options.as_json
def record(
    paths: tuple[str, ...],
    output: Path,
    endpoint: Endpoint,
    limit: int | None,
    every: bool,
    base_catalogue: str,
    additions: tuple[str, ...],
    config: str | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Ask about the calls in PATHS, each once, and write every answer as it comes.

    What the file answers already is not asked again, so that an interrupted recording can be taken up.
    """
    labeler = options.surroundings(base_catalogue, additions, config)
    summary = _recorded(paths, output, endpoint, labeler, reading, limit=limit, every=every)
    if as_json:
        emit_json(summary.as_dict())
    else:
        summary.show()
    summary.require_answers()


@judge.command
@options.paths
@options.output("File of the judgements; one that is there goes on where it ended.", required=True)
@endpoint
@click.option(
    "--window",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many of the latest calls the model is shown; the published judges saw 1 and 3.",
)
@click.option("--max-seconds", type=click.FloatRange(min=0.0), help="Begin no request after this time.")
@options.reading
@options.as_json
def steps(
    paths: tuple[str, ...],
    output: Path,
    endpoint: Endpoint,
    window: int,
    max_seconds: float | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Ask how risky every step of the runs in PATHS looks, and write every answer as it comes.

    `safetydrift evaluate --judgements FILE` compares the answers with monitors and baselines. What the file answers
    already is not asked again, so that an interrupted recording can be taken up.

    \b
    Example:
      safetydrift judge steps traces/ --model anthropic:NAME -o judgements.jsonl
      safetydrift evaluate traces/ --judgements judgements.jsonl
    """
    from safetydrift.study.judge.steps import record_judgements

    with _asking_progress(quiet=reading.quiet) as progress:
        outcome = record_judgements(
            _traces(paths, reading),
            endpoint.model,
            output,
            window,
            settings=endpoint.settings,
            max_seconds=max_seconds,
            progress=lambda found: progress(found.asked + found.known + found.failed, None),
        )
    counts = {
        name: getattr(outcome, name) for name in ("asked", "known", "failed", "left", "requests", "tokens")
    }
    if as_json:
        emit_json({**counts, "reason": outcome.reason})
    else:
        console.print(table("Steps put to the judge", ("", "number"), list(counts.items())))
        if outcome.reason:
            notes.print(shown(outcome.reason), markup=False)
    if (outcome.failed or outcome.left) and not outcome.asked + outcome.known:
        raise JudgeError(f"no step was judged: {outcome.reason}")


class _Summary:
    """What became of the calls."""

    def __init__(self, calls: Counter[str], outcomes: Sequence[Outcome], judge: RecordingJudge) -> None:
        self.calls = calls
        failures = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        spent = [one for one in failures if isinstance(one, JudgeBudgetError)]
        self.over_budget = len(spent)
        self.answered = len(outcomes) - len(failures)
        self.failures = Counter(str(one) for one in failures if not isinstance(one, JudgeBudgetError))
        self.requests, self.tokens = judge.budget.requests, judge.budget.tokens

    def as_dict(self) -> dict[str, object]:
        return {
            **self.calls,
            "answered": self.answered,
            "failed": sum(self.failures.values()),
            "over_budget": self.over_budget,
            "requests": self.requests,
            "tokens": self.tokens,
            "failures": dict(self.failures.most_common()),
        }

    def show(self) -> None:
        rows = [
            (name.replace("_", " "), count) for name, count in self.as_dict().items() if name != "failures"
        ]
        console.print(table("Calls put to the judge", ("", "number"), rows))
        if self.failures:
            failures = self.failures.most_common(SHOWN_FAILURES)
            console.print(table("\nWhy it gave no answer", ("reason", "calls"), failures))

    def require_answers(self) -> None:
        """Say that nothing was won, if nothing was: then something is wrong with more than a few calls."""
        if self.failures and not self.answered:
            raise JudgeError(f"no call was answered: {self.failures.most_common(1)[0][0]}")


def _recorded(
    paths: tuple[str, ...],
    output: Path,
    endpoint: Endpoint,
    labeler: Labeler,
    reading: options.Reading,
    *,
    limit: int | None,
    every: bool,
) -> _Summary:
    from safetydrift.study.judge.recorded import RecordingJudge

    calls: Counter[str] = Counter(dict.fromkeys(("calls", "undecided", "asked_before", "repeated"), 0))
    with RecordingJudge(output, endpoint.model, endpoint.settings, scales=labeler.catalogue.scales) as judge:
        wanted: dict[str, ToolCall] = {}
        for call in _calls(paths, reading):
            calls["calls"] += 1
            if not every and labeler.propose(call).source != "default":
                continue
            calls["undecided"] += 1
            _want(call, judge, wanted, calls)
        asked = list(wanted.values())[:limit]
        with _asking_progress(quiet=reading.quiet) as progress:
            outcomes = judge.assess_all(asked, progress=progress)
        return _Summary(calls, outcomes, judge)


def _want(call: ToolCall, judge: RecordingJudge, wanted: dict[str, ToolCall], calls: Counter[str]) -> None:
    """Put a call on the list, unless it is on it or was answered before."""
    try:
        digest = judge.digest(call)
    except JudgeError:
        digest = f"no digest: {len(wanted)}"  # stays on the list, so that its failure is counted
    if digest in judge.file.answers:
        calls["asked_before"] += 1
    elif digest in wanted:
        calls["repeated"] += 1
    else:
        wanted[digest] = call


def _calls(paths: tuple[str, ...], reading: options.Reading) -> Iterator[ToolCall]:
    for trace in _traces(paths, reading):
        for step in trace.steps:
            yield step.call


def _traces(paths: tuple[str, ...], reading: options.Reading) -> Iterator[Trace]:
    from safetydrift.formats import read_traces
    from safetydrift.formats.trajectories import CORPUS

    if CORPUS in paths:
        raise click.BadParameter("the corpus holds effects and no calls; name traces", param_hint="PATHS")
    traces = read_traces(paths, format=reading.trace_format, skip_bad=reading.skip_bad)
    with reading_progress(quiet=reading.quiet) as progress:
        traces.on_progress = progress
        yield from traces
    if traces.report.n_bad and not reading.quiet:
        notes.print(f"[red]skipped {traces.report.n_bad} bad records, the first:[/red]")
        notes.print(shown(f"  {traces.report.bad[0]}"), markup=False)
    if not traces.report.traces:
        raise NoRunsError(tuple(map(str, paths)))


@contextmanager
def _asking_progress(*, quiet: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar over the calls while they are asked about."""
    if quiet or not notes.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("asking", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
