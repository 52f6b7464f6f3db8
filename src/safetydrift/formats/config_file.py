"""The operator's configuration: one TOML file that says where his own world ends and what is sensitive in it.

See docs/how-to/configuration.md. Everything in it is optional; a key that nobody reads is refused.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.plain import Entry, table
from safetydrift.effects.labeler import Labeler
from safetydrift.errors import CatalogueError, ConfigError
from safetydrift.formats.catalogue_file import load_additions
from safetydrift.formats.catalogue_file import load_catalogue as _load_catalogue

if TYPE_CHECKING:
    from safetydrift.effects.catalogue import Catalogue

CONFIG_FORMAT = "safetydrift.config/1"
MAX_CONFIG_BYTES = 1 << 20


class Config:
    """What an operator has said about his surroundings.

    Attributes
    ----------
    boundary
        Which hosts and people are inside, and who is trusted.
    additions
        Definitions of catalogue entries, the operator's sensitivity map among them; each goes on top of what is
        before it.
    """

    def __init__(self, boundary: Boundary | None = None, additions: tuple[dict[str, Any], ...] = ()) -> None:
        self.boundary = Boundary() if boundary is None else boundary
        self.additions = additions

    def catalogue(self, base: Catalogue) -> Catalogue:
        """Return a catalogue with the operator's entries on top.

        Raises
        ------
        CatalogueError
            If an entry is not well formed.
        """
        for addition in self.additions:
            base = base.extended(addition)
        return base

    def labeler(self, base: Catalogue | None = None) -> Labeler:
        """Return a labeler for these surroundings; on the shipped catalogue if none is given."""
        return Labeler(self.catalogue(_load_catalogue() if base is None else base), self.boundary)


def load_config(path: str | Path) -> Config:
    """Read a configuration file.

    Raises
    ------
    ConfigError
        If it cannot be read, or says something that nobody reads; the message names the file and the key.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
        if len(data) > MAX_CONFIG_BYTES:
            raise ConfigError(f"a configuration has at most {MAX_CONFIG_BYTES} bytes")
        return _config(tomllib.loads(data.decode()), path.parent)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _config(definition: dict[str, Any], folder: Path) -> Config:
    whole = Entry(definition, "configuration")
    if whole.required("format") != CONFIG_FORMAT:
        raise ConfigError(f"expected format = {CONFIG_FORMAT!r}, got {whole.get('format')!r}")
    organisation, trust = _section(whole, "organisation"), _section(whole, "trust")
    boundary = Boundary(
        domains=organisation.texts("domains"),
        hosts=organisation.texts("hosts"),
        people=organisation.texts("people"),
        recipients=trust.texts("recipients"),
        servers=trust.texts("servers"),
    )
    organisation.done()
    trust.done()
    catalogue = _section(whole, "catalogue")
    additions = [load_additions(folder / name) for name in catalogue.texts("additions")]
    catalogue.done()
    sensitivity = _sensitivity(whole)
    if sensitivity is not None:
        additions.append(sensitivity)
    whole.done()
    config = Config(boundary, tuple(additions))
    config.catalogue(
        _load_catalogue()
    )  # what is wrong with an entry is said now, not when it is first needed
    return config


def _section(whole: Entry, key: str) -> Entry:
    found = whole.get(key)
    return Entry({} if found is None else table(found, key), key)


def _sensitivity(whole: Entry) -> dict[str, Any] | None:
    """Return the operator's sensitivity map as catalogue entries; None if there is none."""
    paths, tables, patterns = [], [], []
    for entry in whole.parts("sensitivity"):
        level = entry.text("level", required=True)
        note = entry.text("note") or "the operator's own sensitivity map"
        effect = {"effect": {"data": level}, "note": note}
        files, rows, columns = entry.texts("paths"), entry.texts("tables"), entry.texts("columns")
        words = entry.texts("words")
        if not (files or rows or columns or words):
            raise CatalogueError(f"{entry.where}: lacks 'paths', 'tables', 'columns' or 'words'")
        if files:
            paths.append({"match": list(files)} | effect)
        if rows or columns:
            tables.append({"tables": list(rows), "columns": list(columns)} | effect)
        if words:
            patterns.append({"what": note, "many": note, "level": level, "words": list(words)})
        entry.done()
    if not (paths or tables or patterns):
        return None
    return {
        "format": "safetydrift.catalogue/2",
        "name": "operator",
        "version": "1",
        "paths": paths,
        "tables": tables,
        "content": {"patterns": patterns},
    }
