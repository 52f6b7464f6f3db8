"""Whether the MCP proxy refuses a probe: it is started before a tiny server that writes down what reaches it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from safetydrift.integrations.doctor.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from safetydrift.integrations.claude_code import Options

REASON = "this is the probe of safetydrift doctor"
POLICY = f"""format = "safetydrift.policy/1"
name = "doctor"
always_allow = ["mcp__doctor__allowed"]
[[never]]
tools = ["mcp__doctor__probe"]
reason = "{REASON}"
"""
SERVER = """import json, sys
for line in sys.stdin:
    request = json.loads(line)
    with open(sys.argv[1], "a") as seen:
        seen.write(request["params"]["name"] + "\\n")
    result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
PATIENCE = 60.0
_REPAIR = "start the proxy by hand with the same options: what it says on standard error names the cause"


def check_mcp(options: Options, folder: Path) -> Iterator[Finding]:
    """Have the proxy refuse a call, and let one through.

    Parameters
    ----------
    options
        The model and the configuration; policy and state are the doctor's.
    folder
        A folder of the doctor's own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seen = folder / "seen"
    seen.touch()
    try:
        code, answers, words = _run(options, folder, seen)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        yield _failed("the proxy starts", str(error))
        return
    if code or set(answers) != {1, 2}:
        yield _failed("the proxy starts", f"exit code {code}, {len(answers)} of 2 answers; {words}")
        return
    refused, allowed = answers[1].get("result", {}), answers[2].get("result", {})
    reached = seen.read_text("utf-8").split()
    if refused.get("isError") is True and REASON in json.dumps(refused) and "probe" not in reached:
        yield Finding("mcp", "the proxy refuses a probe", "ok", "by a rule; nothing of it reached the server")
    else:
        yield _failed("the proxy refuses a probe", f"{json.dumps(answers[1])[:500]}; {words}")
    if not allowed.get("isError") and "done" in json.dumps(allowed) and reached == ["allowed"]:
        yield Finding("mcp", "the proxy lets through what is allowed", "ok", "and the answer came back")
    else:
        yield _failed("the proxy lets through what is allowed", f"{json.dumps(answers[2])[:500]}; {words}")


def _run(options: Options, folder: Path, seen: Path) -> tuple[int, dict[Any, dict[str, Any]], str]:
    """Return the proxy's exit code, its answers by id, and the end of its standard error."""
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    (folder / "server.py").write_text(SERVER, "utf-8")
    command = [sys.executable, "-m", "safetydrift", "mcp", "--name", "doctor"]
    command += ["--policy", str(folder / "policy.toml"), "--state", str(folder / "state")]
    if options.model != "default":
        command += ["--model", options.model]
    if options.config:
        command += ["--config", options.config]
    command += ["--", sys.executable, str(folder / "server.py"), str(seen)]
    done = subprocess.run(  # noqa: S603  # our own command
        command,
        input=_call(1, "probe") + _call(2, "allowed"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    return done.returncode, answers, done.stderr.strip()[-500:]


def _call(number: int, tool: str) -> str:
    params = {"name": tool, "arguments": {}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"


def _failed(check: str, detail: str) -> Finding:
    return Finding("mcp", check, "failed", detail, _REPAIR)
