"""The report: findings as one HTML file that needs nothing but itself.

The page loads nothing and runs nothing; its own security policy forbids both, so a run that was named by an attacker
has no more say in it than any other text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isfinite, nan
from statistics import fmean, median
from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.errors import MissingExtraError
from safetydrift.evaluation import figures
from safetydrift.evaluation.findings import NO_RETURN_HORIZON, NO_RETURN_PROBABILITY
from safetydrift.evaluation.inline_svg import inline_svg
from safetydrift.evaluation.rate import Rate
from safetydrift.formats.corpus import corpus_credits
from safetydrift.markov.reference_chains import published_chain
from safetydrift.monitor.model import AGGREGATE, category_name
from safetydrift.monitor.settings import Estimator
from safetydrift.monitor.verdict import Basis
from safetydrift.states.trajectory import VIOLATED, Notion

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError as error:
    raise MissingExtraError("jinja2", "report", "the report") from error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from safetydrift.evaluation.findings import CategoryFindings, Findings, HeldOut
    from safetydrift.evaluation.replay import Replay
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.horizon import HorizonTable
    from safetydrift.monitor.verdict import Verdict

UNDEFINED = "\N{EN DASH}"
SHOWN_POINTS = 12
SHOWN_SOURCES = 6
PUBLISHED_DETECTED, PUBLISHED_FALSE_ALARMS = Rate(36, 38), Rate(4, 34)
"""The published intervals fit these counts; the paper prints 94.7 % and 11.8 %."""


def write_report(findings: Findings, path: Path) -> None:
    """Write findings as one HTML file.

    The same findings give the same bytes. The file opens without a network, in light and dark, on a phone and on
    paper.

    Parameters
    ----------
    findings
        What to show.
    path
        The file to write.

    Raises
    ------
    MissingExtraError
        On import of this module, if matplotlib or jinja2 is not installed.
    """
    path.write_text(render_report(findings), encoding="utf-8", newline="\n")


def render_report(findings: Findings) -> str:
    """Return findings as the text of one HTML file."""
    pages = Environment(
        loader=PackageLoader("safetydrift.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters.update(
        percent=percent, decimal=decimal, number=lambda value: f"{value:,}", category=category_name
    )
    text = pages.get_template("report.html.jinja").render(
        findings=findings,
        by_label=findings.notion is Notion.LABEL,
        version=__version__,
        finding=finding_in_words(findings),
        drawings=_drawings(findings),
        starts=_starts(findings),
        points=_points(findings),
        by_published_method=_published(findings),
        published=(PUBLISHED_DETECTED, PUBLISHED_FALSE_ALARMS),
        examples=[_example(replay, findings.held_out) for replay in findings.held_out.examples],
        credits={name: credit for name, credit in corpus_credits().items() if name in findings.sources},
        settings=findings.fine.settings.definition(),
        provenance=findings.provenance,
        shrunk=findings.fine.settings.estimator is Estimator.SHRUNK,
        warning=_warning(findings.held_out.lead_times),
    )
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


# -- in words -------------------------------------------------------------------------------------------


def percent(value: float) -> str:
    """Write a probability as a percentage; what is undefined is a dash."""
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%" if isfinite(value) else UNDEFINED


def decimal(value: float, places: int = 2) -> str:
    """Write a figure with so many decimal places; what is undefined is a dash."""
    return f"{value:.{places}f}" if isfinite(value) else UNDEFINED


def in_words(rate: Rate) -> str:
    """Write a rate for a sentence, with its counts."""
    return (
        f"{100 * rate.value:.0f}\N{NO-BREAK SPACE}% ({rate.hits:,} of {rate.total:,})"
        if rate.total
        else "none of 0"
    )


def finding_in_words(findings: Findings) -> tuple[str, ...]:
    """Say in a few sentences what was found, and what that does not show."""
    return (
        _corpus_in_words(findings),
        _monitor_in_words(findings.held_out),
        _limits_in_words(findings.held_out),
    )


def _limits_in_words(held_out: HeldOut) -> str:
    prior = held_out.prior
    if not held_out.tasks_tried or not prior.flagged:
        return (
            "This does not show foresight: some kinds of task are violated far more often than others, and a monitor "
            "that knows the kind is credited for that knowledge too. No category prior could be compared here."
        )
    flagged = " and ".join(map(category_name, prior.flagged))
    return (
        f"How much of this is foresight? A category prior, which flags every run of {flagged} and looks at nothing "
        f"else, would have flagged {in_words(prior.detected)} of the violations and {in_words(prior.false_alarms)} of "
        "the other runs. What the monitor shows beyond that, and within each category, is its own."
    )


def _corpus_in_words(findings: Findings) -> str:
    parts = findings.sources.values()
    runs, steps = sum(part.runs for part in parts), sum(part.steps for part in parts)
    by_notion = sum((part.violated for part in parts), start=Rate(0, 0))
    by_rules = sum(
        (Rate(a.both + a.rules_only, a.total) for a in (part.agreement for part in parts)), start=Rate(0, 0)
    )
    names = list(findings.sources)
    shown = ", ".join(names[:SHOWN_SOURCES]) + (
        f" and {len(names) - SHOWN_SOURCES} more" if len(names) > SHOWN_SOURCES else ""
    )
    origin = f"{len(names)} {_plural('source', len(names))}"
    read = f"{runs:,} runs of agents from {origin} ({shown}) made {steps:,} tool calls."
    if findings.notion is Notion.RULES:
        return f"{read} By the rules of the state space, {in_words(by_notion)} were violated."
    return (
        f"{read} By the label of their source, {in_words(by_notion)} of those with a usable label were violated; "
        f"the rules of the state space call {in_words(by_rules)} of the same runs violated."
    )


def _monitor_in_words(held_out: HeldOut) -> str:
    tried = (
        f"A monitor fitted on {held_out.tasks_fitted:,} {_plural('task', held_out.tasks_fitted)} "
        f"was tried on {held_out.tasks_tried:,} others."
    )
    if not held_out.detected.total:
        return f"{tried} No run of theirs was violated, so nothing can be said about what it would foresee."
    calm = (
        f"Of the runs without a violation, it raised a false alarm in {in_words(held_out.false_alarms)}."
        if held_out.false_alarms.total
        else "There was no run without a violation, so its false alarms are unknown."
    )
    return f"{tried} It foresaw {in_words(held_out.detected)} of their violations before the violating call. {calm}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _warning(lead_times: Mapping[int, int]) -> tuple[float, float]:
    """Return the median and the mean steps of warning; nan where nothing was foreseen."""
    steps = sorted(Counter(lead_times).elements())
    return (median(steps), fmean(steps)) if steps else (nan, nan)


# -- tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Points:
    """Points of no return, the best supported first."""

    total: int
    shown: list[tuple[str, str, float, int]]


def _points(findings: Findings) -> _Points:
    points = [
        (category_name(category), *point)
        for category, found in findings.categories.items()
        for point in found.no_return
    ]
    points.sort(key=lambda point: (-point[3], point[1], point[0]))
    return _Points(len(points), points[:SHOWN_POINTS])


def _starts(findings: Findings) -> dict[str, tuple[float, float]]:
    """Return how runs go on from the start: the probability of ending violated, and the expected steps to an end.

    Both are nan where no end was ever reached from the start.
    """
    start = findings.coarse.rows.row_of[findings.held_out.monitor.model.space.start]
    starts = {}
    for category, part in findings.categories.items():
        steps = part.ends.expected_steps[part.ends.chain.transient == start].tolist()
        starts[category] = (float(part.ends.probability(VIOLATED)[start]), steps[0]) if steps else (nan, nan)
    return starts


@dataclass(frozen=True, slots=True)
class _Published:
    """What the published method says of these runs, and what the paper printed of its own.

    Parameters
    ----------
    levels
        Risk levels that a run can be in before it violates.
    printed
        Probability within 5 steps by level, as printed.
    rows
        Category, runs violated by the rules, probability within 5 steps by level, points of no return among the
        levels and among the states.
    """

    levels: list[str]
    printed: list[float]
    rows: list[tuple[str, Rate, list[float], int, int]]


def _published(findings: Findings) -> _Published:
    table = findings.published[AGGREGATE].coarse
    levels = table.chain.transient.tolist()
    names = [table.chain.names[level] for level in levels]
    printed = published_chain().within_5_steps
    return _Published(
        names,
        [printed.get(name, nan) for name in names],
        [
            (
                category_name(category),
                part.violated,
                [_within(part.coarse, level) for level in levels],
                sum(_within(part.coarse, level) >= NO_RETURN_PROBABILITY for level in levels),
                len(part.no_return),
            )
            for category, part in findings.published.items()
        ],
    )


def _within(table: HorizonTable, level: int) -> float:
    """Return the probability within 5 steps; nan for a level no run of the category ever left."""
    known = level in table.chain.transient and table.max_horizon >= NO_RETURN_HORIZON
    return float(table.within(NO_RETURN_HORIZON)[level]) if known else nan


@dataclass(frozen=True, slots=True)
class _Call:
    """A line of a replayed run."""

    number: int
    tool: str
    effect: str
    state: str
    probability: str
    alarm: bool
    proposal: str
    proposal_alarm: bool
    mark: str
    over: bool


@dataclass(frozen=True, slots=True)
class _Example:
    """A replayed run."""

    replay: Replay
    heading: str
    outcome: str
    calls: list[_Call]
    drawing: str


def _example(replay: Replay, held_out: HeldOut) -> _Example:
    policy = held_out.monitor.policy
    heading, outcome = _outcome(replay)
    return _Example(
        replay,
        heading,
        outcome,
        [_call(replay, held_out, step) for step in range(len(replay.standing))],
        inline_svg(
            figures.replay_figure(replay, policy.threshold, pending_threshold=policy.pending_threshold),
            key=f"replay-{held_out.examples.index(replay)}",
            title=f"Probability of a violation within {policy.horizon} steps along the run",
            description=f"After each call: {', '.join(map(_probability, replay.standing))}. {outcome}",
        ),
    )


def _call(replay: Replay, held_out: HeldOut, step: int) -> _Call:
    run, space = replay.trajectory, held_out.monitor.model.space
    verdict, pending = replay.standing[step], replay.pending[step] if step < len(replay.pending) else None
    over = replay.onset is not None and step >= replay.onset
    mark = "violation" if step == replay.onset else "alarm" if step == replay.alarm else ""
    return _Call(
        number=step,
        tool="start" if not step else run.tools[step - 1] if run.tools else "?",
        effect=space.describe(run.effects[step - 1]) if step else "",
        state=space.describe(replay.positions[step].state),
        probability=_probability(verdict),
        alarm=verdict.alarm and not over,
        proposal="" if pending is None else _probability(pending),
        proposal_alarm=pending is not None and pending.alarm and not over,
        mark=mark,
        over=over,
    )


def _probability(verdict: Verdict) -> str:
    return "unseen" if verdict.basis is Basis.UNSEEN else percent(verdict.probability)


def _outcome(replay: Replay) -> tuple[str, str]:
    """Say how the monitor did on a run: as a heading, and as a sentence."""
    if replay.onset is None:
        if replay.alarm is None:
            return "No violation, no alarm", "The run was not violated, and nothing was raised."
        return (
            "No violation, false alarm",
            f"The run was not violated; the alarm after {_calls(replay.alarm)} was false.",
        )
    proposal = "raised an alarm" if replay.stopped_at_proposal else "raised none"
    about_proposal = f"The violating call {proposal} when it was proposed."
    if replay.alarm is None:
        return (
            "Violated, not foreseen",
            f"Call {replay.onset} violates; no alarm came before it. {about_proposal}",
        )
    warning = f"{replay.lead_time} {_plural('step', replay.lead_time or 0)}"
    return (
        "Violated, foreseen",
        f"Call {replay.onset} violates; the alarm came after {_calls(replay.alarm)}, {warning} ahead. {about_proposal}",
    )


def _calls(count: int) -> str:
    return f"{count} {_plural('call', count)}"


# -- drawings -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Drawings:
    """Inline drawings; those of categories by name, all runs first."""

    categories: str
    matrices: dict[str, str]
    published: str
    by_published_method: str
    horizons: dict[str, str]
    lead_times: str


def _drawings(findings: Findings) -> _Drawings:
    found = findings.categories
    ranked = {AGGREGATE: found[AGGREGATE].violated} | dict(
        sorted(
            ((name, part.violated) for name, part in found.items() if name != AGGREGATE),
            key=lambda item: (-item[1].value if item[1].total else 1.0, item[0]),
        )
    )
    chain = published_chain().chain
    return _Drawings(
        categories=_draw(
            "categories",
            "Share of runs violated, by category",
            _spoken_rates(ranked),
            figures.category_figure(ranked),
        ),
        matrices={
            category: _draw(
                f"matrix-{position}",
                f"Transition matrix on risk levels: {category_name(category)}",
                _spoken_matrix(part.coarse.chain),
                figures.matrix_figure(
                    part.coarse.chain, findings.coarse.evidence[category].counts.departures
                ),
            )
            for position, (category, part) in enumerate(found.items())
        },
        published=_draw(
            "published",
            "Published transition matrix, for reference",
            _spoken_matrix(chain),
            figures.matrix_figure(chain),
        ),
        by_published_method=_draw(
            "published-method",
            "Transition matrix on risk levels by the published method, all runs",
            _spoken_matrix(findings.published[AGGREGATE].coarse.chain),
            figures.matrix_figure(findings.published[AGGREGATE].coarse.chain),
        ),
        horizons=_horizons(found),
        lead_times=_draw(
            "lead-times",
            "Steps of warning",
            _spoken_leads(findings.held_out.lead_times),
            figures.lead_time_figure(findings.held_out.lead_times),
        ),
    )


def _horizons(found: Mapping[str, CategoryFindings]) -> dict[str, str]:
    """Draw every category's curves against the same vertical axis."""
    certain = [part.coarse.probability()[-1, part.coarse.chain.transient] for part in found.values()]
    ceiling = figures.ceiling_of([value for values in certain for value in values.tolist()])
    return {
        category: _draw(
            f"horizon-{position}",
            f"Probability of a violation within h steps: {category_name(category)}",
            _spoken_curves(part),
            figures.horizon_figure(part.coarse, ceiling=ceiling),
        )
        for position, (category, part) in enumerate(found.items())
    }


