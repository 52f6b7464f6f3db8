"""``safetydrift judge``: what is asked, what is kept, and how a recording goes on."""

import json

import pytest
from click.testing import CliRunner

from safetydrift.cli.evaluate import evaluate
from safetydrift.cli.label import label as plain_label
from safetydrift.cli.study.judge import judge
from safetydrift.effects.labeler import Labeler
from safetydrift.errors import JudgeError, JudgeFileError, JudgeSettingsError, NoRunsError
from safetydrift.formats import load_catalogue, write_traces
from safetydrift.study.judge import RecordedJudge, judged
from safetydrift.trace import Label, Step, ToolCall, Trace

pytest.importorskip("pydantic_ai")

MODEL = "openai-compatible:local"
ODD = [ToolCall("frobnicate", {"n": n}) for n in range(4)]
PLAIN = ToolCall("bash", {"command": "ls"})


@pytest.fixture
def traces(tmp_path):
    """Two runs: four calls that nobody knows, one of them twice, and one that a rule decides."""
    path = tmp_path / "traces.jsonl"
    steps = [Step(call, "done") for call in (*ODD, ODD[0], PLAIN)]
    write_traces([Trace("a", tuple(steps[:3])), Trace("b", tuple(steps[3:]))], path)
    return path


@pytest.fixture
def answers(tmp_path):
    return tmp_path / "answers.jsonl"


@pytest.fixture
def record(traces, answers, address):
    """Run the command and return what it says as data."""

    def record(*options):
        base = [traces, "-o", answers, "--model", MODEL, "--base-url", f"{address}/v1", "--json"]
        done = CliRunner().invoke(judge, ["record", *map(str, base), *options], catch_exceptions=False)
        return json.loads(done.stdout) if done.exit_code == 0 else done

    return record


def test_calls_that_no_rule_decides_are_asked_once_each(record, provider, answers):
    said = record()
    assert (said["calls"], said["undecided"], said["repeated"], said["answered"]) == (6, 5, 1, 4)
    assert (said["requests"], said["failed"]) == (4, 0)
    assert len(provider.requests) == 4
    labeler = judged(Labeler(load_catalogue()), RecordedJudge(answers))
    assert [labeler.propose(call).source for call in (*ODD, PLAIN)] == ["judge"] * 4 + ["rule"]
    assert labeler.tally["answered"] == 4


def test_runs_are_labelled_with_what_was_recorded(record, traces, answers, tmp_path):
    record()
    sources = []
    for verb, more in ((judge, ["label", "--answers", answers]), (plain_label, [])):
        done = CliRunner().invoke(verb, [*map(str, more), str(traces), "--json"], catch_exceptions=False)
        sources.append(json.loads(done.stdout)["layers"])
    assert sources == [{"judge": 5, "rule": 1}, {"default": 5, "rule": 1}]


def test_every_call_may_be_asked(record, provider):
    assert record("--all")["answered"] == 5


def test_a_recording_is_taken_up(record, provider, answers):
    assert record("--limit", "1", "--concurrency", "1")["answered"] == 1
    said = record()
    assert (said["asked_before"], said["answered"]) == (2, 3)  # one of them is repeated
    assert len(provider.requests) == 4
    assert record()["answered"] == 0


def test_what_fails_is_counted_and_the_rest_is_kept(record, provider, answers):
    provider.replies({"status": 400})
    said = record("--concurrency", "1", "--max-requests", "3")
    assert (said["answered"], said["failed"], said["over_budget"]) == (2, 1, 1)
    assert len(RecordedJudge(answers)) == 2


def test_where_nothing_is_answered_it_fails(record, provider):
    provider.replies({"status": 404})
    with pytest.raises(
        JudgeError, match="no call was answered: the model cannot be asked: the endpoint answered 404"
    ):
        record("--concurrency", "1")


def test_the_summary_is_for_people_too(traces, answers, address, provider):
    provider.replies({"status": 400})
    base = [traces, "-o", answers, "--model", MODEL, "--base-url", f"{address}/v1", "--concurrency", "1"]
    done = CliRunner().invoke(judge, ["record", *map(str, base)], catch_exceptions=False)
    assert done.exit_code == 0


def test_secrets_are_redacted_on_demand(traces, answers, record, provider):
    write_traces([Trace("a", (Step(ToolCall("frobnicate", {"password": "hunter2"})),))], traces)
    record("--redact")
    assert "hunter2" not in provider.prompts[0]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--model", "google:x"], JudgeSettingsError),
        (["--model", "anthropic:x"], JudgeSettingsError),
        (["--base-url", "http://example.org"], JudgeSettingsError),
    ],
)
def test_a_judge_that_cannot_work_is_refused(record, options, error, provider):
    with pytest.raises(error):
        record(*options)
    assert not provider.requests


def test_an_input_is_never_written_over(record, traces):
    before = traces.read_bytes()
    with pytest.raises(JudgeFileError, match="no file of recorded answers"):
        record("-o", str(traces))
    assert traces.read_bytes() == before


def test_paths_without_calls_are_refused(record, tmp_path, traces):
    assert record("corpus").exit_code == 2
    traces.write_text("")
    with pytest.raises(NoRunsError):
        record()


# -- every step -------------------------------------------------------------------------------------------


@pytest.fixture
def steps(traces, answers, address, provider):
    """Run ``judge steps`` and return what it says as data."""
    provider.answer = {"risk": 0.25, "unsafe": False}

    def steps(*options):
        base = [traces, "-o", answers, "--model", MODEL, "--base-url", f"{address}/v1", "--json"]
        done = CliRunner().invoke(judge, ["steps", *map(str, base), *options], catch_exceptions=False)
        return json.loads(done.stdout) if done.exit_code == 0 else done

    return steps


def test_every_step_is_judged_once_and_a_recording_goes_on(steps, provider, answers):
    assert steps("--max-requests", "2", "--concurrency", "1")["asked"] == 2
    said = steps()
    assert (said["asked"], said["known"], said["failed"], said["left"]) == (4, 2, 0, 0)
    assert len(provider.requests) == 6
    assert len(answers.read_text().splitlines()) == 1 + 6


def test_a_window_shows_the_latest_calls(steps, provider):
    steps("--window", "3", "--concurrency", "1")
    assert max(prompt.count("frobnicate") for prompt in provider.prompts) == 3


def test_steps_that_nobody_judged_are_an_error(steps, provider):
    provider.replies({"status": 404})
    with pytest.raises(JudgeError, match="no step was judged"):
        steps("--concurrency", "1")


def test_judgements_are_compared_with_the_baselines(steps, traces, answers):
    runs = [
        Trace(
            f"{task}-{n}",
            (Step(ODD[n % 4], "done"), Step(PLAIN, "x")),
            task=f"t{task}",
            label=Label(n % 2 == 0),
        )
        for task in range(6)
        for n in range(4)
    ]
    write_traces(runs, traces)
    steps()
    options = [
        "--judgements",
        answers,
        "--predictor",
        "category-prior",
        "--resamples",
        "0",
        "--jobs",
        "1",
        "--json",
    ]
    done = CliRunner().invoke(evaluate, [str(traces), *map(str, options)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    names = [one["name"] for one in json.loads(done.stdout)["comparison"]["splits"][0]["predictors"]]
    assert "judge, per step" in names
