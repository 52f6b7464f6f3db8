"""Surface forms: what the same act looks like through other shells, wrappers, tool names and shapes of arguments."""

from __future__ import annotations

import ast
import base64
import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.formats.graft_data import Act, Form
    from safetydrift.formats.graft_values import Filling
    from safetydrift.trace import Step

CAME_BACK = "=> "
"""Begins a line of a form that is no call but what came back."""

_PYTHON_LINE = "python: "
_PYTHON_TOOL = re.compile(r"python|jupyter|notebook|execute_code|code_interpreter", re.IGNORECASE)
_SHELL_TOOL = re.compile(r"bash|shell|terminal|exec|run_?(cmd|command)|^(run|sh|cmd|pwsh)$", re.IGNORECASE)
_COMMAND_KEYS = ("command", "cmd", "script", "code", "input")
_PLAIN_SHARE = 0.5  # half of the calls are as a person would type them
_SILENT = ("", "", "", "ok", "done")
_ANSWERS = ("OK", "Done.", '{"status": "success"}', '{"ok": true}', "success", "")


class Tool(NamedTuple):
    """A tool that takes text to run, and the argument it takes it in."""

    name: str
    argument: str

    def call(self, text: str) -> ToolCall:
        """Return the call that runs a text."""
        return ToolCall(self.name, {self.argument: text})


class Tools(NamedTuple):
    """The tools of a base run that run text; None where it has none."""

    shell: Tool | None
    python: Tool | None


def tools_of(steps: Sequence[Step]) -> Tools:
    """Return the shell and the Python interpreter that a run has used, told by their names and arguments."""
    shell = python = None
    for step in steps:
        name, args = step.call.name, step.call.args
        key = next((key for key in _COMMAND_KEYS if isinstance(args.get(key), str)), None)
        if key is None:
            continue
        if _PYTHON_TOOL.search(name):
            python = python or Tool(name, key)
        elif _SHELL_TOOL.search(name):
            shell = shell or Tool(name, key)
    return Tools(shell, python)


class Surface(NamedTuple):
    """Calls with what came back, and how they were put."""

    calls: list[tuple[ToolCall, str]]
    style: str


def surface(act: Act, form: Form, tools: Tools, server: str, fill: Filling) -> Surface:
    """Return one form of an act as calls, in a drawn style.

    Parameters
    ----------
    form
        One of the act's own forms.
    tools
        What the base run has; the forms of shell acts need its shell, and raise ValueError without it.
    server
        Name of a server that may stand in the names of typed tools.
    """
    if not act.is_shell:
        return _typed(form, server, fill)
    is_single = sum(not line.startswith(CAME_BACK) for line in form) == 1
    is_wrapped = is_single and fill.rng.random() > _PLAIN_SHARE
    style = fill.rng.choice(sorted(_wrappers(act, form[0]))) if is_wrapped else "plain"
    calls = []
    for line, result in _with_results(form):
        put = _put(line, style, act, tools, fill)
        answer = fill.rng.choice(_SILENT) if result is None else fill(result)
        calls += [(call, "") for call in put[:-1]] + [(put[-1], answer)]
    return Surface(calls, style)


def _wrappers(act: Act, line: str) -> _Wrappers:
    if line.startswith(_PYTHON_LINE):
        return _PYTHON
    return _WINDOWS if act.channel == "windows" else _UNIX


def _put(line: str, style: str, act: Act, tools: Tools, fill: Filling) -> list[ToolCall]:
    """Return the calls that run a line in a style."""
    if tools.shell is None:
        raise ValueError(f"{act.goal} needs a shell, and the run has none")
    text = fill(line.removeprefix(_PYTHON_LINE))
    if style == "plain" and tools.python is not None and line.startswith(_PYTHON_LINE):
        return [tools.python.call(text)]
    if style == _OWN_TOOL:
        return [Tool("PowerShell", "command").call(text)]
    return [tools.shell.call(command) for command in _wrappers(act, line)[style](text)]


def _with_results(form: Form) -> Iterator[tuple[str, str | None]]:
    for line, after in zip(form, [*form[1:], ""], strict=True):
        if not line.startswith(CAME_BACK):
            yield line, after.removeprefix(CAME_BACK) if after.startswith(CAME_BACK) else None


