"""The operations of tools that take arguments by name: what such a call does to each of the values that it names.

The entry or the pattern of a tool says what it does; which values it does it to is told by the entry, else by the names
of the arguments and the shapes of the values.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

import msgspec

from safetydrift.effects.catalogue.catalogue import MAX_NAME
from safetydrift.effects.catalogue.harms import Harm
from safetydrift.effects.catalogue.names import NameWords
from safetydrift.effects.catalogue.tables import words
from safetydrift.effects.history.provenance import scalars
from safetydrift.effects.operations import (
    CERTAIN,
    LIKELY,
    MAX_CARRIED,
    MAX_TARGET,
    NONE,
    POSSIBLE,
    Operation,
    Operations,
)
from safetydrift.effects.recording import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.places import Places
    from safetydrift.effects.catalogue.telling import ValueRule

MAX_VALUES = 24
"""Values of a call that become targets."""
MAX_LEAVES = 96
"""Values of a call that are looked at."""
MAX_PACKED = 16 * 1024
"""Longer texts are not looked into for values in JSON."""
_SHORT = 160
_MAX_DEPTH = 3
_MAIL = re.compile(r"[^\s@<>,;]{1,64}@[^\s@<>,;]{1,253}\.[A-Za-z]{2,24}")
_ACCOUNT = re.compile(
    r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,32}|0x[0-9a-fA-F]{40}|bc1[a-z0-9]{20,80}|[13][1-9A-HJ-NP-Za-km-z]{25,34}|\d{8,19}"
)
_HOST = re.compile(
    r"[a-z][a-z0-9+.\-]{1,20}://\S+|(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?|(?:[\w\-]{1,63}\.){1,8}(?:com|org|net|io|dev|app|ai|co|example|internal)(?:[:/]\S*)?",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:[~.]{0,2}/|[A-Za-z]:[\\/]|\$\w+/)[^\n]{0,512}|[\w.\-]{1,64}(?:/[\w.\-]{1,64})+|[\w\-]{1,64}\.[a-z][a-z0-9]{1,4}"
)
_PHONE = re.compile(r"\+\d[\d ()\-]{6,18}\d")
_SHAPES = (
    ("recipient", _MAIL),
    ("host", _HOST),
    ("account", _ACCOUNT),
    ("recipient", _PHONE),
    ("path", _PATH),
)
_BETWEEN = re.compile(r"[,;\r\n]")
_HUGE = 1e18
_UNNAMED = frozenset(("args", "arguments", ""))
"""Names under which values stand that have none of their own."""
_EDITING = frozenset(("edit", "move", "publish"))
_READING = frozenset(("read", "fetch"))
_SWITCHES = frozenset(("true", "false", "0", "1"))
_DECODER = msgspec.json.Decoder()
_RECEIVING = frozenset(("recipient", "host", "account"))
_ADDRESSED = _RECEIVING | {"person"}
_HANDED = frozenset(("path", "resource"))
_HANDING = frozenset(("send", "publish", "grant"))
_ADDRESSING = frozenset(("exfiltration", "access"))
_OF_KINDS = {
    "destructive_action": Harm("delete", "destruction", POSSIBLE),
    "integrity": Harm("edit", "integrity", POSSIBLE),
    "privilege_escalation": Harm("grant", "access", POSSIBLE),
    "unauthorised_transaction": Harm("pay", "transaction", LIKELY),
}


def tool_operations(
    catalogue: Catalogue,
    boundary: Boundary,
    harm: Harm,
    targets: Sequence[tuple[str, tuple[str, ...]]],
    args: Mapping[str, object],
    *,
    tool: object = "",
) -> tuple[Operation, ...]:
    """Return what a call does to each of the values that it names.

    Parameters
    ----------
    harm
        What it does.
    targets
        Which arguments name what it is done to, by role; where none are given, or none of them is there, names and
        shapes tell it.
    args
        The arguments of the call, of any size and shape.
    tool
        The name of the tool.
    """
    found, where = Operations(), (catalogue.places, boundary)
    values = list(_values(args))
    told = told_by_values(catalogue, tool, harm.action, args)
    for one in told:
        found.add(one)
    named = [(role, value) for role, names in targets for name, value in values if name in names]
    chosen = named or list(_guessed(catalogue, values))
    attached = tuple([(role, value) for role, value in chosen if role in _HANDED])
    addressed = harm.harm in _ADDRESSING and any(role in _ADDRESSED for role, _ in chosen)
    for role, value in chosen[:MAX_VALUES]:
        # Where somebody is addressed, the harm is that it is they; what they are given is no second one.
        meant = harm if role in _ADDRESSED or not addressed else Harm(harm.action, role=harm.role)
        found.add(_operation(where, meant, role, value, attached))
    if len(found) == len(told):
        found.add(_operation(where, harm, harm.role, "", ()))
    return found.kept()


def edited(catalogue: Catalogue, operations: Sequence[Operation], text: str) -> list[Operation]:
    """Return what it is that a call changes files in the way that its text tells.

    Parameters
    ----------
    operations
        What the call was found to do.
    text
        All that the call says: the command, the code, the texts of its arguments.
    """
    return [
        Operation(
            harm.action, one.target, "path", harm.harm, harm.certainty, harm.words(one.target), one.carries
        )
        for one in operations
        if one.role == "path" and one.action in _EDITING and one.target
        for harm in catalogue.edits.of(one.target, text)
    ]


def with_edits(catalogue: Catalogue, operations: tuple[Operation, ...], text: str) -> tuple[Operation, ...]:
    """Return operations with those that `edited` adds."""
    more = edited(catalogue, operations, text)
    if not more:
        return operations
    found = Operations()
    for one in (*operations, *more):
        found.add(one)
    return found.kept()


def told_by_values(
    catalogue: Catalogue, tool: object, action: str, args: Mapping[str, object]
) -> list[Operation]:
    """Return what values tell whatever the tool does.

    Parameters
    ----------
    action
        What the tool does by its name, which tells whether it only reads.
    """
    if not args or not catalogue.values:
        return []
    given: object = tool
    name = given[:MAX_NAME] if isinstance(given, str) else ""
    rules = _suiting(catalogue.values, name, action in _READING)
    found: list[Operation] = []
    for key, value in islice(_leaves(args), MAX_LEAVES):
        written = words(key)
        for rule in rules:
            if rule.holds(written, value) or (key in _UNNAMED and rule.holds_anywhere(value)):
                harm, target = rule.harm, value[:MAX_TARGET]
                if len(value) > _SHORT or value in _SWITCHES:
                    target = key[:MAX_TARGET]
                found.append(
                    Operation(harm.action, target, harm.role, harm.harm, harm.certainty, harm.words(target))
                )
    return found


@lru_cache(1024)
def _suiting(rules: tuple[ValueRule, ...], tool: str, reads: bool) -> tuple[ValueRule, ...]:
    """Return the rules that speak of a tool."""
    name = NameWords(tool)
    return tuple([rule for rule in rules if rule.suits(name, reads=reads)])


def _leaves(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield all simple values with the names under which they stand, truth values as JSON writes them."""
    if isinstance(value, str):
        packed = unpacked(value) if depth < _MAX_DEPTH else None
        if packed is not None:
            yield from _leaves(packed, name, depth + 1)
        else:
            yield name, value[:MAX_PACKED].strip()
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif isinstance(value, int | float):
        yield name, f"{value:.12g}" if abs(value) < _HUGE else ""
    elif depth < _MAX_DEPTH + 1 and hasattr(value, "items"):
        for key, item in islice(value.items(), MAX_LEAVES):
            yield from _leaves(item, key if isinstance(key, str) else "", depth + 1)
    elif depth < _MAX_DEPTH + 1 and isinstance(value, list | tuple):
        for item in value[:MAX_LEAVES]:
            yield from _leaves(item, name, depth + 1)


