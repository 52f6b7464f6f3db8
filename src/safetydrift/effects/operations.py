"""Collecting the operations of a call; what an operation is stands in `safetydrift.states.operations`."""

from __future__ import annotations

import msgspec

from safetydrift.states.operations import (
    ACTIONS,
    CERTAIN,
    HARMS,
    LIKELY,
    MAX_CARRIED,
    MAX_OPERATIONS,
    MAX_TARGET,
    NONE,
    POSSIBLE,
    ROLES,
    Operation,
)
from safetydrift.states.task_words import writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "ACTIONS",
    "CERTAIN",
    "HARMS",
    "LIKELY",
    "MAX_CARRIED",
    "MAX_OPERATIONS",
    "MAX_TARGET",
    "NONE",
    "POSSIBLE",
    "ROLES",
    "Operation",
    "Operations",
]
_MAX_COLLECTED = 256
_INPUT = "$input"
_MAKING = frozenset(("edit", "move"))


class Operations:
    """The operations of one call while they are found: each once, with its most certain harm."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Operation] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._found.values())

    def add(self, operation: Operation) -> None:
        """Add an operation; of two that do the same to the same, the more certain harm stays."""
        key = (operation.action, operation.target, operation.harm)
        before = self._found.get(key)
        if before is None:
            if len(self._found) < _MAX_COLLECTED or operation.certainty >= LIKELY:
                self._found[key] = operation
            return
        carries = _several((*before.carries, *operation.carries))
        better = operation if operation.certainty > before.certainty else before
        self._found[key] = (
            better if better.carries == carries else msgspec.structs.replace(better, carries=carries)
        )

    def carry(self, path: str, sources: tuple[str, ...]) -> None:
        """Add to the changes of a file what it is made of."""
        for key, operation in self._found.items():
            if key[1] == path and key[0] in _MAKING:
                self._found[key] = msgspec.structs.replace(operation, carries=_several(sources))

    def kept(self) -> tuple[Operation, ...]:
        """Return what is kept, at most `MAX_OPERATIONS`: in the order found, without what another says better."""
        found = list(self._found.values())
        if len(found) > 1:
            harmful = {(one.action, one.target) for one in found if one.harm}
            told = {one.action for one in found if one.target != _INPUT}
            found = [
                one
                for one in found
                if (one.harm or (one.action, one.target) not in harmful)
                and (one.target != _INPUT or one.action not in told)
            ]
        if len(found) > MAX_OPERATIONS:
            worst = sorted(range(len(found)), key=lambda at: -found[at].certainty)[:MAX_OPERATIONS]
            found = [found[at] for at in sorted(worst)]
        return tuple(map(_writable, found))


def _writable(operation: Operation) -> Operation:
    """Return an operation that can be written down, whatever characters it was made of."""
    target, note, carries = operation.target, operation.note, operation.carries
    if target.isascii() and note.isascii() and all(map(str.isascii, carries)):
        return operation
    return msgspec.structs.replace(
        operation, target=writable(target), note=writable(note), carries=tuple(map(writable, carries))
    )


def _several(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:MAX_CARRIED]
