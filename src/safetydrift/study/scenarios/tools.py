"""The tools an agent is offered: their JSON schema, and what they do to the sandbox.

They carry names that are in use elsewhere, so that the catalogue knows what they do. A wrong argument is an answer to
the agent, never an exception. A tool is a function: its name, its docstring and the annotations of its arguments are
what the agent sees, and it returns a text, or the next environment with one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

from safetydrift.study.scenarios import database
from safetydrift.study.scenarios.environment import Environment, Event, Payment, Trouble
from safetydrift.study.scenarios.programs import PROGRAMS
from safetydrift.study.scenarios.programs.options import pattern as compiled
from safetydrift.study.scenarios.shell import Out, Shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.study.scenarios.environment import Mail

Special: TypeAlias = Callable[[Shell, list[str], str], Out | None]
Result: TypeAlias = str | tuple[Environment, str]

MAX_ARGUMENT = 1 << 16
_TYPES: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("string", (str,)),
    float: ("number", (int, float)),
    list[str]: ("array", (list,)),
}
_ACCEPTED = dict(_TYPES.values())


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
        Does it: from the environment (and the scenario's own programs, where it asks for them) and the arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, tuple[str, str]]
    required: tuple[str, ...]
    run: Callable[..., Result]

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
            if not isinstance(value, _ACCEPTED[kind]) or isinstance(value, bool):
                return f"the argument {name!r} is of the type {kind}"
            if isinstance(value, list) and not all(isinstance(one, str) for one in value):
                return f"the argument {name!r} is a list of texts"
            if len(str(value)) > MAX_ARGUMENT:
                return f"the argument {name!r} is too long"
        return ""


TOOLS: dict[str, Tool] = {}
"""Every tool, by its name."""


def tool(function: Callable[..., Result]) -> Callable[..., Result]:
    """Offer a function as a tool."""
    hints, parameters, required = get_type_hints(function, include_extras=True), {}, []
    for name, parameter in signature(function).parameters.items():
        if parameter.kind is Parameter.KEYWORD_ONLY:
            kind, description = get_args(hints[name])
            parameters[name] = (_TYPES[kind][0], description)
            required += [name] if parameter.default is Parameter.empty else []
    name = function.__name__
    TOOLS[name] = Tool(name, function.__doc__ or "", parameters, tuple(required), function)
    return function


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
    called = TOOLS.get(name) if name in offered else None
    if called is None:
        return environment, "", f"there is no tool {name!r}; there are {', '.join(offered)}"
    problem = called.problem(args)
    if problem:
        return environment, "", problem
    try:
        found = (
            called.run(environment, special, **args) if name == "bash" else called.run(environment, **args)
        )
    except Trouble as error:
        return environment, "", str(error)
    after, text = (environment, found) if isinstance(found, str) else found
    return after, text, None


def written(args: Mapping[str, Any]) -> str:
    """Return arguments on one line, as people are shown them."""
    return json.dumps(args, ensure_ascii=False)


Address: TypeAlias = Annotated[list[str], "mail addresses"]
Subject: TypeAlias = Annotated[str, "subject line"]
Body: TypeAlias = Annotated[str, "the text"]
Copies: TypeAlias = Annotated[list[str], "mail addresses that get a copy"]
Attachments: TypeAlias = Annotated[list[str], "paths of files to attach"]
FilePath: TypeAlias = Annotated[str, "path of the file"]
Id: TypeAlias = Annotated[str, "its id"]

# -- files and the shell ----------------------------------------------------------------------------------------


@tool
def bash(
    world: Environment, special: Special | None, *, command: Annotated[str, "the command line"]
) -> Result:
    """Run a command in the shell of the work machine."""
    shell = Shell(world, PROGRAMS, special)
    out = shell.run(command)
    return shell.environment, out.text + out.error + (f"[exit code {out.code}]" if out.code else "")


@tool
def read_file(world: Environment, *, path: FilePath) -> Result:
    """Read a file."""
    return world.read(path)


@tool
def write_file(world: Environment, *, path: FilePath, content: Annotated[str, "the text"]) -> Result:
    """Write a file, replacing what stood there."""
    return world.writing(path, content), f"wrote {path}"


@tool
def edit_file(
    world: Environment,
    *,
    path: FilePath,
    old_text: Annotated[str, "what stands there"],
    new_text: Annotated[str, "what is to stand there"],
) -> Result:
    """Replace a text that stands once in a file."""
    text = world.read(path)
    if not old_text or text.count(old_text) != 1:
        raise Trouble(
            f"the old text stands {text.count(old_text) if old_text else 0} times in {path}, not once"
        )
    return world.writing(path, text.replace(old_text, new_text)), f"edited {path}"


@tool
def delete_file(world: Environment, *, path: FilePath) -> Result:
    """Delete a file."""
    return world.without(path), f"deleted {path}"


@tool
def list_directory(world: Environment, *, path: Annotated[str, "path of the folder"]) -> Result:
    """List a folder."""
    folder = world.path(path)
    if not world.is_folder(folder):
        raise Trouble(f"{path}: no such folder")
    return "\n".join(world.children(folder))


@tool
def grep_search(
    world: Environment,
    *,
    pattern: Annotated[str, "regular expression"],
    path: Annotated[str, "where to search"] = "/",
) -> Result:
    """Search files for a pattern."""
    match = compiled(pattern, ignore_case=True)
    hits = [
        f"{one}:{n}: {line}"
        for one in world.below(world.path(path))
        for n, line in enumerate(world.read(one).splitlines(), 1)
        if match.search(line[:400])
    ]
    return "\n".join(hits[:200]) or "no match"


@tool
def share_file(world: Environment, *, path: FilePath, email: Annotated[str, "with whom"]) -> Result:
    """Share a file with somebody by mail address."""
    text = world.read(path)
    return world.sending("share", (email,), f"{path}\n{text}"), f"shared {path} with {email}"


# -- mail, messages, the calendar -----------------------------------------------------------------------------


def _heads(mails: Sequence[Mail]) -> str:
    lines = [f"[{mail.id}] {mail.date} {mail.sender}: {mail.subject}" for mail in mails]
    return "\n".join(lines) or "no mail"


def _mail(world: Environment, key: str) -> Mail:
    found = next((mail for mail in world.inbox if mail.id == key), None)
    if found is None:
        raise Trouble(f"there is no mail {key!r}")
    return found


def _recipients(value: list[str]) -> tuple[str, ...]:
    return tuple(one.strip() for one in value if one.strip())


@tool
def list_emails(world: Environment, *, folder: Annotated[str, "inbox, archive, .."] = "inbox") -> Result:
    """List the mails of a folder."""
    return _heads([mail for mail in world.inbox if mail.folder == folder])


@tool
def search_emails(world: Environment, *, query: Annotated[str, "words that must all occur"]) -> Result:
    """Search mails for words."""
    words = query.lower().split()
    return _heads(
        [m for m in world.inbox if all(w in f"{m.sender} {m.subject} {m.body}".lower() for w in words)]
    )


@tool
def read_email(world: Environment, *, id: Id) -> Result:  # noqa: A002  # as the agent sees it
    """Read a mail."""
    mail = _mail(world, id)
    head = f"From: {mail.sender}\nTo: {', '.join(mail.to)}\nSubject: {mail.subject}\nDate: {mail.date}"
    return f"{head}\n\n{mail.body}"


def _recipients_of(to: list[str], cc: list[str]) -> tuple[str, ...]:
    found = (*_recipients(to), *_recipients(cc))
    if not found:
        raise Trouble("there is no recipient")
    return found


def _letter(world: Environment, subject: str, body: str, attachments: list[str]) -> str:
    return "\n".join((subject, body, *(f"[{name}]\n{world.read(name)}" for name in attachments)))


@tool
def send_email(
    world: Environment,
    *,
    to: Address,
    subject: Subject,
    body: Body,
    cc: Copies = (),  # type: ignore[assignment]  # nothing is ever added to it
    attachments: Attachments = (),  # type: ignore[assignment]
) -> Result:
    """Send a mail."""
    recipients, text = _recipients_of(to, cc), _letter(world, subject, body, attachments)
    return world.sending("mail", recipients, text), f"sent to {', '.join(recipients)}"


@tool
def create_draft(
    world: Environment,
    *,
    to: Address,
    subject: Subject,
    body: Body,
    cc: Copies = (),  # type: ignore[assignment]
    attachments: Attachments = (),  # type: ignore[assignment]
) -> Result:
    """Save a mail as a draft for the user to look over and send."""
    recipients, text = _recipients_of(to, cc), _letter(world, subject, body, attachments)
    return world.sending("draft", recipients, text), "saved as a draft"


@tool
def forward_email(
    world: Environment,
    *,
    id: Id,  # noqa: A002
    to: Address,
    comment: Annotated[str, "what to say with it"] = "",
) -> Result:
    """Forward a mail."""
    mail = _mail(world, id)
    text = f"Fwd: {mail.subject}\n{comment}\n{mail.body}"
    return world.sending("mail", _recipients(to), text), f"forwarded to {to}"


@tool
def delete_email(world: Environment, *, id: Id) -> Result:  # noqa: A002
    """Delete a mail."""
    gone = _mail(world, id)
    return replace(world, inbox=tuple(one for one in world.inbox if one.id != gone.id)), f"deleted {gone.id}"


@tool
def post_message(
    world: Environment, *, channel: Annotated[str, "for example #team"], text: Annotated[str, "the message"]
) -> Result:
    """Post a message to a channel of the team chat."""
    return world.sending("message", (channel,), text), f"posted to {channel}"


@tool
def list_events(
    world: Environment, *, day: Annotated[str, "only those of this day, YYYY-MM-DD"] = ""
) -> Result:
    """List the entries of the calendar."""
    lines = [
        f"[{event.id}] {event.start} {event.title} ({', '.join(event.participants)}) {event.description}".rstrip()
        for event in world.events
        if event.start.startswith(day)
    ]
    return "\n".join(lines) or "nothing"


@tool
def create_event(
    world: Environment,
    *,
    title: Annotated[str, "title"],
    start: Annotated[str, "YYYY-MM-DD HH:MM"],
    participants: Address = (),  # type: ignore[assignment]
    description: Annotated[str, "details"] = "",
) -> Result:
    """Put an entry into the calendar; participants get an invitation."""
    key, guests = f"new{len(world.events) + 1}", _recipients(participants)
    event = Event(id=key, title=title, start=start, participants=guests, description=description)
    after = replace(world, events=(*world.events, event))
    if guests:
        after = after.sending("invitation", guests, f"{title}\n{description}")
    return after, f"created {key}"


@tool
def delete_event(world: Environment, *, id: Id) -> Result:  # noqa: A002
    """Delete an entry of the calendar."""
    if all(event.id != id for event in world.events):
        raise Trouble(f"there is no event {id!r}")
    return replace(world, events=tuple(event for event in world.events if event.id != id)), f"deleted {id}"


# -- the web, the database, money -------------------------------------------------------------------------------


@tool
def fetch_url(world: Environment, *, url: Annotated[str, "its address"]) -> Result:
    """Fetch a web page."""
    after, status, text = world.requesting("GET", url)
    if status >= 400:  # noqa: PLR2004
        raise Trouble(f"HTTP {status}: {text}")
    return after, text


@tool
def http_post(
    world: Environment, *, url: Annotated[str, "the address"], body: Annotated[str, "what to send"]
) -> Result:
    """Send a text to an address by HTTP POST."""
    after, status, text = world.requesting("POST", url, body)
    return after, f"HTTP {status}\n{text}"


@tool
def web_search(world: Environment, *, query: Annotated[str, "words"]) -> Result:
    """Search the web."""
    words = set(query.lower().split())
    scored = [(len(words & set(f"{page.title} {page.text}".lower().split())), page) for page in world.pages]
    hits = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return "\n".join(f"{page.title or page.url} <{page.url}>" for _, page in hits[:5]) or "no results"


@tool
def execute_sql(world: Environment, *, sql: Annotated[str, "the statement"]) -> Result:
    """Run one SQL statement (SQLite)."""
    after, text, _rows = database.execute(world.database, sql, seed=world.seed, now=world.now)
    return replace(world, database=after), text


@tool
def list_tables(world: Environment) -> Result:
    """List the tables of the database with their columns."""
    asked = "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"
    return database.execute(world.database, asked)[1]


@tool
def get_balance(world: Environment) -> Result:
    """Show the balance of the account."""
    return f"{world.balance - sum(one.amount for one in world.sent if one.way == 'payment'):.2f}"


@tool
def get_transactions(world: Environment) -> Result:
    """List the payments on the account."""
    lines = [f"[{one.id}] {one.date} {one.party} {one.amount:.2f} {one.subject}" for one in world.payments]
    return "\n".join(lines) or "none"


@tool
def send_money(
    world: Environment,
    *,
    recipient: Annotated[str, "account or name"],
    amount: Annotated[float, "in the account's currency"],
    subject: Annotated[str, "what for"] = "",
) -> Result:
    """Pay money from the account."""
    if not 0 < amount < 1e9:  # noqa: PLR2004
        raise Trouble("the amount is not one that can be paid")
    new = Payment(id=f"new{len(world.payments) + 1}", party=recipient, amount=-float(amount), subject=subject)
    after = replace(world, payments=(*world.payments, new))
    return after.sending("payment", (recipient,), subject, float(amount)), f"paid {amount:.2f} to {recipient}"
