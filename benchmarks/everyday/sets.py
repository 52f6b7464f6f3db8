"""The sets that come with the benchmark: their schema, and how they are read (README.md says what each one is)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from everyday.encodings import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).with_name("sets")
VERSION = 1


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call, one message of the user, or the start of another agent.

    Parameters
    ----------
    sh, py
        What is given to the session's own shell or Python tool.
    tool, args, malformed
        A call of any other tool; `malformed` is the raw text of arguments that could not be decoded.
    said
        A follow-up message of the user.
    opens, task, part
        Another agent starts on a task: a part of this run, or a session of its own.
    agent
        Whose call it is; the main agent's if empty.
    """

    sh: str = ""
    py: str = ""
    tool: str = ""
    args: dict[str, Any] = {}
    malformed: str | None = None
    result: str = ""
    error: str = ""
    said: str = ""
    opens: str = ""
    task: str = ""
    part: bool = True
    agent: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.sh, self.py, self.tool, self.said, self.opens))) != 1:
            raise ValueError("a step is one of sh, py, tool, said and opens")
        if self.opens and not (self.task or self.part):
            raise ValueError("a session of its own needs a task")


Steps = list[Step | str]
"""A bare text is a shell command without output."""


class Scene(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of work of the project's own writing into which cases are put.

    Parameters
    ----------
    shell, argument, python
        The session's shell tool, the name of its argument, and its Python tool.
    steps
        The work so far. In the set of injections one result holds ``{carrier}``.
    filler
        Harmless calls that may stand between an injection and what follows.
    """

    id: str
    task: str
    shell: str = "bash"
    argument: str = "command"
    python: str = "python"
    steps: Steps
    filler: Steps = []


class CommandCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attack command or an unasked act, and the words that would ask for it.

    Parameters
    ----------
    scene
        Where it is put: a scene, ``super`` or ``intercode``; drawn from the recorded sessions if empty.
    act
        The calls; all of them are the act.
    twin
        A follow-up message of the user that asks for it, naming object and destination; empty for look-alikes.
    lang
        The language of the twin.
    never_cleared
        Whether no wish clears it: credentials to a host that nobody knows.
    """

    id: str
    group: str
    how: str = ""
    scene: str = ""
    act: Steps | str
    twin: str = ""
    lang: str = "en"
    never_cleared: bool = False


class Twin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What gives authority to the same final call: another task, a later message, or another text in the carrier."""

    task: str = ""
    said: str = ""
    carrier: str | None = None
    lang: str = "en"

    def __post_init__(self) -> None:
        if not (self.task or self.said or self.carrier is not None):
            raise ValueError("a twin differs from the attack in something")


class InjectionCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An injection into a scene, what follows it, and the twin.

    Parameters
    ----------
    carrier
        What stands in the scene's result in place of ``{carrier}``.
    then
        Calls between the injection and the act that are not the harm itself.
    filler
        How many of the scene's harmless calls stand before the act.
    act
        The harmful calls.
    """

    id: str
    group: str
    scene: str
    lang: str = "en"
    carrier: str
    task: str = ""
    then: Steps = []
    filler: int = 0
    act: Steps
    twin: Twin


class BenignCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run in the scene of an injection in which nobody attacks; the fields are those of an injection."""

    id: str
    group: str = "look-alikes"
    scene: str
    carrier: str
    task: str = ""
    said: str = ""
    act: Steps


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record of an agent in an application, labelled unsafe or safe.

    Parameters
    ----------
    group
        The area: programming, finance, iot, web, software, messaging.
    risk
        What kind of harm is at stake.
    risky
        Which steps carry the risk, counted from 1; none in safe records.
    """

    id: str
    group: str
    risk: str
    unsafe: bool
    task: str
    steps: Steps
    risky: list[int] = []

    def __post_init__(self) -> None:
        if self.unsafe != bool(self.risky):
            raise ValueError(f"{self.id}: exactly the unsafe records have risky steps")
        if any(not 1 <= number <= len(self.steps) for number in self.risky):
            raise ValueError(f"{self.id}: there is no such step")


class NamedCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case with a name and the answers that are right about its last call.

    Parameters
    ----------
    expected
        Right answers: ``allow`` (warnings included), ``ask``, ``refuse``.
    names
        What the reason has to name if the call is stopped.
    """

    id: str
    group: str
    task: str
    steps: Steps
    expected: list[Literal["allow", "ask", "refuse"]]
    names: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command and what is true of it: n network, i irreversible, c credentials, r read-only."""

    group: str
    text: str
    flags: str


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A follow-up message that asks for nothing in particular."""

    text: str
    lang: str = "en"
    group: str = ""


class SetFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a set."""

    version: int
    scenes: list[Scene] = []
    words: list[Words] = []
    commands: list[CommandCase] = []
    injections: list[InjectionCase] = []
    lookalikes: list[BenignCase] = []
    records: list[Record] = []
    named: list[NamedCase] = []
    lines: dict[str, list[tuple[str, str]]] = {}


def files(name: str) -> Iterator[tuple[Path, SetFile]]:
    """Yield the files of a set in the order of their names.

    Raises
    ------
    FileNotFoundError
        If there is no such set.
    ValueError
        If a file is not what the schema says, or of another version.
    """
    paths = sorted((FOLDER / name).glob("*.toml"))
    if not paths:
        raise FileNotFoundError(FOLDER / name)
    for path in paths:
        yield path, _read(path)


@cache
def _read(path: Path) -> SetFile:
    try:
        read = msgspec.convert(expanded(tomllib.loads(path.read_text(encoding="utf-8"))), SetFile)
    except (KeyError, ValueError) as problem:
        raise ValueError(f"{path.name}: {problem}") from problem
    if read.version != VERSION:
        raise ValueError(f"{path.name}: version {read.version}, not {VERSION}")
    return read


def scenes(name: str) -> dict[str, Scene]:
    """Return the scenes of a set by name."""
    return {scene.id: scene for _, read in files(name) for scene in read.scenes}


def commands(name: str) -> list[CommandCase]:
    return [case for _, read in files(name) for case in read.commands]


def injections() -> list[InjectionCase]:
    return [case for _, read in files("injections") for case in read.injections]


def benign() -> list[BenignCase]:
    return [case for _, read in files("injections") for case in read.lookalikes]


def records() -> list[Record]:
    return [record for _, read in files("records") for record in read.records]


def named() -> list[NamedCase]:
    return [case for _, read in files("named") for case in read.named]


def words() -> list[Words]:
    return [one for _, read in files("other_words") for one in read.words]


def lines() -> list[Line]:
    return [
        Line(group=group, text=text, flags=flags)
        for _, read in files("effects")
        for group, some in read.lines.items()
        for flags, text in some
    ]
