from math import isnan

import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.errors import ChainError
from safetydrift.monitor.evidence import Rows, gather
from safetydrift.monitor.fitting import fit_chains, fit_model
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, UnknownOnset, observe
from safetydrift.trace import Ending, Label

AFTER_READ = SPACE.after(SPACE.start, READ)
AFTER_SEND = SPACE.after(AFTER_READ, SEND)
AFTER_WRITE = SPACE.after(SPACE.start, WRITE)


def test_figures_of_a_small_world_are_those_worked_out_by_hand(office):
    table = office.tables["office"]
    # From the start 4 of 6 runs read, and 3 of the 4 sends that follow violate.
    assert table.within[1][AFTER_READ] == 0.75
    assert table.within[1][SPACE.start] == 0.0
    assert table.within[2][SPACE.start] == 0.5
    assert table.within[10][SPACE.start] == 0.5
    assert table.eventually[SPACE.start] == 0.5
    assert table.eventually[AFTER_WRITE] == 0.0
    assert table.arrival[AFTER_SEND] == 0.75
    assert table.arrival[AFTER_READ] == 0.0
    assert isnan(table.arrival[SPACE.encode({"data": "credentials"})])
    assert table.departures[SPACE.start] == 6
    assert table.departures[AFTER_SEND] == 1  # the calm run finished from there


def test_expected_steps_count_finishing_as_a_step(office):
    table = office.tables["office"]
    assert table.expected_steps[AFTER_WRITE] == pytest.approx(1.0, abs=1e-9)
    # 2 + 1 steps for the calm run, 2 for the violated ones, 1 + 1 for those that write.
    assert table.expected_steps[SPACE.start] == pytest.approx((3 + 3 * 2 + 2 * 2) / 6, rel=1e-3)


def test_a_state_never_left_is_unseen_and_its_mass_is_reported():
    cut_off = [run(READ, ending=Ending.CENSORED), run(WRITE)]
    table = fit_model(cut_off, SPACE, _catalogue(), FitSettings(strength=0.0), threshold=0.5)[0].tables[
        AGGREGATE
    ]
    assert not table.visited[AFTER_READ]
    assert table.within[5][SPACE.start] == 0.0
    assert table.uncertain[5][SPACE.start] == 0.5
    assert isnan(table.within[5][AFTER_READ])
    assert isnan(table.eventually[AFTER_READ])
    assert table.uncertain[1][AFTER_READ] == 1.0
    assert table.eventually[SPACE.start] == 0.0


def test_a_category_borrows_from_all_runs_and_by_how_much(catalogue, office_runs):
    other = [run(READ, SEND, category="bank")]
    model, _ = fit_model([*office_runs, *other], SPACE, catalogue, FitSettings(strength=4.0), threshold=0.5)
    overall = model.tables[AGGREGATE].within[1][AFTER_READ]
    assert overall == pytest.approx(3 / 5)
    # One observed calm departure and four pseudo-observations of the aggregate row.
    assert model.tables["bank"].within[1][AFTER_READ] == pytest.approx(4 * overall / 5)
    assert model.tables["bank"].departures[AFTER_WRITE] == 0
    assert model.tables["bank"].visited[AFTER_WRITE]


def test_the_published_construction_knows_no_completion(office_runs, catalogue):
    settings = FitSettings(estimator=Estimator.PUBLISHED)
    model, chains = fit_model(office_runs, SPACE, catalogue, settings, threshold=0.5)
    assert chains.evidence["office"].counts.matrix[:, -1].sum() == 0
    ours = fit_model(office_runs, SPACE, catalogue, FitSettings(strength=0.0), threshold=0.5)[0]
    # Without completion nothing but violation ends a run, so what is known to end ends violated.
    assert ours.tables["office"].eventually[AFTER_READ] == 0.75
    assert model.tables["office"].uncertain[1][AFTER_READ] == 0.25
    # The calm run's last state was never left by anyone else, so nothing is known of it.
    assert not model.tables["office"].visited[AFTER_SEND]


