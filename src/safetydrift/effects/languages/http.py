"""What an HTTP request does that a tool is given piece by piece: address, method, body, headers, files.

A request that only asks changes nothing, unless it takes content along: in a long or encoded part of the address, of
the query, of a header. What tells the server who asks (a key in a header or in the query) is part of using it; it
makes the answer private, and counts as given away only where anybody can read it or nobody knows who receives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from safetydrift.effects.boundary import METADATA, OUTSIDE
from safetydrift.effects.languages.addresses import split_address
from safetydrift.effects.languages.carried import carried, unquoted
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.effects.catalogue.http_roles import HttpRoles
    from safetydrift.effects.languages.addresses import Address
    from safetydrift.effects.reading import Reading

MAX_URLS = 64
"""More addresses in one request are not read."""
MAX_BODY = 64 * 1024
"""Longer texts are not taken apart."""
_MAX_PAIRS = 500
_MAX_DEPTH = 6
_LONG_QUERY = 1000
_ASKS = frozenset(("get", "head", "options", "trace", "propfind", "report", "search"))
_FETCHED = frozenset(("http", "https", "ftp", "ftps", "sftp", "s3", "gs", "ldap", "ldaps", ""))
_WITHOUT_REQUEST = frozenset(("about", "data", "blob", "cid"))
_READABLE_BY_ALL = frozenset(("http", "ftp", "ws", "gopher", "dict", "telnet", "ldap"))
_NAMES_CALLER = re.compile(
    r"auth|authorization|cookies?|sig|signature|key|api_?key|app_?id|token|jwt|session|sid|csrf|xsrf|bearer"
)
_CALLER_PREFIXES = ("x_amz_", "x_goog_", "x_ms_", "aws")
_GRAPH_KEYS = frozenset(("query", "variables", "operationName", "extensions"))
_GRAPH_CHANGE = re.compile(r"\b(?:mutation|subscription)\b")
_IP = re.compile(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:]*")


def read_http(reading: Reading, args: Mapping[str, object], roles: HttpRoles) -> None:
    """Add what a request would do; never raises, and what cannot be followed counts as hidden.

    Parameters
    ----------
    args
        The arguments of the tool.
    roles
        Which of them are what.
    """
    try:
        request = Request(args, roles)
        if not request.urls or len(request.urls) > MAX_URLS:
            reading.unreadable("a request whose addresses cannot be read")
        for url in request.urls[:MAX_URLS]:
            _read_request(reading, request, url)
        for path in request.saves:
            reading.writes(path)
    except UnreadableError as error:
        reading.unreadable(f"the request cannot be read: {error}")


class Request:
    """The parts of a request, out of the arguments of a tool.

    Attributes
    ----------
    urls, files, saves
        Addresses; local files that are handed over; local files in which the answer is kept.
    method
        In small letters.
    body, params, headers
        Names with their values, as texts.
    has_body, graph
        Whether anything is handed over in the body, and whether that is a query of GraphQL.
    keyed, told
        Whether a header or parameter says who asks; whether it has been told what is handed over, which is the same
        for every address.
    """

    __slots__ = (
        "_taken",
        "body",
        "files",
        "graph",
        "has_body",
        "headers",
        "keyed",
        "method",
        "params",
        "saves",
        "told",
        "urls",
    )

    def __init__(self, args: Mapping[str, object], roles: HttpRoles) -> None:
        args = _unpacked(args, roles)
        self.urls = _texts(args, roles.url)
        self.files = [path for name in roles.files for path in _file_names(args.get(name))]
        self.saves = _texts(args, roles.saves)
        self.headers = [pair for name in roles.headers for pair in _headers(name, args.get(name))]
        self.params = [pair for name in roles.params for pair in _pairs(name, args.get(name))]
        bodies = [_decoded(args.get(name)) for name in roles.body]
        self.has_body = any(value not in (None, "", {}, [], b"") for value in bodies)
        self.body = [
            pair for name, value in zip(roles.body, bodies, strict=True) for pair in _pairs(name, value)
        ]
        self.graph = any(_is_graph_query(value) for value in bodies)
        self.method = self._method(args, roles)
        self.keyed = _is_keyed((*self.headers, *self.params))
        self.told = False
        self._taken: str | None = None

    def _method(self, args: Mapping[str, object], roles: HttpRoles) -> str:
        """Return the method; a header may ask the server to take it for another."""
        given = [*_texts(args, roles.method), roles.default_method]
        override = [value for name, value in self.headers if name.lower() in _OVERRIDES]
        return (override or given)[0].strip().lower()

    def asks(self, address: Address) -> bool:
        """Return whether it only asks for something."""
        if self.graph and self.method in {"post", "get"} and "graphql" in address.path.lower():
            return True
        return self.method in _ASKS and not self.has_body and not self.files

    def taken_along(self) -> str:
        """Return what tells that its fields or headers take content along; empty if nothing does."""
        if self._taken is None:
            self._taken = _first_carried((*self.params, *self.headers, *self.body))
        return self._taken


_OVERRIDES = frozenset(("x-http-method-override", "x-http-method", "x-method-override"))


def _read_request(reading: Reading, request: Request, url: str) -> None:
    address = split_address(url)
    shown = f"{address.scheme}://{address.host}{address.path}" if address.user else url
    if address.scheme == "file" or (not address.scheme and not address.host):
        _read_local(reading, request, address)
    elif address.scheme in _WITHOUT_REQUEST:
        reading.act("looks", "an address that holds its own content")
    elif address.scheme in {"javascript", "vbscript"}:
        reading.hides("runs a script in the page at hand")
    elif address.scheme not in _FETCHED or not request.asks(address):
        _read_handed_over(reading, request, address)
        _read_change(reading, request, address, shown)
    else:
        reading.fetches(address.host, shown)
        _read_taken_along(reading, request, address, shown)
    _read_caller(reading, request, address)


def _read_change(reading: Reading, request: Request, address: Address, shown: str) -> None:
    """Add that a request hands something over, or has something deleted."""
    if request.method == "delete" and reading.tells(address.host, shown):
        reading.has_deleted(address.host, shown)
    if request.method != "delete" or request.has_body or request.files:
        reading.sends(address.host, shown)


def _read_local(reading: Reading, request: Request, address: Address) -> None:
    """Read a request for a local file, and for an address of which only the path is known."""
    path = unquoted(address.path)
    if address.scheme == "file" and address.host:
        reading.fetches(address.host, path)
    if request.asks(address):
        reading.reads(path)
    else:
        reading.writes(path)
    if address.scheme != "file":
        reading.fetches("", path)


def _read_handed_over(reading: Reading, request: Request, address: Address) -> None:
    """Add what the files and fields are that go along with a request."""
    fields = _query(address)
    if not request.told:
        request.told = True
        fields += [*request.body, *request.params]
        for path in request.files:
            reading.reads(path)
    secret = _data(reading, reading.catalogue.metadata.ranks)
    for name, value in fields:
        entry = reading.catalogue.tables.column(name) if value and not _names_caller(name) else None
        if entry is not None and _data(reading, entry.ranks) == secret:
            reading.add(entry.ranks, f"carries {name}: {entry.note}")


def _read_taken_along(reading: Reading, request: Request, address: Address, shown: str) -> None:
    """Add that a request that only asks takes content along to the outside."""
    if reading.boundary.place(address.host) != OUTSIDE:
        return
    reason = (
        _first_carried(_query(address))
        or request.taken_along()
        or next(filter(None, map(carried, address.path.split("/"))), "")
        or carried(address.host, label=True)
    )
    if not reason and len(address.query) > _LONG_QUERY:
        reason = "a very long query"
    if reason:
        reading.act("sends", f"takes content along: {reason}")
        _read_handed_over(reading, request, address)
        reading.sends(address.host, shown)


def _read_caller(reading: Reading, request: Request, address: Address) -> None:
    """Add what it means that a request says who asks: the answer is private, and the key may be read by others."""
    if not (address.user or request.keyed or _is_keyed(_query(address))):
        return
    place = reading.boundary.place(address.host)
    in_the_open = address.scheme in _READABLE_BY_ALL or not address.host or _IP.fullmatch(address.host)
    if place == OUTSIDE and in_the_open:
        reason = "a key goes where anybody can read it, or nobody knows who receives it"
        reading.add(reading.catalogue.metadata.ranks, reason, external=True, leaves=True)
    elif place != METADATA:
        reading.act("reads", "asks with a key, so the answer may be private")


def _first_carried(pairs: Iterable[tuple[str, str]]) -> str:
    """Return why the first value is taken for content that does not only say who asks; empty if none is."""
    return next(filter(None, (carried(value) for name, value in pairs if not _names_caller(name))), "")


def _is_keyed(pairs: Iterable[tuple[str, str]]) -> bool:
    """Return whether one of the headers or fields says who asks."""
    return any(value and _names_caller(name) for name, value in pairs)


def _data(reading: Reading, ranks: tuple[int, ...]) -> str:
    return reading.catalogue.scales.level(ranks, "data")


def _names_caller(name: str) -> bool:
    """Return whether a header or field says who asks."""
    plain = name.lower().replace("-", "_")
    if plain.startswith(_CALLER_PREFIXES):
        return True
    words = plain.split("_")
    return any(_NAMES_CALLER.fullmatch(part) for part in (plain, *words))


# -- arguments -------------------------------------------------------------------------------------------


def _unpacked(args: Mapping[str, object], roles: HttpRoles) -> Mapping[str, object]:
    """Return the arguments with those that hold a whole request as text taken apart."""
    for name in roles.packed:
        value = args.get(name)
        if isinstance(value, str) and value:
            inner = _decoded(value)
            given = inner if isinstance(inner, Mapping) else {(roles.url or ("url",))[0]: value}
            return {**args, **{_named(key): part for key, part in given.items()}}
    return args


def _texts(args: Mapping[str, object], names: Iterable[str]) -> list[str]:
    """Return the texts of some arguments, lists item by item."""
    found: list[str] = []
    for name in names:
        value = args.get(name)
        items = value if isinstance(value, list | tuple) else (value,)
        found += [item for item in items[: MAX_URLS + 1] if isinstance(item, str) and item.strip()]
    return found


def _file_names(value: object) -> Iterator[str]:
    """Yield the local files of an argument: a path, a list of paths, or paths by field."""
    items = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list | tuple)
        else (value,)
    )
    for item, _ in zip(items, range(MAX_URLS), strict=False):
        path = item[-1] if isinstance(item, list | tuple) and item else item
        if isinstance(path, str) and path:
            yield path


def _named(key: object) -> str:
    """Return a name or value as it is; what is no text is none."""
    return key if isinstance(key, str) else ""


def _decoded(value: object) -> object:
    """Return JSON that is given as text as what it stands for; anything else as it is."""
    if not isinstance(value, str) or len(value) > MAX_BODY or value.lstrip()[:1] not in ("{", "["):
        return value
    import json  # noqa: PLC0415  # few requests have a body of JSON in a text

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _pairs(name: str, value: object) -> list[tuple[str, str]]:
    """Return the texts in a value, each with its name: that of the field, or the one given."""
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, object, int]] = [(name, value, 0)]
    while waiting and len(found) < _MAX_PAIRS:
        name, value, depth = waiting.pop()
        if isinstance(value, Mapping | list | tuple) and depth < _MAX_DEPTH:
            parts = value.items() if isinstance(value, Mapping) else ((name, part) for part in value)
            inner = [
                (_named(key), part, depth + 1)
                for (key, part), _ in zip(parts, range(_MAX_PAIRS), strict=False)
            ]
            waiting += inner[: _MAX_PAIRS - len(waiting)]
        elif isinstance(value, str) and depth == 0 and "=" in value and " " not in value.strip():
            found += _split_query(value)
        elif isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:  # noqa: PLR2004
            found.append((name, str(value)))
    return found


def _headers(role: str, value: object) -> list[tuple[str, str]]:
    """Return headers by name: a table, a list of lines, or lines in one text."""
    value = _decoded(value)
    lines = value.splitlines() if isinstance(value, str) else value
    if isinstance(lines, Mapping):
        named = role if role != "headers" else ""
        return [(named or name, text) for name, text in _pairs(role, lines)]
    found = []
    for line, _ in zip(lines if isinstance(lines, list | tuple) else (), range(_MAX_PAIRS), strict=False):
        if isinstance(line, str):
            name, _, text = line.partition(":")
            found.append((name.strip(), text.strip()) if role == "headers" else (role, line))
        elif isinstance(line, Mapping) and "name" in line:
            found.append((_named(line["name"]), _named(line.get("value", ""))[:MAX_BODY]))
    return found


def _query(address: Address) -> list[tuple[str, str]]:
    return _split_query(address.query)


def _split_query(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in text[:MAX_BODY].replace(";", "&").split("&", _MAX_PAIRS)[:_MAX_PAIRS]:
        name, sign, value = part.partition("=")
        pairs.append((unquoted(name), unquoted(value)) if sign else ("", unquoted(name)))
    return pairs


def _is_graph_query(body: object) -> bool:
    """Return whether a body is a query of GraphQL that changes nothing."""
    query = body.get("query") if isinstance(body, Mapping) and _GRAPH_KEYS.issuperset(body) else None
    return (
        isinstance(query, str)
        and query.lstrip().startswith(("{", "query", "fragment"))
        and not _GRAPH_CHANGE.search(query)
    )
