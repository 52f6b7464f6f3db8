"""The description of the interface (OpenAPI 3.1), from the operations themselves."""

from __future__ import annotations

import re
from typing import Any

from msgspec.json import schema_components

from safetydrift._version import __version__
from safetydrift.service.api import OPERATIONS, Operation
from safetydrift.service.wire import Problem

_REF = "#/components/schemas/{name}"
_PARTS = re.compile(r"\{(\w+)\}")


def document(url: str) -> dict[str, Any]:
    """Return the description."""
    types = {one for operation in OPERATIONS for one in (operation.takes, operation.gives) if one is not None}
    ordered = sorted(types | {Problem}, key=lambda one: one.__name__)
    _, components = schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SafetyDrift",
            "version": __version__,
            "summary": "A guard for LLM agents: propose a call, then confirm or release it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": url}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    doc = (operation.handle.__doc__ or "").strip().partition("\n")[0]
    described: dict[str, Any] = {
        "operationId": operation.handle.__name__,
        "summary": doc,
        "description": f"For tokens with the scope `{operation.right}`.",
        "responses": {
            "200": _content("What was asked for.", operation.gives.__name__),
            "default": _content("Why it was not done.", Problem.__name__, "application/problem+json"),
        },
    }
    parameters = [_parameter(name, "path") for name in _PARTS.findall(operation.path)]
    parameters += [_parameter(name, "query") for name in operation.query]
    if parameters:
        described["parameters"] = parameters
    if operation.takes is not None:
        schema = {"$ref": _REF.format(name=operation.takes.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}


def _content(description: str, name: str, kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": {"$ref": _REF.format(name=name)}}}}
