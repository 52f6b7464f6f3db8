"""Catalogue files: what tools, programs and files mean, in TOML.

The shipped catalogues are files of this kind (``safetydrift/effects/catalogues``), so reading one is the best
way to learn how to write one.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from safetydrift.effects.catalogue import Catalogue
from safetydrift.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MAX_CATALOGUE_BYTES = 1 << 20
_SHIPPED = resources.files("safetydrift.effects") / "catalogues"


def shipped_catalogues() -> tuple[str, ...]:
    """Return the names of the catalogues that come with SafetyDrift."""
    names = [item.name for item in _SHIPPED.iterdir()]
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_catalogue(name_or_path: str | Path = "default", additions: Iterable[str | Path] = ()) -> Catalogue:
    """Read a catalogue: a shipped one by its name, any other by its path.

    Parameters
    ----------
    name_or_path
        The base.
    additions
        Further catalogue files, each on top of what came before: its exact names replace those below, its
        patterns and paths are tried first, and a section it leaves out stays as it is (`Catalogue.extended`).

    Raises
    ------
    CatalogueError
        If there is no such catalogue, or a file is not a well-formed one; the message names the file.

    Examples
    --------
    >>> load_catalogue().name
    'default'
    """
    catalogue = _named(name_or_path, Catalogue.from_definition)
    for addition in additions:
        catalogue = _named(addition, catalogue.extended)
    return catalogue


def _named(name_or_path: str | Path, build: Callable[[dict[str, Any]], Catalogue]) -> Catalogue:
    """Build a catalogue from a file; whatever is wrong with it is said with the file's name."""
    data = _read(name_or_path)
    try:
        return build(tomllib.loads(data.decode()))
    except (ValueError, RecursionError) as error:
        raise CatalogueError(f"{name_or_path}: {error}") from error


def _read(name_or_path: str | Path) -> bytes:
    shipped = _SHIPPED / f"{name_or_path}.toml"
    source = shipped if str(name_or_path) in shipped_catalogues() else Path(name_or_path)
    try:
        with source.open("rb") as file:
            data = file.read(MAX_CATALOGUE_BYTES + 1)
    except (OSError, ValueError) as error:
        known = ", ".join(shipped_catalogues())
        raise CatalogueError(
            f"no catalogue {str(name_or_path)!r}: not one of the shipped ones ({known}), and {error}"
        ) from error
    if len(data) > MAX_CATALOGUE_BYTES:
        raise CatalogueError(f"{name_or_path}: a catalogue file has at most {MAX_CATALOGUE_BYTES} bytes")
    return data
