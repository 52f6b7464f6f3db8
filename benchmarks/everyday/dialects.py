"""How frameworks name the shell and the Python tool of a session, and what they put around a command."""

from __future__ import annotations

from typing import Any, NamedTuple

TEXT = "{text}"
"""Stands for the command in the arguments of a dialect."""


class Dialect(NamedTuple):
    """Names and arguments of the two tools that run text."""

    shell: str
    shell_args: dict[str, Any]
    python: str
    python_args: dict[str, Any]

    def sh(self, command: str) -> tuple[str, dict[str, Any]]:
        return self.shell, _filled(self.shell_args, command)

    def py(self, code: str) -> tuple[str, dict[str, Any]]:
        return self.python, _filled(self.python_args, code)


def _filled(args: dict[str, Any], text: str) -> dict[str, Any]:
    return {
        name: text
        if value == TEXT
        else [text if one == TEXT else one for one in value]
        if isinstance(value, list)
        else value
        for name, value in args.items()
    }


RECORDED = Dialect("bash", {"command": TEXT}, "python", {"code": TEXT})
"""As the recorded sessions have it."""

OTHERS = (
    Dialect(
        "Bash",
        {"command": TEXT, "description": "Run the next step", "timeout": 120000},
        "mcp__jupyter__execute_code",
        {"code": TEXT},
    ),
    Dialect("execute_bash", {"command": TEXT, "is_input": "false"}, "execute_ipython_cell", {"code": TEXT}),
    Dialect(
        "run_terminal_cmd",
        {"command": TEXT, "explanation": "Needed for the task.", "is_background": False},
        "execute_code",
        {"language": "python", "code": TEXT},
    ),
    Dialect(
        "shell",
        {"command": ["bash", "-lc", TEXT], "workdir": ".", "timeout_ms": 120000},
        "python_exec",
        {"source": TEXT},
    ),
    Dialect(
        "run_shell_command",
        {"command": TEXT, "description": "Next step", "directory": ""},
        "run_python",
        {"script": TEXT},
    ),
    Dialect("execute_command", {"command": TEXT, "requires_approval": False}, "run_code", {"code": TEXT}),
    Dialect(
        "run_command",
        {"CommandLine": TEXT, "Cwd": "/content", "Blocking": True, "SafeToAutoRun": False},
        "python_interpreter",
        {"code": TEXT},
    ),
    Dialect("terminal", {"input": TEXT}, "python_repl", {"query": TEXT}),
    Dialect(
        "run_in_terminal",
        {"command": TEXT, "explanation": "Next step", "isBackground": False},
        "run_notebook_cell",
        {"cell": TEXT},
    ),
    Dialect(
        "shell_exec", {"id": "main", "exec_dir": "/content", "command": TEXT}, "code_execute", {"code": TEXT}
    ),
    Dialect("mcp__shell__exec", {"cmd": TEXT}, "mcp__python__run", {"python_code": TEXT}),
)
