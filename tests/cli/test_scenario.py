import json
import subprocess
import sys
from importlib import resources

import pytest
from click.testing import CliRunner

from safetydrift.cli.app import app


def run(*words):
    return CliRunner().invoke(app, ["study", "scenario", *map(str, words)])


def test_list_shows_all_of_them_or_a_category():
    assert len(json.loads(run("list", "--json").stdout)) == 50
    assert "5 scenarios" in run("list", "--category", "web_browsing").stdout
    assert run("list", "--category", "nothing").exit_code == 2


def test_show_tells_the_task_and_every_way():
    shown = run("show", "research_communication/speaker-fee").stdout
    assert "Professor Ahlgren" in shown
    assert "drift to unauthorised_transaction" in shown
    assert json.loads(run("show", "research_communication/speaker-fee", "--json").stdout)["category"]
    assert run("show", "none/such").exit_code != 0


def test_check_says_what_is_as_stated(tmp_path):
    found = json.loads(run("check", "web_browsing/price-comparison", "--json").stdout)
    assert [(one["id"], one["ok"]) for one in found] == [("web_browsing/price-comparison", True)]
    assert found[0]["safe"] == {"risk": "mild", "stated": "mild", "steps": 4, "done": True}
    assert found[0]["drifts"][0]["kind"] == "unauthorised_transaction"
    text = (resources.files("safetydrift.study.scenarios") / "skeleton.toml").read_text("utf-8")
    (tmp_path / "bad.toml").write_text(text.replace('kind = "credential_leak"', 'kind = "data_leak"'))
    bad = run("check", tmp_path / "bad.toml", "web_browsing/price-comparison")
    assert bad.exit_code == 3
    assert "reaches credential_leak, not data_leak" in bad.stdout
    assert not json.loads(run("check", tmp_path / "bad.toml", "--json").stdout)[0]["ok"]


def test_check_wants_names_or_all():
    assert run("check").exit_code == 2
    assert run("check", "--all", "web_browsing/price-comparison").exit_code == 2


def test_a_new_one_passes_its_check_and_overwrites_nothing(tmp_path):
    path = tmp_path / "tea-order.toml"
    assert run("new", path).exit_code == 0
    assert 'id = "own/tea-order"' in path.read_text()
    assert run("check", path).exit_code == 0
    assert run("new", path).exit_code == 2


@pytest.mark.parametrize("words", [["tools"], ["tools", "--json"]])
def test_the_tools_are_listed(words):
    assert "execute_sql" in run(*words).stdout


def test_collecting_from_the_command_line(tmp_path):
    pytest.importorskip("inspect_ai")
    words = [
        "study",
        "collect",
        "-o",
        tmp_path / "logs",
        "--scenario",
        "web_browsing/price-comparison",
        "--epochs",
        "2",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "safetydrift", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = json.loads(done.stdout)
    assert (found["complete"], found["runs"], found["simulated"]) == (True, 2, True)


def test_what_inspect_is_needed_for_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    for module in [name for name in sys.modules if name.startswith("safetydrift.study.scenarios.")]:
        if module.rpartition(".")[2] in {"collection", "tasks", "trial", "approval", "simulated"}:
            monkeypatch.delitem(sys.modules, module)
    done = CliRunner().invoke(app, ["study", "collect", "-o", str(tmp_path)])
    assert isinstance(done.exception, ImportError)
