"""Categories within sources within all runs, and large spaces whose rows are the states that were visited."""

from math import isnan

import numpy as np
import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.formats import load_space
from safetydrift.markov.hierarchy import nested_mean
from safetydrift.monitor.evidence import NEVER, VIOLATION_KINDS, Rows
from safetydrift.monitor.fitting import fit_chains, fit_model
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.nesting import nested_transitions
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label

HIERARCHICAL = FitSettings(estimator=Estimator.HIERARCHICAL)
AFTER_READ = SPACE.after(SPACE.start, READ)
AFTER_WRITE = SPACE.after(SPACE.start, WRITE)


def runs_of(category: str, source: str, sends: int, writes: int, violated: int = 0):
    return [
        run(
            READ,
            SEND,
            category=category,
            source=source,
            id=f"{category}{n}",
            onset=2 if n < violated else None,
        )
        for n in range(sends)
    ] + [run(WRITE, category=category, source=source, id=f"{category}w{n}") for n in range(writes)]


@pytest.fixture(scope="module")
def world():
    return [
        *runs_of("bank", "a", 6, 4, violated=3),
        *runs_of("shop", "a", 8, 2, violated=6),
        *runs_of("desk", "b", 1, 19),
        *runs_of("lab", "b", 2, 28, violated=1),
    ]


def test_every_run_stands_in_one_ring_only(world):
    fitted = fit_chains(world, SPACE, HIERARCHICAL)
    whole = fitted.evidence[AGGREGATE].counts.matrix
    for category, source in (("bank", "a"), ("lab", "b")):
        own, kin = fitted.evidence[category].counts.matrix, fitted.kin[category].counts.matrix
        of_source = sum(
            fitted.evidence[name].counts.matrix
            for name in fitted.kin
            if {one.source for one in world if one.category == name} == {source}
        )
        assert (own + kin == of_source).all()
        assert (whole - own - kin >= 0).all()


def test_a_category_leans_on_its_source_and_the_source_on_all_other_runs(world):
    fitted = fit_chains(world, SPACE, HIERARCHICAL)
    means, strengths = nested_transitions(fitted.evidence, fitted.kin, fitted.rows, SPACE)
    assert set(strengths) == {"all", "source", "category"} == set(fitted.strengths)
    row = SPACE.start
    whole, own, kin = (
        part.counts.matrix[row]
        for part in (fitted.evidence[AGGREGATE], fitted.evidence["bank"], fitted.kin["bank"])
    )
    support = fitted.rows.support(SPACE)[row] * (fitted.evidence[AGGREGATE].counts.arrivals + 0.5)
    base = support / support.sum()
    levels = [strengths["all"], strengths["source"], strengths["category"]]
    by_hand = nested_mean([[whole - own - kin], [kin], [own]], [base], levels)[0]
    assert means["bank"][row] == pytest.approx(by_hand)
    assert fitted.chains["bank"].transitions[row] == pytest.approx(by_hand)


def test_a_category_without_runs_of_its_own_kind_is_nearer_to_its_source_than_to_the_rest(world):
    few = [*world, run(WRITE, category="new", source="b")]
    chains = fit_chains(few, SPACE, HIERARCHICAL).chains
    reads = {name: chain.transitions[SPACE.start, AFTER_READ] for name, chain in chains.items()}
    assert reads["new"] < reads[AGGREGATE] < reads["bank"]
    assert reads["desk"] < reads["new"] + 0.1


def test_with_one_source_there_is_no_ring_for_it(office_runs):
    fitted = fit_chains([*office_runs, run(READ, category="bank")], SPACE, HIERARCHICAL)
    assert not fitted.kin
    assert set(fitted.strengths) == {"all", "category"}


def test_structural_zeros_stay_zero_and_rows_never_left_stay_unknown(world, catalogue):
    model, fitted = fit_model(world, SPACE, catalogue, HIERARCHICAL, threshold=0.5)
    outside = ~fitted.rows.support(SPACE)[: SPACE.n_states]
    for name, chain in fitted.chains.items():
        assert not chain.transitions[: SPACE.n_states][outside].any()
        never = fitted.evidence[AGGREGATE].counts.departures[: SPACE.n_states] == 0
        assert not chain.transitions[: SPACE.n_states][never].any()
        assert not np.array(model.tables[name].visited)[never].any()
        assert isnan(model.tables[name].within[5][SPACE.encode({"data": "credentials"})])


def test_the_concentrations_stand_in_the_settings_of_the_model(world, catalogue):
    model, fitted = fit_model(world, SPACE, catalogue, HIERARCHICAL, threshold=0.5)
    found = model.settings["concentrations"]
    assert found["transitions"] == pytest.approx(dict(fitted.strengths), rel=1e-3)
    assert set(found["arrivals"]) == {"all", "source", "category"}
    assert set(found["kinds"]) == {"all", "category", "row"}


def bounds_of(model, category: str):
    """The bounds of a category, which a fitted model always has."""
    bounds = model.tables[category].bounds
    assert bounds is not None
    assert bounds.horizon == model.policy.horizon
    return bounds


