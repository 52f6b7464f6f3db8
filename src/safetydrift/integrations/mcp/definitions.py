"""What a server's tools say of themselves, and whether they say something else than before.

A description is read by the model as instructions are; a server that changes it after it was looked at can change what
the agent does. Each definition is kept as a digest, over restarts if there is a file for it.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from threading import Lock

from safetydrift.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = "safetydrift.definitions/1"
MAX_TOOLS = 4096
"""Tools of a server that are remembered."""
MAX_FILE = 8 << 20
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Definitions:
    """The definitions of one server's tools.

    Parameters
    ----------
    path
        Where digests are kept; nowhere if empty.

    Raises
    ------
    ConfigError
        If there is such a file and it cannot be believed.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._lock = Lock()
        self._hints: dict[str, dict[str, bool]] = {}
        self._known: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._stamp: tuple[int, int] | None = None
        self._read()

    def hints(self, tool: str) -> dict[str, bool] | None:
        """Return the annotations of a tool as it was listed last; None if it was not."""
        return self._hints.get(tool)

    def changed(self, tool: str) -> bool:
        """Return whether a tool's definition is another one than was confirmed, or seen first."""
        with self._lock:
            if self._differs(tool):
                self._read()  # somebody may have confirmed it meanwhile
            return self._differs(tool)

    def listed(self, tools: Any) -> tuple[list[str], list[str]]:
        """Take note of a list of tools; return their names, and those that have just changed.

        Raises
        ------
        OSError, ConfigError
            If the digests cannot be written, or the file is damaged; they are kept in memory.
        """
        names: list[str] = []
        changed: list[str] = []
        with self._lock:
            self._read()  # another proxy may share the file
            before = dict(self._seen)
            for tool in tools if isinstance(tools, list) else ():
                name = tool.get("name") if isinstance(tool, dict) else None
                if not isinstance(name, str) or (name not in self._seen and len(self._seen) >= MAX_TOOLS):
                    continue
                names.append(name)
                digest = _digest(tool)
                if self._known.setdefault(name, digest) != digest and self._seen.get(name) != digest:
                    changed.append(name)
                self._seen[name] = digest
                self._hints[name] = _hints(tool.get("annotations"))
            if self._seen != before:
                self._write()
        return names, changed

    def confirm(self) -> list[str]:
        """Take every definition as it was seen last for the right one; return the names of those that had changed.

        Raises
        ------
        OSError
            If that cannot be written.
        """
        with self._lock:
            changed = sorted(name for name in self._seen if self._differs(name))
            self._known.update(self._seen)
            self._write()
        return changed

    def _differs(self, tool: str) -> bool:
        return tool in self._seen and self._known.get(tool) != self._seen[tool]

    def _read(self) -> None:
        if not self.path:
            return
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123  # pathlib is not needed here
                status = os.fstat(file.fileno())
                stamp = status.st_mtime_ns, status.st_size
                if stamp == self._stamp:
                    return
                data = json.loads(file.read(MAX_FILE))
            known, seen = _digests(data)
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise ConfigError(f"{self.path}: not the definitions of tools: {error!r}") from error
        self._known, self._stamp = self._known | known, stamp
        for name, digest in seen.items():
            self._seen.setdefault(name, digest)

    def _write(self) -> None:
        if not self.path:
            return
        from tempfile import mkstemp  # noqa: PLC0415  # seldom

        tools = {name: [self._known[name], digest] for name, digest in self._seen.items()}
        text = json.dumps({"format": FORMAT, "tools": tools}, indent=1)
        handle, new = mkstemp(dir=os.path.dirname(self.path) or ".")  # noqa: PTH120
        try:
            with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)
            os.replace(new, self.path)  # noqa: PTH105
        except OSError:
            os.unlink(new)  # noqa: PTH108
            raise


def _digests(data: Any) -> tuple[dict[str, str], dict[str, str]]:
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}")
    tools = data["tools"].items()
    return {str(name): str(pair[0]) for name, pair in tools}, {
        str(name): str(pair[1]) for name, pair in tools
    }


def _digest(tool: dict[str, Any]) -> str:
    return sha256(json.dumps(tool, sort_keys=True).encode("ascii")).hexdigest()


def _hints(annotations: Any) -> dict[str, bool]:
    if not isinstance(annotations, dict):
        return {}
    return {hint: annotations[hint] for hint in HINTS if isinstance(annotations.get(hint), bool)}
