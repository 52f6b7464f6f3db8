"""The catalogues that come with SafetyDrift, each compiled into one file: what a guard reads when it starts."""

from __future__ import annotations

from functools import lru_cache
from os.path import dirname, join

from msgspec import json

from safetydrift._garbage import Uncollected
from safetydrift.effects.catalogue import Catalogue


def compiled_path(name: str) -> str:
    """Return where the one file of a shipped catalogue is."""
    # importlib.resources would cost a hook more than the catalogue itself.
    return join(dirname(dirname(__file__)), "effects", "catalogues", f"{name}.json")  # noqa: PTH118, PTH120


@lru_cache(4)
def shipped_catalogue(name: str) -> Catalogue | None:
    """Return a shipped catalogue by its name; None if there is none of that name."""
    if not name.isidentifier():
        return None
    try:
        with open(compiled_path(name), "rb") as file:  # noqa: PTH123  # pathlib is not cheap to import
            data = file.read()
        with Uncollected():
            return Catalogue(json.decode(data), shared=False)
    except FileNotFoundError:
        return None
