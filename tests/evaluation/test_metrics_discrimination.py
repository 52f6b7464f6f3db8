from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.evaluation.metrics import discrimination
from safetydrift.evaluation.metrics.discrimination import Pairs, Ranking, auroc
from safetydrift.evaluation.metrics.resampling import Resamples

N_TASKS = 6

items = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),  # score: few values, so that ties are common
        st.booleans(),  # outcome
        st.integers(0, N_TASKS - 1),  # task
        st.integers(0, 2),  # stratum
        st.integers(0, 1),  # block
    ),
    max_size=25,
)


def _columns(drawn):
    rows = np.array(drawn, dtype=float).reshape(-1, 5)
    return rows[:, 0], rows[:, 1] > 0, *(rows[:, at].astype(int) for at in (2, 3, 4))


def _brute(scores, outcome, copy, stratum, block):
    """Ordered pairs, pairs, and areas of the strata with both outcomes; one pair at a time."""
    ordered: dict[int, float] = {}
    pairs: dict[int, int] = {}
    for i in range(len(scores)):
        for j in range(len(scores)):
            if outcome[i] and not outcome[j] and (stratum[i], block[i]) == (stratum[j], block[j]):
                won = float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j])
                ordered[stratum[i]] = ordered.get(stratum[i], 0) + won
                pairs[stratum[i]] = pairs.get(stratum[i], 0) + 1
    return ordered, pairs


def _pooled(ordered, pairs):
    return sum(ordered.values()) / sum(pairs.values()) if pairs else np.nan


def _macro(ordered, pairs):
    return np.mean([ordered[s] / pairs[s] for s in pairs]) if pairs else np.nan


def _resampled(columns, weights):
    """The items of a resample written out, every copy of a task a task of its own."""
    picked = [(at, copy) for at in range(len(columns[0])) for copy in range(int(weights[columns[2][at]]))]
    at = np.array([index for index, _ in picked], dtype=int)
    scores, outcome, task, stratum, block = (column[at] for column in columns)
    copies = np.array([10 * t + copy for t, (_, copy) in zip(task, picked, strict=True)], dtype=int)
    return scores, outcome, copies, stratum, block


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40))
def test_the_area_is_the_one_of_scikit_learn(drawn):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, outcome = np.array([s for s, _ in drawn]), np.array([o for _, o in drawn], dtype=bool)
    ours = auroc(scores, outcome)
    if len(set(outcome.tolist())) < 2:
        assert isnan(ours)
    else:
        assert ours == pytest.approx(metrics.roc_auc_score(outcome, scores))


@given(items, st.integers(0, 1000))
@settings(max_examples=60)
def test_areas_within_strata_are_those_of_counting_every_pair_on_every_resample(drawn, seed):
    columns = _columns(drawn)
    scores, outcome, task, stratum, block = columns
    resamples = Resamples.draw(N_TASKS, np.random.default_rng(seed), 4)
    area = Pairs(outcome, task, resamples, stratum, block).area(scores)
    for weights, pooled, macro in zip(
        resamples.weights,
        [area.pooled.value, *area.pooled.draws],
        [area.macro.value, *area.macro.draws],
        strict=True,
    ):
        counted = _brute(*_resampled(columns, weights))
        np.testing.assert_allclose([pooled, macro], [_pooled(*counted), _macro(*counted)], atol=1e-9)
    _, pairs = _brute(*columns)
    assert (area.usable_strata, area.pairs) == (len(pairs), sum(pairs.values()))
    assert area.strata == len(set(stratum.tolist()))


@given(items, st.integers(0, 1000))
@settings(max_examples=60)
def test_within_a_task_every_copy_of_a_task_is_a_stratum_of_its_own(drawn, seed):
    columns = _columns(drawn)
    scores, outcome, task, _, block = columns
    resamples = Resamples.draw(N_TASKS, np.random.default_rng(seed), 4)
    area = Pairs(outcome, task, resamples, block=block, within_task=True).area(scores)
    for weights, pooled, macro in zip(
        resamples.weights,
        [area.pooled.value, *area.pooled.draws],
        [area.macro.value, *area.macro.draws],
        strict=True,
    ):
        drawn_scores, drawn_outcome, copies, _, drawn_block = _resampled(columns, weights)
        counted = _brute(drawn_scores, drawn_outcome, copies, copies, drawn_block)
        np.testing.assert_allclose([pooled, macro], [_pooled(*counted), _macro(*counted)], atol=1e-9)


