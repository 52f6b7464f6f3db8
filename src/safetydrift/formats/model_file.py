"""Model files: one line of header, one line of model, both JSON.

The header names the format and the SHA-256 digest of the model line, so that a file that was cut, edited or mixed
up is refused before anything is read from it. Only the standard library's ``json`` and ``hashlib`` are needed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from os.path import dirname, join

from safetydrift.effects.catalogue import Catalogue
from safetydrift.errors import ModelFileError, SafetyDriftError, SpaceMismatchError
from safetydrift.formats.risk_table import read_table, table_definition
from safetydrift.monitor.model import AGGREGATE, Model
from safetydrift.monitor.policy import Policy
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Notion, UnknownOnset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Any

    from safetydrift.monitor.categories import Categories
    from safetydrift.monitor.hazard import Hazard

MODEL_FORMAT = "safetydrift.model/2"
_READABLE = ("safetydrift.model/1", MODEL_FORMAT)
"""A file of the first format has neither bounds nor endings; all else is the same."""
MAX_MODEL_BYTES = 64 << 20
DEFAULT_MODEL = "default"


def save_model(model: Model, path: str | PathLike[str]) -> None:
    """Write a model; the file is complete or absent, never half written."""
    from pathlib import Path  # noqa: PLC0415  # only saving needs it, and it is not cheap to import

    from safetydrift.formats.files import complete_or_absent  # noqa: PLC0415

    body = json.dumps(_definition(model), separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    header = json.dumps({"format": MODEL_FORMAT, "sha256": sha256(body).hexdigest()}).encode()
    with complete_or_absent(Path(path)) as file:
        file.write(header + b"\n" + body + b"\n")


def load_model(path: str | PathLike[str] = DEFAULT_MODEL, *, space: StateSpace | None = None) -> Model:
    """Read a model; ``"default"`` is the one that comes with SafetyDrift.

    Parameters
    ----------
    space
        If given, the space the caller works in; a model of another one is refused.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is no model, is damaged, or of another format version.
    SpaceMismatchError
        If the model was fitted on another space than the one asked for.
    """
    name = str(path)
    if name == DEFAULT_MODEL:
        path = shipped_model()
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(MAX_MODEL_BYTES + 1)
    except OSError as error:
        raise ModelFileError(f"{name}: cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_MODEL_BYTES:
        raise ModelFileError(f"{name}: larger than {MAX_MODEL_BYTES} bytes, which no model of ours is")
    try:
        model = _build(_body(data))
    except SafetyDriftError as error:
        raise ModelFileError(f"{name}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{name}: a part is missing or of the wrong shape: {error!r}") from error
    if space is not None and space.identity != model.space.identity:
        raise SpaceMismatchError(
            f"{name}: fitted on space {model.space.name!r} ({model.space.identity}), "
            f"not on {space.name!r} ({space.identity}); fit a model on that space"
        )
    return model


def is_model_file(path: str) -> bool:
    """Return whether a path names a model: by its first bytes, or the word for the one that comes with SafetyDrift."""
    if path == DEFAULT_MODEL:
        return True
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(64).startswith(b'{"format": "safetydrift.model/')
    except OSError:
        return False


def shipped_model() -> str:
    """Return the path of the model that comes with SafetyDrift."""
    # importlib.resources would cost a hook more than the model itself.
    return join(dirname(dirname(__file__)), "models", "default.json")  # noqa: PTH118, PTH120


def _body(data: bytes) -> Any:
    header_line, _, rest = data.partition(b"\n")
    try:
        header = json.loads(header_line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or not str(header.get("format", "")).startswith("safetydrift.model/"):
        raise ModelFileError("not a SafetyDrift model file")
    if header["format"] not in _READABLE:
        raise ModelFileError(
            f"format {header['format']!r} is not supported; this version reads {MODEL_FORMAT!r}"
        )
    body = rest.removesuffix(b"\n")
    digest = sha256(body).hexdigest()
    if digest != header.get("sha256"):
        raise ModelFileError(
            f"damaged: its content has digest {digest[:12]}, its header says {str(header.get('sha256'))[:12]}"
        )
    return json.loads(body)


def _definition(model: Model) -> dict[str, Any]:
    from safetydrift.formats.category_part import categories_definition  # noqa: PLC0415  # only saving needs it
    from safetydrift.formats.hazard_part import hazard_definition  # noqa: PLC0415  # as above

    return {
        "space": model.space.definition(),
        "space_identity": model.space.identity,
        "catalogue": model.catalogue.definition(),
        "notion": model.notion.value,
        "row_of": model.row_of,
        "rows": model.rows,
        "tables": {category: table_definition(table) for category, table in model.tables.items()},
        "policy": model.policy.definition(),
        "settings": dict(model.settings),
        "provenance": dict(model.provenance),
        **({} if model.hazard is None else {"hazard": hazard_definition(model.hazard)}),
        **({} if model.categories is None else {"categories": categories_definition(model.categories)}),
        **({} if model.evidence is None else {"evidence": model.evidence}),
    }


def _build(definition: Any) -> Model:
    space = StateSpace.from_definition(definition["space"])
    if space.identity != definition["space_identity"]:
        raise ModelFileError("its state space is not the one its identity names")
    rows, row_of = definition["rows"], definition["row_of"]
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise ModelFileError("its rows are not a list of names")
    if len(row_of) != space.n_states or not all(type(row) is int and 0 <= row < len(rows) for row in row_of):
        raise ModelFileError("its rows do not fit its state space")
    tables = {category: read_table(part, len(rows)) for category, part in definition["tables"].items()}
    if len({len(table.within) for table in tables.values()}) != 1 or AGGREGATE not in tables:
        raise ModelFileError("its tables lack the aggregate or differ in horizon")
    UnknownOnset(definition["settings"]["unknown_onset"])
    if "calibration" in definition["provenance"]:
        from safetydrift.monitor.guarantee import promises_of  # noqa: PLC0415  # most models promise nothing

        promises_of(definition["provenance"])
    return Model(
        space=space,
        catalogue=Catalogue.from_definition(definition["catalogue"]),
        notion=Notion(definition["notion"]),
        row_of=tuple(row_of),
        rows=tuple(rows),
        tables=tables,
        policy=Policy.from_definition(definition["policy"]),
        settings=definition["settings"],
        provenance=dict(definition["provenance"]),
        hazard=_hazard(definition.get("hazard"), space, len(tables[AGGREGATE].within) - 1),
        evidence=definition.get("evidence"),
        categories=_categories(definition.get("categories"), tables),
    )


def _categories(part: Any, tables: Mapping[str, object]) -> Categories | None:
    if part is None:
        return None
    from safetydrift.formats.category_part import read_categories  # noqa: PLC0415  # not every model has them

    return read_categories(part, tables)


def _hazard(part: Any, space: StateSpace, max_horizon: int) -> Hazard | None:
    if part is None:
        return None
    from safetydrift.formats.hazard_part import read_hazard  # noqa: PLC0415  # not every model has one

    return read_hazard(part, space, max_horizon)