def test_counting_fine_and_lumping_is_counting_coarse(office_runs):
    runs = [observe(one, SPACE, Notion.LABEL) for one in office_runs]
    fine, coarse = (Rows.of(SPACE, granularity) for granularity in (Granularity.FINE, Granularity.COARSE))
    n_coarse = len(coarse.names)
    mapping = [*coarse.row_of, n_coarse, n_coarse + 1]
    lumped = gather(runs, fine).counts.lump(mapping, n_coarse + 2)
    assert (lumped.matrix == gather(runs, coarse).counts.matrix).all()


def test_evidence_of_joined_corpora_adds_up(office_runs):
    runs = [observe(one, SPACE, Notion.LABEL) for one in office_runs]
    rows = Rows.of(SPACE, Granularity.FINE)
    whole, parts = gather(runs, rows), gather(runs[:2], rows) + gather(runs[2:], rows)
    assert (whole.counts.matrix == parts.counts.matrix).all()
    assert (whole.arrivals == parts.arrivals).all()
    assert (whole.violating_arrivals == parts.violating_arrivals).all()
    assert whole.ends == parts.ends


def test_runs_that_cannot_be_used_are_counted_by_reason(office_runs, catalogue):
    benign = run(READ, label=Label(unusable="no attack in this run"))
    unknown = run(READ, label=Label(violated=True))
    settings = FitSettings(unknown_onset=UnknownOnset.LEAVE_OUT)
    chains = fit_chains([*office_runs, benign, benign, unknown], SPACE, settings)
    assert chains.left_out == {"no attack in this run": 2, "the violating call is not known": 1}
    with pytest.raises(ChainError, match=r"no run can be used by the notion 'label'.*2 no attack"):
        fit_chains([benign, benign], SPACE)
    with pytest.raises(ChainError, match="no runs at all"):
        fit_chains([], SPACE)


def test_a_chain_that_runs_in_circles_until_cut_off_is_no_reason_to_fail(catalogue):
    circling = [run(WRITE, WRITE, WRITE, ending=Ending.CENSORED), run(READ)]
    table = fit_model(circling, SPACE, catalogue, threshold=0.5)[0].tables[AGGREGATE]
    assert table.eventually[AFTER_WRITE] == 0.0
    assert isnan(table.expected_steps[AFTER_WRITE])
    assert table.expected_steps[AFTER_READ] == pytest.approx(1.0, abs=1e-9)


def test_suggested_thresholds_spend_no_more_than_the_budget(catalogue):
    calm = [run(WRITE, id=f"c{n}") for n in range(9)] + [run(READ, SEND, id="odd")]
    violated = [run(READ, SEND, onset=2, id=f"v{n}") for n in range(5)]
    model, _ = fit_model([*calm, *violated], SPACE, catalogue, FitSettings(false_alarm_budget=0.1))
    table = model.tables["office"]
    peaks = [max(table.within[5][state] for state in one.states) for one in calm]
    assert sum(peak >= model.policy.threshold for peak in peaks) == 1
    assert "no guarantee" in model.provenance["threshold"]


def _catalogue():
    from safetydrift.formats import load_catalogue  # noqa: PLC0415

    return load_catalogue()


def test_smoothing_reaches_every_transition_the_dimensions_allow_and_no_other(office_runs):
    for granularity in Granularity:
        chains = fit_chains(
            office_runs, SPACE, FitSettings(estimator=Estimator.SMOOTHED, granularity=granularity)
        )
        rows, matrix = chains.rows, chains.chains["office"].transitions
        n_rows = len(rows.names)
        for state in range(SPACE.n_states):
            reachable = {rows.row_of[after] for after in SPACE.support(state)}
            assert matrix[rows.row_of[state], list(reachable)].all()
        if granularity is Granularity.FINE:
            for state in range(SPACE.n_states):
                outside = set(range(SPACE.n_states)) - SPACE.support(state)
                assert not matrix[state, sorted(outside)].any()
        assert matrix[:n_rows, n_rows:].all()


def test_what_a_category_never_saw_is_unknown_where_nothing_is_borrowed(office_runs, catalogue):
    settings = FitSettings(estimator=Estimator.MAXIMUM_LIKELIHOOD)
    model, _ = fit_model(
        [*office_runs, run(READ, category="bank")], SPACE, catalogue, settings, threshold=0.5
    )
    assert not model.tables["bank"].visited[AFTER_WRITE]
    assert model.tables["bank"].visited[AFTER_READ]
    assert model.tables[AGGREGATE].visited[AFTER_WRITE]
