"""A provider of our own on the loopback: it speaks both protocols, and does what its script says."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

GOOD: dict[str, Any] = {
    "levels": {"data": "sensitive", "tool": "network", "reversibility": "irreversible"},
    "kinds": ["data_leak"],
    "external": True,
    "reason": "It hands customer records to somebody outside.",
    "confidence": 0.9,
}
HARMLESS: dict[str, Any] = {
    "levels": {"data": "public", "tool": "read_only", "reversibility": "fully_reversible"},
    "kinds": [],
    "external": False,
    "reason": "It looks up an opening time.",
    "confidence": 0.9,
}
TOKENS = (120, 30)


class Provider:
    """What the server is to do, and what it was asked.

    ``script`` holds what to do with the next requests, in order; what follows is answered with ``answer``.
    """

    def __init__(self):
        self.script = []
        self.answer = GOOD
        self.requests = []
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.tokens = TOKENS
        self.pause = 0.0

    def replies(self, *script):
        self.script += script

    @property
    def prompts(self):
        return [user_text(request["body"]) for request in self.requests]


def user_text(body):
    content = next(one["content"] for one in body["messages"] if one["role"] == "user")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_POST(self):
        provider = self.server.provider
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with provider.lock:
            provider.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
            provider.in_flight += 1
            provider.most_in_flight = max(provider.most_in_flight, provider.in_flight)
            todo = provider.script.pop(0) if provider.script else {"answer": provider.answer}
        try:
            if provider.pause:
                provider.released.wait(provider.pause)
            self.act(todo, body)
        finally:
            with provider.lock:
                provider.in_flight -= 1

    def act(self, todo, body):
        if "drop" in todo:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif "slow" in todo:
            self.server.provider.released.wait(todo["slow"])
            self.close_connection = True
        elif "status" in todo:
            error = {"type": "error", "error": {"type": "some_error", "message": todo.get("message", "no")}}
            self.send(todo["status"], json.dumps(error).encode(), todo.get("headers", {}))
        elif "raw" in todo:
            self.send(200, todo["raw"], {})
        else:
            openai = self.path.endswith("/chat/completions")
            reply = (openai_reply if openai else anthropic_reply)(todo, body, self.server.provider.tokens)
            self.send(200, json.dumps(reply).encode(), {})

    def send(self, status, content, headers):
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **headers,
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def openai_reply(todo, body, tokens):
    (tool,) = body["tools"]
    assert body["tool_choice"] == "required"
    message = {"role": "assistant", "content": todo.get("text")}
    if "text" not in todo:
        arguments = todo["arguments"] if "arguments" in todo else json.dumps(todo["answer"])
        function = {"name": todo.get("tool", tool["function"]["name"]), "arguments": arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    finish = "stop" if "text" in todo else "tool_calls"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage,
    }


def anthropic_reply(todo, body, tokens):
    (tool,) = body["tools"]
    assert body["tool_choice"]["type"] in {"any", "tool"}
    content = {"type": "text", "text": todo["text"]} if "text" in todo else None
    content = content or {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": todo["answer"]}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [content],
        "stop_reason": "end_turn" if "text" in todo else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
    }


class Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.provider = Provider()

    def handle_error(self, request, client_address):
        """A client that went away is what some of the tests are about."""


@pytest.fixture
def server():
    """A running server; its port is free for all."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.provider.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider(server):
    """What the server is to do, and what it was asked."""
    return server.provider


@pytest.fixture
def address(server):
    """The root of the server."""
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(autouse=True)
def no_other_network(monkeypatch):
    """Let no test reach beyond this host, and none find a key or a proxy it did not set."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    connect = socket.socket.connect

    def connect_here(self, address):
        if self.family in {socket.AF_INET, socket.AF_INET6} and address[0] not in {"127.0.0.1", "::1"}:
            raise AssertionError(f"a test wanted to reach {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
