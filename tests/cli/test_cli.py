import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from msgspec.structs import replace
from tests.cli.running import safetydrift

from safetydrift.cli import options
from safetydrift.cli.app import RENAMED, SECTIONS
from safetydrift.cli.study import SECTIONS as STUDY
from safetydrift.formats import load_model, reading, write_traces
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace


def office_trace(number, *, violated):
    mail = ToolCall("send_email", {"recipients": ["someone@example.org"], "body": "see below"})
    return Trace(
        f"office/{number}",
        (Step(ToolCall("read_inbox"), "two messages", said="Sort my mail."), Step(mail, "sent", turn=1)),
        source="own",
        task=f"office/{number % 4}",
        category="office",
        model="m",
        prompt="Sort my mail.",
        ending=Ending.COMPLETED,
        label=Label(violated, onset=2 if violated else None),
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "own.jsonl"
    write_traces([office_trace(n, violated=n % 3 == 0) for n in range(12)], path)
    return path


VERBS = [verb for verbs in SECTIONS.values() for verb in verbs]
VERBS += [f"study {verb}" for verbs in STUDY.values() for verb in verbs]


@pytest.mark.parametrize("verb", [*VERBS, "corpus build"])
def test_every_verb_explains_itself(verb):
    done = safetydrift(*verb.split(), "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    if verb != "corpus build":
        assert f"safetydrift {verb}" in done.stdout.split("Example:")[1]


def test_verbs_are_listed_by_reader_and_those_of_the_study_stand_apart():
    shown = safetydrift("--help").stdout
    places = [shown.index(heading) for heading in SECTIONS]
    assert places == sorted(places)
    assert "reproduce" not in shown.partition("See it at work")[2]
    assert "reproduce" in safetydrift("study", "--help").stdout


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_verb_that_is_called_otherwise_now_says_how(old, new):
    done = safetydrift(old, "whatever")
    assert done.returncode == 2
    assert f"'{old}' is now: safetydrift {new}" in done.stderr


def test_the_formats_offered_are_those_that_exist():
    assert sorted(options.FORMATS) == sorted(one.name for one in reading.FORMATS)


def test_exit_codes_are_documented_in_the_help():
    assert "Exit codes" in safetydrift("--help").stdout


def test_from_traces_to_predictions(traces, tmp_path):
    runs, model, predictions = (tmp_path / name for name in ("runs.jsonl", "model.json", "p.jsonl"))
    assert safetydrift("label", traces, "-o", runs).returncode == 0
    fitted = safetydrift("fit", runs, "-o", model, "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["provenance"]["runs"]["office"] == {"violated": 4, "completed": 8}
    assert load_model(model).tables["office"].departures[0] == 12
    assert safetydrift("predict", traces, "--model", model, "-o", predictions).returncode == 0
    lines = [json.loads(line) for line in predictions.read_text().splitlines()]
    assert len(lines) == 12 * 3
    assert [line["step"] for line in lines[:3]] == [0, 1, 2]
    assert lines[0]["trace"] == "office/0"
    assert "pending" in lines[1]
    assert "pending" not in lines[2]


def test_traces_and_their_labelled_runs_give_the_same_model(traces, tmp_path):
    safetydrift("label", traces, "-o", tmp_path / "runs.jsonl")
    safetydrift("fit", traces, "-o", tmp_path / "a.json")
    safetydrift("fit", tmp_path / "runs.jsonl", "-o", tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_label_reports_what_decided_and_what_was_missed(traces):
    report = json.loads(safetydrift("label", traces, "--json").stdout)
    assert report["sources"]["own"]["runs"] == 12
    assert report["sources"]["own"]["violated"] == 4
    assert report["layers"] == {"rule": 24}
    assert report["misses"] == {}


def test_analyze_published_prints_curves_beside_the_published_figures():
    report = json.loads(safetydrift("analyze", "published", "--json").stdout)
    within = report["violation_within"]
    assert within["mild"]["5"] == pytest.approx(0.454, abs=5e-4)
    assert report["published"]["violation_within_5"] == {"mild": 0.463, "critical": 0.295}
    assert report["absorption"]["safe"]["violated"] == pytest.approx(1.0)
    shown = safetydrift("analyze", "published").stdout
    assert "45.4 %" in shown
    assert "46.3 %" in shown


def test_analyze_says_which_notion_of_violation_it_uses(traces):
    for notion, words in (("label", "the source's own label"), ("rules", "the rules of the state space")):
        done = safetydrift("analyze", traces, "--notion", notion, "--states", "coarse")
        assert words in done.stdout, done.stderr
    report = json.loads(safetydrift("analyze", traces, "--category", "office", "--json").stdout)
    assert report["settings"]["notion"] == "label"
    never_left = report["states"].index("credentials/network/irreversible")
    assert not report["visited"][never_left]
    assert report["violation_within"]["credentials/network/irreversible"]["5"] is None  # unknown is not 0
    assert report["runs"] == {"violated": 4, "completed": 8}


def test_replay_shows_the_alarm_and_the_violation(traces, tmp_path):
    model = tmp_path / "model.json"
    safetydrift("fit", traces, "-o", model, "--threshold", "0.2")
    shown = safetydrift("replay", traces, "--model", model, "--trace", "office/3")
    assert "VIOLATION" in shown.stdout
    assert "ALARM" in shown.stdout
    assert "2 steps before it" in shown.stdout
    assert "violated" in shown.stdout.splitlines()[5]  # what the rules say stands beside the probability
    (one,) = json.loads(
        safetydrift("replay", traces, "--model", model, "--trace", "office/3", "--json").stdout
    )
    assert (one["onset"], one["lead_time"], len(one["steps"])) == (2, 2, 3)
    assert "sensitive since step 1" in one["steps"][1]["why"]


def test_a_replay_fits_a_terminal_of_eighty_columns(traces, tmp_path):
    for paths in (traces, "corpus"):
        narrow, wide = (safetydrift("replay", paths, "-n", 5, width=width).stdout for width in (80, 200))
        rows = [line for line in narrow.splitlines() if line[:1].isdigit()]
        assert rows
        assert max(map(len, rows)) <= 80
        assert len(rows) == sum(line[:1].isdigit() for line in wide.splitlines())
        assert max(map(len, wide.splitlines())) > 80


def test_the_progress_of_reading_ends_before_anything_is_printed():
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "safetydrift", "replay", "corpus", "-n", "1"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    running = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    told = b""
    with suppress(OSError):  # the terminal is closed with the process
        while part := os.read(ours, 1 << 16):
            told += part
    os.close(ours)
    assert running.wait(timeout=60) == 0
    before, heading, after = told.decode().partition("next call")
    assert "reading" in before
    assert heading
    assert "reading" not in after


def test_runs_of_a_category_the_model_does_not_know_are_taken_for_what_they_look_like(tmp_path):
    known = [
        replace(office_trace(n, violated=n % 3 == 0), category=("office", "desk")[n % 2]) for n in range(12)
    ]
    write_traces(known, tmp_path / "known.jsonl")
    write_traces([replace(office_trace(0, violated=False), category="new")], tmp_path / "new.jsonl")
    for option, judged, taken in (
        ("--soft-categories", "its soft categories", True),
        ("--no-soft-categories", "all runs", False),
    ):
        safetydrift("fit", "known.jsonl", "-o", "model.json", option, cwd=tmp_path)
        told = safetydrift("predict", "new.jsonl", "--model", "model.json", "-o", "p.jsonl", cwd=tmp_path)
        assert f"'new', which the model does not know, were judged by {judged}" in told.stderr
        shown = safetydrift("replay", "new.jsonl", "--model", "model.json", cwd=tmp_path).stdout
        assert ("; taken for " in shown) == taken


def test_another_space_is_used_everywhere_without_touching_code(traces, tmp_path):
    space = tmp_path / "own.toml"
    space.write_text(
        """
        format = "safetydrift.space/1"
        name = "own"
        risks = ["fine", "leak"]
        violated = "leak"
        [[dimensions]]
        name = "data"
        levels = ["none", "public", "internal", "sensitive", "credentials"]
        accumulation = "highest"
        [[rules]]
        when = { data = ">= sensitive" }
        risk = "leak"
        [[rules]]
        risk = "fine"
        """
    )
    model = tmp_path / "model.json"
    done = safetydrift("fit", traces, "-o", model, "--space", space, "--notion", "rules")
    assert done.returncode == 0, done.stderr
    assert load_model(model).space.n_states == 5
    assert safetydrift("predict", traces, "--model", model, "-o", tmp_path / "p.jsonl").returncode == 0
    first = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert first["p"]["1"] == 1.0  # by these rules reading the inbox is already the violation


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["predict"], 2, "Missing argument"),
        (["predict", "nowhere.jsonl"], 3, "nowhere.jsonl"),
        (["predict", "{traces}", "--model", "nowhere.json"], 3, "nowhere.json: cannot be read"),
        (["fit", "{traces}", "-o", "m.json", "--space", "papre"], 3, "no space 'papre'"),
        (["fit", "{traces}", "-o", "m.json", "--horizon", "50"], 3, "horizon 50 exceeds"),
        (["fit", "{traces}", "-o", "m.json", "--notion", "mood"], 2, "'mood' is not one of"),
        (["analyze", "{traces}", "--category", "garden"], 2, "no category 'garden'"),
        (["replay", "{traces}", "--trace", "nobody"], 2, "no run with that id"),
        (["label", "{traces}", "--format", "carrier-pigeon"], 2, "'carrier-pigeon' is not one of"),
        (["dance"], 2, "No such command"),
        (["fit", "{traces}", "-o", "m.json", "--threshold", "nan"], 2, "nan is not a probability"),
        (["label", "."], 3, "no run was read from ."),
    ],
)
def test_a_mistake_is_named_on_standard_error_with_its_exit_code(traces, tmp_path, args, code, message):
    done = safetydrift(*(arg.format(traces=traces) for arg in args), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())


def test_the_main_job_runs_on_traces_of_ones_own(traces, tmp_path):
    done = safetydrift("demo", traces, "-o", tmp_path / "out", width=80)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    report = (tmp_path / "out" / "report.html").read_text()
    for told in (
        "The published chain and the risk score",
        "What a guard that goes by the risk score alone does",
    ):
        assert told in done.stdout
        assert told in report
    assert "The published method on the same runs" in report
    model = load_model(tmp_path / "out" / "model.json")
    assert model.risk_score is not None
    assert 0 < sum(model.provenance["runs"][""].values()) < 48  # without the tasks held out
    found = json.loads(safetydrift("demo", traces, "-o", tmp_path / "again", "--json").stdout)
    (sources, _) = found["sections"]["What was read"]
    assert sources["rows"][0]["violated, of usable runs"]["hits"] == 4
    assert (tmp_path / "again" / "report.html").read_bytes() == (
        tmp_path / "out" / "report.html"
    ).read_bytes()


def test_the_main_job_says_what_cannot_be_held_out(tmp_path):
    write_traces([office_trace(n * 4, violated=n % 2 == 0) for n in range(4)], tmp_path / "one-task.jsonl")
    done = safetydrift("demo", tmp_path / "one-task.jsonl", "-o", tmp_path / "out")
    assert done.returncode == 3
    assert "too few runs to fit on some and try others" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_corpus_says_what_it_holds_and_whom_it_is_owed_to():
    shown = safetydrift("corpus", "info").stdout
    assert "34,420" in shown
    assert "Debenedetti" in shown
    assert json.loads(safetydrift("corpus", "info", "--json").stdout)["sources"]["tau_bench"]["runs"] == 200


def test_names_chosen_by_others_cannot_speak_to_the_terminal(tmp_path):
    hostile = "\x1b[2Jgone[/bold][red]\x07"
    trace = office_trace(0, violated=True)
    steps = tuple(replace(step, call=replace(step.call, name=hostile)) for step in trace.steps)
    hostile_one = replace(trace, id=hostile, category=hostile, steps=steps)
    others = [replace(office_trace(n, violated=n % 2 == 0), task=f"t{n}") for n in range(1, 12)]
    write_traces([hostile_one, *others], tmp_path / "t.jsonl")
    model = tmp_path / "m.json"
    for args in (
        ["fit", tmp_path / "t.jsonl", "-o", model],
        ["replay", tmp_path / "t.jsonl", "--model", model],
        ["label", tmp_path / "t.jsonl"],
        ["analyze", tmp_path / "t.jsonl", "--category", hostile],
        ["demo", tmp_path / "t.jsonl", "-o", tmp_path / "out"],
    ):
        done = safetydrift(*args)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr
        report = tmp_path / "out" / "report.html"
        assert "[/bold][red]" in done.stdout + (report.read_text() if report.exists() else "")


def test_a_run_without_a_label_is_not_called_free_of_violation(traces, tmp_path):
    model = tmp_path / "model.json"
    safetydrift("fit", traces, "-o", model, "--threshold", "0.2")
    write_traces([replace(office_trace(3, violated=True), label=Label())], tmp_path / "unlabelled.jsonl")
    shown = safetydrift("replay", tmp_path / "unlabelled.jsonl", "--model", model).stdout
    assert "whether this is a violation is not known" in shown
    assert "alarm after call 0, alarm when call 1 was proposed" in shown
    assert " !" in shown  # an alarm at a proposal can be told without colour


def test_what_cannot_be_written_is_said_before_any_work(traces, tmp_path):
    done = safetydrift("fit", traces, "-o", tmp_path / "nowhere" / "m.json")
    assert (done.returncode, "there is no folder" in done.stderr) == (2, True)
    done = safetydrift("label", traces, "-o", traces)
    assert (done.returncode, "is one of the inputs" in done.stderr) == (2, True)
    assert safetydrift("label", traces).returncode == 0


def test_a_pipe_or_a_link_is_written_to_and_not_replaced(traces, tmp_path):
    pipe, real, link = tmp_path / "pipe", tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)  # noqa: S607
    assert safetydrift("predict", traces, "-o", pipe).returncode == 0
    assert len(reader.communicate(timeout=60)[0].splitlines()) == 12 * 3
    assert pipe.is_fifo()
    real.write_text("old")
    link.symlink_to(real)
    assert safetydrift("predict", traces, "-o", link).returncode == 0
    assert link.is_symlink()
    assert len(real.read_text().splitlines()) == 12 * 3


