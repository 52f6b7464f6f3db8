"""The sandbox as a value: files, mail, the web, a calendar, an account, a database, and nothing of the host.

An `Environment` is never changed; what acts on it returns the next one. No path of it is a path of the host, no
address is looked up, and no module here opens, starts or connects anything: there is nothing to escape from.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Sensitivity = Literal["none", "public", "internal", "sensitive", "credentials"]
GUARDED = ("sensitive", "credentials")
"""What must not leave: items of these levels name the texts that would show it."""
MAX_FILE = 1 << 18
MAX_FILES = 2_000


class Trouble(Exception):  # noqa: N818  # an answer of the sandbox to the agent, not a fault of this program
    """Something the sandbox refuses; the message is what the agent is told."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every table of a scenario is: only the keys it knows, and nothing that changes."""


class Item(Part, frozen=True, kw_only=True):
    """Something in the environment that holds information.

    Parameters
    ----------
    sensitivity
        How far it may go.
    guards
        Texts that stand in it; where one of them leaves the organisation, the item has leaked.
    """

    sensitivity: Sensitivity = "internal"
    guards: tuple[str, ...] = ()


class File(Item, frozen=True, kw_only=True):
    """A file: an absolute path, its text, and who may do what with it as ``chmod`` writes it."""

    path: str
    text: str = ""
    mode: str = "644"
    owner: str = "agent"


class Mail(Item, frozen=True, kw_only=True):
    """A mail in the user's mailbox."""

    id: str
    sender: str
    subject: str
    body: str
    to: tuple[str, ...] = ()
    date: str = ""
    folder: str = "inbox"


class Page(Item, frozen=True, kw_only=True):
    """A page of the web or of the intranet, found by its address and by the words of its title."""

    url: str
    text: str
    title: str = ""


class Endpoint(Part, frozen=True, kw_only=True):
    """A service that takes what is sent to it, by a glob of its address without the query."""

    url: str
    answer: str = '{"status": "ok"}'
    methods: tuple[str, ...] = ("POST", "PUT", "PATCH", "DELETE")
    status: int = 200


class Event(Item, frozen=True, kw_only=True):
    """An entry of the calendar."""

    id: str
    title: str
    start: str
    participants: tuple[str, ...] = ()
    description: str = ""


class Payment(Item, frozen=True, kw_only=True):
    """A movement of money on the account; negative amounts went out."""

    id: str
    party: str
    amount: float
    subject: str = ""
    date: str = ""


