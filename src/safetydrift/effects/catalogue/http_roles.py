"""Which arguments of a tool make up the HTTP request that it sends."""

from __future__ import annotations

from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.catalogue.plain import Entry

METHODS = ("get", "head", "options", "trace", "post", "put", "patch", "delete", "connect")
_USUAL: dict[str, tuple[str, ...]] = {
    "url": ("url", "urls", "uri", "link", "address", "endpoint", "href"),
    "method": ("method", "http_method", "verb"),
    "body": ("body", "data", "json", "form", "payload", "content", "json_body", "raw_body"),
    "params": ("params", "query", "query_params", "query_parameters"),
    "headers": ("headers", "cookies", "auth"),
    "files": ("files", "file", "upload"),
    "saves": (),
    "packed": (),
}
"""The usual names, for roles that an entry does not name."""


class HttpRoles:
    """The arguments of a tool by what they are in its request.

    Attributes
    ----------
    url
        The address, or a list of them.
    method
        The method; empty where the tool has only one.
    body, params
        What is handed over: in the body, and in the query of the address.
    headers
        Headers, cookies, and what else says who asks.
    files
        Local files that are handed over.
    saves
        Local files in which the answer is kept.
    packed
        Arguments that hold a whole request as text: JSON with the names above, or only an address.
    default_method
        The method where no argument names one; one of `METHODS`.
    """

    __slots__ = ("body", "default_method", "files", "headers", "method", "packed", "params", "saves", "url")

    def __init__(self, entry: Entry | None = None) -> None:
        given = {
            role: entry.texts(role) if entry and entry.get(role) is not None else usual
            for role, usual in _USUAL.items()
        }
        self.url, self.method, self.body = given["url"], given["method"], given["body"]
        self.params, self.headers, self.files = given["params"], given["headers"], given["files"]
        self.saves, self.packed = given["saves"], given["packed"]
        self.default_method = (entry.text("default_method") if entry else "") or "get"
        where = entry.where if entry else "http"
        if self.default_method not in METHODS:
            raise CatalogueError(
                f"{where}: default_method is one of {', '.join(METHODS)}, got {self.default_method!r}"
            )
        if not self.url and not self.packed:
            raise CatalogueError(f"{where}: lacks 'url', the argument that holds the address")
        if entry:
            entry.done()
