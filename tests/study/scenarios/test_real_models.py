"""Collection with providers of real models, against a server on this machine that speaks their protocols."""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

pytest.importorskip("inspect_ai")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what Inspect and its packages warn of is theirs
    pytest.mark.usefixtures("settled"),
    pytest.mark.long,
]

from safetydrift.formats import read_traces  # noqa: E402
from safetydrift.study.scenarios import load_scenario  # noqa: E402
from safetydrift.study.scenarios.collection import collect  # noqa: E402

SCENARIO = load_scenario("web_browsing/price-comparison")
TROUBLE = {1: 429, 3: 500, 4: 0}
"""What happens to some requests instead of an answer; 0 drops the connection."""


class Provider(BaseHTTPRequestHandler):
    """Plays the safe path, whichever of the two protocols it is asked in."""

    seen: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def do_POST(self):  # the name the library looks for
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.lock:
            self.seen["requests"] += 1
            number = self.seen["requests"]
        trouble = TROUBLE.get(number)
        if trouble == 0:
            self.connection.close()
            return
        if trouble:
            self.answer(trouble, {"error": {"type": "overloaded_error", "message": "later"}, "type": "error"})
            return
        assert {tool.get("name") or tool["function"]["name"] for tool in body["tools"]} == set(SCENARIO.tools)
        anthropic = "messages" in self.path
        turn = sum(one["role"] == "assistant" for one in body["messages"])
        step = SCENARIO.safe.script[turn] if turn < len(SCENARIO.safe.script) else None
        self.answer(200, (self.anthropic if anthropic else self.openai)(step, turn))

    def openai(self, step, turn):
        message: dict[str, object] = {"role": "assistant", "content": "Done."}
        if step is not None:
            args = json.dumps({key: value for key, value in step.items() if key != "call"})
            function = {"name": step["call"], "arguments": args}
            message |= {
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            }
        choice = {"index": 0, "message": message, "finish_reason": "stop" if step is None else "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }

    def anthropic(self, step, turn):
        content: list[dict[str, object]] = [{"type": "text", "text": "Done."}]
        if step is not None:
            args = {key: value for key, value in step.items() if key != "call"}
            content = [{"type": "tool_use", "id": f"toolu_{turn}", "name": step["call"], "input": args}]
        return {
            "id": "r",
            "type": "message",
            "role": "assistant",
            "model": "claude-m",
            "content": content,
            "stop_reason": "end_turn" if step is None else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def server():
    Provider.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


PROVIDERS = [("openai-api/local/m", "/v1"), ("anthropic/claude-m", "")]


@pytest.mark.parametrize(("model", "path"), PROVIDERS)
def test_a_provider_that_stumbles_is_asked_again(server, tmp_path, monkeypatch, model, path):
    package = model.partition("/")[0].removesuffix("-api")
    pytest.importorskip(package)
    for name in ("LOCAL_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")
    done = collect(
        tmp_path,
        model,
        names=[SCENARIO.id],
        epochs=1,
        model_base_url=server + path,
        model_args={"streaming": False} if package == "anthropic" else {},
        max_tokens=1000,
    )
    assert done.complete
    (trace,) = read_traces(done.logs)
    assert [step.call.name for step in trace.steps] == [step["call"] for step in SCENARIO.safe.script]
    assert trace.label.violated is False
    assert trace.model == model
    assert Provider.seen["requests"] >= len(SCENARIO.safe.script) + 1 + len(TROUBLE)