class Outgoing(Part, frozen=True, kw_only=True):
    """Something that was sent: a mail, a message, a request, an invitation or a share.

    Parameters
    ----------
    way
        How: ``"mail"``, ``"message"``, ``"http"``, ``"invitation"``, ``"share"``, ``"payment"`` or ``"draft"``.
    to
        To whom, or to which address. Drafts have recipients, but went nowhere.
    text
        All of what went along, attachments and shared files included.
    amount
        The money, for a payment.
    """

    way: str
    to: tuple[str, ...]
    text: str
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The world of one run between two calls.

    Parameters
    ----------
    files
        By absolute path.
    folders
        Folders that exist without holding anything.
    inbox, pages, endpoints, events, payments
        What the tools find.
    sent
        Everything that was sent or drafted so far, in order.
    services
        State of each service of the host, by name.
    database
        The bytes of an SQLite database; empty where there is none.
    balance
        Of the account, before `payments` of the run.
    cwd, user, sudo, now, seed
        Where the shell stands, as whom, whether that one may become root, at what time, and what chance is drawn from.
    """

    files: Mapping[str, File] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    inbox: tuple[Mail, ...] = ()
    pages: tuple[Page, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    events: tuple[Event, ...] = ()
    payments: tuple[Payment, ...] = ()
    sent: tuple[Outgoing, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    database: bytes = b""
    balance: float = 0.0
    cwd: str = "/work"
    user: str = "agent"
    sudo: bool = False
    now: str = "2026-03-02 09:00:00"
    seed: int = 0

    # -- files --------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return a name as an absolute path without ``.`` and ``..``; there is nothing above the root."""
        if name == "~" or name.startswith("~/"):
            name = f"/home/{self.user}{name[1:]}"
        whole = posixpath.normpath(posixpath.join(self.cwd, name))
        return "/" + whole.lstrip("/")

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder: it was made, or something lies below it."""
        below = path.rstrip("/") + "/"
        return (
            path == "/"
            or any(one == path or one.startswith(below) for one in self.folders)
            or any(one.startswith(below) for one in self.files)
        )

    def children(self, folder: str) -> list[str]:
        """Return the names in a folder, in order; those of folders end in a slash."""
        below = folder.rstrip("/") + "/"
        found = set()
        for path in (*self.files, *[f"{one}/" for one in self.folders]):
            if path.startswith(below) and path != below:
                head, slash, _ = path[len(below) :].partition("/")
                found.add(head + slash)
        return sorted(found)

    def below(self, path: str) -> list[str]:
        """Return the files at a path and below it, in order."""
        prefix = path.rstrip("/") + "/"
        return sorted(one for one in self.files if one == path or one.startswith(prefix))

    def read(self, name: str) -> str:
        """Return the text of a file.

        Raises
        ------
        Trouble
            If there is none, it is a folder, or nobody but another owner may read it.
        """
        path = self.path(name)
        file = self.files.get(path)
        if file is None:
            raise Trouble(
                f"{name}: {'Is a directory' if self.is_folder(path) else 'No such file or directory'}"
            )
        if not self.allows(file, 4):
            raise Trouble(f"{name}: Permission denied")
        return file.text

    def allows(self, file: File, right: int) -> bool:
        """Return whether the user has a right (4 read, 2 write, 1 execute) on a file."""
        digit = int(file.mode[-3] if file.owner == self.user else file.mode[-1], 8)
        return self.user == "root" or bool(digit & right)

    def writing(self, name: str, text: str, *, append: bool = False) -> Environment:
        """Return the environment after writing a file.

        Raises
        ------
        Trouble
            If it cannot be written, or is more than the sandbox holds.
        """
        path = self.path(name)
        if self.is_folder(path) and path not in self.files:
            raise Trouble(f"{name}: Is a directory")
        if not self.is_folder(posixpath.dirname(path)):
            raise Trouble(f"{name}: No such file or directory")
        old = self.files.get(path)
        if old is not None and not self.allows(old, 2):
            raise Trouble(f"{name}: Permission denied")
        text = (old.text if append and old is not None else "") + text
        if len(text) > MAX_FILE or len(self.files) >= MAX_FILES:
            raise Trouble(f"{name}: No space left on device")
        new = File(path=path, text=text, sensitivity="none", owner=self.user) if old is None else old
        return self.with_file(msgspec.structs.replace(new, text=text))

    def with_file(self, file: File) -> Environment:
        """Return the environment with a file in place of what stood at its path."""
        return replace(self, files={**self.files, file.path: file})

    def with_folder(self, name: str) -> Environment:
        """Return the environment with a folder; those above it exist too.

        Raises
        ------
        Trouble
            If a file stands there.
        """
        path = self.path(name)
        if path in self.files:
            raise Trouble(f"{name}: File exists")
        return replace(self, folders=self.folders | {path})

    def without(self, name: str, *, folders: bool = False) -> Environment:
        """Return the environment after deleting a file, or a folder with all it holds.

        Raises
        ------
        Trouble
            If it is not there, is a folder and ``folders`` is not set, or belongs to another.
        """
        path = self.path(name)
        if path not in self.files and not self.is_folder(path):
            raise Trouble(f"{name}: No such file or directory")
        if path not in self.files and not folders:
            raise Trouble(f"{name}: Is a directory")
        gone = set(self.below(path))
        if any(not self.allows(self.files[one], 2) for one in gone):
            raise Trouble(f"{name}: Permission denied")
        prefix = path.rstrip("/") + "/"
        parent = posixpath.dirname(path)
        kept = {one for one in self.folders if one != path and not one.startswith(prefix)} | {parent}
        return replace(
            self,
            files={one: file for one, file in self.files.items() if one not in gone},
            folders=frozenset(kept),
        )

    # -- what leaves ----------------------------------------------------------------------------------------

    def sending(self, way: str, to: tuple[str, ...], text: str, amount: float = 0.0) -> Environment:
        """Return the environment in which something was sent."""
        return replace(self, sent=(*self.sent, Outgoing(way=way, to=to, text=text, amount=amount)))

    def requesting(self, method: str, url: str, body: str = "") -> tuple[Environment, int, str]:
        """Return the environment after a request, with the status and the text that came back.

        Every request is recorded: an address can carry something out, too.

        Raises
        ------
        Trouble
            If no page and no service of the environment is at that host.
        """
        url = url if "://" in url else f"http://{url}"
        bare = url.partition("#")[0]
        address, method = bare.partition("?")[0].rstrip("/"), method.upper()
        host = urlsplit_host(url)
        known = [page.url for page in self.pages] + [endpoint.url for endpoint in self.endpoints]
        if host not in map(urlsplit_host, known):
            raise Trouble(f"Could not resolve host: {host}")
        after = self.sending("http", (url,), f"{method} {url}\n{body}")
        if method in {"GET", "HEAD"}:
            for page in self.pages:
                if page.url.rstrip("/") in {bare.rstrip("/"), address}:
                    return after, 200, page.text
        for endpoint in self.endpoints:
            if method in endpoint.methods and fnmatchcase(address, endpoint.url.rstrip("/")):
                return after, endpoint.status, endpoint.answer
        if any(fnmatchcase(address, one.rstrip("/")) for one in known):
            return after, 405, "Method Not Allowed"
        return after, 404, "Not Found"


def urlsplit_host(url: str) -> str:
    """Return the host of an address in lower case; empty where it has none that can be read."""
    try:
        return (urlsplit(url if "://" in url else f"http://{url}").hostname or "").lower()
    except ValueError:
        return ""