def test_bounds_enclose_their_probabilities_and_narrow_with_evidence(office_runs, catalogue):
    few, _ = fit_model(office_runs, SPACE, catalogue, threshold=0.5)
    many, _ = fit_model(office_runs * 50, SPACE, catalogue, threshold=0.5)
    for model in (few, many):
        for category, table in model.tables.items():
            bounds = bounds_of(model, category)
            for row in np.flatnonzero(table.visited):
                p = table.within[5][row]
                assert bounds.low[row] <= 1.001 * p <= 1.003 * bounds.high[row]
    widths = [
        bounds.high[AFTER_READ] - bounds.low[AFTER_READ]
        for bounds in (bounds_of(few, "office"), bounds_of(many, "office"))
    ]
    assert 0.0 < widths[1] < widths[0] / 3


def test_kinds_compete_as_ends_and_lean_on_the_rest_of_the_category(catalogue):
    leak, pay = ("data_leak",), ("unauthorised_transaction",)
    runs = [run(READ, SEND, onset=2, id=f"l{n}", kinds=((), leak)) for n in range(30)]
    runs += [run(SEND, onset=1, id=f"p{n}", kinds=(pay,)) for n in range(10)]
    runs += [run(WRITE, id=f"w{n}") for n in range(10)]
    endings = fit_model(runs, SPACE, catalogue, threshold=0.5)[0].tables["office"].endings
    assert endings is not None
    shares = dict(endings.kinds_of(SPACE.start))
    assert next(iter(shares)) == "data_leak"
    assert shares["data_leak"] == pytest.approx(0.75, abs=0.05)
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.03)
    assert dict(endings.kinds_of(AFTER_READ))["data_leak"] > 0.9
    assert endings.completes[SPACE.start] == pytest.approx(0.2)
    assert endings.steps[SPACE.start] == pytest.approx((30 * 2 + 10) / 40, rel=1e-3)
    assert isnan(endings.steps[AFTER_WRITE])
    assert not endings.kinds_of(AFTER_WRITE)


def test_a_violation_of_no_named_kind_is_another_and_one_of_two_kinds_counts_half_in_each(catalogue):
    both = ("credential_leak", "data_leak")
    runs = [run(SEND, onset=1, id=f"b{n}", kinds=(both,)) for n in range(40)]
    runs += [run(SEND, onset=1, id=f"o{n}") for n in range(40)]
    evidence = fit_chains(runs, SPACE).evidence["office"]
    found = dict(zip(VIOLATION_KINDS, evidence.kinds[SPACE.start], strict=True))
    assert found["other"] == 40
    assert found["credential_leak"] == found["data_leak"] == 20


FLOW = load_space("flow")


def flowing(*effects: int, onset: int | None = None, **extra):
    return Trajectory.of_columns(
        f"flow-{effects}",
        effects=effects,
        states=fold(FLOW, effects),
        category="office",
        ending=Ending.COMPLETED,
        label=Label(onset is not None, onset=onset),
        **extra,
    )


def test_a_large_space_has_rows_for_the_states_that_were_visited_and_one_for_all_others(catalogue):
    secret, out = FLOW.encode({"data": "sensitive"}), FLOW.encode({"tool": "network"})
    model, fitted = fit_model(
        [flowing(secret, out, onset=2), flowing(secret)], FLOW, catalogue, threshold=0.5
    )
    visited = sorted({FLOW.start, FLOW.after(FLOW.start, secret), FLOW.after(secret, out)})
    assert fitted.rows.names == (*map(FLOW.describe, visited), NEVER)
    assert [model.row_of[state] for state in visited] == [0, 1, 2]
    assert {model.row_of[state] for state in range(FLOW.n_states) if state not in visited} == {3}
    table = model.tables[AGGREGATE]
    assert not table.visited[3]
    assert isnan(table.within[5][3])
    assert table.uncertain[5][3] == 1.0


@pytest.mark.parametrize("estimator", [Estimator.SHRUNK, Estimator.MAXIMUM_LIKELIHOOD])
def test_leaving_out_rows_changes_no_figure(estimator, office_runs, catalogue, monkeypatch):
    settings = FitSettings(estimator=estimator)
    whole = fit_model(office_runs, SPACE, catalogue, settings)[0]
    monkeypatch.setattr("safetydrift.monitor.evidence.SMALL_SPACE", 10)
    small = fit_model(office_runs, SPACE, catalogue, settings)[0]
    assert len(small.rows) < len(whole.rows) == SPACE.n_states
    assert small.policy == whole.policy
    for category, table in whole.tables.items():
        for state in range(SPACE.n_states):
            ours, theirs = small.row_of[state], whole.row_of[state]
            for horizon in range(11):
                assert small.tables[category].within[horizon][ours] == pytest.approx(
                    table.within[horizon][theirs], nan_ok=True
                )
            assert small.tables[category].basis(ours) is table.basis(theirs)


def test_what_the_dimensions_allow_is_what_single_states_allow():
    rows = Rows.of(SPACE, Granularity.FINE)
    allowed = rows.support(SPACE)
    for state in range(SPACE.n_states):
        assert set(np.flatnonzero(allowed[state, : SPACE.n_states])) == SPACE.support(state)
