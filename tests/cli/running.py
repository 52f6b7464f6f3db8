"""The command line in this very process: a new process for every command would spend most of its time on imports."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import pytest

from safetydrift.cli import main, output

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


def safetydrift(*args: object, cwd: Path | None = None, stdin: str = "", width: int = 200) -> Done:
    """Run a command as a shell would, on a terminal of some width that nobody looks at."""
    code: object = 0
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        streams = {
            name: stack.enter_context(TemporaryFile("w+", encoding="utf-8"))
            for name in ("stdin", "stdout", "stderr")
        }
        streams["stdin"].write(stdin)
        streams["stdin"].seek(0)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        for console in (output.console, output.notes):
            patch.setattr(console, "width", width)
        patch.setattr(sys, "argv", ["safetydrift", *map(str, args)])
        patch.setenv("COLUMNS", str(width))
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            code = end.code
        told = {}
        for name, stream in streams.items():
            stream.flush()
            stream.seek(0)
            told[name] = stream.read()
    assert isinstance(code, int)
    return Done(code, told["stdout"], told["stderr"])
