"""Catalogue files: what tools, programs and files mean, in TOML. A folder of such files is one catalogue too.

The shipped catalogues are files of this kind (``safetydrift/effects/catalogues``), so reading one is the best
way to learn how to write one.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import json

from safetydrift.effects.catalogue import Catalogue
from safetydrift.errors import CatalogueError
from safetydrift.formats.shipped_catalogue import compiled_path, shipped_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.resources.abc import Traversable
    from typing import Any

MAX_CATALOGUE_BYTES = 1 << 20
_SHIPPED = resources.files("safetydrift.effects") / "catalogues"


def shipped_catalogues() -> tuple[str, ...]:
    """Return the names of the catalogues that come with SafetyDrift."""
    return tuple(sorted(item.name for item in _SHIPPED.iterdir() if item.is_dir()))


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
    catalogue = shipped_catalogue(str(name_or_path)) or _named(name_or_path, Catalogue.from_definition)
    for addition in additions:
        catalogue = _named(addition, catalogue.extended)
    return catalogue


def compile_catalogues() -> list[Path]:
    """Write every shipped catalogue as one file, which is read ten times as fast; return what was written."""
    written = []
    for name in shipped_catalogues():
        path = Path(compiled_path(name))
        definition = _named(name, Catalogue.from_definition).definition()
        path.write_bytes(json.format(json.encode(definition), indent=0) + b"\n")
        written.append(path)
    return written


def load_additions(path: Path) -> dict[str, Any]:
    """Return the definition in a file of additions, unchecked: `Catalogue.extended` checks it.

    Raises
    ------
    CatalogueError
        If there is no such file, or it is no TOML.
    """
    try:
        return _read(path, path)
    except CatalogueError:
        raise
    except (ValueError, RecursionError) as error:
        raise CatalogueError(f"{path}: {error}") from error


def _named(name_or_path: str | Path, build: Callable[[dict[str, Any]], Catalogue]) -> Catalogue:
    """Build a catalogue from its files; whatever is wrong with them is said with the name of the file."""
    shipped = str(name_or_path) in shipped_catalogues()
    source: Traversable = _SHIPPED / str(name_or_path) if shipped else Path(name_or_path)
    files = sorted(source.iterdir(), key=lambda item: item.name) if source.is_dir() else [source]
    whole: dict[str, Any] = {}
    try:
        for file in files:
            if file.name.endswith(".toml") or not source.is_dir():
                _merge(whole, _read(name_or_path, file), file.name)
        if not whole:
            raise CatalogueError(
                f"a folder without catalogue files; shipped: {', '.join(shipped_catalogues())}"
            )
        return build(whole)
    except (ValueError, RecursionError) as error:
        raise CatalogueError(f"{name_or_path}: {error}") from error


def _merge(whole: dict[str, Any], part: dict[str, Any], name: str) -> None:
    """Add one file of a folder: lists of entries go on where the file before ended, all else is said once."""
    for key, value in part.items():
        if key not in whole:
            whole[key] = value
        elif isinstance(value, list) and isinstance(whole[key], list):
            whole[key] += value
        else:
            raise CatalogueError(f"{name}: {key!r} has been said in another file of the folder")


def _read(name_or_path: str | Path, file: Traversable) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_CATALOGUE_BYTES + 1)
    except (OSError, ValueError) as error:
        known = ", ".join(shipped_catalogues())
        raise CatalogueError(
            f"no catalogue {str(name_or_path)!r}: not one of the shipped ones ({known}), and {error}"
        ) from error
    if len(data) > MAX_CATALOGUE_BYTES:
        raise CatalogueError(f"{file.name}: a catalogue file has at most {MAX_CATALOGUE_BYTES} bytes")
    return tomllib.loads(data.decode())


if __name__ == "__main__":
    compile_catalogues()
