"""The card of a model: what it was fitted on, what it promises, what was measured, and what it is not for.

Everything on it comes from the model file itself, and from the JSON of an evaluation where one is given. The same
inputs give the same text.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from safetydrift.errors import ScoresError
from safetydrift.monitor.guarantee import promises_of
from safetydrift.monitor.model import category_name
from safetydrift.monitor.pipelines import DEFENCE, MODEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from safetydrift.monitor.model import Model

DASH = "\N{EN DASH}"
LONGEST_NAME = 80

_NOTIONS = {
    "label": "the source's own label says so, at the call where it became true",
    "rules": "the rules of the state space say so",
}

_FIGURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AUROC, within 5 calls", ("steps", "5", "discrimination", "auroc")),
    ("the same within task", ("steps", "5", "discrimination", "within_task", "pooled")),
    ("the same at equal step", ("steps", "5", "discrimination", "equal_step", "pooled")),
    ("Brier skill", ("steps", "5", "calibration", "brier_skill")),
    ("expected calibration error", ("steps", "5", "calibration", "ece")),
    ("AUROC of proposals", ("proposals", "discrimination", "auroc")),
    ("recall at 5 % false alarms, before the violating call", ("runs", "recall", "0.05")),
    ("violating calls stopped at 5 % false alarms", ("proposals", "at_budget", "0.05", "stopped")),
)
"""What a card tells of an evaluation: its words, and where the figure stands."""


def model_card(model: Model, name: str, evaluation: Mapping[str, Any] | None = None) -> str:
    """Return the card of a model, in Markdown.

    Parameters
    ----------
    model
        The model.
    name
        What it is called.
    evaluation
        The JSON of ``safetydrift evaluate``, read.

    Raises
    ------
    ScoresError
        If the evaluation is not what ``safetydrift evaluate --json`` writes.
    """
    parts = [
        f"# Model card: {_plain(name)}",
        *_what(model),
        "## Intended use",
        _USE,
        "## Data",
        *_data(model),
        "## How it was fitted",
        *_fitting(model),
        "## Thresholds",
        *_thresholds(model),
        "## Figures",
        *_figures(evaluation),
        "## Limits",
        *_limits(model),
    ]
    return "\n\n".join(parts) + "\n"


_USE = """To watch an agent that calls tools: to warn, ask or stop before a violation, from what its calls do. It is one
safeguard among others. It does not judge people, and it says nothing about what an agent writes without calling a tool.
Calibrate it on runs of your own before its alarms stop anything (`safetydrift calibrate`), and watch whether it still
fits (`safetydrift drift`)."""


def _what(model: Model) -> Iterator[str]:
    score = model.risk_score
    yield (
        "At every step of a run it gives the probability that a violation happens within the next 1 to "
        f"{model.max_horizon} calls, and judges calls that are proposed. There is a violation when "
        f"{_NOTIONS[model.notion.value]}."
    )
    rows = [
        ["state space", f"{model.space.name} ({model.space.identity}), {model.space.n_states:,} states"],
        ["catalogue", f"{model.catalogue.name} {model.catalogue.version} ({model.catalogue.identity})"],
        ["chain", f"{len(model.rows):,} rows, {len(model.tables) - 1:,} categories and all runs together"],
        [
            "risk score",
            "none"
            if score is None
            else f"yes; knows {len(score.traits.named(MODEL)):,} models and "
            f"{len(score.traits.named(DEFENCE)):,} defences by name",
        ],
        ["written by", f"SafetyDrift {model.provenance.get('safetydrift', 'of an unknown version')}"],
        ["corpus digest", str(model.provenance.get("corpus_digest", "not known"))[:16]],
    ]
    yield _table(["", ""], rows)


def _data(model: Model) -> Iterator[str]:
    provenance = model.provenance
    runs = provenance.get("runs", {})
    total = sum(runs.get("", {}).values())
    tasks = len(provenance.get("tasks", ()))
    yield (
        f"{total:,} runs of {tasks:,} tasks. Digests of the tasks stand in the file, so that none of their runs is "
        "taken for new."
    )
    ends = ("violated", "completed", "censored")
    yield _table(
        ["category", *ends],
        [
            [category_name(category), *(f"{found.get(end, 0):,}" for end in ends)]
            for category, found in runs.items()
        ],
    )
    sources = sorted({str(part["source"]) for part in model.evidence or ()} - {""})
    if sources:
        yield "Sources: " + ", ".join(map(_plain, sources)) + "."
    left_out = sorted(provenance.get("left_out", {}).items(), key=lambda pair: (-pair[1], pair[0]))
    if left_out:
        yield "Runs that were left out, and why:"
        yield _table(["reason", "runs"], [[reason, f"{count:,}"] for reason, count in left_out])
    updates = provenance.get("updates", ())
    if updates:
        yield "Added since:"
        yield _table(
            ["update", "runs", "tasks", "half-life"],
            [
                [number, f"{one['runs']:,}", f"{one['tasks']:,}", one.get("half_life") or "none"]
                for number, one in enumerate(updates, 1)
            ],
        )


def _fitting(model: Model) -> Iterator[str]:
    settings = model.settings
    told = [
        [name.replace("_", " "), settings[name]]
        for name in ("granularity", "estimator", "strength", "max_horizon", "unknown_onset")
        if name in settings
    ]
    yield _table(["setting", "value"], told)
    if model.risk_score is not None:
        yield (
            "The risk score's probabilities were fitted on scores of tasks that the regression behind them had not "
            "seen (five folds of tasks)."
        )
    if "recalibration" in model.provenance:
        yield "Its probabilities were corrected by the runs added since."


def _thresholds(model: Model) -> Iterator[str]:
    policy = model.policy
    yield (
        f"Alarms at a probability of {policy.threshold:g} within {policy.horizon} calls, for a proposed call at "
        f"{policy.pending_threshold:g}; then it would {policy.intervention.value}."
    )
    promises = promises_of(model.provenance)
    for subject, promise in promises.items():
        yield f"- {subject}: {promise}"
    if not promises:
        yield f"Their origin: {_plain(str(model.provenance.get('threshold', 'given by hand')), 400)}."


def _figures(evaluation: Mapping[str, Any] | None) -> Iterator[str]:
    if evaluation is None:
        yield "No evaluation was given when this card was written (`safetydrift card --evaluation`)."
        return
    try:
        comparison = evaluation["comparison"]
        splits = [_split(split) for split in comparison["splits"]]
        corpus = str(evaluation["provenance"]["corpus_digest"])[:16]
        yield (
            f"From an evaluation of runs with digest {_plain(corpus)}; in parentheses, 95 % intervals over "
            f"{int(comparison['resamples']):,} resamples of tasks. A predictor other than a model file was fitted anew "
            "in every fold, on what the split let it see."
        )
        for split in splits:
            yield from split
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScoresError(
            f"this is no evaluation that safetydrift evaluate --json wrote: {error!r}"
        ) from error


def _split(split: Mapping[str, Any]) -> list[str]:
    predictors = split["predictors"]
    violated = split["violated"]
    rows = [
        [words, *(_interval(_at(predictor, where)) for predictor in predictors)] for words, where in _FIGURES
    ]
    title = (
        f"### {_plain(split['name']).capitalize()}\n\n{violated['total']:,} runs of {split['tasks']:,} tasks, "
        f"{violated['hits']:,} violated."
    )
    found = [title, _table(["", *(predictor["name"] for predictor in predictors)], rows)]
    if split.get("in_sample"):
        names = ", ".join(_plain(name) for name in split["in_sample"])
        found.append(f"Fitted on some of these very tasks, and so no evidence: {names}.")
    return found


def _at(found: Any, where: Iterable[str]) -> Any:
    for key in where:
        if not isinstance(found, dict) or found.get(key) is None:
            return None
        found = found[key]
    return found


def _interval(figure: Any) -> str:
    """Write a figure with its interval, as far as it is known."""
    if isinstance(figure, (int, float)) and isfinite(figure):
        return f"{figure:.3f}"
    if not isinstance(figure, dict) or not isinstance(figure.get("value"), (int, float)):
        return DASH
    low, high = figure.get("low"), figure.get("high")
    if low is None or high is None:
        return f"{figure['value']:.3f}"
    return f"{figure['value']:.3f} ({low:.3f} to {high:.3f})"


def _limits(model: Model) -> Iterator[str]:
    promised = bool(promises_of(model.provenance))
    limits = [
        *_ALWAYS,
        *([_UNKNOWN_MODEL] if model.risk_score is not None else []),
        _PROMISED if promised else _UNPROMISED,
    ]
    yield "\n".join(f"- {limit}" for limit in limits)


_ALWAYS = """What was fitted on benchmarks knows benchmarks: other tasks, tools and attacks are foreseen less well.
Effects are read from the calls' arguments and results by rules; what no rule reads is taken cautiously: a false alarm.
A violation is what the sources call one. What they do not label, the model cannot foresee.""".splitlines()
_UNKNOWN_MODEL = (
    "A language model never seen counts as an average one; its probabilities may be too high or too low."
)
_PROMISED = "What is promised of a threshold holds for tasks drawn as those it was chosen on."
_UNPROMISED = "Nothing is promised about the false alarms of its thresholds."


def _table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [_row(columns), "| " + " | ".join("---" for _ in columns) + " |", *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(_plain(str(cell)) for cell in cells) + " |"


def _plain(text: str, longest: int = LONGEST_NAME) -> str:
    """Return text that is no markup: names in model files are the work of others."""
    shown = "".join([char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text)])
    shown = shown if len(shown) <= longest else shown[: longest - 1] + "…"
    return "".join(["\\" + char if char in _MARKUP else char for char in shown])


_MARKUP = frozenset("\\`*<>[]|")
