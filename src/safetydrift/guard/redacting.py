"""Taking out of a text what must not be shown or written down: secrets and what identifies people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.effects.content.redaction import names_a_secret, redact_secrets, remark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from safetydrift.effects.content.scan import Findings

MAX_SHOWN = 16 * 1024
"""Characters of a text that are looked at; the rest is not shown."""
MAX_ITEMS = 64
MAX_DEPTH = 6


class Redactor:
    """Removes what the content scanner finds, and what looks like a secret by its form.

    Parameters
    ----------
    scan
        The scanner; secrets are told by their form alone without one.
    """

    __slots__ = ("_scan",)

    def __init__(self, scan: Callable[[str], Findings] | None = None) -> None:
        self._scan = scan

    def text(self, text: str) -> str:
        """Return a text of at most `MAX_SHOWN` characters and some remarks, without what it must not show."""
        cut = text[:MAX_SHOWN]
        findings = None if self._scan is None else self._scan(cut)
        if findings is not None and findings.items:
            pieces, at = [], 0
            for item in findings.items:
                pieces += [cut[at : item.start], remark(cut[item.start : item.end])]
                at = max(at, item.end)
            cut = "".join([*pieces, cut[at:]])
        shown = redact_secrets(cut)
        return shown if len(text) <= MAX_SHOWN else f"{shown} {remark(text[MAX_SHOWN:])}"

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return plain data like a value, its texts redacted; what is deep, long or no plain data is named only."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if value.bit_length() <= 64 else "?"  # noqa: PLR2004
        if isinstance(value, str):
            return self.text(value)
        if depth < MAX_DEPTH and isinstance(value, dict):
            return {
                self.text(str(key)): _hidden(item)
                if names_a_secret(str(key))
                else self.value(item, depth + 1)
                for key, item in list(value.items())[:MAX_ITEMS]
            }
        if depth < MAX_DEPTH and isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value[:MAX_ITEMS]]
        return f"({type(value).__name__})"

    def arguments(self, args: Mapping[str, object], most: int) -> str:
        """Return the arguments of a call as a text of at most so many characters."""
        import json  # noqa: PLC0415  # only when somebody is shown a call

        try:
            shown = json.dumps(self.value(dict(args)), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return "arguments that cannot be shown"
        return shown if len(shown) <= most else f"{shown[:most]}.."


def _hidden(value: Any) -> str:
    return remark(value) if isinstance(value, str) else "[redacted]"
