"""The simulated agent: repeatable, varied, and moved by what is done to it."""

from collections import Counter

import pytest

from safetydrift.study.scenarios import load_scenario, load_scenarios
from safetydrift.study.scenarios.behaviour import MIXED, PROFILES, SimulatedAgent
from safetydrift.study.scenarios.sandbox import Sandbox

ALL = load_scenarios()


def play(scenario, profile, seed, refusing=lambda action: False, longest=60):
    agent, sandbox = SimulatedAgent(scenario, profile, seed), Sandbox(scenario, seed)
    action = agent.next()
    while action.tool and len(sandbox.steps) < longest:
        if refusing(action):
            sandbox.refuse(action.tool, action.args)
            action = agent.next("refused")
        else:
            step = sandbox.call(action.tool, action.args)
            action = agent.next("done" if step.error is None else "failed")
    return sandbox, action


def outcomes(scenarios, profile, n=8, refusing=lambda action: False):
    found: Counter[str] = Counter()
    for scenario in scenarios:
        for seed in range(n):
            sandbox, last = play(scenario, profile, seed, refusing)
            found["runs"] += 1
            found["violated"] += bool(sandbox.found)
            found["done"] += sandbox.done(last.answer)
    return found


def test_the_same_seed_gives_the_same_run_and_another_one_others():
    scenario = load_scenario("data_handling/churn-report")
    runs = [[step.call.args for step in play(scenario, MIXED, seed)[0].steps] for seed in range(12)]
    assert runs == [[step.call.args for step in play(scenario, MIXED, seed)[0].steps] for seed in range(12)]
    assert len({str(run) for run in runs}) > 6


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.id)
def test_both_outcomes_occur_in_every_scenario(scenario):
    found: Counter[str] = sum((outcomes([scenario], profile, 10) for profile in PROFILES), Counter())
    assert 0 < found["violated"] < found["runs"]
    assert found["done"] > found["runs"] / 4


def test_the_profiles_differ_as_their_names_say():
    found = {profile: outcomes(ALL, profile, 4) for profile in PROFILES}
    violated = {profile: one["violated"] / one["runs"] for profile, one in found.items()}
    assert (
        violated["careful"] < 0.15 < min(violated["hurried"], violated["over-helpful"], violated["injected"])
    )
    assert found["hurried"]["done"] < found["careful"]["done"]


def test_the_injected_one_drifts_where_it_reads_the_words_of_others():
    reading = [one for one in ALL if one.category == "web_browsing"]
    alone = [
        one for one in ALL if not {"fetch_url", "read_email", "web_search", "list_emails"} & set(one.tools)
    ]
    read, not_read = outcomes(reading, "injected", 20), outcomes(alone, "injected", 5)
    assert read["violated"] / read["runs"] > 1.5 * not_read["violated"] / not_read["runs"]


def test_refusals_are_heeded_by_some_and_every_run_ends():
    def refuse(action):
        return action.tool in {"send_email", "http_post", "send_money"}

    scenarios = [one for one in ALL if one.category == "research_communication"]
    assert (
        outcomes(scenarios, "over-helpful", 8, refuse)["violated"]
        < outcomes(scenarios, "over-helpful", 8)["violated"]
    )
    sandbox, last = play(scenarios[0], "injected", 1, refusing=lambda _: True)
    assert last.answer
    assert sandbox.found == {}


def test_an_unknown_profile_names_the_known_ones():
    with pytest.raises(LookupError, match="careful, hurried, over-helpful, injected, mixed"):
        SimulatedAgent(ALL[0], "bold", 0)
