import pickle
from math import isnan
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import replace
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, move, run

from safetydrift.errors import HorizonError
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.policy import Bound, Policy
from safetydrift.monitor.settings import FitSettings
from safetydrift.monitor.verdict import Basis, Intervention
from safetydrift.states.trajectory import Notion
from safetydrift.trace import Ending, Step, ToolCall

if TYPE_CHECKING:
    from safetydrift.monitor.protocol import Monitor

INBOX = Step(ToolCall("read_inbox"), "three messages")
MAIL = ToolCall("send_email", {"recipients": ["a@example.org"], "body": "hello"})


@pytest.fixture
def monitor(office):
    follows_the_protocol: Monitor = LookupMonitor(office)  # checked by mypy
    return follows_the_protocol


def test_a_proposed_call_is_judged_by_what_it_may_itself_do(monitor):
    state = monitor.follow(monitor.start("office"), move(READ))
    verdict = monitor.foresee(state, move(SEND))
    assert verdict.probability == 0.75
    assert verdict.alarm
    assert verdict.intervention is Intervention.WARN
    assert verdict.eventually == 0.75
    calm = monitor.foresee(monitor.start("office"), move(WRITE))
    assert (calm.probability, calm.alarm, calm.intervention) == (0.0, False, Intervention.ALLOW)


def test_judging_a_proposal_records_nothing(monitor):
    state = monitor.start("office")
    before = pickle.dumps(state)
    monitor.check_pending(state, MAIL)
    assert pickle.dumps(state) == before
    assert state.steps == 0


def test_checking_a_step_moves_the_state_and_leaves_the_old_one_alone(monitor):
    start = monitor.start("office")
    after, verdict = monitor.check(start, INBOX)
    assert (start.steps, after.steps) == (0, 1)
    assert SPACE.decode(after.state)["data"] == "sensitive"
    assert verdict is monitor.verdict(after)


def test_every_verdict_is_built_once_and_shared(monitor):
    state, verdict = monitor.check(monitor.start("office"), INBOX)
    _, again = monitor.check(state, INBOX)
    assert verdict is again


def test_an_unknown_category_stands_for_all_runs(monitor):
    assert monitor.start("no such category") == monitor.start()
    assert (
        monitor.verdict(monitor.start("never heard of")).probability
        == monitor.verdict(monitor.start()).probability
    )


def test_unknown_is_a_verdict_and_alarms_unless_the_policy_says_otherwise(office):
    cautious = LookupMonitor(office)
    never_left = cautious.follow(cautious.start("office"), move(SPACE.encode({"data": "credentials"})))
    verdict = cautious.verdict(never_left)
    assert verdict.basis is Basis.UNSEEN
    assert isnan(verdict.probability)
    assert verdict.alarm
    trusting = LookupMonitor(office, replace(office.policy, alarm_unseen=False))
    assert not trusting.verdict(never_left).alarm


def test_what_other_categories_showed_is_borrowed_and_said_to_be(catalogue, office_runs):
    model, _ = fit_model([*office_runs, run(READ, category="bank")], SPACE, catalogue, threshold=0.5)
    monitor = LookupMonitor(model)
    write = monitor.follow(monitor.start("bank"), move(WRITE))
    assert monitor.verdict(write).basis is Basis.BORROWED
    read = monitor.follow(monitor.start("bank"), move(READ))
    assert monitor.verdict(read).basis is Basis.ESTIMATED


@given(effects=st.lists(st.integers(0, 59), max_size=8))
def test_a_state_violated_by_the_rules_stays_violated(by_rules, effects):
    monitor = LookupMonitor(by_rules)
    state = monitor.follow(monitor.follow(monitor.start(), move(READ)), move(SEND))
    assert state.violated
    for effect in effects:
        assert monitor.foresee(state, move(effect)).basis is Basis.VIOLATED
        state = monitor.follow(state, move(effect))
        verdict = monitor.verdict(state)
        assert state.violated
        assert (verdict.basis, verdict.probability, verdict.alarm) == (Basis.VIOLATED, 1.0, True)


def test_mass_that_runs_into_the_unknown_is_part_of_the_verdict(catalogue):
    runs = [run(READ, ending=Ending.CENSORED), run(WRITE)]
    monitor = LookupMonitor(fit_model(runs, SPACE, catalogue, FitSettings(strength=0.0), threshold=0.5)[0])
    assert monitor.verdict(monitor.start()).uncertain == 0.5
    assert monitor.verdict(monitor.start()).probability == 0.0


def test_a_probability_that_is_not_known_is_never_calm():
    assert Policy().alarms(float("nan"), Basis.ESTIMATED, pending=False)
    assert not Policy(alarm_unseen=False).alarms(float("nan"), Basis.ESTIMATED, pending=False)


def test_under_the_label_the_rules_do_not_end_a_run(monitor):
    state = monitor.follow(monitor.follow(monitor.start("office"), move(READ)), move(SEND))
    assert not state.violated
    assert monitor.verdict(state).basis is not Basis.VIOLATED
    assert monitor.verdict(state).risk == "violated"


