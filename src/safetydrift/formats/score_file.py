"""Files of the score of concerns: how probable it is that a call is harm that nobody with authority asked for."""

from __future__ import annotations

import os
from functools import lru_cache
from os.path import dirname, join
from typing import TYPE_CHECKING

from safetydrift.authority.score import MAX_FILE, decode_score
from safetydrift.errors import ModelFileError

if TYPE_CHECKING:
    from safetydrift.authority.score import Score

SHIPPED = join(dirname(dirname(__file__)), "models", "authority.json")  # noqa: PTH118, PTH120  # importing pathlib takes longer


def load_score(path: str | os.PathLike[str] = "default") -> Score:
    """Read a score; ``"default"`` is the one that comes with SafetyDrift.

    Raises
    ------
    ModelFileError
        If the file cannot be read, or is no score.
    """
    return _shipped() if path == "default" else _read(os.fspath(path))


@lru_cache(1)
def _shipped() -> Score:
    return _read(SHIPPED)


def _read(path: str) -> Score:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # as above
            return decode_score(file.read(MAX_FILE + 1))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error
