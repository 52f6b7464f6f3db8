"""The tools an agent is offered: their JSON schema, and what they do to the sandbox.

They carry names that are in use elsewhere, so that the catalogue knows what they do. A wrong argument is an answer to
the agent, never an exception.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from safetydrift.study.scenarios import database
from safetydrift.study.scenarios.environment import Event, Payment, Trouble
from safetydrift.study.scenarios.programs import PROGRAMS
from safetydrift.study.scenarios.programs.options import pattern
from safetydrift.study.scenarios.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from safetydrift.study.scenarios.environment import Environment, Mail
    from safetydrift.study.scenarios.shell import Out

    Special = Callable[[Shell, list[str], str], Out | None]

MAX_ARGUMENT = 1 << 16
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "array": (list,),
    "boolean": (bool,),
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it is called, what it takes, and what it does.

    Parameters
    ----------
    name, description
        As the agent sees them.
    parameters
        Type (of JSON schema) and description per argument.
    required
        The arguments that must be there.
    run
        From the environment, the arguments and the scenario's own programs to the next environment and a text.
    """

    name: str
    description: str
    parameters: Mapping[str, tuple[str, str]]
    required: tuple[str, ...]
    run: Callable[[Environment, dict[str, Any], Special | None], tuple[Environment, str]]

    def schema(self) -> dict[str, Any]:
        """Return the tool's parameters as JSON schema."""
        properties: dict[str, Any] = {}
        for name, (kind, text) in self.parameters.items():
            properties[name] = {"type": kind, "description": text}
            if kind == "array":
                properties[name]["items"] = {"type": "string"}
        return {
            "type": "object",
            "properties": properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def problem(self, args: Mapping[str, Any]) -> str:
        """Return what is wrong with arguments; empty if nothing is."""
        for name in self.required:
            if name not in args:
                return f"the argument {name!r} is missing"
        for name, value in args.items():
            if name not in self.parameters:
                return f"there is no argument {name!r}"
            kind = self.parameters[name][0]
            if not isinstance(value, _TYPES[kind]) or (kind == "number" and isinstance(value, bool)):
                return f"the argument {name!r} is of the type {kind}"
            if isinstance(value, list) and not all(isinstance(one, str) for one in value):
                return f"the argument {name!r} is a list of texts"
            if len(str(value)) > MAX_ARGUMENT:
                return f"the argument {name!r} is too long"
        return ""


def use(
    environment: Environment,
    name: str,
    args: Mapping[str, Any],
    offered: Sequence[str],
    special: Special | None = None,
) -> tuple[Environment, str, str | None]:
    """Call a tool.

    Parameters
    ----------
    offered
        The tools the agent has.
    special
        The programs of a scenario's own.

    Returns
    -------
    tuple
        The environment afterwards, the result, and the error message if the call failed (the environment is then
        the one before).
    """
    tool = TOOLS.get(name) if name in offered else None
    if tool is None:
        return environment, "", f"there is no tool {name!r}; there are {', '.join(offered)}"
    problem = tool.problem(args)
    if problem:
        return environment, "", problem
    try:
        after, text = tool.run(environment, dict(args), special)
    except Trouble as error:
        return environment, "", str(error)
    return after, text, None


# -- files and the shell ----------------------------------------------------------------------------------------


def _bash(world: Environment, args: dict[str, Any], special: Special | None) -> tuple[Environment, str]:
    shell = Shell(world, PROGRAMS, special)
    out = shell.run(args["command"])
    text = out.text + out.error
    return shell.environment, text + (f"[exit code {out.code}]" if out.code else "")


def _read_file(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    return world, world.read(args["path"])


def _write_file(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    return world.writing(args["path"], args["content"]), f"wrote {args['path']}"


def _edit_file(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    text, old = world.read(args["path"]), args["old_text"]
    if not old or text.count(old) != 1:
        raise Trouble(
            f"the old text stands {text.count(old) if old else 0} times in {args['path']}, not once"
        )
    return world.writing(args["path"], text.replace(old, args["new_text"])), f"edited {args['path']}"


def _delete_file(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    return world.without(args["path"]), f"deleted {args['path']}"


def _list_directory(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    path = world.path(args["path"])
    if not world.is_folder(path):
        raise Trouble(f"{args['path']}: no such folder")
    return world, "\n".join(world.children(path))


def _grep_search(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    match, hits = pattern(args["pattern"], ignore_case=True), []
    for path in world.below(world.path(args.get("path", "/"))):
        hits += [
            f"{path}:{n}: {line}"
            for n, line in enumerate(world.read(path).splitlines(), 1)
            if match.search(line[:400])
        ]
    return world, "\n".join(hits[:200]) or "no match"


def _share_file(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    text = world.read(args["path"])
    return world.sending(
        "share", (args["email"],), f"{args['path']}\n{text}"
    ), f"shared {args['path']} with {args['email']}"


# -- mail, messages, the calendar -----------------------------------------------------------------------------


def _heads(mails: Sequence[Mail]) -> str:
    lines = [f"[{mail.id}] {mail.date} {mail.sender}: {mail.subject}" for mail in mails]
    return "\n".join(lines) or "no mail"


def _list_emails(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    folder = args.get("folder", "inbox")
    return world, _heads([mail for mail in world.inbox if mail.folder == folder])


def _search_emails(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    words = args["query"].lower().split()
    return world, _heads(
        [m for m in world.inbox if all(w in f"{m.sender} {m.subject} {m.body}".lower() for w in words)]
    )


def _mail(world: Environment, key: str) -> Mail:
    found = next((mail for mail in world.inbox if mail.id == key), None)
    if found is None:
        raise Trouble(f"there is no mail {key!r}")
    return found


def _read_email(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    mail = _mail(world, args["id"])
    return (
        world,
        f"From: {mail.sender}\nTo: {', '.join(mail.to)}\nSubject: {mail.subject}\nDate: {mail.date}\n\n{mail.body}",
    )


def _posted(way: str) -> Callable[[Environment, dict[str, Any], Special | None], tuple[Environment, str]]:
    def run(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
        to = (*_recipients(args["to"]), *_recipients(args.get("cc", [])))
        if not to:
            raise Trouble("there is no recipient")
        attached = [f"[{name}]\n{world.read(name)}" for name in args.get("attachments", [])]
        text = "\n".join((args["subject"], args["body"], *attached))
        said = "saved as a draft" if way == "draft" else f"sent to {', '.join(to)}"
        return world.sending(way, to, text), said

    return run


def _recipients(value: str | list[str]) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(one.strip() for one in parts if one.strip())


def _forward(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    mail = _mail(world, args["id"])
    text = f"Fwd: {mail.subject}\n{args.get('comment', '')}\n{mail.body}"
    return world.sending("mail", _recipients(args["to"]), text), f"forwarded to {args['to']}"


def _delete_email(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    gone = _mail(world, args["id"])
    return replace(
        world, inbox=tuple(mail for mail in world.inbox if mail.id != gone.id)
    ), f"deleted {gone.id}"


def _post_message(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    return world.sending("message", (args["channel"],), args["text"]), f"posted to {args['channel']}"


def _list_events(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    day = args.get("day", "")
    lines = [
        f"[{event.id}] {event.start} {event.title} ({', '.join(event.participants)}) {event.description}".rstrip()
        for event in world.events
        if event.start.startswith(day)
    ]
    return world, "\n".join(lines) or "nothing"


def _create_event(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    guests = _recipients(args.get("participants", []))
    event = Event(
        id=f"new{len(world.events) + 1}",
        title=args["title"],
        start=args["start"],
        participants=guests,
        description=args.get("description", ""),
    )
    after = replace(world, events=(*world.events, event))
    if guests:
        after = after.sending("invitation", guests, f"{event.title}\n{event.description}")
    return after, f"created {event.id}"


def _delete_event(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    if all(event.id != args["id"] for event in world.events):
        raise Trouble(f"there is no event {args['id']!r}")
    return replace(
        world, events=tuple(event for event in world.events if event.id != args["id"])
    ), f"deleted {args['id']}"


# -- the web, the database, money -------------------------------------------------------------------------------


def _fetch_url(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    after, status, text = world.requesting("GET", args["url"])
    if status >= 400:  # noqa: PLR2004
        raise Trouble(f"HTTP {status}: {text}")
    return after, text


def _http_post(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    after, status, text = world.requesting("POST", args["url"], args["body"])
    return after, f"HTTP {status}\n{text}"


def _web_search(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    words = set(args["query"].lower().split())
    scored = [(len(words & set(f"{page.title} {page.text}".lower().split())), page) for page in world.pages]
    hits = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return world, "\n".join(f"{page.title or page.url} <{page.url}>" for _, page in hits[:5]) or "no results"


def _execute_sql(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    after, text, _rows = database.execute(world.database, args["sql"], seed=world.seed, now=world.now)
    return replace(world, database=after), text


def _list_tables(world: Environment, _args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    asked = "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"
    return world, database.execute(world.database, asked)[1]


def _get_balance(world: Environment, _args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    spent = sum(one.amount for one in world.sent if one.way == "payment")
    return world, f"{world.balance - spent:.2f}"


def _get_transactions(
    world: Environment, _args: dict[str, Any], _: Special | None
) -> tuple[Environment, str]:
    lines = [f"[{one.id}] {one.date} {one.party} {one.amount:.2f} {one.subject}" for one in world.payments]
    return world, "\n".join(lines) or "none"


def _send_money(world: Environment, args: dict[str, Any], _: Special | None) -> tuple[Environment, str]:
    amount = float(args["amount"])
    if not 0 < amount < 1e9:  # noqa: PLR2004
        raise Trouble("the amount is not one that can be paid")
    new = Payment(
        id=f"new{len(world.payments) + 1}",
        party=args["recipient"],
        amount=-amount,
        subject=args.get("subject", ""),
    )
    after = replace(world, payments=(*world.payments, new))
    return after.sending(
        "payment", (args["recipient"],), new.subject, amount
    ), f"paid {amount:.2f} to {args['recipient']}"


_TO = ("array", "mail addresses")
_LETTER = {
    "to": _TO,
    "subject": ("string", "subject line"),
    "body": ("string", "the text"),
    "cc": ("array", "mail addresses that get a copy"),
    "attachments": ("array", "paths of files to attach"),
}
_PATH = ("string", "path of the file")

_ALL = (
    Tool(
        "bash",
        "Run a command in the shell of the work machine.",
        {"command": ("string", "the command line")},
        ("command",),
        _bash,
    ),
    Tool("read_file", "Read a file.", {"path": _PATH}, ("path",), _read_file),
    Tool(
        "write_file",
        "Write a file, replacing what stood there.",
        {"path": _PATH, "content": ("string", "the text")},
        ("path", "content"),
        _write_file,
    ),
    Tool(
        "edit_file",
        "Replace a text that stands once in a file.",
        {
            "path": _PATH,
            "old_text": ("string", "what stands there"),
            "new_text": ("string", "what is to stand there"),
        },
        ("path", "old_text", "new_text"),
        _edit_file,
    ),
    Tool("delete_file", "Delete a file.", {"path": _PATH}, ("path",), _delete_file),
    Tool(
        "list_directory",
        "List a folder.",
        {"path": ("string", "path of the folder")},
        ("path",),
        _list_directory,
    ),
    Tool(
        "grep_search",
        "Search files for a pattern.",
        {"pattern": ("string", "regular expression"), "path": ("string", "where to search")},
        ("pattern",),
        _grep_search,
    ),
    Tool(
        "share_file",
        "Share a file with somebody by mail address.",
        {"path": _PATH, "email": ("string", "with whom")},
        ("path", "email"),
        _share_file,
    ),
    Tool(
        "list_emails",
        "List the mails of a folder.",
        {"folder": ("string", "inbox, archive, ..")},
        (),
        _list_emails,
    ),
    Tool(
        "search_emails",
        "Search mails for words.",
        {"query": ("string", "words that must all occur")},
        ("query",),
        _search_emails,
    ),
    Tool("read_email", "Read a mail.", {"id": ("string", "its id")}, ("id",), _read_email),
    Tool("send_email", "Send a mail.", _LETTER, ("to", "subject", "body"), _posted("mail")),
    Tool(
        "create_draft",
        "Save a mail as a draft for the user to look over and send.",
        _LETTER,
        ("to", "subject", "body"),
        _posted("draft"),
    ),
    Tool(
        "forward_email",
        "Forward a mail.",
        {"id": ("string", "its id"), "to": _TO, "comment": ("string", "what to say with it")},
        ("id", "to"),
        _forward,
    ),
    Tool("delete_email", "Delete a mail.", {"id": ("string", "its id")}, ("id",), _delete_email),
    Tool(
        "post_message",
        "Post a message to a channel of the team chat.",
        {"channel": ("string", "for example #team"), "text": ("string", "the message")},
        ("channel", "text"),
        _post_message,
    ),
    Tool(
        "list_events",
        "List the entries of the calendar.",
        {"day": ("string", "only those of this day, YYYY-MM-DD")},
        (),
        _list_events,
    ),
    Tool(
        "create_event",
        "Put an entry into the calendar; participants get an invitation.",
        {
            "title": ("string", "title"),
            "start": ("string", "YYYY-MM-DD HH:MM"),
            "participants": _TO,
            "description": ("string", "details"),
        },
        ("title", "start"),
        _create_event,
    ),
    Tool(
        "delete_event",
        "Delete an entry of the calendar.",
        {"id": ("string", "its id")},
        ("id",),
        _delete_event,
    ),
    Tool("fetch_url", "Fetch a web page.", {"url": ("string", "its address")}, ("url",), _fetch_url),
    Tool(
        "http_post",
        "Send a text to an address by HTTP POST.",
        {"url": ("string", "the address"), "body": ("string", "what to send")},
        ("url", "body"),
        _http_post,
    ),
    Tool("web_search", "Search the web.", {"query": ("string", "words")}, ("query",), _web_search),
    Tool(
        "execute_sql",
        "Run one SQL statement (SQLite).",
        {"sql": ("string", "the statement")},
        ("sql",),
        _execute_sql,
    ),
    Tool("list_tables", "List the tables of the database with their columns.", {}, (), _list_tables),
    Tool("get_balance", "Show the balance of the account.", {}, (), _get_balance),
    Tool("get_transactions", "List the payments on the account.", {}, (), _get_transactions),
    Tool(
        "send_money",
        "Pay money from the account.",
        {
            "recipient": ("string", "account or name"),
            "amount": ("number", "in the account's currency"),
            "subject": ("string", "what for"),
        },
        ("recipient", "amount"),
        _send_money,
    ),
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
"""Every tool, by its name."""


def written(args: Mapping[str, Any]) -> str:
    """Return arguments on one line, as people are shown them."""
    return json.dumps(args, ensure_ascii=False)
