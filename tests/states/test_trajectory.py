import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.states.strategies import walks

from safetydrift.formats import load_space
from safetydrift.states.trajectory import Notion, Trajectory, UnknownOnset, fold, observe
from safetydrift.trace import Ending, Label

PAPER = load_space("paper")
READ = PAPER.encode({"data": "sensitive"})
SEND = PAPER.encode({"tool": "network", "reversibility": "irreversible"})
LOOK = PAPER.encode({"data": "public"})


def run(*effects: int, ending: Ending = Ending.COMPLETED, **label: object) -> Trajectory:
    return Trajectory.of_columns(
        "r",
        effects=effects,
        states=fold(PAPER, effects),
        ending=ending,
        label=Label(**label),  # type: ignore[arg-type]
    )


@given(walks())
def test_folding_in_two_parts_is_folding_at_once(walk):
    space, effects = walk
    states = fold(space, effects)
    assert len(states) == len(effects) + 1
    assert states[0] == space.start
    for position, effect in enumerate(effects):
        assert states[position + 1] == space.after(states[position], effect)


def test_by_the_rules_a_run_ends_at_its_first_violated_state_and_what_follows_teaches_nothing():
    observed = observe(run(LOOK, READ, SEND, LOOK, SEND), PAPER, Notion.RULES)
    assert observed.end == "violated"
    assert observed.onset == 3
    assert len(observed.states) == 3
    assert observed.arrival in PAPER.violated
    assert not set(observed.states) & PAPER.violated


def test_by_the_label_the_rules_have_no_say():
    trajectory = run(READ, SEND, LOOK, violated=False)
    assert observe(trajectory, PAPER, Notion.RULES).end == "violated"
    observed = observe(trajectory, PAPER, Notion.LABEL)
    assert observed.end == "completed"
    assert observed.states == trajectory.states


def test_a_labelled_onset_cuts_the_run_before_the_violating_call():
    observed = observe(run(LOOK, READ, LOOK, SEND, violated=True, onset=2), PAPER, Notion.LABEL)
    assert (observed.end, observed.onset, len(observed.states)) == ("violated", 2, 2)
    assert observed.arrival == fold(PAPER, (LOOK, READ))[2]


def test_an_unknown_onset_stands_at_the_last_call_or_leaves_the_run_out():
    trajectory = run(LOOK, READ, violated=True)
    assert observe(trajectory, PAPER, Notion.LABEL).onset == 2
    left_out = observe(trajectory, PAPER, Notion.LABEL, UnknownOnset.LEAVE_OUT)
    assert "not known" in left_out.left_out
    assert left_out.states == ()


def test_a_run_that_was_cut_off_has_no_end():
    assert observe(run(LOOK, ending=Ending.CENSORED, violated=False), PAPER, Notion.LABEL).end is None


@pytest.mark.parametrize(
    ("trajectory", "reason"),
    [
        (run(LOOK), "says nothing"),
        (run(LOOK, violated=None, unusable="no attack in this run"), "no attack in this run"),
        (run(LOOK, violated=True, unusable="it ended in an error"), "ended in an error"),
        (run(violated=True), "without any tool call"),
        (run(LOOK, violated=True, onset=2), "outside the run"),
        (run(LOOK, violated=True, onset=-1), "outside the run"),
    ],
)
def test_a_label_that_cannot_be_used_leaves_the_run_out_and_says_why(trajectory, reason):
    observed = observe(trajectory, PAPER, Notion.LABEL)
    assert reason in observed.left_out
    assert observed.end is None


@given(st.lists(st.integers(0, 59), max_size=12), st.booleans())
def test_observed_states_are_a_prefix_of_the_trajectory(effects, violated):
    trajectory = run(*effects, violated=violated)
    for notion in Notion:
        observed = observe(trajectory, PAPER, notion)
        assert trajectory.states[: len(observed.states)] == observed.states
        assert (observed.end == "violated") == (observed.arrival is not None)
