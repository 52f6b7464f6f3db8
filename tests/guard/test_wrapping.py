"""Guarded functions: what they are called, what they take and give, and what stops them."""

import asyncio
import inspect

import pytest

from safetydrift.errors import CallRefusedError
from safetydrift.guard import Approver, GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

NEVER = GuardPolicy(never=(Rule(Intervention.BLOCK, tools=("bad*",), reason="bad things are not done"),))
MADE: list[object] = []


def get_balance(account: str, *, currency: str = "EUR", **more: object) -> str:
    """Return what is on an account."""
    MADE.append((account, currency, more))
    return "5"


def bad_idea(what):
    MADE.append(what)


async def get_news(topic: str = "all") -> str:
    """Return news."""
    return f"nothing about {topic}"


async def bad_news():
    MADE.append("bad news")


@pytest.fixture(autouse=True)
def made():
    MADE.clear()
    return MADE


def test_names_signatures_and_kinds_stay(make):
    guard = make()
    balance, news = guard.wrap([get_balance, get_news])
    assert (balance.__name__, balance.__doc__) == ("get_balance", "Return what is on an account.")
    assert inspect.signature(balance) == inspect.signature(get_balance)
    assert inspect.iscoroutinefunction(news)
    assert not inspect.iscoroutinefunction(balance)
    assert balance("a", currency="USD", note=1) == "5"
    assert MADE == [("a", "USD", {"note": 1})]
    assert asyncio.run(news(topic="anna")) == "nothing about anna"
    assert {"get_balance", "get_news"} <= guard.tools


@pytest.mark.parametrize("shape", [list, tuple])
def test_tools_come_back_in_the_shape_they_were_given_in(make, shape):
    wrapped = make().wrap(shape([get_balance]))
    assert type(wrapped) is shape
    assert make().wrap({"other": get_balance})["other"]("a") == "5"


def test_a_refused_function_does_not_run_and_says_why(make):
    guard = make(NEVER)
    with pytest.raises(CallRefusedError, match="bad things") as raised:
        guard.wrap(bad_idea)("x")
    assert getattr(raised.value.decision, "refused", False)
    with pytest.raises(PermissionError):
        asyncio.run(guard.wrap(bad_news)())
    assert "bad things" in guard.wrap(bad_idea, refusals="return")("x")
    assert MADE == []


def test_calls_of_one_guard_make_one_run(make):
    guard = make()
    balance = guard.wrap(get_balance, key="run", task="What do I have?", category="banking")
    for _ in range(3):
        balance("a")
    assert guard.current("run")[0].steps == 3


def test_calls_belong_to_the_run_around_them(make):
    guard = make()
    balance = guard.tool(get_balance)
    with guard.running("one", "What do I have?"):
        balance("a")

    async def two():
        async with guard.running("two"):
            await guard.wrap(get_news)()

    asyncio.run(two())
    balance("a")
    assert [guard.current(key)[0].steps for key in ("one", "two")] == [1, 1]


def test_a_function_that_fails_has_failed(make):
    guard = make()

    def breaks(path):
        raise OSError(path)

    async def breaks_later(path):
        raise OSError(path)

    with pytest.raises(OSError, match="x"):
        guard.wrap(breaks, key="run")("x")
    with pytest.raises(OSError, match="y"):
        asyncio.run(guard.wrap(breaks_later, key="run")("y"))
    state, _ = guard.current("run")
    assert state.steps == 2
    assert not guard.store.read("run")[0].reserved


def test_arguments_that_do_not_fit_are_the_functions_own_error(make):
    with pytest.raises(TypeError, match="argument"):
        make().wrap(get_balance)()


def test_where_nobody_can_be_asked_the_answer_is_no(make):
    ask = GuardPolicy(when=(Rule(Intervention.ASK),))
    for guard in (make(ask), make(ask, approver=Approver())):
        with pytest.raises(CallRefusedError, match="Nobody answered"):
            guard.wrap(get_balance)("a")
        with pytest.raises(CallRefusedError):
            asyncio.run(guard.wrap(get_news)())
    assert make(ask, approver=Approver(lambda *_: True)).wrap(get_balance)("a") == "5"


def test_a_warning_stands_behind_a_text_and_nowhere_else(make):
    guard = make(GuardPolicy(when=(Rule(Intervention.WARN, reason="careful"),)))
    assert guard.wrap(get_balance)("a").startswith("5\n\n[SafetyDrift: careful")
    assert guard.wrap(lambda: 7, name="seven")() == 7


def test_what_cannot_be_called_is_no_tool(make):
    with pytest.raises(TypeError, match="no tool"):
        make().wrap([5])
    with pytest.raises(ValueError, match="raised or returned"):
        make().wrap(get_balance, refusals="ignore")


def test_a_run_that_cannot_be_opened_stops_the_call(make, monkeypatch):
    guard = make()
    monkeypatch.setattr(type(guard.store), "write", lambda *_: False)
    with pytest.raises(CallRefusedError):
        guard.wrap(get_balance, key="run")("a")
    assert MADE == []
