"""Run the Python examples of the README and of the docs, each page in a folder of its own.

An example that needs a package of an extra stands behind ``<!--- skip: next if(lacks("package"), reason=..) -->``.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_HERE = Path.cwd()
_NEEDS = {
    "agentdojo": ("integrations/agentdojo",),
    "agents": ("integrations/openai_agents",),
    "claude_agent_sdk": ("integrations/claude_sdk",),
    "inspect_ai": (
        "integrations/inspect",
        *(
            f"study/{name}"
            for name in (
                "scenarios/approval",
                "scenarios/collection",
                "scenarios/inspect_entry",
                "scenarios/simulated",
                "scenarios/tasks",
                "trial",
            )
        ),
    ),
    "langchain": ("integrations/langchain",),
    "pydantic_ai": ("integrations/pydantic_ai",),
}
"""What cannot be imported without a package, and so cannot be searched for examples."""
collect_ignore = [
    f"src/safetydrift/{name}.py"
    for package, names in _NEEDS.items()
    if find_spec(package) is None
    for name in names
]


def _enter(namespace: MutableMapping[str, Any]) -> None:
    namespace["_folder"] = TemporaryDirectory()
    namespace["lacks"] = lambda package: find_spec(package) is None
    os.chdir(namespace["_folder"].name)


def _leave(namespace: MutableMapping[str, Any]) -> None:
    os.chdir(_HERE)
    namespace["_folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=_enter,
    teardown=_leave,
).pytest()
