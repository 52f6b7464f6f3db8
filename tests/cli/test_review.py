"""Reviewing from the command line: export, judge, import, agree."""

import csv
import json

import pytest
from tests.cli.running import safetydrift

from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, read_traces, write_traces
from safetydrift.study.review.sampling import labelled_steps
from safetydrift.trace import Step, ToolCall, Trace

DIMENSIONS = {"data": "data", "tool_level": "tool", "reversibility": "reversibility"}
MADE_UP = "frobnicate_zq"
"""No entry and no pattern knows this tool, so the program takes it for the worst."""
LOCAL = {"data": "none", "tool_level": "read_only", "reversibility": "fully_reversible"}


def review(*args, cwd=None):
    return safetydrift("study", "review", *args, cwd=cwd)


def made_up_trace(number):
    steps = (
        Step(ToolCall("bash", {"command": f"cat notes-{number}.txt"}), "my words"),
        Step(ToolCall("bash", {"command": "rm -rf build"}), ""),
        Step(ToolCall(MADE_UP, {"n": number}), "done"),
    )
    return Trace(f"run/{number}", steps, source="own", prompt="PRIVATE TASK")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("review") / "own.jsonl"
    write_traces([made_up_trace(n) for n in range(12)], path)
    return path


@pytest.fixture
def folder(traces, tmp_path):
    done = review("export", traces, "-o", tmp_path / "review", "--size", "12")
    assert done.returncode == 0, done.stderr
    return tmp_path / "review"


def program_says(traces):
    labeler = Labeler(load_catalogue())
    return {
        f"{trace.source}/{trace.id}/{number}": effect
        for trace in read_traces([traces])
        for number, (_, effect) in enumerate(labelled_steps(trace, labeler), 1)
    }


def fill(source, target, decide):
    with source.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(row | decide(row) for row in rows)


def as_the_program(traces):
    said = program_says(traces)
    return lambda row: {column: said[row["sample_id"]][name] for column, name in DIMENSIONS.items()}


def but_local(traces):
    agree = as_the_program(traces)
    return lambda row: LOCAL if row["tool_name"] == MADE_UP else agree(row)


@pytest.mark.parametrize("verb", ["export", "import", "agree"])
def test_every_verb_explains_itself(verb):
    done = review(verb, "--help")
    assert done.returncode == 0
    assert f"safetydrift study review {verb}" in done.stdout.split("Example:")[1]


def test_an_export_is_a_sheet_and_a_sample_and_the_same_each_time(traces, folder, tmp_path):
    assert sorted(path.name for path in folder.iterdir()) == ["sample.json", "sheet.csv"]
    review("export", traces, "-o", tmp_path / "again", "--size", "12")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert "PRIVATE TASK" in (folder / "sheet.csv").read_text("utf-8")
    assert "PRIVATE TASK" not in (folder / "sample.json").read_text("utf-8")
    assert len(json.loads((folder / "sample.json").read_bytes())["calls"]) == 12


def test_decisions_are_never_overwritten_by_an_export(traces, folder):
    done = review("export", traces, "-o", folder)
    assert done.returncode == 2
    assert "decisions may stand on it" in done.stderr


