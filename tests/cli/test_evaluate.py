import json

import pytest
from msgspec.structs import replace
from tests.cli.running import safetydrift
from tests.evaluation.predictors.worlds import FLOW, world

from safetydrift.cli import evaluate as verb
from safetydrift.evaluation.metrics.resampling import SEED
from safetydrift.evaluation.predictors import PREDICTORS
from safetydrift.evaluation.splits import SPLITS
from safetydrift.formats.runs import RunWriter


def evaluate(*args, cwd=None):
    return safetydrift("evaluate", *args, cwd=cwd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    with (folder / "runs.jsonl").open("wb") as stream:
        writer = RunWriter(stream, FLOW, "")
        for case in world(6, 300, FLOW).cases:
            writer.write(case.run)
    return folder


FEW = ("--predictor", "monitor", "--predictor", "model-rate", "--resamples", "10", "--space", "flow")


@pytest.fixture(scope="module")
def done(folder):
    return evaluate(
        "runs.jsonl", *FEW, "-o", "report.html", "--figures", "figures", "--evidence", "page.md", cwd=folder
    )


def test_the_words_of_the_command_line_are_those_of_the_program():
    assert tuple(SPLITS) == verb.SPLITS
    assert SEED == verb.SEED
    assert set(PREDICTORS) >= {*verb.SLOW, *verb.OURS}


def test_the_finding_comes_first_and_then_the_table(done):
    assert done.returncode == 0, done.stderr
    places = [
        done.stdout.index(text)
        for text in (
            "On held-out tasks (",
            "Knowing only which model acts",
            "What this does not show",
            "predictor  ",
            "Minus category-prior",
        )
    ]
    assert places == sorted(places)
    assert "model-rate" in done.stdout


def test_the_reference_is_compared_even_if_nobody_asked_for_it(done):
    assert "category-prior" in done.stdout


def test_on_runs_of_ones_own_the_shipped_model_is_compared(done):
    assert verb.SHIPPED in done.stdout


def test_files_are_written_where_asked(done, folder):
    assert (folder / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".png"}
    assert (folder / "page.md").is_file()
    assert list((folder / "page").glob("*.svg"))
    assert "report written to report.html" in done.stderr


def test_json_holds_everything_and_nothing_else_goes_to_standard_output(folder):
    done = evaluate(
        "runs.jsonl",
        *FEW,
        "--split",
        "tasks",
        "--split",
        "random",
        "--json",
        cwd=folder,
    )
    found = json.loads(done.stdout)
    assert [split["folds"] for split in found["comparison"]["splits"]] == [5, 1]


def test_the_same_command_gives_the_same_figures(folder):
    first, second = (
        json.loads(evaluate("runs.jsonl", *FEW, "--jobs", jobs, "--json", "-q", cwd=folder).stdout)
        for jobs in (1, 2)
    )
    for found in (first, second):
        for split in found["comparison"]["splits"]:
            for one in split["predictors"]:
                del one["fit_seconds"], one["score_seconds"]
    assert first == second


def test_a_model_fitted_on_these_tasks_is_marked(folder):
    assert (
        safetydrift("fit", "runs.jsonl", "--space", "flow", "-o", "mine.json", "-q", cwd=folder).returncode
        == 0
    )
    done = evaluate(
        "runs.jsonl", "--predictor", "silent", "--model", "mine.json", "--resamples", "5", cwd=folder
    )
    assert "mine (in-sample)" in done.stdout
    assert "mine was fitted on tasks that it is tried on" in done.stdout


def test_a_prediction_file_is_compared(folder):
    assert safetydrift("predict", "runs.jsonl", "-o", "theirs.jsonl", "-q", cwd=folder).returncode == 0
    done = evaluate(
        "runs.jsonl", "--predictor", "silent", "--predictions", "theirs.jsonl", "--resamples", "5", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "theirs (tasks unknown)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--predictor", "crystal-ball"], 2, "there is no 'crystal-ball'"),
        (["--split", "sideways"], 2, "sideways"),
        (["-o", "nowhere/report.html"], 2, "there is no folder"),
        (["--evidence", "nowhere/page.md"], 2, "there is no folder"),
        (["--model", "absent.json", "--predictor", "silent"], 3, "absent.json"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(folder, arguments, code, message):
    done = evaluate("runs.jsonl", *arguments, cwd=folder)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_too_few_tasks_are_refused(tmp_path):
    with (tmp_path / "runs.jsonl").open("wb") as stream:
        writer = RunWriter(stream, FLOW, "")
        for case in world(6, 20, FLOW).cases:
            writer.write(replace(case.run, task="one", category="c", source="s"))
    done = evaluate("runs.jsonl", cwd=tmp_path)
    assert done.returncode == 3
    assert "too few runs" in done.stderr
