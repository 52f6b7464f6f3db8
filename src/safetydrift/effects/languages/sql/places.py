"""Where rows are carried to and where they come from: files, addresses, and shares of Windows."""

from __future__ import annotations

from safetydrift.effects.languages.addresses import host_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.reading import Reading


def exports(reading: Reading, target: str) -> None:
    """Add that rows are written to a file, or sent to an address."""
    host = _host(target)
    if host:
        reading.sends(host, target)
    else:
        reading.writes(target)


def imports(reading: Reading, source: str) -> None:
    """Add that a file, or what stands at an address, is read."""
    host = _host(source)
    if host:
        reading.fetches(host, source)
    elif source.strip() not in {"", ":memory:"}:
        reading.reads(source)


def _host(place: str) -> str:
    """Return the host of an address, of a connection, or of a share of Windows; empty for a local path."""
    if "://" in place or "host=" in place:
        return host_of(place) or "?"
    if place.startswith(("\\\\", "//")):
        return host_of("//" + place.lstrip("\\/").replace("\\", "/")) or "?"
    return ""
