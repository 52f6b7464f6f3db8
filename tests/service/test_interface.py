"""What administrators do over the interface, what a policy that lets more through looks like, and settings files."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import ASK, Caller

from safetydrift.errors import ConfigError
from safetydrift.service.app import application
from safetydrift.service.policies import loosened
from safetydrift.service.settings import read_settings, settings_of

HEAD = 'format = "safetydrift.policy/1"\nname = "p"\n'
WHEN = "[[when]]\nproposal = 0.5\nthen = 'block'\n"


@pytest.fixture
def callers(make, sqlite):
    service = make(sqlite)
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        yield lambda *scopes: Caller(client, service.token(*scopes))


def test_an_administrator_does_by_the_interface_what_the_page_does(callers):
    admin, agent = callers("admin"), callers("agent")
    [policy] = admin.post("policies", text=ASK, note="first")["items"]
    callers("admin").post(f"policies/{policy['number']}/decision", action="enforce")
    assert [one["status"] for one in admin.get("policies")["items"]] == ["live"]
    assert admin.get("policies/1")["items"][0]["text"] == ASK
    agent.post("runs", run="r", agent="billing", task="x")
    agent.post("hear", run="r", text="and be quick", message_id="m")
    agent.propose("get_balance", "c1")
    agent.post("release", run="r", call_id="c1")
    agent.post("quiet", run="r")
    agent.propose("drop_table", "c2")
    assert [one["agent"] for one in admin.get("agents?days=1")["items"]] == ["billing"]
    assert [one["tool"] for one in admin.get("calls?intervention=block")["items"]] == ["drop_table"]
    agent.post("end", run="r")
    assert agent.post("known", run="r")["done"] is False
    made = admin.post("tokens", name="new", scopes=["reader"], days=1)
    reader = Caller(admin.client, made["token"])
    assert reader.get("whoami")["items"][0]["may"] == ["reader"]
    assert admin("DELETE", f"tokens/{made['id']}")["done"]
    reader.get("whoami", 401)
    assert {one["action"] for one in admin.get("audit")["items"]} >= {
        "token made",
        "token revoked",
        "policy live",
    }
    own = {"at": 1.0, "run": "r", "call_id": "c", "tool": "t", "outcome": "block", "problem": "away"}
    agent.post("reports", decisions=[own], agent="billing", host="desk")
    admin("DELETE", "people", status=422)
    for path in ("policies/9", "runs/9", "approvals/none"):
        admin.get(path, 404)


@pytest.mark.parametrize(
    ("before", "after", "looser"),
    [
        (WHEN, WHEN, False),
        (WHEN, WHEN.replace("0.5", "0.4"), False),
        (WHEN, WHEN.replace("0.5", "0.6"), True),
        (WHEN, WHEN.replace("block", "warn"), True),
        (WHEN, "", True),
        (WHEN, "[[when]]\nproposal = 0.1\nthen = 'allow'\n" + WHEN, True),
        (WHEN, "[[when]]\nproposal = 0.9\nthen = 'block'\n" + WHEN, True),
        (WHEN, WHEN + "[[when]]\nproposal = 0.2\nthen = 'warn'\n", False),
        (WHEN, "shadow = true\n" + WHEN, True),
        ("", "always_allow = ['ls']\n", True),
        ("", "on_error = 'allow'\n", True),
        ("on_error = 'ask'\n", "on_error = 'block'\n", False),
        ("never = [{ tools = ['a'] }]\n", "never = [{ tools = ['a', 'b'] }]\n", False),
        ("never = [{ tools = ['a', 'b'] }]\n", "never = [{ tools = ['a'] }]\n", True),
        ("never = [{ tools = ['a'] }]\n", "never = [{ tools = ['a'], kinds = ['data_leak'] }]\n", True),
        ("always_ask = [{ tools = ['a'] }]\n", "never = [{ tools = ['a'] }]\n", False),
    ],
)
@pytest.mark.filterwarnings("ignore:the guard fails open")
def test_a_policy_that_may_let_more_through_is_told_from_one_that_cannot(make, sqlite, before, after, looser):
    book = make(sqlite).runtime.book
    assert bool(loosened(book.checked(HEAD + before), book.checked(HEAD + after))) is looser


def test_settings_say_what_they_do_not_know(tmp_path):
    file = tmp_path / "s.toml"
    good = 'format = "safetydrift.service/1"\nhost = "::1"\nport = 1\n[retention]\ncontents_days = 1\n'
    file.write_text(good)
    assert settings_of(read_settings(str(file))).url == "http://[::1]:1"
    for wrong in ("x", 'format = "other/1"', good + "days = 3\n", good.replace("1\n[", '"x"\n[')):
        file.write_text(wrong)
        with pytest.raises(ConfigError):
            settings_of(read_settings(str(file)))
    with pytest.raises(ConfigError):
        read_settings(str(tmp_path / "none"))
