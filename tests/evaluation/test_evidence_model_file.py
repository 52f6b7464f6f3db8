from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from tests.evaluation.predictors.worlds import CATALOGUE, PAPER, world

from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.comparison import compare
from safetydrift.evaluation.evidence_document import summary
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.predictors.monitors import model_predictor
from safetydrift.monitor.fitting import fit_model
from safetydrift.states.task_words import task_digest

if TYPE_CHECKING:
    from safetydrift.evaluation.scores import Predictor

CASES = world(3, 200)
GIVEN = Circumstances(PAPER, CATALOGUE)
MODEL, _ = fit_model([case.run for case in CASES.cases], PAPER, CATALOGUE)


def elsewhere(cases):
    return CaseSet(
        type(case)(replace(case.run, task=f"other {case.run.task}"), case.onset) for case in cases.cases
    )


def compared(model, cases):
    predictors: list[Predictor] = [
        predictor("category-prior", GIVEN),
        model_predictor("theirs", model, cases, PAPER),
    ]
    return compare(predictors, cases, n_resamples=10)


def test_a_model_says_on_which_tasks_it_was_fitted_without_naming_them():
    said = MODEL.provenance["tasks"]
    assert said == sorted({task_digest(*task) for task in CASES.tasks})
    assert all(len(digest) == 8 for digest in said)
    assert not any(task[2] in str(said) for task in CASES.tasks)


def test_a_model_tried_on_its_own_tasks_is_marked_and_has_no_part_in_the_finding():
    found = compared(MODEL, CASES)
    split = found.splits[0]
    assert split.in_sample == ("theirs",)
    assert split.unverified == ()
    assert summary(split, 5).column("predictor")[1] == "theirs (in-sample)"
    assert any("theirs was fitted on tasks that it is tried on" in note for note in split.notes)
    assert "theirs" not in found.finding()


def test_one_task_in_common_is_enough_for_the_mark():
    mixed = CaseSet([*elsewhere(CASES).cases, CASES.cases[0]])
    assert compared(MODEL, mixed).splits[0].in_sample == ("theirs",)


def test_a_model_of_other_tasks_is_taken_at_its_word():
    split = compared(MODEL, elsewhere(CASES)).splits[0]
    assert split.in_sample == split.unverified == ()
    assert summary(split, 5).column("predictor")[1] == "theirs"


def test_a_model_that_does_not_say_is_in_doubt():
    provenance = {name: value for name, value in MODEL.provenance.items() if name != "tasks"}
    split = compared(replace(MODEL, provenance=provenance), CASES).splits[0]
    assert split.unverified == ("theirs",)
    assert split.in_sample == ()
    assert summary(split, 5).column("predictor")[1] == "theirs (tasks unknown)"
