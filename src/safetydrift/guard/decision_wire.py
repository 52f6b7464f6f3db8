"""Decisions and findings as plain data and back, field by field: one side may know more fields than the other."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import fields

from safetydrift.errors import ServiceError
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Verdict

_UNSAID: dict[Any, Any] = {bool: False, float: nan, str: ""}
"""What a field that has to be there is taken for where nothing is said."""


def as_plain(value: Struct) -> dict[str, Any]:
    """Return the fields of a decision or a finding by name; what is not known, and what is empty, is left out.

    Examples
    --------
    >>> from safetydrift.monitor.verdict import Intervention
    >>> as_plain(Decision(Intervention.ALLOW, rule="always_allow"))
    {'intervention': 'allow', 'rule': 'always_allow', 'latency': 0.0}
    """
    plain = {}
    for name in value.__struct_fields__:
        found = getattr(value, name)
        if isinstance(found, Verdict):
            plain[name] = as_plain(found)
        elif not _is_empty(found):
            plain[name] = to_builtins(found)
    return plain


def decision_from(plain: Any) -> Decision:
    """Return the decision in plain data; fields that are not known here are left out.

    Raises
    ------
    ServiceError
        If it is none.
    """
    try:
        decision: Decision = _from(plain, Decision)
    except (ValidationError, TypeError, ValueError) as error:
        raise ServiceError(f"no decision: {error}") from error
    return decision


def verdict_from(plain: Any) -> Verdict | None:
    """Return the finding in plain data; None if there is none.

    Raises
    ------
    ServiceError
        If it is something else.
    """
    try:
        return None if plain is None else _from(plain, Verdict)
    except (ValidationError, TypeError, ValueError) as error:
        raise ServiceError(f"no finding: {error}") from error


def _from(plain: Any, kind: type[Any]) -> Any:
    if not isinstance(plain, dict):
        raise TypeError(f"expected a table, got {type(plain).__name__}")
    known = {}
    for field in fields(kind):
        value = plain.get(field.name)
        if value is None:
            if field.required:
                known[field.name] = _UNSAID.get(field.type)
        elif field.name == "verdict":
            known[field.name] = _from(value, Verdict)
        else:
            known[field.name] = convert(_with_nan(value), field.type)
    return kind(**known)


def _with_nan(value: Any) -> Any:
    """Return a list of numbers with nan where JSON says null."""
    return [nan if one is None else one for one in value] if isinstance(value, list) else value


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value == "" or (isinstance(value, float) and isnan(value))
