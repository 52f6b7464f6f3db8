"""A guard whose policy has one tool for each intervention, and guards that are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safetydrift.formats import load_model
from safetydrift.guard import Guard, GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = GuardPolicy(
    when=(
        Rule(Intervention.BLOCK, tools=("drop",), reason="nothing is dropped here"),
        Rule(Intervention.ASK, tools=("pay",), reason="money is asked about"),
        Rule(Intervention.SUGGEST, tools=("post",), reason="nothing is posted here"),
        Rule(Intervention.WARN, tools=("peek",), reason="look away"),
    ),
    otherwise=Intervention.ALLOW,
)


class Tools:
    """Tools that note their calls; `fail` raises."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def make(self, name: str) -> Callable[[str], str]:
        def tool(text: str = "") -> str:
            """Do something with a text."""
            self.made.append((name, text))
            if name == "fail":
                raise OSError("the disk is on fire")
            return f"{name} done"

        tool.__name__ = name
        return tool

    def all(self) -> dict[str, Callable[[str], str]]:
        return {name: self.make(name) for name in ("look", "drop", "pay", "post", "peek", "fail")}


def noting(monkeypatch: pytest.MonkeyPatch, guard: Guard, name: str) -> list[tuple[Any, ...]]:
    """Return a list in which the arguments of every call of a guard's method are noted from now on."""
    noted: list[tuple[Any, ...]] = []
    method = getattr(guard, name)

    def note(*args: Any, **options: Any) -> Any:
        noted.append(args)
        return method(*args, **options)

    monkeypatch.setattr(guard, name, note)
    return noted


@pytest.fixture(scope="session")
def model() -> Any:
    return load_model()


@pytest.fixture
def guard(model: Any) -> Guard:
    return Guard(model, POLICY)


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def broken(model: Any, monkeypatch: pytest.MonkeyPatch) -> Guard:
    """Return a guard that opens runs and cannot judge a single call."""
    guard = Guard(model, POLICY)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the monitor is broken")

    monkeypatch.setattr(type(guard._judging), "judge", fail)
    return guard


@pytest.fixture
def unopenable(model: Any, monkeypatch: pytest.MonkeyPatch) -> Guard:
    """Return a guard that cannot even open a run."""
    guard = Guard(model, POLICY)

    def fail(*_: object, **__: object) -> None:
        raise OSError("the store is gone")

    monkeypatch.setattr(guard, "session", fail)
    return guard


@pytest.fixture
def standing() -> Callable[[Guard, str], tuple[int, list[str], dict[str, str]]]:
    """Return a function that tells of a run: its steps, what is under way, and what became of each call."""

    def look(guard: Guard, key: str) -> tuple[int, list[str], dict[str, str]]:
        session, _ = guard._sessions.read(key)
        statuses = {call_id: str(given.status) for call_id, given in session.answers.items()}
        return session.position.steps, list(session.reserved), statuses

    return look