def _interrupted(running, presses=4):
    """Press the key as a person does, again if need be: Python drops an interruption that falls into a finaliser."""
    for _ in range(presses):
        running.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return running.communicate(timeout=60)[1]
    running.kill()
    return running.communicate()[1]


def test_an_interruption_has_its_own_exit_code_and_leaves_nothing_behind(tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "safetydrift", "predict", "corpus", "-o", tmp_path / "p.jsonl"],
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore interruptions, and their children with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    while running.poll() is None and not any(tmp_path.iterdir()):
        time.sleep(0.02)
    assert running.poll() is None
    assert "interrupted" in _interrupted(running)
    assert running.returncode == 130
    assert not any(tmp_path.iterdir())


def test_a_full_disk_is_an_error_and_no_traceback(traces):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "safetydrift", "predict", str(traces)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_files_are_offered_when_a_path_is_completed():
    done = subprocess.run(
        [sys.executable, "-m", "safetydrift"],
        env={
            **os.environ,
            "_SAFETYDRIFT_COMPLETE": "bash_complete",
            "COMP_WORDS": "safetydrift label co",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,corpus" in done.stdout
    assert "file," in done.stdout


def test_runs_labelled_with_another_catalogue_are_named(traces, tmp_path):
    (tmp_path / "ours.toml").write_text(
        'format = "safetydrift.catalogue/2"\nname = "ours"\nversion = "1"\n[[tools]]\nnames = ["send_email"]\n'
        'effect = { data = "none", tool = "read_only", reversibility = "fully_reversible" }\nnote = "a test"\n'
    )
    safetydrift("label", traces, "-o", tmp_path / "runs.jsonl")
    fitted = safetydrift(
        "fit", tmp_path / "runs.jsonl", "--catalogue", tmp_path / "ours.toml", "-o", tmp_path / "m.json"
    )
    assert "was labelled with another catalogue" in fitted.stderr
    assert load_model(tmp_path / "m.json").provenance["labelled_with_catalogues"]
    agreeing = safetydrift("fit", tmp_path / "runs.jsonl", "-o", tmp_path / "m.json")
    assert "another catalogue" not in agreeing.stderr


def test_labelled_runs_and_traces_can_be_read_together_and_all_are_counted(traces, tmp_path):
    folder = tmp_path / "both"
    folder.mkdir()
    safetydrift("label", traces, "--space", "flow", "-o", folder / "runs.jsonl")
    write_traces([office_trace(50, violated=False)], folder / "more.jsonl")
    (folder / "empty.jsonl").write_text("")
    (folder / "notes.txt").write_text("no traces")
    assert "passed over 1 files that hold no traces: notes.txt" in safetydrift("label", folder).stderr
    report = json.loads(safetydrift("label", folder, "--json").stdout)
    assert report["sources"]["own"]["runs"] == 13
    assert (
        safetydrift(
            "predict", folder / "runs.jsonl", folder / "empty.jsonl", "-o", tmp_path / "p.jsonl"
        ).returncode
        == 0
    )


def test_skipped_records_are_counted_where_scripts_look(traces, tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text(traces.read_text() + "{not json\n")
    report = json.loads(safetydrift("label", damaged, "--skip-bad", "-q", "--json").stdout)
    assert report["bad_records_skipped"] == 1
    safetydrift("fit", damaged, "--skip-bad", "-q", "-o", tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").provenance["bad_records_skipped"] == 1


def test_the_digest_names_the_runs_that_were_read(traces, tmp_path):
    digests = []
    for name, number in (("a", 3), ("b", 3), ("c", 4)):
        write_traces(
            [office_trace(n, violated=n % 2 == 0) for n in range(number)], tmp_path / f"{name}.jsonl"
        )
        safetydrift("fit", tmp_path / f"{name}.jsonl", "-o", tmp_path / "m.json", "-q")
        digests.append(load_model(tmp_path / "m.json").provenance["corpus_digest"])
    assert digests[0] == digests[1] != digests[2]


def test_bad_records_stop_a_verb_unless_they_are_skipped_and_counted(traces, tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    lines = traces.read_text().splitlines()
    damaged.write_text("\n".join([*lines[:3], "{not json", *lines[3:]]))
    refused = safetydrift("predict", damaged, "-o", tmp_path / "p.jsonl")
    assert refused.returncode == 3
    assert "damaged.jsonl:4: " in refused.stderr
    assert not (tmp_path / "p.jsonl").exists()
    skipped = safetydrift("predict", damaged, "-o", tmp_path / "p.jsonl", "--skip-bad")
    assert skipped.returncode == 0
    assert "skipped 1 bad records" in skipped.stderr
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 12 * 3


def test_a_reader_that_goes_away_is_no_error(traces):
    piped = subprocess.run(  # noqa: S602 - our own words
        f"{sys.executable} -m safetydrift predict corpus | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert json.loads(piped.stdout)["step"] == 0
    assert piped.stderr == ""