def test_agreement_is_reported_in_words_and_as_data(traces, folder):
    fill(folder / "sheet.csv", folder / "decisions.csv", but_local(traces))
    done = review("import", folder / "decisions.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (compared,) = found["comparisons"]
    tool = compared["dimensions"]["tool"]
    differ = [row for row in compared["disagreements"] if row[1] == "tool"]
    assert {row[0] for row in compared["disagreements"]} == {MADE_UP}
    made_up = len(differ)
    assert tool["all"]["same"]["hits"] == 12 - made_up
    assert tool["layer default"]["same"]["hits"] == 0
    assert tool["source own"] == tool["all"]
    assert tool["all"]["kappa"]["low"] <= tool["all"]["kappa"]["value"]
    assert tool["layer default"]["kappa"]["value"] == 0
    assert found["sheets"][0]["decided"] == 12
    shown = review("import", folder / "decisions.csv").stdout
    assert "decisions.csv and program: 12 calls judged by both" in shown
    assert f"{12 - made_up}/12 = " in shown
    assert "all, each stratum by its size" in shown


def test_decisions_without_any_text_are_compared_with_what_the_program_says_now(traces, tmp_path):
    said = program_says(traces)
    lines = ["sample_id,source,tool_name,data,tool_level,reversibility,kinds,unsure,alternative,remark"]
    for name, effect in said.items():
        lines.append(f"{name},own,,{effect['data']},{effect['tool']},{effect['reversibility']},,,,")
    lines.append("own/elsewhere/1,own,,none,read_only,partially,,,,")
    (tmp_path / "decisions.csv").write_text("\n".join(lines))
    done = review("import", tmp_path / "decisions.csv", "--traces", traces, "--json")
    (compared,) = json.loads(done.stdout)["comparisons"]
    assert (compared["calls"], compared["every_dimension"]["hits"]) == (36, 36)
    assert "1 calls are not in these traces" in done.stderr


def test_two_reviewers_are_compared_with_each_other(traces, folder, tmp_path):
    fill(folder / "sheet.csv", tmp_path / "one.csv", as_the_program(traces))
    fill(folder / "sheet.csv", tmp_path / "other.csv", but_local(traces))
    done = review("agree", "one.csv", "other.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "one.csv and other.csv: 12 calls judged by both" in done.stdout
    (compared,) = json.loads(review("agree", "one.csv", "other.csv", "--json", cwd=tmp_path).stdout)[
        "comparisons"
    ]
    assert {row[0] for row in compared["disagreements"]} == {MADE_UP}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["export", "corpus", "-o", "x"], 2, "the corpus holds effects and no calls"),
        (["export", "nowhere.jsonl", "-o", "x"], 3, "nowhere.jsonl"),
        (["export", "{traces}"], 2, "Missing option"),
        (["import", "nowhere.csv"], 3, "nowhere.csv: cannot be read"),
        (
            ["import", "bad.csv", "--sample", "{folder}/sample.json"],
            3,
            "bad.csv: row 2: data: there is no level 'secret'",
        ),
        (
            ["import", "alien.csv", "--sample", "{folder}/sample.json"],
            3,
            "alien.csv: row 2: 'a' is not in the sample",
        ),
        (["import", "alien.csv"], 3, "sample.json: cannot be read"),
        (["agree", "alien.csv"], 2, "Missing argument"),
    ],
)
def test_a_mistake_is_named_on_standard_error_with_its_exit_code(traces, folder, args, code, message):
    tmp_path = folder.parent
    (tmp_path / "bad.csv").write_text("sample_id,data\na,secret\n")
    (tmp_path / "alien.csv").write_text("sample_id,data\na,none\n")
    done = review(*(arg.format(traces=traces, folder=folder) for arg in args), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()


def test_an_empty_sheet_is_no_agreement_and_no_error(folder):
    done = review("import", folder / "sheet.csv")
    assert done.returncode == 0, done.stderr
    assert "0 of 12 calls decided" in done.stdout
    assert "nan" not in done.stdout


def test_names_chosen_by_others_cannot_speak_to_the_terminal(tmp_path):
    hostile = "\x1b[2Jgone[/bold][red]\x07"
    steps = (Step(ToolCall(hostile, {"x": hostile}), hostile), Step(ToolCall("bash", {"command": "ls"}), ""))
    write_traces([Trace(f"{n}", steps, source="own", prompt=hostile) for n in range(4)], tmp_path / "t.jsonl")
    assert review("export", "t.jsonl", "-o", "r", cwd=tmp_path).returncode == 0
    fill(tmp_path / "r" / "sheet.csv", tmp_path / "r" / "decisions.csv", lambda row: LOCAL)
    done = review("import", "r/decisions.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        done.stdout,
        done.stderr,
        (tmp_path / "r" / "sheet.csv").read_text(),
    ):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_the_decisions_that_come_with_the_program_are_compared_with_traces_of_ones_own(traces):
    done = review("import", "shipped", "--traces", traces, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sheets"][0]["decided"] == told["sheets"][0]["rows"] > 100
    assert f"{told['sheets'][0]['rows']:,} calls are not in these traces" in done.stderr
