"""``safetydrift study judge``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs, Traces
from safetydrift.cli.output import console, emit_json, remark, table, work_progress
from safetydrift.errors import JudgeBudgetError, JudgeError
from safetydrift.study.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from safetydrift.trace import ToolCall

SHOWN_FAILURES = 5


def _bounded(name: str, parameter: str, default: int, help_text: str) -> Callable[[Any], Any]:
    return click.option(
        name, parameter, type=click.IntRange(min=1), default=default, show_default=True, help=help_text
    )


_model = click.option(
    "--model",
    required=True,
    metavar="KIND:NAME",
    help="anthropic:NAME, openai:NAME, or openai-compatible:NAME with --base-url.",
)
_asking = options.gathered(
    "settings",
    JudgeSettings,
    click.option("--base-url", default="", metavar="URL", help="Where the model is asked."),
    click.option(
        "--api-key-env", default="", metavar="VARIABLE", help="The environment variable that holds the key."
    ),
    click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True),
    click.option(
        "--timeout", type=click.FloatRange(0.1, 3600.0), default=30.0, show_default=True, help="Seconds."
    ),
    _bounded("--max-requests", "max_requests", 10_000, "Requests to send at most."),
    _bounded("--max-tokens", "max_total_tokens", 20_000_000, "Tokens to use at most, in and out."),
    click.option(
        "--redact/--no-redact",
        default=None,
        help="Take secrets out of what is sent; by default unless the model runs on this host.",
    ),
)
_goes_on = options.output("File of the answers; one that is there goes on where it ended.", required=True)


@click.group
def judge() -> None:
    """Ask a language model about calls that no rule decides, or about every step, and record its answers.

    A file of answers holds digests, levels and reasons, and no text of the traces. Labelling and evaluation read it in
    place of the model, so that they stay offline and exact. Keys are taken from the environment alone:
    ANTHROPIC_API_KEY, OPENAI_API_KEY, or the variable named with --api-key-env.

    \b
    Example:
      safetydrift study judge record traces/ --model anthropic:NAME -o answers.jsonl
      safetydrift study judge label traces/ --answers answers.jsonl -o runs.jsonl
      safetydrift study judge steps traces/ --window 3 --model anthropic:NAME -o judgements.jsonl
    """


@judge.command
@options.paths
@_goes_on
@_model
@_asking
@click.option("--limit", type=click.IntRange(min=1), help="Ask about this many calls at most.")
@click.option("--all", "every", is_flag=True, help="Ask about every call, not only those no rule decides.")
@options.surroundings
@options.reading
@options.as_json
def record(
    paths: tuple[str, ...],
    output: Path,
    model: str,
    settings: JudgeSettings,
    limit: int | None,
    every: bool,
    surroundings: options.Surroundings,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Ask about the calls in PATHS, each once, and write every answer as it comes.

    What the file answers already is not asked again, so that an interrupted recording can be taken up.
    """
    from safetydrift.study.judge import Judge

    labeler, traces = surroundings.labeler(), Traces(paths, reading)
    calls: Counter[str] = Counter(dict.fromkeys(("calls", "undecided", "asked_before", "repeated"), 0))
    scales = labeler.catalogue.scales
    with Judge(model, settings, path=output, scales=scales) as asked:
        wanted: dict[str, ToolCall] = {}
        for call in (step.call for trace in traces for step in trace.steps):
            calls["calls"] += 1
            if every or labeler.propose(call).source == "default":
                calls["undecided"] += 1
                try:
                    digest = asked.digest(call)
                except JudgeError:
                    digest = f"no digest: {len(wanted)}"  # stays on the list, so that its failure is counted
                calls["asked_before"] += digest in asked.answers
                calls["repeated"] += digest in wanted
                if digest not in asked.answers:
                    wanted.setdefault(digest, call)
        traces.summarise()
        with work_progress(quiet=reading.quiet) as progress:
            outcomes = asked.assess_all(
                list(wanted.values())[:limit], lambda done, total: progress("asking", done, total)
            )
    failures = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
    failed = Counter(str(one) for one in failures if not isinstance(one, JudgeBudgetError))
    counts = {
        **calls,
        "answered": len(outcomes) - len(failures),
        "failed": sum(failed.values()),
        "over_budget": len(failures) - sum(failed.values()),
        "requests": asked.budget.requests,
        "tokens": asked.budget.tokens,
    }
    if as_json:
        emit_json({**counts, "failures": dict(failed.most_common())})
    else:
        rows = [(name.replace("_", " "), count) for name, count in counts.items()]
        console.print(table("Calls put to the judge", ("", "number"), rows))
        if failed:
            most = failed.most_common(SHOWN_FAILURES)
            console.print(table("\nWhy it gave no answer", ("reason", "calls"), most))
    if failed and not counts["answered"]:  # then something is wrong with more than a few calls
        raise JudgeError(f"no call was answered: {failed.most_common(1)[0][0]}")


@judge.command
@options.paths
@options.output("File for the labelled runs (JSON Lines); without it, only the summary is made.")
@click.option(
    "--answers",
    required=True,
    type=click.Path(dir_okay=False, exists=True),
    help="Recorded answers about calls that no rule decides.",
)
@options.labelling()
@options.reading
@options.as_json
def label(
    paths: tuple[str, ...],
    output: Path | None,
    answers: str,
    labelling: options.Labelling,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Read what every tool call did, as safetydrift label does, with recorded answers where no rule decides.

    \b
    Example:
      safetydrift study judge label traces/ --answers answers.jsonl -o runs.jsonl
      safetydrift fit runs.jsonl -o model.json
    """
    from safetydrift.cli.label import write_labelled
    from safetydrift.study.judge import RecordedJudge, judged

    space, labeler = labelling.load()
    recorded = RecordedJudge(answers, scales=labeler.catalogue.scales)
    inputs = Inputs(paths, space, judged(labeler, recorded), reading, output)
    write_labelled(inputs, space, labeler.catalogue.identity, output, as_json=as_json)


@judge.command
@options.paths
@_goes_on
@_model
@_asking
@click.option(
    "--window",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many of the latest calls the model is shown; the published judges saw 1 and 3.",
)
@options.reading
@options.as_json
def steps(
    paths: tuple[str, ...],
    output: Path,
    model: str,
    settings: JudgeSettings,
    window: int,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Ask how risky every step of the runs in PATHS looks, and write every answer as it comes.

    `safetydrift evaluate --judgements FILE` compares the answers with monitors and baselines. What the file answers
    already is not asked again, so that an interrupted recording can be taken up.

    \b
    Example:
      safetydrift study judge steps traces/ --model anthropic:NAME -o judgements.jsonl
      safetydrift evaluate traces/ --judgements judgements.jsonl
    """
    from safetydrift.study.judge.steps import record_judgements

    traces = Traces(paths, reading)
    outcome = record_judgements(traces, model, output, window, settings=settings)
    traces.summarise()
    counts = {
        name: getattr(outcome, name) for name in ("asked", "known", "failed", "left", "requests", "tokens")
    }
    if as_json:
        emit_json({**counts, "reason": outcome.reason})
    else:
        console.print(table("Steps put to the judge", ("", "number"), list(counts.items())))
        if outcome.reason:
            remark(outcome.reason)
    if (outcome.failed or outcome.left) and not outcome.asked + outcome.known:
        raise JudgeError(f"no step was judged: {outcome.reason}")
