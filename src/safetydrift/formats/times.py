"""Times as traces tell them."""

from __future__ import annotations

from datetime import UTC, datetime

_NANO, _MICRO, _MILLI = 1e16, 1e14, 1e11
"""From these figures on, a time since 1970 is not in seconds, milliseconds or microseconds: all are in year 5138."""


def seconds(value: object) -> float | None:
    """Return a time in seconds since 1970 (UTC), or None for what tells no time.

    Parameters
    ----------
    value
        A number since 1970, in seconds or in parts of them, as its size tells; the same as text; or an ISO 8601 date
        and time, in UTC unless it says otherwise.

    Examples
    --------
    >>> seconds("1970-01-02T00:00:00Z"), seconds("86400000000000000"), seconds("yesterday")
    (86400.0, 86400000.0, None)
    """
    if isinstance(value, str):
        try:
            value = int(value) if value.isdecimal() and len(value) < 20 else _stamp(value)  # noqa: PLR2004
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e20:  # noqa: PLR2004
        return None
    if value >= _MILLI:
        value /= 1e9 if value >= _NANO else 1e6 if value >= _MICRO else 1e3
    return float(value)


def _stamp(text: str) -> float:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
