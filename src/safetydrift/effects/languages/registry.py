"""The reader of each language: a function that adds to a `Reading` what running a text would do.

Readers are imported when their language is first met: a process that asks about one shell command need not load
the grammars of the others.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_WHERE = {
    "shell": "shell.commands:read_shell",
    "cmd": "shell.commands:read_cmd",
    "python": "python:read_python",
    "sql": "sql:read_sql",
    "http": "http:read_http",
    "awk": "awk:read_awk",
    **dict.fromkeys(("javascript", "perl", "ruby", "php", "lua", "powershell"), "scripts:read_script"),
    **dict.fromkeys(("r", "tcl", "groovy"), "scripts:unread"),
}


class Readers:
    """The readers by language, each imported when it is first asked for."""

    __slots__ = ("_loaded",)

    def __init__(self) -> None:
        self._loaded: dict[str, Callable[..., None]] = {}

    def __getitem__(self, language: str) -> Callable[..., None]:
        reader = self._loaded.get(language)
        if reader is None:
            module, _, name = _WHERE[language].partition(":")
            reader = getattr(import_module(f"safetydrift.effects.languages.{module}"), name)
            if name in {"read_script", "unread"}:
                reader = reader(language)
            if language == "powershell":
                reader = import_module("safetydrift.effects.languages.powershell").with_phrases(reader)
            self._loaded[language] = reader
        return reader

    def __iter__(self) -> Iterator[str]:
        return iter(_WHERE)

    def __contains__(self, language: object) -> bool:
        return language in _WHERE


READERS: Any = Readers()
