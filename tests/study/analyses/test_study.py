import numpy as np
import pytest
from tests.monitor.conftest import READ, SEND, WRITE, run
from tests.study.analyses.worlds import SPACE, coloured, drift, make, study

from safetydrift.errors import ChainError, SplitError
from safetydrift.evaluation.splits import random_runs
from safetydrift.formats import load_catalogue, load_space
from safetydrift.monitor.fitting import fit_chains, fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, fold
from safetydrift.study.analyses import Study
from safetydrift.study.analyses.chains import NOWHERE, Places, count, fit, project
from safetydrift.trace import Ending, Label


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(5)
    return drift(rng, 60, "here") + drift(rng, 60, "there", violated=0.3, prefix="t")


def everyone(found):
    return np.ones(len(found.cases), dtype=bool)


def test_points_lie_flat_and_what_follows_is_the_next_call_or_the_end():
    found = study(
        [
            coloured([1, 2], task="a"),
            coloured([1, 3, 2], task="b", onset=2),
            coloured([2], task="c", ending=Ending.CENSORED),
        ]
    )
    assert found.state.tolist() == [0, 2, 4, 0, 2, 0, 4]
    assert found.level.tolist() == [0, 1, 2, 0, 1, 0, 2]
    assert found.following(found.level, 4, completion=True).tolist() == [1, 2, 5, 1, 4, 2, -1]
    assert found.following(found.level, 4, completion=False).tolist() == [1, 2, -1, 1, 4, 2, -1]


def test_violation_by_the_rules_ends_a_run_where_the_rules_say_so():
    found = study([coloured([1, 3, 0]), coloured([1, 1])], settings=FitSettings(notion=Notion.RULES))
    assert found.following(found.level, 4, completion=True).tolist() == [1, 4, 1, 1, 5]


def test_runs_without_a_usable_outcome_are_counted_in_words():
    unusable = make(0, label=Label(unusable="no attack in this run"))
    found = study([make(0), unusable, unusable])
    assert found.left_out == {"no attack in this run": 2}
    assert "2 runs without a usable outcome" in found.note
    with pytest.raises(ChainError, match="2 no attack in this run"):
        study([unusable, unusable])


def test_categories_carry_their_source_where_there_are_several():
    assert study([make(0)]).categories == ("here",)
    both = study([make(0), make(0, source="field"), make(0, source="x", category="x")])
    assert both.categories == ("lab/here", "field/here", "x")


def test_no_held_out_task_is_learnt_from_and_every_run_is_tried_once(runs):
    found = study(runs)
    task = found.cases.task
    tried = np.zeros(len(found.cases), dtype=int)
    for train, test in found.held_out():
        assert not set(task[train]) & set(task[test])
        tried += test
    assert (tried == 1).all()


def test_one_task_cannot_be_held_out():
    with pytest.raises(SplitError):
        study([make(0), make(2)]).held_out()


def test_drawn_tasks_are_a_fifth_of_each_category_and_whole(runs):
    found = study(runs)
    for seed in range(5):
        drawn = found.draw_held_out(np.random.default_rng(seed))
        assert not set(found.cases.task[drawn]) & set(found.cases.task[~drawn])
        for category in range(2):
            assert len(set(found.cases.task[drawn & (found.cases.category == category)])) == 3


def test_the_random_split_does_part_tasks(runs):
    found = study(runs)
    ((train, test),) = found.parts(random_runs(found.cases, found.generator()))
    assert set(found.cases.task[train]) & set(found.cases.task[test])
    assert not (train & test).any()


@pytest.mark.parametrize("estimator", list(Estimator))
def test_coarse_chains_are_those_of_the_monitor(runs, estimator):
    settings = FitSettings(estimator=estimator, granularity=Granularity.COARSE, strength=4.0)
    found = study(runs, settings=settings)
    mine = fit(found, Places.of(found), everyone(found))
    theirs = fit_chains(runs, SPACE, settings)
    for number, name in enumerate((*found.categories, "")):
        assert (mine.counts[number] == theirs.evidence[name].counts.matrix).all()
        assert mine.chains[number].transitions == pytest.approx(theirs.chains[name].transitions)


def test_the_risk_at_every_point_is_the_verdict_of_the_monitor():
    rng, space = np.random.default_rng(6), load_space("paper")
    runs = []
    for number in range(160):
        effects = rng.choice([READ, WRITE, SEND], rng.integers(1, 5)).tolist()
        onset = len(effects) if SEND in effects and rng.random() < 0.6 else None
        category = ("desk", "office")[number % 2]
        runs.append(run(*effects, onset=onset, category=category, task=f"t{number % 32}", id=str(number)))
    settings = FitSettings(strength=4.0)
    found = study(runs, space, settings)
    places = Places.of(found)
    train, test = found.held_out()[0]
    table = fit(found, places, train).within(5)[:, 5]
    learnt = [case.run for case, chosen in zip(found.cases.cases, train, strict=True) if chosen]
    monitor = LookupMonitor(fit_model(learnt, space, load_catalogue(), settings)[0], Policy(5))
    asked = np.flatnonzero(test[found.cases.run_of_point]).tolist()
    assert len(asked) > 20
    for point in asked:
        category = found.cases.cases[found.cases.run_of_point[point]].run.category
        probability = monitor.current_verdicts(category)[found.state[point]].probability
        expected = 1.0 if np.isnan(probability) else probability
        assert table[found.category[point], places.row[point]] == pytest.approx(expected, rel=1e-3)


def test_a_place_nobody_left_has_the_risk_of_the_unknown():
    found = study([coloured([1, 2], task="a", ending=Ending.CENSORED), coloured([1, 1], task="b")])
    chains = fit(found, Places.coarse(found), everyone(found))
    assert chains.within(5)[0, 5, 2] == 1.0
    assert chains.within(5)[0, 5, 1] == 0.0


def test_fine_places_are_the_states_that_were_visited():
    found = study([make(2, 5, 2, task="a"), make(1, task="b")])
    places = Places.fine(found)
    assert places.rows.names == ("green/quiet", "green/loud", "yellow/quiet", "orange/loud", NOWHERE)
    assert [places.rows.names[row] for row in places.row] == [
        SPACE.describe(state) for state in found.state.tolist()
    ]
    counts = count(found, places, everyone(found), completion=False)
    assert counts[-1].sum() == 4


def test_projecting_puts_a_dimension_to_its_lowest_level():
    space = load_space("paper")
    for gone in ("data", "tool", "reversibility"):
        merged = project(space, frozenset([gone]))
        for state in range(space.n_states):
            left = {name: level for name, level in space.decode(state).items() if name != gone}
            assert merged[state] == space.encode(left)
    assert (project(space, frozenset()) == np.arange(space.n_states)).all()
    assert not project(space, frozenset({"data", "tool", "reversibility"})).any()


def test_levels_of_merged_states_are_those_of_what_is_left():
    space = load_space("paper")
    states = fold(space, [space.encode({"data": "sensitive"}), space.encode({"tool": "network"})])
    found = Study.of([make(*states[1:])], space, FitSettings())
    assert Places.fine(found).level.tolist() == [0, 1, 3]
    assert Places.fine(found, frozenset(["data"])).level.tolist() == [0, 0, 0]
