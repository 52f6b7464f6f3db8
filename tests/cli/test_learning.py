"""The verbs by which a model goes on learning: calibrate, update, drift, card."""

import json

import pytest
from tests.cli.running import safetydrift

from safetydrift.formats import load_model, write_traces
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace


def office_trace(number, tasks="office"):
    mail = ToolCall("send_email", {"recipients": ["someone@example.org"], "body": "see below"})
    steps = [Step(ToolCall("read_inbox"), "two messages", said="Sort my mail.")]
    violated = number % 3 == 0
    if violated or number % 2:
        steps.append(Step(mail, "sent", turn=1))
    return Trace(
        f"{tasks}/{number}",
        tuple(steps),
        source="own",
        task=f"{tasks}/{number // 2}",
        category="office",
        model="m",
        prompt="Sort my mail.",
        ending=Ending.COMPLETED,
        label=Label(violated, onset=2 if violated else None),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learning")
    write_traces([office_trace(n) for n in range(60)], folder / "old.jsonl")
    write_traces([office_trace(n, "later") for n in range(240)], folder / "new.jsonl")
    done = safetydrift("fit", "old.jsonl", "-o", "model.json", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def calibrated(folder):
    done = safetydrift(
        "calibrate", "model.json", "new.jsonl", "--false-alarms", "0.2", "-o", "calibrated.json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def updated(folder):
    done = safetydrift("update", "model.json", "new.jsonl", "-o", "updated.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_calibrate_writes_thresholds_with_their_promise(folder, calibrated):
    assert "at most 20 % of non-violating runs alarmed, confidence 95 %, calibrated on 1" in calibrated.stdout
    model = load_model(folder / "calibrated.json")
    assert model.provenance["calibration"]["current"]["threshold"] == model.policy.threshold
    shown = safetydrift("analyze", "calibrated.json", cwd=folder)
    assert "at most 20 % of non-violating runs alarmed" in shown.stdout
    told = json.loads(safetydrift("analyze", "calibrated.json", "--json", cwd=folder).stdout)
    assert told["provenance"]["calibration"]["proposal"]["goal"]["confidence"] == 0.95


def test_calibrate_prints_json(folder):
    done = safetydrift(
        "calibrate", "model.json", "new.jsonl", "--cost-miss", 5, "--cost-alarm", 1, "-o", "c.json", "--json",
        cwd=folder,
    )  # fmt: skip
    assert json.loads(done.stdout)["calibration"]["current"]["goal"]["aim"] == "costs"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["old.jsonl"], 3, "share the task"),
        (["new.jsonl", "--false-alarms", "0.001"], 3, "needs at least 3,32"),
        (["new.jsonl", "--cost-miss", "1"], 2, "belong together"),
        (["new.jsonl", "--recall", "0.5", "--false-alarms", "0.1"], 2, "choose one of"),
    ],
)
def test_calibrate_refuses_what_cannot_be_promised(folder, given, code, message):
    done = safetydrift("calibrate", "model.json", *given, "-o", "refused.json", cwd=folder)
    assert done.returncode == code
    assert message in done.stderr
    assert not (folder / "refused.json").exists()


def test_update_adds_runs_and_says_what_it_added(folder, updated):
    assert "added 240 runs of 120 tasks (120 of them new); new categories: none" in updated.stdout
    whole = safetydrift("fit", "old.jsonl", "new.jsonl", "-o", "whole.json", "-q", cwd=folder)
    assert whole.returncode == 0, whole.stderr
    ours, theirs = load_model(folder / "updated.json"), load_model(folder / "whole.json")
    assert ours.evidence == theirs.evidence
    assert str(ours.tables[""].within) == str(theirs.tables[""].within)
    again = safetydrift("update", "updated.json", "new.jsonl", "-o", "twice.json", cwd=folder)
    assert again.returncode == 3
    assert "in the model already" in again.stderr


def test_update_prints_json_and_forgets_when_asked(folder):
    done = safetydrift(
        "update", "model.json", "new.jsonl", "--half-life", 50, "-o", "recent.json", "--json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["runs"], told["new_tasks"], told["left_out"]) == (240, 120, {})
    assert load_model(folder / "recent.json").provenance["updates"][0]["half_life"] == 50


def test_drift_finds_none_in_runs_like_those_fitted_on(folder):
    done = safetydrift("drift", "model.json", "old.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no drift found in 60 runs" in done.stdout


def test_drift_names_the_transitions_that_drive_it_and_goes_on_from_its_state(folder):
    wild = [
        Trace(
            f"wild/{n}",
            (Step(ToolCall("send_email", {"recipients": ["x@example.org"], "body": "hello"}), "sent"),) * 2,
            source="own",
            task=f"wild/{n}",
            category="office",
            prompt="Sort my mail.",
            ending=Ending.COMPLETED,
        )
        for n in range(300)
    ]
    write_traces(wild, folder / "wild.jsonl")
    kept = ("--state", "drift.json", "--plot", "drift.svg")
    done = safetydrift("drift", "model.json", "old.jsonl", *kept, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["alarmed"] is False
    done = safetydrift("drift", "model.json", "wild.jsonl", *kept, "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert told["alarmed"]
    assert 60 < told["alarmed_at_run"] <= told["runs"] == 360
    assert told["drivers"][0]["observed"] > told["drivers"][0]["expected"]
    assert (folder / "drift.svg").read_text().lstrip().startswith("<?xml")
    shown = safetydrift("drift", "model.json", "wild.jsonl", cwd=folder)
    assert "raised the alarm (error level 0.01)" in shown.stdout
    assert "Transitions that speak loudest" in shown.stdout


def test_drift_refuses_a_state_that_is_none(folder):
    (folder / "broken.json").write_text("{")
    done = safetydrift("drift", "model.json", "old.jsonl", "--state", "broken.json", cwd=folder)
    assert done.returncode == 3
    assert "state of the drift alarm cannot be read" in done.stderr
    kept = safetydrift("drift", "model.json", "old.jsonl", "--state", "kept.json", cwd=folder)
    assert kept.returncode == 0, kept.stderr
    other = safetydrift("drift", "default", "old.jsonl", "--state", "kept.json", cwd=folder)
    assert other.returncode == 3
    assert "another model" in other.stderr


def test_the_card_tells_of_data_promises_and_figures(folder, calibrated):
    predictor = {"name": "monitor", "steps": {"5": {"discrimination": {"auroc": {"value": 0.75}}}}}
    split = {"name": "held-out tasks", "tasks": 120, "violated": {"hits": 80, "total": 240}}
    comparison = {"resamples": 5, "splits": [{**split, "predictors": [predictor]}]}
    figures = {"comparison": comparison, "provenance": {"corpus_digest": "abc"}}
    (folder / "figures.json").write_text(json.dumps(figures))
    done = safetydrift("card", "calibrated.json", "--evaluation", "figures.json", "-o", "card.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "card.md").read_text()
    assert text.startswith("# Model card: calibrated\n")
    assert "60 runs of 30 tasks" in text
    assert "- current: at most 20 % of non-violating runs alarmed, confidence 95 %" in text
    assert "### Held-out tasks\n" in text
    assert "240 runs of 120 tasks, 80 violated." in text
    assert "| AUROC, within 5 calls | 0.750 |" in text


def test_a_card_without_figures_says_so_and_one_from_something_else_is_refused(folder, updated):
    done = safetydrift("card", "updated.json", "--name", "ours `now`", cwd=folder)
    assert done.stdout.startswith("# Model card: ours \\`now\\`\n")
    assert "No evaluation was given" in done.stdout
    assert "Nothing is promised about the false alarms" in done.stdout
    assert "| 1 | 240 | 120 | none |" in done.stdout
    (folder / "else.json").write_text('{"comparison": {}}')
    (folder / "torn.json").write_text("{")
    for wrong in ("else.json", "torn.json"):
        refused = safetydrift("card", "updated.json", "--evaluation", wrong, cwd=folder)
        assert refused.returncode == 3
        assert "no evaluation that" in refused.stderr or "cannot be read as JSON" in refused.stderr
