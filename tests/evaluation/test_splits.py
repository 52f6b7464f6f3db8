import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.made_cases import case, many

from safetydrift.errors import LeakageError, SplitError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.splits import (
    Fold,
    Split,
    held_out_models,
    held_out_sources,
    held_out_suites,
    held_out_tasks,
    held_out_tasks_and_models,
    model_families,
    random_runs,
    require_disjoint,
)

CASES = many(np.random.default_rng(7))


def _models(cases: CaseSet) -> set[str]:
    return {one.run.model for one in cases.cases}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=60), st.integers(2, 6))
def test_no_task_is_on_both_sides_and_every_run_is_tried_once(drawn, n_folds):
    cases = CaseSet(case(task=f"t{task}", model=f"m{model}") for task, model in drawn)
    try:
        split = held_out_tasks(cases, n_folds)
    except SplitError:
        return
    for fold in split.folds:
        assert not fold.train.tasks & fold.test.tasks
        assert len(fold.train) + len(fold.test) == len(cases)
    assert sorted(one.run.id for fold in split.folds for one in fold.test.cases) == sorted(
        one.run.id for one in cases.cases
    )


def test_a_task_keeps_its_fold_when_runs_are_added():
    few = CASES.select([one.run.task < "task 2" for one in CASES.cases])
    where = [
        {task[2]: fold.name for fold in held_out_tasks(cases).folds for task in fold.test.tasks}
        for cases in (few, CASES)
    ]
    assert where[0].items() <= where[1].items()


def test_one_fold_can_be_had_alone():
    whole = held_out_tasks(CASES)
    assert whole.first().folds == whole.folds[:1]


def test_no_model_is_on_both_sides_where_models_are_held_out():
    split = held_out_models(CASES)
    assert not split.tests_unseen_tasks
    assert sum(len(fold.test) for fold in split.folds) == len(CASES)
    assert all(not _models(fold.train) & _models(fold.test) for fold in split.folds)


def test_neither_task_nor_model_is_on_both_sides_where_both_are_held_out():
    for fold in held_out_tasks_and_models(CASES, 3).folds:
        assert not fold.train.tasks & fold.test.tasks
        assert not _models(fold.train) & _models(fold.test)


def test_a_model_behind_several_defences_is_one_family():
    names = [
        "gpt-4o-2024",
        "gpt-4o-2024-tool_filter",
        "google_gemini-2.5",
        "google_gemini-2.5-repeat_user_prompt",
    ]
    families = model_families([*names, "deepseek_r1", "DeepSeek_R1-drift", "gpt-4"])
    assert families[names[0]] == families[names[1]]
    assert families[names[2]] == families[names[3]] == "gemini-2.5"
    assert families["deepseek_r1"] == families["DeepSeek_R1-drift"]
    assert families["gpt-4"] != families[names[0]]


def test_a_whole_source_is_left_out():
    cases = CaseSet([case(source="a"), case(source="a", task="2"), case(source="b"), case(source="c")])
    split = held_out_sources(cases)
    assert [fold.name for fold in split.folds] == ["a", "b", "c"]
    for fold in split.folds:
        assert {one.run.source for one in fold.test.cases} == {fold.name}
        assert fold.name not in {one.run.source for one in fold.train.cases}


def test_a_whole_suite_is_left_out():
    cases = CaseSet(
        [case(source="a", category="x"), case(source="a", category="y"), case(source="b", category="x")]
    )
    split = held_out_suites(cases)
    assert [fold.name for fold in split.folds] == ["a/x", "a/y", "b/x"]
    for fold in split.folds:
        assert {f"{one.run.source}/{one.run.category}" for one in fold.test.cases} == {fold.name}
        assert len(fold.train) == 2


def test_a_single_source_cannot_be_left_out():
    with pytest.raises(SplitError, match="too few"):
        held_out_sources(CaseSet([case(), case()]))


def test_a_single_task_cannot_be_held_out():
    with pytest.raises(SplitError, match="too few"):
        held_out_tasks(CaseSet([case(), case()]))


def test_one_fold_is_no_division():
    with pytest.raises(SplitError, match="2 or more"):
        held_out_tasks(CASES, 1)


def test_the_random_division_gives_every_stratum_its_share():
    (fold,) = random_runs(CASES).folds
    assert len(fold.test) == len(CASES) // 5
    for category in range(4):
        for violated in (False, True):
            inside = [
                one.category == ("made", f"c{category}") and one.violated == violated for one in CASES.cases
            ]
            tried = [
                one.category == ("made", f"c{category}") and one.violated == violated
                for one in fold.test.cases
            ]
            assert abs(sum(tried) - sum(inside) / 5) < 1


def test_the_random_division_says_that_tasks_are_on_both_sides_and_they_are():
    split = random_runs(CASES)
    assert "tasks on both sides" in split.name
    assert not split.tests_unseen_tasks
    assert split.folds[0].train.tasks & split.folds[0].test.tasks


def test_the_random_division_comes_from_the_generator():
    def tried(seed: int | None) -> list[str]:
        rng = None if seed is None else np.random.default_rng(seed)
        return [one.run.id for one in random_runs(CASES, rng).folds[0].test.cases]

    assert tried(1) == tried(1)
    assert tried(1) != tried(2)
    assert tried(None) == tried(None)


@pytest.mark.parametrize(
    ("what", "shared"), [("task", ("made", "office", "same")), ("model", "model"), ("source", "made")]
)
def test_what_is_to_be_kept_apart_and_is_not_is_an_error(what, shared):
    fold = Fold("fold", CaseSet([case(task="same"), case(task="own")]), CaseSet([case(task="same")]))
    with pytest.raises(LeakageError, match=what) as raised:
        Split("leaky", (fold,), apart=(what,))
    assert raised.value.shared == (shared,)
    assert raised.value.what == what


def test_a_split_without_anything_to_fit_on_is_an_error():
    with pytest.raises(SplitError):
        Split("empty", (Fold("fold", CaseSet([]), CaseSet([case()])),))
    with pytest.raises(SplitError):
        Split("none", ())


def test_tasks_fitted_on_elsewhere_are_checked():
    tried = CaseSet([case(task="a"), case(task="b")])
    require_disjoint([("made", "office", "c"), ("other", "office", "a")], tried)
    with pytest.raises(LeakageError, match=r"model.json .*'a'.* and 1 more"):
        require_disjoint([["made", "office", "b"], ["made", "office", "a"]], tried, "model.json")
