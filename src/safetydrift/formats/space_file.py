"""Space files: a state space and its rules, in TOML.

The shipped spaces are files of this kind (``safetydrift/states/spaces``), so reading one is the best way to learn
how to write one.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from safetydrift.errors import SpaceError
from safetydrift.states.space import StateSpace

SPACE_FORMAT = "safetydrift.space/1"
MAX_SPACE_BYTES = 1 << 20
_SHIPPED = resources.files("safetydrift.states") / "spaces"


def shipped_spaces() -> tuple[str, ...]:
    """Return the names of the spaces that come with SafetyDrift."""
    return tuple(
        sorted(item.name.removesuffix(".toml") for item in _SHIPPED.iterdir() if item.name.endswith(".toml"))
    )


def load_space(name_or_path: str | Path) -> StateSpace:
    """Read a state space: a shipped one by its name, any other by its path.

    Raises
    ------
    SpaceError
        If there is no such space, or the file is not a well-formed space; the message names the file.

    Examples
    --------
    >>> load_space("paper")
    <StateSpace 'paper': data(5) x tool(4) x reversibility(3) = 60 states, 12 rules>
    """
    shipped = _SHIPPED / f"{name_or_path}.toml"
    source = shipped if str(name_or_path) in shipped_spaces() else Path(name_or_path)
    try:
        data = source.read_bytes()
    except OSError as error:
        known = ", ".join(shipped_spaces())
        raise SpaceError(
            f"no space {str(name_or_path)!r}: not one of the shipped ones ({known}), and {error}"
        ) from error
    if len(data) > MAX_SPACE_BYTES:
        raise SpaceError(
            f"{name_or_path}: a space file has at most {MAX_SPACE_BYTES} bytes, this has {len(data)}"
        )
    try:
        definition = tomllib.loads(data.decode())
        if definition.get("format") != SPACE_FORMAT:
            raise SpaceError(f"expected format = {SPACE_FORMAT!r}, got {definition.get('format')!r}")
        return StateSpace.from_definition(definition)
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{name_or_path}: {error}") from error
