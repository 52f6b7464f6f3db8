"""A call in view of the run: its concerns, and what it adds to the ledger once its result has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.authority.concerns import (
    ELSEWHERE, MADE, MAX_CONCERNS, NOBODY, NOTHING, OTHER, OWN, PARTY, POINTED, PROJECT, REACHED, RECORDED, SAID,
    SPEAKS, SYSTEM, TEMPORARY, UNTRUSTED, HARM_NAMES, Concern, gravity,
)  # fmt: skip
from safetydrift.authority.files import MAX_CODE, KnownFile
from safetydrift.authority.grading import Asked
from safetydrift.authority.ledger import Ledger, cut
from safetydrift.authority.text import fold
from safetydrift.authority.texts import FREE, RECORD, SourceText
from safetydrift.authority.texts import UNTRUSTED as FROM_OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.authority.texts import Place
    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.operations import Operation
    from safetydrift.states.effect import Effect
