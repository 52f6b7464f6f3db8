"""What a reviewer is shown of a call: its texts, shortened and with every sign made visible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from safetydrift.trace import Trace

MAX_TASK, MAX_ARGUMENTS, MAX_RESULT = 1500, 2500, 1500


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The texts of one call."""

    task: str
    arguments: str
    result: str


def excerpt(trace: Trace, position: int) -> Excerpt:
    """Return what is shown of the call at a position, from 0."""
    step = trace.steps[position]
    said = [one.said for one in trace.steps[: position + 1] if one.said]
    task = trace.prompt or (said[0] if said else "")
    latest = said[-1] if said and said[-1] != task else ""
    shown_task = _shortened(task, MAX_TASK)
    if latest:
        shown_task += f"\n\nThe user's latest words: {_shortened(latest, MAX_TASK)}"
    if step.error is not None:
        result = f"The call failed: {_shortened(step.error, MAX_RESULT)}"
    else:
        result = "(no result)" if step.result is None else _shortened(step.result, MAX_RESULT)
    arguments = _arguments(step.call.args) if step.call.malformed is None else step.call.malformed
    return Excerpt(shown_task, _shortened(arguments, MAX_ARGUMENTS), result)


def visible(text: str) -> str:
    r"""Return text in which nothing is hidden: what cannot be printed is written as its number.

    >>> visible("a\u202eb\n")
    'a<U+202E>b\n'
    """
    if text.isprintable():
        return text
    return "".join([char if _plain(char) else f"<U+{ord(char):04X}>" for char in text])


def _plain(char: str) -> bool:
    return char in "\n\t" or char.isprintable() or category(char) == "Zs"


def _shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that is too long, and say how much is missing."""
    text = text.replace("\r\n", "\n")
    if len(text) <= limit:
        return visible(text)
    tail = limit // 4
    missing = len(text) - limit
    return (
        f"{visible(text[: limit - tail])}\n[.. {missing:,} characters left out ..]\n{visible(text[-tail:])}"
    )


def _arguments(value: object) -> str:
    """Write one argument per line; further lines of a text are set in, so that none can pass for an argument."""
    if not isinstance(value, Mapping):
        return _json(value)
    return "\n".join(
        [
            f"{_name(key)}: {item.replace(chr(10), chr(10) + '    ') if isinstance(item, str) else _json(item)}"
            for key, item in value.items()
        ]
    )


def _name(key: object) -> str:
    return key if isinstance(key, str) and key.isidentifier() else _json(key)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        return "(cannot be shown)"
