"""A scenario: the data model, and checked reading of its TOML."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import ScenarioError
from safetydrift.study.scenarios import database
from safetydrift.study.scenarios.checks import Condition, Violation  # noqa: TC001  # read by msgspec
from safetydrift.study.scenarios.environment import (
    GUARDED,
    Endpoint,
    Environment,
    Event,
    File,
    Item,
    Mail,
    Page,
    Part,
    Payment,
)
from safetydrift.study.scenarios.shell import Out
from safetydrift.study.scenarios.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from safetydrift.study.scenarios.shell import Shell

FORMAT = "safetydrift.scenario/1"
RISKS = ("safe", "mild", "elevated", "critical")
FEWEST_TOOLS, MOST_TOOLS = 3, 5
_MAX_FILE = 1 << 20


class Table(Item, frozen=True, kw_only=True):
    """A table of the database: columns as ``CREATE TABLE`` has them, and rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = ()


class Case(Part, frozen=True, kw_only=True):
    """What a program of a scenario's own does when its conditions hold.

    Parameters
    ----------
    says, code
        What it prints, and its exit code.
    puts, removes, services
        Files it writes and deletes, and services it puts into a state.
    sends, carries
        An address it sends the files matching these globs to.
    """

    when: tuple[Condition, ...] = ()
    says: str = ""
    code: int = 0
    puts: tuple[File, ...] = ()
    removes: tuple[str, ...] = ()
    services: dict[str, str] = msgspec.field(default_factory=dict)
    sends: str = ""
    carries: tuple[str, ...] = ()


class Command(Part, frozen=True, kw_only=True):
    """A program of a scenario's own (a test run, a deployment): a glob of its command line, and its cases.

    The first case whose conditions hold is what happens. Such a program is a stub, and is said to be one: it runs
    nothing.
    """

    run: str
    cases: tuple[Case, ...]


class Way(Part, frozen=True, kw_only=True):
    """A way through a scenario: calls, each a table with the tool under ``call`` and its arguments beside it."""

    why: str
    script: tuple[dict[str, Any], ...]
    answer: str = ""


class SafePath(Way, frozen=True, kw_only=True):
    """A way that completes the task without violation.

    Parameters
    ----------
    risk
        The highest risk level of the paper's twelve rules that any state on the way reaches.
    """

    risk: Literal["safe", "mild", "elevated", "critical"]


class Drift(Way, frozen=True, kw_only=True):
    """A way that ends in a violation of the documented kind."""

    name: str
    kind: str


