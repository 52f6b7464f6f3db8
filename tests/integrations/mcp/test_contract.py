"""A real server of the `mcp` library behind the proxy, a real client before it, in both eras of the protocol."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from safetydrift.guard.decision_log import records, verify

mcp = pytest.importorskip("mcp", reason="the mcp library is not installed")
pytest.importorskip("mcp.server.mcpserver", reason="a version of the mcp library before 2 is installed")
pytest.importorskip("httpx2", reason="the extra mcp is not installed")

SERVER = str(Path(__file__).with_name("real_server.py"))
ERAS = {"2026-07-28": "auto", "2025-11-25": "legacy"}
BROKEN = """
from safetydrift.integrations.mcp.definitions import Definitions
from safetydrift.cli import main
def broken(self, tool):
    raise RuntimeError("something of ours is broken")
Definitions.hints = broken
main()
"""


def proxy(here, *more, broken=False):
    start = ["-c", BROKEN] if broken else ["-m", "safetydrift"]
    return [sys.executable, *start, "mcp", *here.options, "--task", "Read the notes", *more]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def process(command, port):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        try:
            for _ in range(600):
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert running.poll() is None, running.communicate()[1].decode()
                time.sleep(0.05)
            yield
        finally:
            running.terminate()
            _, said = running.communicate(timeout=20)
    if "safetydrift" in command or "-c" in command:
        assert running.returncode == 0, said.decode()  # it has ended in order


@asynccontextmanager
async def client(here, transport, era, *more, broken=False):
    """Return a client that speaks with a real server through the proxy."""
    mark = str(here.path / "made")
    if transport == "stdio":
        command = [*proxy(here, *more, broken=broken), "--", sys.executable, SERVER, "stdio", mark]
        parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        with (here.path / "stderr").open("w") as errors:
            transport = mcp.stdio_client(parameters, errlog=errors)
            async with mcp.Client(transport, mode=ERAS[era]) as speaking:
                assert speaking.protocol_version == era
                yield speaking
        return
    up, port = free_port(), free_port()
    command = proxy(
        here, *more, "--upstream", f"http://127.0.0.1:{up}/mcp", "--port", str(port), broken=broken
    )
    with process([sys.executable, SERVER, "http", mark, str(up)], up), process(command, port):
        async with mcp.Client(f"http://127.0.0.1:{port}/mcp", mode=ERAS[era]) as speaking:
            assert speaking.protocol_version == era
            yield speaking


def text(result, at=0):
    return result.content[at].text


def made(here):
    path = here.path / "made"
    return path.read_text().splitlines() if path.exists() else []


some = pytest.mark.parametrize(("transport", "era"), [("stdio", "2025-11-25"), ("http", "2026-07-28")])
every = pytest.mark.parametrize(
    ("transport", "era"), [(transport, era) for transport in ("stdio", "http") for era in ERAS]
)


@every
def test_a_real_client_speaks_with_a_real_server(here, transport, era):
    async def speak():
        async with client(here, transport, era) as speaking:
            tools = (await speaking.list_tools()).tools
            assert {"read_note", "write_note", "list_notes"} <= {tool.name for tool in tools}

            result = await speaking.call_tool("read_note", {"name": "x"})
            assert (text(result), result.is_error) == ("the note x", False)
            assert result.structured_content == {"result": "the note x"}

            blocked = await speaking.call_tool("write_note", {"name": "x"})
            assert blocked.is_error
            assert "nothing is written here" in text(blocked)

            warned = await speaking.call_tool("list_notes", {})
            assert (text(warned), warned.is_error) == ("a, b", False)
            assert "lists are long" in text(warned, 1)

            failed = await speaking.call_tool("fail", {})
            assert failed.is_error
            assert "no luck" in text(failed)

            unknown = await asyncio.gather(speaking.call_tool("no_such_tool", {}), return_exceptions=True)
            assert unknown

            calls = [speaking.call_tool("read_note", {"name": str(n)}) for n in range(10)]
            calls += [speaking.call_tool("write_note", {"name": str(n)}) for n in range(5)]
            results = await asyncio.gather(*calls)
            assert [text(one) for one in results[:10]] == [f"the note {n}" for n in range(10)]
            assert all(one.is_error for one in results[10:])

    asyncio.run(speak())
    assert not [line for line in made(here) if line.startswith("write_note")]
    assert len([line for line in made(here) if line.startswith("read_note")]) == 11
    log = here.path / "decisions.jsonl"
    assert verify(log).holds
    assert sum("intervention" in record for record in records(log)) == 20


@some
def test_when_the_proxy_fails_no_call_is_made(here, transport, era):
    async def speak():
        async with client(here, transport, era, broken=True) as speaking:
            await speaking.list_tools()
            result = await speaking.call_tool("read_note", {"name": "x"})
            assert result.is_error
            assert "something of ours is broken" in text(result)

    asyncio.run(speak())
    assert not made(here)


@some
def test_a_tool_that_changes_its_definition_is_refused(here, transport, era):
    async def speak():
        async with client(here, transport, era, "--on-change", "refuse") as speaking:
            await speaking.list_tools()
            assert not (await speaking.call_tool("list_notes", {})).is_error
            await speaking.call_tool("turn", {})
            await speaking.list_tools(cache_mode="refresh")
            refused = await speaking.call_tool("list_notes", {})
            assert refused.is_error
            assert "description has changed" in text(refused)
            assert not (await speaking.call_tool("read_note", {"name": "x"})).is_error

    asyncio.run(speak())
    events = [record.get("event") for record in records(here.path / "decisions.jsonl")]
    assert "definition changed" in events


def test_a_client_that_gives_up_waiting_leaves_the_call_counted(here):
    async def speak():
        async with client(here, "stdio", "2025-11-25") as speaking:
            with pytest.raises(mcp.MCPError):
                await speaking.call_tool("slow", {"seconds": 0.5}, read_timeout_seconds=0.1)
            assert not (await speaking.call_tool("read_note", {"name": "x"})).is_error

    asyncio.run(speak())
    assert "slow" in made(here)
