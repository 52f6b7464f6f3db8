"""A guarded connection without any bytes' ways: what a client says goes in, what either side is told comes out."""

import json
from types import SimpleNamespace

import pytest

from safetydrift.formats import load_model
from safetydrift.guard import DecisionLog, Guard
from safetydrift.guard.policy_file import load_policy
from safetydrift.integrations.mcp.deciding import Deciding
from safetydrift.integrations.mcp.definitions import Definitions
from safetydrift.integrations.mcp.exchange import Exchange, Guarding, Run

POLICY = """
format = "safetydrift.policy/1"
ask_timeout = 5.0
[[never]]
tools = ["mcp__notes__write_note"]
reason = "nothing is written here"
[[always_ask]]
tools = ["mcp__notes__ask_*"]
reason = "this is asked about"
[[when]]
tools = ["mcp__notes__list_notes"]
reason = "lists are long"
then = "warn"
[[when]]
tools = ["mcp__notes__edit_*"]
then = "suggest"
"""


@pytest.fixture(scope="session")
def model():
    return load_model()


class Connection:
    """One connection, with everything that was said on it."""

    def __init__(self, guarding, run, told):
        self.guarding, self.run, self.guard, self.told = guarding, run, guarding.guard, told
        self.exchange = Exchange(guarding, run)
        self.forwarded, self.answers, self.settled = [], [], 0

    def say(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()

        def settle(forward, answer):
            self.settled += 1
            if forward:
                self.forwarded.append(raw)
            elif answer is not None:
                self.answers.append(json.loads(answer))

        self.exchange.from_client(raw, settle)

    def call(self, tool="read_note", number=1, **params):
        self.say(request("tools/call", number, name=tool, **({"arguments": {"name": "x"}} | params)))

    def reply(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.exchange.from_server(raw)

    def result(self, number=1, text="a note", **more):
        content = [{"type": "text", "text": text}]
        return self.reply({"jsonrpc": "2.0", "id": number, "result": {"content": content} | more})

    def statuses(self):
        session, _ = self.guard._sessions.read(self.run.key)
        return [given.status for given in session.answers.values()]

    def reserved(self):
        session, _ = self.guard._sessions.read(self.run.key)
        return list(session.reserved)

    @property
    def said(self):
        (answer,) = self.answers
        assert answer["result"]["isError"] is True
        return answer["result"]["content"][0]["text"]


def request(method, number=1, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.fixture
def connect(model, tmp_path):
    """Return a function that makes connections, and closes their guards in the end."""
    made = []

    def connect(policy=POLICY, *, task="Read the notes", definitions="", refuse_changed=False, **options):
        path = tmp_path / "policy.toml"
        path.write_text(policy)
        log = DecisionLog(tmp_path / "decisions.jsonl", buffer=1)
        guard = Guard(model, load_policy(path), log=log, **options)
        made.append(guard)
        said: list[str] = []
        guarding = Guarding(
            Deciding(guard),
            Definitions(str(definitions)),
            "notes",
            refuse_changed=refuse_changed,
            say=said.append,
        )
        return Connection(guarding, Run(guard, "run", task, {"category": "workspace"}), said)

    yield connect
    for guard in made:
        guard.close()


@pytest.fixture
def here(tmp_path):
    """Return a folder with a policy in it, and the command line of a proxy that uses it."""
    (tmp_path / "policy.toml").write_text(POLICY)
    options = ["--name", "notes", "--state", str(tmp_path), "--policy", str(tmp_path / "policy.toml")]
    return SimpleNamespace(path=tmp_path, options=options)
