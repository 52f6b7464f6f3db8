"""Model files: one line of header, one line of model, both JSON.

The header names the format and the SHA-256 digest of the model line, so that a file that was cut, edited or mixed
up is refused before anything is read from it. The rest is read as typed values and believed only where a fit could have
written it: a model decides what is safe.
"""

from __future__ import annotations

from hashlib import sha256
from os.path import dirname, join
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json

from safetydrift.effects.catalogue import Catalogue
from safetydrift.errors import ModelFileError, SafetyDriftError, SpaceMismatchError
from safetydrift.formats.model_parts import Table, check_categories, check_risk_score
from safetydrift.monitor.categories import Categories
from safetydrift.monitor.guarantee import promises_of
from safetydrift.monitor.model import AGGREGATE, Model
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.risk_score import RiskScore
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    import os

MODEL_FORMAT = "safetydrift.model/3"
_FAMILY = "safetydrift.model/"
MAX_MODEL_BYTES = 64 << 20
DEFAULT_MODEL = "default"


class _Header(Struct):
    format: str
    sha256: str = ""


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model as it is written."""

    space: dict[str, Any]
    space_identity: str
    catalogue: dict[str, Any]
    notion: Notion
    row_of: tuple[int, ...]
    rows: tuple[str, ...]
    tables: dict[str, Table]
    policy: Policy
    settings: dict[str, Any]
    provenance: dict[str, Any]
    risk_score: RiskScore | None = None
    categories: Categories | None = None
    evidence: list[Any] | None = None


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model; the file is complete or absent, never half written."""
    from pathlib import Path  # noqa: PLC0415  # only saving needs it

    from safetydrift.formats.files import complete_or_absent  # noqa: PLC0415  # as above

    body = json.encode(
        _File(
            space=model.space.definition(),
            space_identity=model.space.identity,
            catalogue=model.catalogue.definition(),
            notion=model.notion,
            row_of=model.row_of,
            rows=model.rows,
            tables={category: Table.of(table) for category, table in model.tables.items()},
            policy=model.policy,
            settings=dict(model.settings),
            provenance=dict(model.provenance),
            risk_score=model.risk_score,
            categories=model.categories,
            evidence=None if model.evidence is None else list(model.evidence),
        )
    )
    header = json.encode(_Header(MODEL_FORMAT, sha256(body).hexdigest()))
    with complete_or_absent(Path(path)) as file:
        file.write(header + b"\n" + body + b"\n")


def load_model(path: str | os.PathLike[str] = DEFAULT_MODEL, *, space: StateSpace | None = None) -> Model:
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
        model = _model(json.decode(_body(data), type=_File))
    except SafetyDriftError as error:
        raise ModelFileError(f"{name}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{name}: a part is missing or of the wrong shape: {error}") from error
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
            return _FAMILY.encode() in file.read(64)
    except OSError:
        return False


def shipped_model() -> str:
    """Return the path of the model that comes with SafetyDrift."""
    # importlib.resources would cost a hook more than the model itself.
    return join(dirname(dirname(__file__)), "models", "default.json")  # noqa: PTH118, PTH120


def _body(data: bytes) -> bytes:
    header_line, _, rest = data.partition(b"\n")
    try:
        header = json.decode(header_line, type=_Header)
    except ValueError:
        header = _Header("")
    if not header.format.startswith(_FAMILY):
        raise ModelFileError("not a SafetyDrift model file")
    if header.format != MODEL_FORMAT:
        raise ModelFileError(
            f"format {header.format!r} is not supported; this version reads {MODEL_FORMAT!r}: fit the model again "
            "(safetydrift fit)"
        )
    body = rest.removesuffix(b"\n")
    digest = sha256(body).hexdigest()
    if digest != header.sha256:
        raise ModelFileError(
            f"damaged: its content has digest {digest[:12]}, its header says {header.sha256[:12]}"
        )
    return body


def _model(file: _File) -> Model:
    space = StateSpace.from_definition(file.space)
    if space.identity != file.space_identity:
        raise ModelFileError("its state space is not the one its identity names")
    n_rows = len(file.rows)
    if len(file.row_of) != space.n_states or not all(0 <= row < n_rows for row in file.row_of):
        raise ModelFileError("its rows do not fit its state space")
    tables = {category: table.read(n_rows) for category, table in file.tables.items()}
    if len({len(table.within) for table in tables.values()}) != 1 or AGGREGATE not in tables:
        raise ModelFileError("its tables lack the aggregate or differ in horizon")
    UnknownOnset(file.settings["unknown_onset"])
    promises_of(file.provenance)
    if file.categories is not None:
        check_categories(file.categories, tables)
    if file.risk_score is not None:
        check_risk_score(file.risk_score, space, len(tables[AGGREGATE].within) - 1)
    return Model(
        space=space,
        catalogue=Catalogue.from_definition(file.catalogue),
        notion=file.notion,
        row_of=file.row_of,
        rows=file.rows,
        tables=tables,
        policy=file.policy,
        settings=file.settings,
        provenance=file.provenance,
        risk_score=file.risk_score,
        evidence=file.evidence,
        categories=file.categories,
    )
