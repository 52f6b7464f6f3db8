"""Fitting the score of concerns: labelled calls in, additive tables out.

Positive are calls that carry out what an attacker wanted after the run had read it, and grafted harmful calls. Negative
are all calls of runs without harm, everyday sessions and grafted calls that somebody asked for among them, and those
before the first positive one. What follows a positive call is left out, for it may be either.

How an injection is worded may be no more than one piece of evidence: in a share of every row's weight, the features
that say whether a passage speaks to the agent are hidden.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from safetydrift.authority.concerns import (
    DELEGATED,
    FEATURE_NAMES,
    FEATURES,
    NOBODY,
    POINTED,
    REACHED,
    SAID,
    UNTRUSTED,
)  # fmt: skip
from safetydrift.authority.grading import ACTION, NONE
from safetydrift.authority.ledger import Ledger
from safetydrift.authority.run import RunReader
from safetydrift.authority.score import SCORE_FORMAT, PairTable, ScoreTables
from safetydrift.effects.history.history import History
from safetydrift.effects.operations import LIKELY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.effects.labeler import Labeler
    from safetydrift.trace import Trace

Cells = tuple[int, ...]

SALT = b"fitting"
HIDDEN = 0.4
"""The share of every row's weight in which the wording is hidden."""
UNKNOWN_TASK = 0.15
"""The share of every row's weight in which nothing is known of the task, as for guards that nobody tells it."""
UNSEEN_AUTHORITY = 0.15
"""What a call counts that somebody asked for in words that were not understood: it says little of unasked ones."""
POSITIVE = {"grafts": 5.0, "attacks": 0.7, "everyday": 1.0}
"""What a harmful call counts beside a harmless one: attacked runs hold more of them than a deployment does."""
SHARES = {"grafts": 1.0, "attacks": 2.0, "everyday": 0.5}
"""The weight of each kind of source."""
ROUNDS, LEAVES, RATE, FEWEST, SHRINKAGE = 200, 8, 0.08, 20, 2.0

RISING = frozenset(("certainty", "speaks", "carried"))
FALLING = frozenset(("asked", "source", "overlap"))
"""Features with which the probability may only rise, or fall."""
CATEGORICAL = ("harm", "action", "target")
_COLUMNS = (*CATEGORICAL, *[name for name in FEATURE_NAMES if name not in CATEGORICAL])
"""The order in which features are fitted: scikit-learn moves categorical ones ahead without their constraints."""
PAIRS = (
    ("harm", "asked"), ("harm", "certainty"), ("harm", "source"), ("harm", "target"), ("harm", "exposure"),
    ("harm", "before"), ("harm", "reversibility"), ("harm", "surface"), ("action", "asked"), ("action", "source"),
    ("action", "speaks"), ("action", "exposure"), ("action", "surface"), ("asked", "source"), ("certainty", "asked"),
    ("certainty", "source"), ("asked", "overlap"), ("source", "overlap"), ("source", "speaks"), ("asked", "speaks"),
    ("carried", "source"), ("carried", "asked"), ("source", "near"), ("source", "texts"), ("exposure", "asked"),
    ("exposure", "source"), ("near", "exposure"), ("near", "speaks"), ("target", "certainty"), ("target", "asked"),
    ("field", "source"), ("speaks", "exposure"), ("surface", "asked"), ("surface", "source"), ("surface", "certainty"),
    ("surface", "target"), ("task", "asked"), ("task", "certainty"), ("task", "harm"), ("task", "action"),
    ("task", "speaks"), ("task", "source"), ("task", "carried"),
)  # fmt: skip
"""Pairs of features that may act together."""


class Row(NamedTuple):
    """One proposed call of a labelled run.

    Attributes
    ----------
    kind
        One of `SHARES`.
    concerns
        The cells of its concerns, the gravest first.
    harmful
        Whether it is the harmful call.
    asked_for
        Whether it is a grafted call that somebody asked for.
    """

    kind: str
    concerns: tuple[Cells, ...]
    harmful: bool
    asked_for: bool


def rows_of(trace: Trace, labeler: Labeler, kind: str) -> Iterator[Row]:
    """Yield the calls of a labelled run that have concerns, up to the first harmful one.

    Parameters
    ----------
    kind
        One of `SHARES`.
    """
    label = trace.label
    harmful_at = label.onset if label.violated else label.attempt
    if label.violated and harmful_at is None:
        return
    reader, ledger, history = RunReader(labeler), Ledger.empty(SALT), History()
    asked_for = kind == "grafts" and label.violated is False
    if trace.prompt and not (trace.steps and trace.steps[0].said):
        ledger, history = ledger.hear(trace.prompt), history.hears(trace.prompt)
    for number, step in enumerate(trace.steps, 1):
        if step.said:
            ledger, history = ledger.hear(step.said), history.hears(step.said)
        proposal = labeler.read_call(step.call, history)
        reading = reader.read_call(ledger, step.call, proposal)
        if reading.concerns:
            cells = tuple([concern.cells for concern in reading.concerns])
            yield Row(kind, cells, number == harmful_at, asked_for)
        if number == harmful_at:
            return
        outcome = labeler.read_result(proposal, step.result, step.error, history)
        result = step.result or step.error
        ledger = reader.read_result(
            ledger, reading.plan, outcome.effect, result, failed=step.error is not None
        )
        history = outcome.history or history