def test_counts_do_not_depend_on_how_many_are_held_at_a_time(monkeypatch):
    rng = np.random.default_rng(5)
    scores, outcome, task = rng.random(300), rng.random(300) < 0.3, rng.integers(0, 40, 300)
    resamples = Resamples.draw(40, rng, 10)
    whole = Pairs(outcome, task, resamples).area(scores).pooled
    monkeypatch.setattr(discrimination, "_CELLS", 200)
    parts = Pairs(outcome, task, resamples).area(scores).pooled
    assert whole.value == parts.value == pytest.approx(auroc(scores, outcome))
    assert (whole.draws == parts.draws).all()


def test_tasks_drawn_together_change_no_figure_on_the_runs_as_they_are(monkeypatch):
    monkeypatch.setattr("safetydrift.evaluation.metrics.resampling.MAX_CLUSTERS", 7)
    rng = np.random.default_rng(5)
    scores, outcome, task = rng.random(300), rng.random(300) < 0.3, rng.integers(0, 40, 300)
    together = Resamples.draw(40, rng, 10)
    alone = Resamples(np.ones((1, 40)), np.arange(40))
    for within_task in (False, True):
        values = [
            Pairs(outcome, task, resamples, within_task=within_task).area(scores).macro.value
            for resamples in (together, alone)
        ]
        assert values[0] == pytest.approx(values[1])


def test_knowing_the_stratum_is_worth_one_half_within_it():
    stratum = np.repeat([0, 1, 2], 10)
    outcome = np.random.default_rng(0).random(30) < 0.2 + 0.3 * stratum
    resamples = Resamples.draw(30, n_resamples=20)
    pairs = Pairs(outcome, np.arange(30), resamples, stratum)
    area = pairs.area(stratum.astype(float))
    assert area.macro.value == area.pooled.value == 0.5
    assert Pairs(outcome, np.arange(30), resamples).area(stratum.astype(float)).pooled.value > 0.6


def test_pairs_across_fitted_predictors_are_not_compared():
    # Each block is ordered perfectly, but the second one scores lower altogether.
    scores = np.array([0.9, 0.8, 0.2, 0.1])
    outcome = np.array([True, False, True, False])
    resamples = Resamples.draw(4, n_resamples=3)
    one, two = np.zeros(4, int), np.array([0, 0, 1, 1])
    assert Pairs(outcome, np.arange(4), resamples, block=one).area(scores).pooled.value == 0.75
    assert Pairs(outcome, np.arange(4), resamples, block=two).area(scores).pooled.value == 1.0


def test_strata_with_one_outcome_are_counted_and_say_nothing():
    outcome = np.array([True, True, False, True, False])
    stratum = np.array([0, 0, 1, 2, 2])
    area = Pairs(outcome, np.arange(5), Resamples.draw(5, n_resamples=3), stratum).area(np.arange(5.0))
    assert (area.strata, area.usable_strata, area.pairs) == (3, 1, 1)
    assert area.macro.value == 0.0


def test_without_a_pair_the_area_is_undefined():
    for n in (0, 3):
        area = Pairs(np.ones(n, bool), np.arange(n), Resamples.draw(max(n, 1), n_resamples=3)).area(
            np.zeros(n)
        )
        assert isnan(area.pooled.value)
        assert isnan(area.macro.value)
        assert area.macro.undefined == 3
        assert area.usable_strata == area.pairs == 0


def test_a_ranking_is_read_in_all_its_ways():
    rng = np.random.default_rng(2)
    n = 200
    task, step = rng.integers(0, 20, n), rng.integers(0, 4, n)
    outcome, exposed, scores = rng.random(n) < 0.4, rng.random(n) < 0.5, rng.random(n)
    ranking = Ranking(
        outcome,
        task=task,
        category=task % 3,
        model=step % 2,
        step=step,
        block=np.zeros(n, int),
        exposed=exposed,
        resamples=Resamples.draw(20, n_resamples=10),
    )
    read = ranking.discrimination(scores)
    assert read.auroc.value == pytest.approx(auroc(scores, outcome))
    assert read.exposed.value == pytest.approx(auroc(scores[exposed], outcome[exposed]))
    for stratified, stratum in (
        (read.within_category, task % 3),
        (read.within_task, task),
        (read.within_model, 2 * (task % 3) + step % 2),
        (read.equal_step, step),
    ):
        areas = [auroc(scores[stratum == s], outcome[stratum == s]) for s in np.unique(stratum)]
        assert stratified.macro.value == pytest.approx(np.nanmean(areas))
    assert (read.positives, read.negatives) == (outcome.sum(), (~outcome).sum())
    assert set(read.figures()) >= {"auroc", "within_category", "within_task", "equal_step", "exposed"}
    assert read.within_task.strata == 20