class Scenario(Part, frozen=True, kw_only=True):
    """A task, its world, the ways through it, and what tells them apart.

    Parameters
    ----------
    id
        ``category/name``.
    task
        What the user asks for, in their words.
    tools
        The tools that are offered, 3 to 5.
    inside
        Domains of the organisation.
    allowed
        Globs of recipients outside who may have what is guarded.
    published
        Globs of files that everybody outside can read.
    done
        Conditions that all hold when the task is done.
    violations
        Violations beside the leaks, which follow from what items guard.
    safe, drifts
        The documented ways.
    """

    format: str
    id: str
    title: str
    category: str
    difficulty: Literal["easy", "medium", "hard"]
    task: str
    tools: tuple[str, ...]
    done: tuple[Condition, ...]
    safe: SafePath
    drifts: tuple[Drift, ...]
    violations: tuple[Violation, ...] = ()
    inside: tuple[str, ...] = ("harbourline.example",)
    allowed: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    cwd: str = "/work"
    sudo: bool = False
    balance: float = 0.0
    folders: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    mails: tuple[Mail, ...] = ()
    pages: tuple[Page, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    events: tuple[Event, ...] = ()
    payments: tuple[Payment, ...] = ()
    tables: tuple[Table, ...] = ()
    statements: tuple[str, ...] = ()
    services: dict[str, str] = msgspec.field(default_factory=dict)
    commands: tuple[Command, ...] = ()

    def environment(self, seed: int = 0) -> Environment:
        """Return the sandbox as the agent finds it.

        Parameters
        ----------
        seed
            What the sandbox draws chance from.
        """
        rows = [(one.name, one.columns, one.rows) for one in self.tables]
        return Environment(
            files={file.path: file for file in self.files},
            folders=frozenset((*self.folders, self.cwd)),
            inbox=self.mails,
            pages=self.pages,
            endpoints=self.endpoints,
            events=self.events,
            payments=self.payments,
            services=self.services,
            database=database.build(rows, self.statements) if rows else b"",
            balance=self.balance,
            cwd=self.cwd,
            sudo=self.sudo,
            seed=seed,
        )

    def boundary(self) -> Boundary:
        """Return who and what is inside the organisation."""
        return Boundary(domains=self.inside)

    def items(self) -> Iterator[tuple[Item, str]]:
        """Yield everything that holds information, each with its text."""
        for file in self.files:
            yield file, file.text
        for mail in self.mails:
            yield mail, f"{mail.subject}\n{mail.body}"
        for page in self.pages:
            yield page, page.text
        for event in self.events:
            yield event, f"{event.title}\n{event.description}"
        for payment in self.payments:
            yield payment, f"{payment.party} {payment.amount:.2f} {payment.subject}"
        for table in self.tables:
            yield table, "\n".join(" | ".join(map(str, row)) for row in table.rows)

    def guards(self) -> list[tuple[str, str]]:
        """Return sensitivity and text of everything that must not leave."""
        return [(item.sensitivity, text) for item, _ in self.items() for text in item.guards]

    def special(self, before: Environment) -> Any:
        """Return the scenario's own programs, as the shell asks for them.

        Parameters
        ----------
        before
            The environment at the beginning of the run, which conditions compare with.
        """

        def run(shell: Shell, words: list[str], _stdin: str) -> Out | None:
            line = " ".join(words)
            for command in self.commands:
                if fnmatchcase(line, command.run):
                    return _ran(shell, command, before)
            return None

        return run

    def problems(self) -> list[str]:
        """Return what is wrong with the data itself, before anything is played."""
        found = []
        if self.format != FORMAT:
            found.append(f"its format is {self.format!r}, not {FORMAT!r}")
        if not FEWEST_TOOLS <= len(self.tools) <= MOST_TOOLS:
            found.append(f"it offers {len(self.tools)} tools; {FEWEST_TOOLS} to {MOST_TOOLS} are right")
        found += [f"there is no tool {name!r}" for name in self.tools if name not in TOOLS]
        found += [] if self.drifts else ["it has no drift opportunity"]
        found += [] if self.done else ["nothing says when the task is done"]
        found += [f"{kind!r} is no kind of violation" for kind in self._kinds() if kind not in KINDS]
        for item, text in self.items():
            if (item.sensitivity in GUARDED) != bool(item.guards):
                found.append(
                    f"an item that is {item.sensitivity} guards {len(item.guards)} texts: {text[:40]!r}"
                )
            found += [
                f"a guarded text does not stand in its item: {one!r}"
                for one in item.guards
                if one not in text
            ]
        conditions = [*self.done, *[one for violation in self.violations for one in violation.when]]
        found += [
            f"a condition names {one.places()} places, not one" for one in conditions if one.places() != 1
        ]
        for way in (self.safe, *self.drifts):
            found += [
                f"a step calls {step.get('call')!r}, which is not offered"
                for step in way.script
                if step.get("call") not in self.tools
            ]
        return found

    def _kinds(self) -> set[str]:
        return {drift.kind for drift in self.drifts} | {violation.kind for violation in self.violations}


def _ran(shell: Shell, command: Command, before: Environment) -> Out:
    for case in command.cases:
        if all(one.holds(shell.environment, before) for one in case.when):
            return _did(shell, case)
    return Out(error=f"{command.run}: nothing happens\n", code=1)


def _did(shell: Shell, case: Case) -> Out:
    world = shell.environment
    for file in case.puts:
        world = world.with_file(file)
    for path in case.removes:
        world = world.without(path, folders=True) if world.below(path) else world
    world = replace(world, services={**world.services, **case.services})
    if case.sends:
        texts = [
            file.text
            for path, file in sorted(world.files.items())
            if any(fnmatchcase(path, one) for one in case.carries)
        ]
        world = world.sending("http", (case.sends,), "\n".join(texts))
    shell.environment = world
    return Out(case.says if not case.code else "", case.says if case.code else "", case.code)


def read_scenario(text: str, where: str) -> Scenario:
    """Return the scenario in a TOML text.

    Raises
    ------
    ScenarioError
        If it is none; the message says where and what.
    """
    try:
        return msgspec.convert(tomllib.loads(text), Scenario)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise ScenarioError(f"{where}: {error}") from error


def load_scenario(name: str | Path) -> Scenario:
    """Return a scenario: a shipped one by its id, or one in a file.

    Raises
    ------
    ScenarioError
        If there is none of that name, or the file is no scenario.
    """
    if isinstance(name, str) and (shipped := _shipped().get(name)) is not None:
        return read_scenario(shipped.read_text("utf-8"), name)
    path = Path(name)
    try:
        if path.stat().st_size > _MAX_FILE:
            raise ScenarioError(f"{path}: more than a scenario can be")
        return read_scenario(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        why = "no shipped scenario of that id, and no file" if not path.exists() else str(error)
        raise ScenarioError(f"{name}: {why}; `safetydrift study scenario list` names them") from error


def load_scenarios(category: str = "") -> tuple[Scenario, ...]:
    """Return the shipped scenarios, in the order of their ids; only those of a category if one is named."""
    found = (
        load_scenario(name) for name in sorted(_shipped()) if name.startswith(category and f"{category}/")
    )
    return tuple(found)


def _shipped() -> dict[str, Traversable]:
    root = resources.files(__package__) / "data"
    return {
        f"{folder.name}/{file.name.removesuffix('.toml')}": file
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }
