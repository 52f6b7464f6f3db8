"""The card of a model: what it was fitted on, what it promises, what was measured, and what it is not for.

Everything on it comes from the model file itself, and from the JSON of an evaluation where one is given.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from safetydrift.errors import ScoresError
from safetydrift.evaluation.document import DASH, Document, Section, Table
from safetydrift.evaluation.text import printable
from safetydrift.monitor.guarantee import promises_of
from safetydrift.monitor.model import category_name
from safetydrift.monitor.pipelines import DEFENCE, MODEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from safetydrift.evaluation.document import Part
    from safetydrift.monitor.model import Model

LONGEST_NAME = 80

_NOTIONS = {
    "label": "the source's own label says so, at the call where it became true",
    "rules": "the rules of the state space say so",
}
_ENDS = ("violated", "completed", "censored")
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

_USE = (
    "To watch an agent that calls tools: to warn, ask or stop before a violation, from what its calls do. It is one "
    "safeguard among others. It does not judge people, and it says nothing about what an agent writes without calling "
    "a tool. Calibrate it on runs of your own before its alarms stop anything (safetydrift calibrate), and watch "
    "whether it still fits (safetydrift drift)."
)
_ALWAYS = """What was fitted on benchmarks knows benchmarks: other tasks, tools and attacks are foreseen less well.
Effects are read from the calls' arguments and results by rules; what no rule reads is taken cautiously: a false alarm.
A violation is what the sources call one. What they do not label, the model cannot foresee.""".splitlines()
_UNKNOWN_MODEL = (
    "A language model never seen counts as an average one; its probabilities may be too high or too low."
)
_PROMISED = "What is promised of a threshold holds for tasks drawn as those it was chosen on."
_UNPROMISED = "Nothing is promised about the false alarms of its thresholds."


def model_card(model: Model, name: str, evaluation: Mapping[str, Any] | None = None) -> Document:
    """Return the card of a model.

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
    what = (
        f"At every step of a run it gives the probability that a violation happens within the next 1 to "
        f"{model.max_horizon} calls, and judges calls that are proposed. There is a violation when "
        f"{_NOTIONS[model.notion.value]}."
    )
    limits = [*_ALWAYS, *([] if model.risk_score is None else [_UNKNOWN_MODEL])]
    limits.append(_PROMISED if promises_of(model.provenance) else _UNPROMISED)
    sections: dict[str, Iterable[Part]] = {
        "What it is": [_parts(model)],
        "Intended use": [_USE],
        "Data": _data(model),
        "How it was fitted": _fitting(model),
        "Thresholds": _thresholds(model),
        "Figures": _figures(evaluation),
        "Limits": [tuple(limits)],
    }
    told = tuple(Section(heading, tuple(parts)) for heading, parts in sections.items())
    return Document(f"Model card: {_short(name)}", (what,), told)


def _parts(model: Model) -> Table:
    score, unknown = model.risk_score, "of an unknown version"
    rows = (
        ("state space", f"{model.space.name} ({model.space.identity}), {model.space.n_states:,} states"),
        ("catalogue", f"{model.catalogue.name} {model.catalogue.version} ({model.catalogue.identity})"),
        ("chain", f"{len(model.rows):,} rows, {len(model.tables) - 1:,} categories and all runs together"),
        (
            "risk score",
            "none"
            if score is None
            else f"yes; knows {len(score.traits.named(MODEL)):,} models and "
            f"{len(score.traits.named(DEFENCE)):,} defences by name",
        ),
        ("written by", f"SafetyDrift {_short(model.provenance.get('safetydrift', unknown))}"),
        ("corpus digest", str(model.provenance.get("corpus_digest", "not known"))[:16]),
    )
    return Table("", "", ("part", "what"), rows)


def _data(model: Model) -> Iterator[Part]:
    provenance = model.provenance
    runs = provenance.get("runs", {})
    yield (
        f"{sum(runs.get('', {}).values()):,} runs of {len(provenance.get('tasks', ())):,} tasks. Digests of the tasks "
        "stand in the file, so that none of their runs is taken for new."
    )
    rows = [
        (_short(category_name(category)), *(found.get(end, 0) for end in _ENDS))
        for category, found in runs.items()
    ]
    yield Table("", "", ("category", *_ENDS), tuple(rows))
    sources = sorted({str(part["source"]) for part in model.evidence or ()} - {""})
    if sources:
        yield f"Sources: {', '.join(map(_short, sources))}."
    left_out = sorted(provenance.get("left_out", {}).items(), key=lambda pair: (-pair[1], pair[0]))
    if left_out:
        yield "Runs that were left out, and why:"
        yield Table("", "", ("reason", "runs"), tuple((_short(reason), count) for reason, count in left_out))
    if updates := provenance.get("updates", ()):
        rows = [
            (number, one["runs"], one["tasks"], one.get("half_life") or "none")
            for number, one in enumerate(updates, 1)
        ]
        yield Table("Added since", "", ("update", "runs", "tasks", "half-life"), tuple(rows))


def _fitting(model: Model) -> Iterator[Part]:
    settings = model.settings
    names = ("granularity", "estimator", "strength", "max_horizon", "unknown_onset")
    rows = [(name.replace("_", " "), settings[name]) for name in names if name in settings]
    yield Table("", "", ("setting", "value"), tuple(rows))
    if model.risk_score is not None:
        yield (
            "The probabilities of the risk score were fitted on scores of tasks that the regression behind them had "
            "not seen (five folds of tasks)."
        )
    if "recalibration" in model.provenance:
        yield "Its probabilities were corrected by the runs added since."


def _thresholds(model: Model) -> Iterator[Part]:
    policy = model.policy
    yield (
        f"Alarms at a probability of {policy.threshold:g} within {policy.horizon} calls, for a proposed call at "
        f"{policy.pending_threshold:g}; then it would {policy.intervention.value}."
    )
    promises = promises_of(model.provenance)
    if promises:
        yield tuple(f"{subject}: {promise}" for subject, promise in promises.items())
    else:
        yield f"Their origin: {printable(str(model.provenance.get('threshold', 'given by hand')), 400)}."


def _figures(evaluation: Mapping[str, Any] | None) -> Iterator[Part]:
    if evaluation is None:
        yield "No evaluation was given when this card was written (safetydrift card --evaluation)."
        return
    try:
        comparison = evaluation["comparison"]
        corpus = str(evaluation["provenance"]["corpus_digest"])[:16]
        resamples = int(comparison["resamples"])
        splits = [part for split in comparison["splits"] for part in _split(split)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScoresError(
            f"this is no evaluation that safetydrift evaluate --json wrote: {error!r}"
        ) from error
    yield (
        f"From an evaluation of runs with digest {corpus}; in parentheses, 95 % intervals over {resamples:,} resamples "
        "of tasks. A predictor other than a model file was fitted anew in every fold, on what the split let it see."
    )
    yield from splits


def _split(split: Mapping[str, Any]) -> Iterator[Part]:
    predictors, violated = split["predictors"], split["violated"]
    rows = [(words, *(_interval(_at(one, where)) for one in predictors)) for words, where in _FIGURES]
    note = f"{violated['total']:,} runs of {split['tasks']:,} tasks, {violated['hits']:,} violated."
    columns = ("figure", *(_short(one["name"]) for one in predictors))
    yield Table(_short(split["name"]).capitalize(), note, columns, tuple(rows))
    if split.get("in_sample"):
        names = ", ".join(map(_short, split["in_sample"]))
        yield f"Fitted on some of these very tasks, and so no evidence: {names}."


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


def _short(text: object) -> str:
    return printable(str(text), LONGEST_NAME)
