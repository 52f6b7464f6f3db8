"""The study again: collected, analysed, drawn and written down."""

import json
import sys
from subprocess import run

import pytest

pytest.importorskip("inspect_ai")
pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from tests.cli.running import safetydrift

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.evaluation.document import Drawing, Table, to_html
from safetydrift.evaluation.figures import encoded
from safetydrift.evaluation.rate import Rate
from safetydrift.formats import load_catalogue, load_space, write_traces
from safetydrift.states.trajectory import Notion
from safetydrift.study.reproduction import HEADINGS, REMARKS, column, report, side_by_side
from safetydrift.study.scenarios import load_scenarios
from safetydrift.study.scenarios.behaviour import SimulatedAgent
from safetydrift.study.scenarios.sandbox import Sandbox


@pytest.fixture(scope="module")
def space():
    return load_space("paper")


@pytest.fixture(scope="module")
def traces():
    """Two runs of every scenario by the simulated agent, without Inspect."""
    made = []
    for scenario in load_scenarios():
        for seed in range(2):
            agent, sandbox = SimulatedAgent(scenario, "over-helpful", seed), Sandbox(scenario, seed)
            action = agent.next()
            while action.tool:
                step = sandbox.call(action.tool, action.args)
                action = agent.next("done" if step.error is None else "failed")
            made.append(sandbox.trace(f"{scenario.id}/{seed}", model="simulated"))
    return made


@pytest.fixture(scope="module")
def simulated(space, traces):
    labeler = Labeler(load_catalogue(), Boundary(domains=("harbourline.example",)))
    return column("simulated", [label_trace(one, labeler, space) for one in traces], space, Notion.LABEL)


def test_published_figures_stand_beside_ours(simulated):
    table = side_by_side([simulated])
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns == ("figure", "published", "simulated")
    assert rows["runs"] == (357, 100)
    published, ours = rows["violated: data handling"]
    assert isinstance(ours, Rate)
    assert (published, ours.total) == (Rate(80, 100), 20)


def test_the_report_holds_every_table_of_the_paper_and_says_what_runs_they_are_of(simulated):
    document = report([simulated], None)
    assert [section.heading for section in document.sections] == ["Side by side", *HEADINGS.values()]
    assert list(document.parts(Table)) == [
        side_by_side([simulated]),
        *(simulated.analyses[one] for one in HEADINGS),
    ]
    text = to_html(document)
    assert text.count("<table>") == 1 + len(HEADINGS)
    assert all(remark.replace("'", "&#39;") in text for remark in REMARKS)


def test_the_seven_figures_of_the_paper_are_drawn_on_the_runs(simulated):
    drawings = {one.key: one for one in simulated.document().parts(Drawing)}
    assert {
        "matrix",
        "horizons",
        "horizons-by-category",
        "thresholds",
        "lead-times",
        "ablation",
        "learning-curve",
    } <= set(drawings)
    drawn = encoded(drawings["thresholds"].draw(), "svg").decode()
    assert "published, detected" in drawn
    assert "published, false alarms" in drawn


def test_the_study_is_repeated_on_traces_of_ones_own(traces, tmp_path):
    write_traces(traces, tmp_path / "own.jsonl")
    words = ("study", "reproduce", "-o", "out", "--logs", "own.jsonl", "--real", "0")
    done = safetydrift(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Published, and what our runs give" in done.stdout
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    (table,) = found["sections"]["Side by side"]
    assert table["rows"][0] == {"figure": "runs", "published": 357, "collected": 100}
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "out" / "collected" / "learning-curve.svg").stat().st_size > 0
    assert "fig" in (tmp_path / "out" / "collected" / "evaluation.html").read_text()


@pytest.mark.long
def test_one_command_does_it_all(tmp_path):
    words = ["study", "reproduce", "-o", tmp_path / "study", "--epochs", "2", "--real", "300", "--json"]
    done = run(
        [sys.executable, "-m", "safetydrift", *map(str, words)], capture_output=True, check=True, timeout=600
    )
    found = json.loads(done.stdout)
    (table,) = found["sections"]["Side by side"]
    assert table["rows"][0]["simulated"] == 100
    (tried,) = found["sections"]["The monitor in the loop"]
    assert "simulated runs of" in tried["title"]
    for name in (
        "report.html",
        "report.json",
        "simulated/evaluation.html",
        "simulated/matrix.svg",
        "real-traces/matrix.svg",
    ):
        assert (tmp_path / "study" / name).stat().st_size > 0, name