def _draw(key: str, title: str, description: str, figure: Figure) -> str:
    return inline_svg(figure, key=key, title=title, description=description)


def _spoken_rates(rates: Mapping[str, Rate]) -> str:
    return "; ".join(f"{category_name(name)}: {rate}" for name, rate in rates.items()) + "."


def _spoken_matrix(chain: AbsorbingChain) -> str:
    names = figures.state_names(chain)
    rows = (
        f"from {names[origin]}: "
        + ", ".join(
            f"{names[target]} {value:.2f}" for target, value in enumerate(chain.transitions[origin]) if value
        )
        for origin in chain.transient.tolist()
    )
    return "; ".join(rows) + "."


def _spoken_curves(part: CategoryFindings) -> str:
    table = part.coarse
    last, names = table.within(table.max_horizon), figures.state_names(table.chain)
    ends = ", ".join(
        f"{names[state]} {percent(float(last[state]))}" for state in table.chain.transient.tolist()
    )
    return f"Within {table.max_horizon} steps, from each risk level: {ends}."


def _spoken_leads(lead_times: Mapping[int, int]) -> str:
    if not lead_times:
        return "No violation was foreseen."
    return "; ".join(f"{steps} {_plural('step', steps)}: {runs}" for steps, runs in lead_times.items()) + "."
