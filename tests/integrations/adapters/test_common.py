"""What all adapters have in common: runs, words, and packages that are not there."""

from __future__ import annotations

import gc
import importlib
import sys

import pytest
from tests.integrations.adapters.conftest import noting

from safetydrift.errors import MissingExtraError
from safetydrift.integrations import common
from safetydrift.integrations.common import Gate, proposed, text_of, user_words
from safetydrift.trace import ToolCall


class Run:
    """Stands for what a framework keeps as long as a run."""


class Typed:
    def __init__(self, **fields):
        self.__dict__.update(fields)

    def model_dump(self, mode):
        return dict(self.__dict__)


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("agentdojo", "agentdojo", "agentdojo"),
        ("claude_sdk", "claude_agent_sdk", "claude-sdk"),
        ("inspect", "inspect_ai", "inspect"),
        ("langchain", "langchain", "langchain"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_an_adapter_without_its_framework_names_the_extra(monkeypatch, adapter, package, extra):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"safetydrift.integrations.{adapter}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"pip install 'safetydrift\[{extra}\]'"):
        importlib.import_module(f"safetydrift.integrations.{adapter}")


def test_a_run_is_the_one_given_the_one_around_the_frameworks_own_or_one_of_ours(guard):
    gate = Gate(guard)
    own = gate.key()
    assert own == gate.key()
    assert gate.key("theirs") == "theirs"
    with guard.running("around"):
        assert gate.key("theirs") == "around"
        assert Gate(guard, "given").key("theirs") == "given"
    assert Gate(guard).key() != own


def test_a_run_known_by_an_object_ends_with_it(guard):
    gate, first, second = Gate(guard), Run(), Run()
    assert gate.key_of(first) == gate.key_of(first) != gate.key_of(second)
    del first, second
    gc.collect()
    assert not gate._runs


def test_the_first_words_are_the_task_and_later_ones_are_heard_once(guard, monkeypatch):
    opened, heard = noting(monkeypatch, guard, "session"), noting(monkeypatch, guard, "hear")
    gate = Gate(guard)
    for said in (["a"], ["a"], ["a", "", "b"], ["a", "b"], ["a", "b", "c"]):
        gate.listen("run", said)
    assert opened == [("run", "a")]
    assert heard == [("run", "b"), ("run", "c")]


def test_a_task_that_was_given_comes_before_all_words(guard, monkeypatch):
    opened, heard = noting(monkeypatch, guard, "session"), noting(monkeypatch, guard, "hear")
    gate = Gate(guard, task="given")
    gate.listen("run", ["a"])
    gate.listen("run", ["a", "b"])
    assert opened == [("run", "given")]
    assert heard == [("run", "a"), ("run", "b")]


def test_speaking_again_settles_what_is_under_way(guard, standing):
    gate = Gate(guard)
    gate.listen("run", ["a"])
    gate.propose("run", ToolCall("look"), "1")
    gate.propose("run", ToolCall("pay"), "2", final=False)
    assert standing(guard, "run")[1] == ["1", "2"]
    gate.listen("run", ["a", "b"])
    assert standing(guard, "run")[1:] == ([], {"1": "confirmed", "2": "released"})


def test_a_run_that_could_not_be_opened_is_tried_again(guard, monkeypatch):
    gate = Gate(guard)

    def fail(*_, **__):
        raise OSError("the store is gone")

    with monkeypatch.context() as broken:
        broken.setattr(guard, "session", fail)
        gate.listen("run", ["a"])
    assert gate.propose("run", ToolCall("look"), "1").refused
    gate.listen("run", ["a"])
    assert gate.propose("run", ToolCall("look"), "2").allowed


def test_what_is_remembered_is_bounded(guard, monkeypatch):
    monkeypatch.setattr(common, "_MAX_RUNS", 2)
    monkeypatch.setattr(common, "_MAX_WARNINGS", 2)
    gate = Gate(guard)
    for number in range(4):
        gate.listen(f"run-{number}", ["a"])
        gate.propose(f"run-{number}", ToolCall("peek"), "1")
    assert len(gate._heard) == len(gate._warnings) == 2
    assert gate.warning("run-3", "1")
    assert not gate.warning("run-3", "1")


@pytest.mark.parametrize(
    "arguments", [None, 3, "", "null", "{", b"\xff", '{"a": {"b": 1, "b": 2}}', "[" * 100_000]
)
def test_arguments_in_any_shape_are_a_call(arguments):
    call = proposed("look", arguments, 7)
    assert (call.malformed is None) is (arguments == "")
    assert call.malformed is None or len(call.malformed) <= common.MAX_MALFORMED


def test_words_and_results_are_read_from_tables_and_typed_objects():
    parts = [
        {"type": "text", "text": "b"},
        {"type": "image", "text": 1},
        "c",
        Typed(type="input_text", text="d"),
    ]
    messages = [
        {"role": "system", "content": "no"},
        {"role": "user", "content": "a"},
        Typed(role="user", content=parts),
        Typed(type="human", content="e"),
        {"role": "user", "content": None},
    ]
    assert user_words(messages) == ["a", "b\nc\nd", "e"]
    assert text_of(None) == ""
    assert text_of([Typed(type="text", text="a"), {"text": "b"}]) == "text\na\nb"
    assert text_of(Typed(value="a")) == "a"
    assert text_of({"value": "a"}) == "a"
    assert text_of(3) == "3"