def harm_of(tool: int, kinds: Sequence[str], *, leaves: bool, changes: bool) -> Harm:
    """Return what a tool does, as far as its effect tells it.

    Parameters
    ----------
    tool
        The rank of its capability.
    """
    for kind in kinds:
        if kind in _OF_KINDS:
            return _OF_KINDS[kind]
    if leaves:
        return Harm("send", "exfiltration", POSSIBLE, "hand something to {target}")
    if not changes:
        return Harm("fetch" if tool > _RUNS else "read")
    return Harm("run" if tool == _RUNS else "edit")


_RUNS = 2


def _operation(
    where: tuple[Places, Boundary], harm: Harm, role: str, value: str, attached: Sequence[tuple[str, str]]
) -> Operation:
    """Return what is done to one value; what a path is tells more than the tool does."""
    places, boundary = where
    target = value[:MAX_TARGET]
    told = _of_path(places, harm.action, value) if role == "path" else None
    if told is not None and (told.certainty > harm.certainty or harm.action == "delete"):
        return Operation(
            harm.action, target, role, told.harm if told.certainty else "", told.certainty, told.words(target)
        )
    certainty = harm.certainty
    if (
        certainty
        and harm.harm in {"exfiltration", "access"}
        and role in _RECEIVING
        and boundary.inside(value)
    ):
        certainty = NONE
    handed = (
        [one[:MAX_TARGET] for _, one in attached] if harm.action in _HANDING and role in _ADDRESSED else []
    )
    note = harm.words(target or "something")
    files = [one[:MAX_TARGET] for kind, one in attached if kind == "path"] if handed else []
    if files and certainty and harm.harm == "exfiltration":
        secret = any(places.read(file).certainty >= LIKELY for file in files)
        certainty = max(certainty, CERTAIN if secret else LIKELY)
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        note = f"send the content of {shown(files[0])}{more} to {shown(target)}"
    return Operation(
        harm.action,
        target,
        role,
        harm.harm if certainty else "",
        certainty,
        note if certainty else "",
        tuple(handed[:MAX_CARRIED]),
    )


