"""Reading the arguments of a call with care: they may be of any size and shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from safetydrift.effects.content.scan import MAX_SCANNED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.effects.catalogue.entries import ToolCase, ToolEntry
    from safetydrift.effects.catalogue.globs import Globs

MAX_ARGUMENT = 64 * 1024
"""Longer arguments are not examined."""
MAX_ITEMS = 256
"""Longer lists are not examined."""
MAX_CONTENT = 1024 * 1024
"""Of more text than this in the arguments of one call, only beginnings are examined."""
_BEGINNING = 1024
_RECEIVER_DEPTH = 2
_BETWEEN_RECEIVERS = re.compile(r"[,;\r\n]")
SHORTEST_CONTENT = 4
"""Shorter texts hold nothing that is looked for."""


def table(value: object) -> Mapping[str, object] | None:
    """Return a table, None for anything else."""
    return value if type(value) is dict or isinstance(value, Mapping) else None


def texts(value: object) -> list[str] | None:
    """Return an argument as texts: lists item by item, numbers and truth values as JSON writes them.

    None if it is too long to be examined.
    """
    if isinstance(value, str):
        return [value] if len(value) <= MAX_ARGUMENT else None
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [str(value)] if value.bit_length() <= 64 else None  # noqa: PLR2004
    if isinstance(value, list | tuple):
        found = [item for item in value[: MAX_ITEMS + 1] if isinstance(item, str)]
        return found if len(value) <= MAX_ITEMS and sum(map(len, found)) <= MAX_ARGUMENT else None
    return []


def case_of(args: Mapping[str, object], entry: ToolEntry) -> ToolCase | None:
    """Return the first case of an entry that holds."""
    for case in entry.cases:
        found = texts(args.get(case.argument))
        if found is not None and case.values.any_of(found):
            return case
    return None


def receivers(args: Mapping[str, object], names: Iterable[str]) -> list[str]:
    """Return whom the arguments of some names address, one by one; an empty text for what cannot be told."""
    return [one for name in names for one in _one_by_one(args.get(name), _RECEIVER_DEPTH)]


def _one_by_one(value: object, depth: int) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, str) and len(value) <= MAX_ARGUMENT:
        yield from filter(None, map(str.strip, _BETWEEN_RECEIVERS.split(value)))
    elif depth and isinstance(value, list | tuple | Mapping) and len(value) <= MAX_ITEMS:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _one_by_one(item, depth - 1)
    else:
        yield ""


def prose(texts: Iterable[tuple[str, str]], skipped: Globs | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield name and text of the arguments that may hold something, but for those under some names.

    Whole texts as long as they are `MAX_CONTENT` together; of every one after that, only its beginning.

    Parameters
    ----------
    texts
        What `safetydrift.effects.history.provenance.scalars` found in the arguments.
    """
    left = MAX_CONTENT
    for name, text in texts:
        if len(text) >= SHORTEST_CONTENT and name not in skipped:
            yield name, text if left > 0 else text[:_BEGINNING]
            left -= min(len(text), MAX_SCANNED)


def server(name: str) -> str | None:
    """Return the MCP server that a tool belongs to by its name, ``mcp__<server>__<tool>``."""
    parts = name.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else None  # noqa: PLR2004