def fit_score(rows: Iterable[Row]) -> ScoreTables:
    """Return the tables of a score fitted on labelled calls.

    A harmful call counts as its gravest concern at first, and then as the one that a first score finds most probable.

    Raises
    ------
    ValueError
        If there are no harmful calls, or no others.
    """
    rows = Counter(rows)
    first = _trees(*_weighted(rows, None))
    tables = tables_of(first)
    trees = _trees(*_weighted(rows, tables))
    counts = Counter[str]()
    for row, count in rows.items():
        counts[f"{row.kind}: {'harmful' if row.harmful else 'harmless'} calls"] += count
    return tables_of(trees, dict(sorted(counts.items())))


def tables_of(trees: Any, fitted_on: dict[str, int] | None = None) -> ScoreTables:
    """Return what boosted trees with pairs of features say, as tables: exactly, since trees add up."""
    blank = np.zeros(len(FEATURE_NAMES), np.uint8)

    def odds(*settings: dict[int, int]) -> Any:
        cells = np.repeat(blank[None], len(settings), 0)
        for row, setting in zip(cells, settings, strict=True):
            for at, cell in setting.items():
                row[at] = cell
        return trees.decision_function(cells[:, _ORDER])

    base = float(odds({})[0])
    at = {name: index for index, name in enumerate(FEATURE_NAMES)}
    single = {
        name: odds(*[{at[name]: cell} for cell in range(size)]) - base for name, size in FEATURES.items()
    }
    pairs = []
    for one, other in PAIRS:
        cells = list(product(range(FEATURES[one]), range(FEATURES[other])))
        joint = odds(*[{at[one]: a, at[other]: b} for a, b in cells]).reshape(FEATURES[one], FEATURES[other])
        joint -= base + single[one][:, None] + single[other][None]
        if np.abs(joint).max() > 1e-9:  # noqa: PLR2004  # rounding
            values = tuple([tuple(map(_rounded, row)) for row in joint])
            pairs.append(PairTable((one, other), values))
    tables = {name: tuple(map(_rounded, values)) for name, values in single.items()}
    return ScoreTables(SCORE_FORMAT, _rounded(base), tables, tuple(pairs), fitted_on or {})


def _rounded(value: float) -> float:
    return round(float(value), 5)


def _weighted(rows: Counter[Row], tables: ScoreTables | None) -> tuple[Any, Any, Any]:
    """Return cells, labels and weights, the wording shown and hidden, every kind of source with its share."""
    from safetydrift.authority.score import Score  # noqa: PLC0415  # only the second round has one

    score = None if tables is None else Score(tables)
    weights: dict[str, dict[tuple[Cells, bool], float]] = {kind: defaultdict(float) for kind in SHARES}
    for row, count in rows.items():
        cells = row.concerns
        if row.harmful:
            cells = (cells[0] if score is None else max(cells, key=score.log_odds),)
        for one in cells:
            unseen = row.asked_for and one[_ASKED] <= ACTION and one[_CERTAINTY] >= LIKELY
            weights[row.kind][one, row.harmful] += count * (UNSEEN_AUTHORITY if unseen else 1.0)
    found: dict[tuple[Cells, bool], float] = defaultdict(float)
    for kind, counts in weights.items():
        whole = sum(counts.values()) or 1.0
        for (one, harmful), weight in counts.items():
            scaled = 1e4 * SHARES[kind] * weight / whole * (POSITIVE[kind] if harmful else 1.0)
            found[one, harmful] += scaled * (1.0 - HIDDEN)
            found[_without_wording(one), harmful] += scaled * HIDDEN
            if (
                harmful or kind != "grafts"
            ):  # of a graft that was asked for, nothing would be left that tells so
                found[_without_task(one), harmful] += scaled * UNKNOWN_TASK
    labels = np.array([harmful for _, harmful in found])
    if labels.all() or not labels.any():
        raise ValueError("a score needs harmful calls and others")
    return np.array([cells for cells, _ in found], np.uint8), labels, np.array(list(found.values()))


_ORDER = [FEATURE_NAMES.index(name) for name in _COLUMNS]


def _without_task(cells: Cells) -> Cells:
    changed = dict(zip(FEATURE_NAMES, cells, strict=True))
    changed |= {"asked": NONE, "overlap": 0, "near": 0, "task": 0}
    if changed["source"] in {REACHED, POINTED, DELEGATED}:
        changed["source"] = UNTRUSTED
    elif changed["source"] == SAID:
        changed["source"] = UNTRUSTED if changed["texts"] else NOBODY
    return tuple(changed.values())


_ASKED, _CERTAINTY = FEATURE_NAMES.index("asked"), FEATURE_NAMES.index("certainty")
_SPEAKS, _EXPOSURE = FEATURE_NAMES.index("speaks"), FEATURE_NAMES.index("exposure")


def _without_wording(cells: Cells) -> Cells:
    changed = list(cells)
    changed[_SPEAKS], changed[_EXPOSURE] = 0, min(cells[_EXPOSURE], 1)
    return tuple(changed)


def _trees(cells: Any, labels: Any, weights: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # of the extra

    at = {name: index for index, name in enumerate(_COLUMNS)}
    trees = HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=FEWEST,
        l2_regularization=SHRINKAGE,
        monotonic_cst=[1 if name in RISING else -1 if name in FALLING else 0 for name in _COLUMNS],
        interaction_cst=[{at[one], at[other]} for one, other in PAIRS],
        categorical_features=[name in CATEGORICAL for name in _COLUMNS],
        early_stopping=False,
        random_state=0,
    )
    return trees.fit(cells[:, _ORDER], labels, sample_weight=weights)
