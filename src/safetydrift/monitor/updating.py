"""Adding a deployment's own runs to a fitted model, in one pass.

A model file keeps the counts behind its tables by source and category. Counts are sums over runs, so adding runs and
estimating again gives the chain that a fit on all runs together would have given, exactly: rows, concentrations, bounds
and all. With forgetting, a run weighs half as much for every ``half_life`` runs that came after it.

A risk score is not fitted again, for that needs all runs; its probabilities are corrected instead
(`safetydrift.monitor.recalibration`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import CalibrationError, ModelFileError
from safetydrift.markov.counts import TransitionCounts
from safetydrift.monitor.category_counts import counted
from safetydrift.monitor.evidence import NEVER, Evidence, Rows, gather, read_evidence
from safetydrift.monitor.fitting import build_model, chains_of
from safetydrift.monitor.guarantee import without_promise
from safetydrift.monitor.recalibration import corrected
from safetydrift.monitor.settings import Estimator, FitSettings
from safetydrift.states.task_words import task_digest
from safetydrift.states.trajectory import observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.markov._arrays import FloatArray, IntArray
    from safetydrift.monitor.categories import Categories
    from safetydrift.monitor.model import Model
    from safetydrift.states.trajectory import ObservedRun, Trajectory


@dataclass(frozen=True, slots=True)
class Updated:
    """An updated model, and what was added to it.

    Parameters
    ----------
    model
        The model with the runs added.
    runs, tasks
        How many runs could be used, and how many tasks they were of.
    left_out
        Runs left out, by reason.
    new_categories, new_tasks
        Categories that the model did not know, and how many tasks it had not seen.
    """

    model: Model
    runs: int
    tasks: int
    left_out: Mapping[str, int]
    new_categories: tuple[str, ...]
    new_tasks: int


def update(
    model: Model,
    trajectories: Iterable[Trajectory],
    *,
    half_life: float | None = None,
    provenance: Mapping[str, object] | None = None,
) -> Updated:
    """Add runs to a model.

    Parameters
    ----------
    trajectories
        Runs labelled in the model's space, the oldest first; none that the model was fitted on.
    half_life
        A run weighs half as much for every so many runs after it; without, nothing is forgotten.
    provenance
        What the runs are.

    Raises
    ------
    ModelFileError
        If the model does not keep the counts behind its tables.
    CalibrationError
        If none of the runs can be used, or they were added before.
    """
    settings = _settings(model)
    before = read_evidence(model.evidence, len(model.rows))
    found = dict(provenance or {})
    _require_new(model, found)
    runs = list(trajectories)
    used, left_out = _usable(runs, model)
    visited = {state for _, seen in used for state in (*seen.states, *_arrival(seen))}
    rows = _rows(model, settings, visited)
    parts = {name: _moved(part, model, rows) for name, part in before.items()}
    if half_life is not None:
        parts = {name: _weighed(part, 0.5 ** (len(used) / half_life)) for name, part in parts.items()}
    for name, part in _shown(used, rows, settings, half_life).items():
        parts[name] = parts[name] + part if name in parts else part
    digests = {task_digest(run.source, run.category, run.task) for run, _ in used}
    known = set(model.provenance.get("tasks", ()))
    fitted = chains_of(
        parts,
        rows,
        model.space,
        settings,
        left_out=Counter(model.provenance.get("left_out", {})) + left_out,
        tasks=known | digests,
    )
    result = build_model(
        fitted,
        model.space,
        model.catalogue,
        model.policy,
        _provenance(model, found, len(used), digests, half_life),
    )
    if settings.soft_categories:
        result = replace(result, categories=_counted(runs, digests - known, model))
    if model.risk_score is not None:
        found_score, corrections = corrected(model, runs)
        result = replace(
            result, risk_score=found_score, provenance={**result.provenance, "recalibration": corrections}
        )
    categories = {run.category for run, _ in used} - set(model.tables)
    return Updated(result, len(used), len(digests), left_out, tuple(sorted(categories)), len(digests - known))


def _counted(runs: Sequence[Trajectory], new: set[str], model: Model) -> Categories | None:
    """Return the counts of words with those of new tasks; whole, for how words go with categories does not age."""
    if model.categories is None and len(model.tables) > 1:
        return None  # the words of its categories were never counted
    return counted(runs, new, model.categories)


def _settings(model: Model) -> FitSettings:
    if model.evidence is None:
        raise ModelFileError(
            "the model does not keep the counts behind its tables; fit it again to add runs to it"
        )
    try:
        return FitSettings.from_definition(model.settings)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"the model does not say how it was fitted: {error!r}") from error


def _require_new(model: Model, found: Mapping[str, object]) -> None:
    digest = found.get("corpus_digest")
    added = [model.provenance.get("corpus_digest")]
    added += [one.get("corpus_digest") for one in model.provenance.get("updates", ())]
    if digest is not None and digest in added:
        raise CalibrationError(
            "these very runs are in the model already; adding them again would count them twice"
        )


def _usable(
    runs: Sequence[Trajectory], model: Model
) -> tuple[list[tuple[Trajectory, ObservedRun]], Counter[str]]:
    seen = [(run, observe(run, model.space, model.notion, model.unknown_onset)) for run in runs]
    used = [(run, one) for run, one in seen if not one.left_out]
    left_out = Counter(one.left_out for _, one in seen if one.left_out)
    if not used:
        reasons = (
            "; ".join(f"{count} {reason}" for reason, count in left_out.most_common(3)) or "no runs at all"
        )
        raise CalibrationError(
            f"none of the runs can be used under the model's notion of violation: {reasons}"
        )
    return used, left_out


def _arrival(seen: ObservedRun) -> tuple[int, ...]:
    return () if seen.arrival is None else (seen.arrival,)


def _known_states(model: Model) -> list[int]:
    """Return the states that have a row of their own, or share one with their risk level."""
    never = len(model.rows) - 1 if model.rows[-1] == NEVER else -1
    return [state for state, row in enumerate(model.row_of) if row != never]


def _rows(model: Model, settings: FitSettings, visited: set[int]) -> Rows:
    if model.rows[-1] != NEVER:
        return Rows(model.rows, model.row_of)
    return Rows.of(model.space, settings.granularity, visited | set(_known_states(model)))


def _moved(part: Evidence, model: Model, rows: Rows) -> Evidence:
    """Return what was shown, by the rows of the updated model."""
    if rows.names == model.rows:
        return part
    place = np.full(len(model.rows) + 2, -1)
    for state in _known_states(model):
        place[model.row_of[state]] = rows.row_of[state]
    place[-3:] = len(rows.names) + np.array([-1, 0, 1])  # what was never visited, and the two ends
    n_rows = len(rows.names)
    counts = np.zeros((n_rows + 2, n_rows + 2), dtype=part.counts.matrix.dtype)
    counts[np.ix_(place, place)] = part.counts.matrix
    kinds = np.zeros((n_rows, part.kinds.shape[1]))
    kinds[place[:-2]] = part.kinds
    return Evidence(
        _counts(counts),
        _spread(part.violating_arrivals, place[:-2], n_rows),
        _spread(part.arrivals, place[:-2], n_rows),
        part.ends,
        kinds,
    )


def _spread(values: Any, place: IntArray, n_rows: int) -> Any:
    moved = np.zeros(n_rows, dtype=values.dtype)
    moved[place] = values
    return moved


def _counts(matrix: Any) -> TransitionCounts:
    return TransitionCounts(matrix) if matrix.dtype.kind == "i" else TransitionCounts.weighted(matrix)


def _weighed(part: Evidence, weight: float) -> Evidence:
    """Return evidence of which every run weighs so much; how runs ended is told of all of them."""
    return Evidence(
        TransitionCounts.weighted(part.counts.matrix * weight),
        part.violating_arrivals * weight,
        part.arrivals * weight,
        part.ends,
        part.kinds * weight,
    )


def _shown(
    used: Sequence[tuple[Trajectory, ObservedRun]], rows: Rows, settings: FitSettings, half_life: float | None
) -> dict[tuple[str, str], Evidence]:
    """Return what the runs showed, by source and category."""
    groups: dict[tuple[str, str], list[tuple[float, ObservedRun, tuple[str, ...]]]] = defaultdict(list)
    for number, (run, seen) in enumerate(used, 1):
        weight = 1.0 if half_life is None else 0.5 ** ((len(used) - number) / half_life)
        kinds = run.moves[seen.onset - 1].kinds if seen.onset else ()
        groups[run.source, run.category].append((weight, seen, kinds))
    completion = settings.estimator is not Estimator.PUBLISHED
    shown = {}
    for name, group in groups.items():
        weights, runs, kinds_of = zip(*group, strict=True)
        if half_life is None:
            shown[name] = gather(runs, rows, completion=completion, kinds=kinds_of)
        else:
            each = [
                _weighed(gather([run], rows, completion=completion, kinds=[kinds]), weight)
                for weight, run, kinds in zip(weights, runs, kinds_of, strict=True)
            ]
            shown[name] = _sum(each)
    return shown


def _sum(parts: Sequence[Evidence]) -> Evidence:
    matrix: FloatArray = np.zeros(parts[0].counts.matrix.shape)
    for part in parts:
        matrix += part.counts.matrix
    return Evidence(
        TransitionCounts.weighted(matrix),
        sum([part.violating_arrivals for part in parts[1:]], start=parts[0].violating_arrivals),
        sum([part.arrivals for part in parts[1:]], start=parts[0].arrivals),
        sum((part.ends for part in parts), Counter()),
        sum([part.kinds for part in parts[1:]], start=parts[0].kinds),
    )


def _provenance(
    model: Model, found: Mapping[str, object], runs: int, digests: set[str], half_life: float | None
) -> dict[str, Any]:
    added = {**found, "runs": runs, "tasks": len(digests), "half_life": half_life}
    return {
        **without_promise(model.provenance),
        "updates": [*model.provenance.get("updates", ()), added],
    }