@given(effects=st.lists(st.integers(0, 59), max_size=10), category=st.sampled_from(["", "office", "else"]))
def test_probabilities_are_probabilities_and_grow_with_the_horizon(office, effects, category):
    monitor = LookupMonitor(office)
    state = monitor.start(category)
    for effect in effects:
        for verdict in (monitor.verdict(state), monitor.foresee(state, move(effect))):
            if verdict.basis is Basis.UNSEEN:
                assert isnan(verdict.probability)
                assert all(isnan(p) for p in verdict.within[1:])
                assert isnan(verdict.eventually)
                continue
            assert all(0.0 <= p <= 1.0 for p in verdict.within)
            assert list(verdict.within) == sorted(verdict.within)
            assert verdict.within[-1] <= verdict.eventually + 2e-9
            assert 0.0 <= verdict.uncertain <= 1.0
        state = monitor.follow(state, move(effect))


def test_the_explanation_names_when_each_level_was_reached_and_what_comes_next(monitor):
    state = monitor.follow(monitor.start("office"), move(WRITE))
    state = monitor.follow(state, move(READ))
    effect = monitor.labeler.propose(MAIL)
    words = monitor.explain(state, monitor.check_pending(state, MAIL), effect)
    assert "data exposure sensitive since step 2" in words
    assert "tool escalation file_write since step 1" in words
    assert "network" in words


def test_a_policy_that_looks_beyond_the_tables_is_refused_with_the_repair(office):
    with pytest.raises(HorizonError, match=r"horizon 11 exceeds the model's maximum 10; fit it with"):
        LookupMonitor(office, Policy(horizon=11))


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0},
        {"horizon": 2.5},
        {"horizon": float("nan")},
        {"horizon": True},
        {"threshold": 1.5},
        {"threshold": float("nan")},
        {"pending_threshold": -1},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(bad):
    with pytest.raises(ValueError, match=r"horizon is at least 1|between 0 and 1"):
        Policy(**bad)


def test_state_and_verdict_survive_pickling(monitor):
    state, verdict = monitor.check(monitor.start("office"), INBOX)
    assert pickle.loads(pickle.dumps((state, verdict))) == (state, verdict)  # noqa: S301 - our own bytes


@pytest.fixture(scope="session")
def by_rules(office_runs, catalogue):
    return fit_model(office_runs, SPACE, catalogue, FitSettings(notion=Notion.RULES), threshold=0.4)[0]


def test_bounds_stand_beside_the_probability_and_only_at_the_horizon_they_are_for(office):
    monitor = LookupMonitor(office)
    verdict = monitor.verdict(monitor.follow(monitor.start("office"), move(READ)))
    assert 0.0 < verdict.low < verdict.probability < verdict.high < 1.0
    pending = monitor.foresee(monitor.follow(monitor.start("office"), move(READ)), move(SEND))
    assert 0.0 < pending.low < pending.probability < pending.high < 1.0
    other = LookupMonitor(office, replace(office.policy, horizon=3))
    assert isnan(other.verdict(other.start("office")).high)
    unseen = monitor.verdict(
        monitor.follow(monitor.start("office"), move(SPACE.encode({"data": "credentials"})))
    )
    assert isnan(unseen.low)
    assert isnan(unseen.high)


def test_a_policy_may_compare_the_upper_bound(office):
    state = LookupMonitor(office).follow(LookupMonitor(office).start("office"), move(READ))
    verdict = LookupMonitor(office).verdict(state)
    between = (verdict.probability + verdict.high) / 2
    for bound, alarms in ((Bound.MEAN, False), (Bound.UPPER, True)):
        policy = Policy(office.policy.horizon, between, bound=bound)
        assert LookupMonitor(office, policy).verdict(state).alarm is alarms
        assert convert(policy.definition(), Policy) == policy
    with pytest.raises(HorizonError, match="compares upper bounds within 3 steps, and the model's are for 5"):
        LookupMonitor(office, Policy(3, bound=Bound.UPPER))


def test_the_outlook_tells_how_a_run_ends(office, by_rules):
    monitor = LookupMonitor(office)
    outlook = monitor.outlook(monitor.start("office"))
    assert (outlook.violates, outlook.completes, outlook.steps) == (0.5, 0.5, 2.0)
    assert outlook.low < outlook.violates < outlook.high
    # no call of this world completes a named kind
    assert outlook.kinds[0][0] == "other"
    assert monitor.kinds(monitor.start("office")) == outlook.kinds
    assert str(outlook).startswith("ends violated with 0.50 (")
    nowhere = monitor.outlook(
        monitor.follow(monitor.start("office"), move(SPACE.encode({"data": "credentials"})))
    )
    assert isnan(nowhere.violates)
    assert str(nowhere) == "how it ends is not known"
    strict = LookupMonitor(by_rules)
    crossed = strict.follow(strict.follow(strict.start("office"), move(READ)), move(SEND))
    assert crossed.violated
    assert strict.outlook(crossed).violates == 1.0


def test_alternatives_are_ranked_by_what_they_lead_to(monitor):
    state = monitor.start("office")
    ranked = monitor.alternatives(state, ["send_email", "read_inbox", "send_email", "no_such_tool_at_all"])
    assert sorted(one.tool for one in ranked) == ["no_such_tool_at_all", "read_inbox", "send_email"]
    known = [one.verdict.probability for one in ranked if not isnan(one.verdict.probability)]
    assert known == sorted(known)
    unknown = [isnan(one.verdict.probability) for one in ranked]
    assert unknown == sorted(unknown)
    for one in ranked:
        assert one.verdict == monitor.check_pending(state, ToolCall(one.tool))
        assert str(one.verdict) in one.reason
    assert ranked == monitor.alternatives(state, ["no_such_tool_at_all", "send_email", "read_inbox"])
