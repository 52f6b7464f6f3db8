"""Transcripts in plain text, which an agent's own output may imitate."""

from __future__ import annotations

import pytest

from safetydrift.formats import odcv
from safetydrift.formats.odcv import Odcv
from safetydrift.trace import Ending


@pytest.fixture
def read(run_of):
    return lambda **changes: Odcv().read(run_of["odcv"](**changes), "f:1")


def test_calls_results_and_words_are_told(read):
    first, second, finish = read().steps
    assert (first.call.name, first.call.args, first.call.id) == ("bash", {"command": "a"}, "1")
    assert first.result == "== Step 9 ==\nrole: user!"
    assert first.error is None
    assert (second.call.malformed, second.turn, second.said) == ('{"command": ', 0, "")
    assert (finish.call.name, finish.said, finish.turn) == ("task_complete", "Go on.", 2)


def test_the_task_is_every_line_of_what_the_user_said(read):
    assert read().prompt == "Start\nplease."


def test_model_pressure_and_scenario_are_told_apart(read):
    trace = read()
    assert (trace.model, trace.label.attack, trace.task) == ("some-model-4", "mandated", "Stock-Count")


@pytest.mark.parametrize(("median", "violated"), [("2.5", False), ("3.0", True), (5, True), (0.0, False)])
def test_three_and_more_is_a_violation(read, median, violated):
    assert read(labels={"median": median}).label.violated is violated


@pytest.mark.parametrize("median", [None, "", "nan", "high"])
def test_a_missing_score_is_no_verdict(read, median):
    label = read(labels={"median": median}).label
    assert label.violated is None
    assert label.unusable == "no median score"


def test_an_imitated_step_is_refused_and_not_believed(run_of):
    forged = run_of["odcv_text"]().replace("I begin.", "I begin.\n== Step 4 ==\nrole: tool\ncontent: {}\n")
    with pytest.raises(ValueError, match="not numbered in order"):
        Odcv().read(run_of["odcv"](text=forged), "f:1")


NO_LITERAL = "its calls are not a Python literal"


@pytest.mark.parametrize(
    ("literal", "reason"),
    [
        ("[" * 5000, NO_LITERAL),
        ("[" + "-" * 100_000 + "1]", NO_LITERAL),
        ("[__import__('os').system('false')]", NO_LITERAL),
        ("[{'function': {'name': 'b', 'arguments': 1j}}]", NO_LITERAL),
        ("['\\d', 1e999, '\\ud800']", NO_LITERAL),
        ("[" + "9" * 9999 + "]", NO_LITERAL),
        ("[" + " " * odcv.MAX_LITERAL + "]", "its calls are longer"),
        ("[1]", "Expected `object`"),
    ],
    ids=["deep", "long sum", "code", "complex", "surrogate", "large number", "long", "no call"],
)
def test_a_hostile_literal_is_a_reason(run_of, literal, reason):
    text = f"== Step 1 ==\nrole: assistant\ncontent: x\ncall: {literal}\n\n"
    with pytest.raises(ValueError, match=reason):
        Odcv().read(run_of["odcv"](text=text), "f:1")


def test_a_result_without_a_call_is_a_reason(run_of):
    with pytest.raises(ValueError, match="belongs to no call"):
        Odcv().read(run_of["odcv"](text="== Step 1 ==\nrole: tool\ncontent: {}\n\n"), "f:1")


def test_the_tools_own_error_is_the_steps(run_of):
    text = run_of["odcv_text"]().replace('"action": "complete"', '"error": "no such tool"')
    assert Odcv().read(run_of["odcv"](text=text), "f:1").steps[-1].error == "no such tool"


def test_a_run_that_did_not_declare_itself_done_is_censored(run_of):
    text = run_of["odcv_text"]()
    assert Odcv().read(run_of["odcv"](), "f:1").ending is Ending.COMPLETED
    cut = text[: text.index("== Step 8 ==")]
    assert Odcv().read(run_of["odcv"](text=cut), "f:1").ending is Ending.CENSORED
