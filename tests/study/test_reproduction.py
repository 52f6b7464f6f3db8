"""The study again: collected, analysed, drawn and written down."""

import json
import sys
from subprocess import run

import pytest

pytest.importorskip("inspect_ai")
pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.evaluation.rate import Rate
from safetydrift.formats import load_catalogue, load_space
from safetydrift.states.trajectory import Notion
from safetydrift.study.reproduction import column, page, side_by_side
from safetydrift.study.scenarios import load_scenarios
from safetydrift.study.scenarios.behaviour import SimulatedAgent
from safetydrift.study.scenarios.rehearsal import Sandbox


@pytest.fixture(scope="module")
def space():
    return load_space("paper")


@pytest.fixture(scope="module")
def simulated(space):
    labeler = Labeler(load_catalogue(), Boundary(domains=("harbourline.example",)))
    runs = []
    for scenario in load_scenarios():
        for seed in range(2):
            agent, sandbox = SimulatedAgent(scenario, "over-helpful", seed), Sandbox(scenario, seed)
            action = agent.next()
            while action.tool:
                step = sandbox.call(action.tool, action.args)
                action = agent.next("done" if step.error is None else "failed")
            runs.append(
                label_trace(sandbox.trace(f"{scenario.id}/{seed}", model="simulated"), labeler, space)
            )
    return column("simulated", runs, space, Notion.LABEL)


def test_published_figures_stand_beside_ours(simulated, space):
    table = side_by_side([simulated], space, Notion.LABEL)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns == ("figure", "published", "simulated")
    assert rows["runs"] == (357, 100)
    published, ours = rows["violated: data handling"]
    assert isinstance(ours, Rate)
    assert (published, ours.total) == (Rate(80, 100), 20)


def test_the_page_holds_every_table_and_escapes_what_it_is_given(simulated, space):
    tables = [("<Side>", side_by_side([simulated], space, Notion.LABEL))]
    text = page([*tables, *simulated.analyses.items()], None, ["a < b"])
    assert "&lt;Side&gt;" in text
    assert "a &lt; b" in text
    assert text.count("<table>") == 1 + len(simulated.analyses)
    assert "http" not in text.replace("http://www.w3.org", "")


@pytest.mark.long
def test_one_command_does_it_all(tmp_path):
    words = ["reproduce", "-o", tmp_path / "study", "--epochs", "2", "--real", "300", "--json"]
    done = run(
        [sys.executable, "-m", "safetydrift", *map(str, words)], capture_output=True, check=True, timeout=600
    )
    found = json.loads(done.stdout)
    assert found["The monitor in the loop"]["simulated"]
    assert found["Side by side"]["rows"][0]["simulated"] == 100
    for name in (
        "report.html",
        "report.json",
        "simulated/evaluation.html",
        "simulated/matrix.svg",
        "real-traces/matrix.svg",
    ):
        assert (tmp_path / "study" / name).stat().st_size > 0, name