def _of_path(places: Places, action: str, path: str) -> Harm | None:
    """Return what it is to do this to a path; None for what has nothing to do with files."""
    if action in {"read", "send", "publish"}:
        return places.read(path)
    if action in {"edit", "move", "configure"}:
        return places.change(path)
    if action == "delete":
        certainty = places.deletions.certainty(path, whole=True)
        harm = places.change(path)
        if harm.certainty > certainty:
            return harm
        return Harm("delete", "destruction", certainty, "delete {target}", "path")
    return None


def _values(args: Mapping[str, object], depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the short values of arguments with the names under which they stand, also out of JSON in texts."""
    for name, text in scalars(args):
        packed = unpacked(text) if depth < _MAX_DEPTH else None
        if packed is not None:
            yield from _values(packed if isinstance(packed, dict) else {name: packed}, depth + 1)
        elif len(text) <= _SHORT:
            yield name, text.strip()
        elif _MAIL.search(text[:_SHORT]) and "@" in text[:_SHORT] and "," in text:
            yield from ((name, piece.strip()) for piece in _BETWEEN.split(text)[:MAX_VALUES])


def unpacked(text: str) -> dict[str, object] | list[object] | None:
    """Return what a text in JSON holds, None if it is none."""
    if text[:1] not in {"{", "["} or len(text) > MAX_PACKED:
        return None
    try:
        value = _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if isinstance(value, dict | list) else None


def _guessed(catalogue: Catalogue, values: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the values that decide what a call does, by role."""
    roles = catalogue.roles
    for name, text in values:
        if not text or name in roles.secret:
            continue
        role = next((role for role, names in roles.targets if name in names), "")
        shape = next((role for role, pattern in _SHAPES if pattern.fullmatch(text)), "")
        if name in roles.prose and not shape:
            continue
        if shape and role in ("", "person", "text", "resource", *(("recipient",) if shape in _FIRM else ())):
            role = shape
        if "," in text and role in {"recipient", "person"}:
            yield from ((role, piece.strip()) for piece in _BETWEEN.split(text)[:MAX_VALUES] if piece.strip())
        elif role or not _TRIFLE.fullmatch(text):
            yield role or "resource", text


_FIRM = frozenset(("account", "host"))
_TRIFLE = re.compile(
    r"(?i:true|false|none|null|yes|no|asc|desc|json|text|en|auto|default)|-?\d{1,6}(?:\.\d{1,4})?|."
)