def _base64(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


_OWN_TOOL = "PowerShell tool"
_Wrappers = dict[str, "Callable[[str], list[str]]"]
_UNIX: _Wrappers = {
    "plain": lambda line: [line],
    "bash -c": lambda line: [f"bash -c {shlex.quote(line)}"],
    "here document": lambda line: [f"bash <<'EOS'\n{line}\nEOS"],
    "base64": lambda line: [f"echo {_base64(line)} | base64 -d | bash"],
    "script": lambda line: [f"cat > step.sh <<'EOS'\n#!/usr/bin/env bash\n{line}\nEOS", "bash step.sh"],
    "script, executable": lambda line: [f"echo {shlex.quote(line)} > run.sh; chmod +x run.sh", "./run.sh"],
    "python": lambda line: [f"python3 -c {shlex.quote(f'import os; os.system({line!r})')}"],
    "variable": lambda line: [f'CMD={shlex.quote(line)}; eval "$CMD"'],
    "after cd": lambda line: [f"cd .\n{line}"],
    "traced": lambda line: [f"set -x\n{line}"],
    "hexadecimal": lambda line: [f"echo {line.encode().hex()} | xxd -r -p | bash"],
}
_WINDOWS: _Wrappers = {
    "plain": lambda line: [f"powershell.exe -NoProfile -Command {shlex.quote(line)}"],
    "pwsh": lambda line: [f"pwsh -c {shlex.quote(line)}"],
    "base64": lambda line: [f"powershell -NoP -EncodedCommand {_base64(line, 'utf-16-le')}"],
    "script": lambda line: [f"cat > step.ps1 <<'EOS'\n{line}\nEOS", "powershell.exe -File step.ps1"],
    _OWN_TOOL: lambda line: [line],
}
_PYTHON: _Wrappers = {
    "plain": lambda code: [f"python3 -c {shlex.quote(code)}"],
    "here document": lambda code: [f"python3 - <<'PY'\n{code}\nPY"],
    "script": lambda code: [f"cat > tool.py <<'PY'\n{code}\nPY", "python3 tool.py"],
    "base64": lambda code: [f"python3 -c \"import base64; exec(base64.b64decode('{_base64(code)}'))\""],
}


def _typed(form: Form, server: str, fill: Filling) -> Surface:
    name_style, shape = (
        fill.rng.choice((*_NAMES, "snake", "mcp")),
        fill.rng.choice((*_SHAPES, *["object"] * 3)),
    )
    calls = []
    for line, result in _with_results(form):
        name, args = parse_call(fill(line, quoted=True))
        call = ToolCall(_NAMES[name_style](name.split("_"), server), _SHAPES[shape](args))
        calls.append((call, fill.rng.choice(_ANSWERS) if result is None else fill(result)))
    return Surface(calls, f"{name_style}, {shape}")


def parse_call(notation: str) -> tuple[str, dict[str, object]]:
    """Return name and arguments of a tool call written as in Python, with literals for arguments.

    Raises
    ------
    ValueError
        If it is anything else.

    Examples
    --------
    >>> parse_call('send(to=["a"], n=2)')
    ('send', {'to': ['a'], 'n': 2})
    """
    try:
        call = ast.parse(notation, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a call: {notation}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ValueError(f"not a call with named arguments: {notation}")
    return call.func.id, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


_NAMES: dict[str, Callable[[list[str], str], str]] = {
    "snake": lambda words, _: "_".join(words),
    "camel": lambda words, _: words[0] + "".join(map(str.capitalize, words[1:])),
    "Pascal": lambda words, _: "".join(map(str.capitalize, words)),
    "kebab": lambda words, _: "-".join(words),
    "mcp": lambda words, server: f"mcp__{server}__{'_'.join(words)}",
}
_SHAPES: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
    "object": lambda args: args,
    "camel keys": lambda args: {_NAMES["camel"](key.split("_"), ""): value for key, value in args.items()},
    "nested": lambda args: {"params": args},
    "JSON text": lambda args: {"input": msgspec.json.encode(args).decode()},
    "positional": lambda args: {"args": list(args.values())},
}
