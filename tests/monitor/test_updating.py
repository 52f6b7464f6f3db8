import json
import random

import numpy as np
import pytest
from msgspec.structs import replace
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run
from tests.monitor.test_risk_score import SPACE as FLOW
from tests.monitor.test_risk_score import made_run

from safetydrift.errors import CalibrationError, ChainError, ModelFileError
from safetydrift.formats import load_model, save_model
from safetydrift.formats.model_parts import Table
from safetydrift.markov.counts import TransitionCounts
from safetydrift.monitor.evidence import read_evidence
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.recalibration import said_of
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.monitor.updating import update
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label


def evidence(model):
    assert model.evidence is not None
    return model.evidence


def tables(model):
    return {category: Table.of(table) for category, table in model.tables.items()}


def office(first, n, category="office", source="own"):
    runs = []
    for number in range(first, first + n):
        effects, onset = ((READ, SEND), 2) if number % 3 == 0 else ((WRITE, READ)[: 1 + number % 2], None)
        runs.append(
            run(*effects, onset=onset, id=f"{category}-{number}", task=f"task-{number}", category=category,
                source=source, ending=(Ending.COMPLETED, Ending.CENSORED)[number % 5 == 0])
        )  # fmt: skip
    return runs


@pytest.mark.parametrize("estimator", list(Estimator))
@pytest.mark.parametrize("granularity", [Granularity.FINE, Granularity.COARSE])
def test_adding_runs_gives_the_tables_of_fitting_on_all_of_them(catalogue, estimator, granularity):
    settings = FitSettings(estimator=estimator, granularity=granularity)
    old = [*office(0, 12), *office(0, 9, "bank", "other")]
    new = [*office(100, 7), *office(200, 8, "shop"), *office(300, 5, "bank", "other")]
    before = fit_model(old, SPACE, catalogue, settings, threshold=0.5)[0]
    whole = fit_model([*old, *new], SPACE, catalogue, settings, threshold=0.5)[0]
    after = update(before, new).model
    assert tables(after) == tables(whole)
    assert after.evidence == whole.evidence
    assert after.settings == whole.settings
    assert {key: after.provenance[key] for key in ("runs", "tasks", "left_out")} == {
        key: whole.provenance[key] for key in ("runs", "tasks", "left_out")
    }


def flow_run(number, *effects):
    return Trajectory.of_columns(
        f"flow-{number}", states=fold(FLOW, effects), effects=effects, task=f"t{number}", category="files",
        ending=Ending.COMPLETED, label=Label(violated=False),
    )  # fmt: skip


def test_states_of_a_large_space_that_nobody_had_visited_get_rows(catalogue, tmp_path):
    read, order = FLOW.encode({"data": "internal"}), FLOW.encode({"untrusted": "instructed"})
    old, new = [flow_run(1, read), flow_run(2, read, read)], [flow_run(3, order), flow_run(4, read, order)]
    before = fit_model(old, FLOW, catalogue, threshold=0.5)[0]
    whole = fit_model([*old, *new], FLOW, catalogue, threshold=0.5)[0]
    save_model(before, tmp_path / "before.json")
    after = update(load_model(tmp_path / "before.json"), new).model
    assert after.rows == whole.rows
    assert after.row_of == whole.row_of
    assert tables(after) == tables(whole)


def test_two_updates_are_one_in_two_parts(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    parts = update(update(before, office(50, 6)).model, office(80, 4, "bank")).model
    once = update(before, [*office(50, 6), *office(80, 4, "bank")]).model
    assert tables(parts) == tables(once)
    assert [one["runs"] for one in parts.provenance["updates"]] == [6, 4]


def test_what_is_added_is_told(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    unlabelled = run(WRITE, id="u", label=Label(None))
    found = update(
        before, [*office(7, 4), *office(0, 3, "bank"), unlabelled], provenance={"corpus_digest": "d1"}
    )
    assert (found.runs, found.tasks, found.new_tasks, found.new_categories) == (7, 7, 5, ("bank",))
    assert found.left_out == {"the source says nothing about violation": 1}
    assert found.model.provenance["updates"][0]["corpus_digest"] == "d1"
    with pytest.raises(CalibrationError, match="are in the model already"):
        update(found.model, office(7, 4), provenance={"corpus_digest": "d1"})


def test_runs_that_cannot_be_used_change_nothing(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    with pytest.raises(CalibrationError, match=r"none of the runs can be used.*says nothing"):
        update(before, [run(WRITE, id="u", label=Label(None))])


def test_a_model_without_its_counts_is_refused(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    with pytest.raises(ModelFileError, match="does not keep the counts"):
        update(replace(before, evidence=None), office(50, 3))
    with pytest.raises(ModelFileError, match="does not say how it was fitted"):
        update(replace(before, settings={}), office(50, 3))


@pytest.mark.parametrize(
    "damage",
    [
        {"counts": [[0, 10**6, 1]]},
        {"counts": [[0, 0, -1]]},
        {"counts": [[0, 0, "many"]]},
        {"kinds": None},
        {"ends": {"violated": -1}},
    ],
)
def test_damaged_counts_are_refused(catalogue, damage):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    with pytest.raises(ModelFileError, match="counts behind its tables cannot be read"):
        read_evidence([{**evidence(before)[0], **damage}], len(before.rows))


# -- forgetting -------------------------------------------------------------------------------------------


def test_a_half_life_halves_what_is_one_half_life_old(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, FitSettings(strength=0.0), threshold=0.5)[0]
    after = update(before, office(50, 6, "bank"), half_life=6).model
    old = read_evidence(before.evidence, len(before.rows))["own", "office"]
    kept = read_evidence(after.evidence, len(after.rows))["own", "office"]
    assert np.allclose(kept.counts.matrix, old.counts.matrix / 2)
    assert np.allclose(kept.arrivals, old.arrivals / 2)
    assert kept.ends == old.ends


def test_forgetting_in_two_parts_is_forgetting_at_once(catalogue):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    parts = update(update(before, office(50, 6), half_life=4).model, office(80, 4), half_life=4).model
    once = update(before, [*office(50, 6), *office(80, 4)], half_life=4).model
    ours, theirs = (read_evidence(evidence(one), len(once.rows)) for one in (parts, once))
    assert ours.keys() == theirs.keys()
    for name, part in ours.items():
        assert np.allclose(part.counts.matrix, theirs[name].counts.matrix)


def test_with_forgetting_the_chain_follows_what_came_last(catalogue):
    calm = [run(READ, SEND, id=f"c{n}", task=f"c{n}") for n in range(200)]
    worse = [run(READ, SEND, onset=2, id=f"w{n}", task=f"w{n}") for n in range(100)]
    before = fit_model(calm, SPACE, catalogue, FitSettings(strength=0.0), threshold=0.5)[0]
    after_read = SPACE.after(SPACE.start, READ)
    steady = update(before, worse).model.tables["office"].within[1][after_read]
    quick = update(before, worse, half_life=10).model.tables["office"].within[1][after_read]
    assert steady == pytest.approx(1 / 3, rel=1e-5)
    assert quick > 0.95


def test_a_forgetful_model_survives_its_file(catalogue, tmp_path):
    before = fit_model(office(0, 9), SPACE, catalogue, threshold=0.5)[0]
    after = update(before, office(50, 6), half_life=7).model
    save_model(after, tmp_path / "m.json")
    assert tables(load_model(tmp_path / "m.json")) == tables(after)


def test_weighted_counts_are_checked():
    with pytest.raises(ChainError, match="finite and 0 or more"):
        TransitionCounts.weighted([[-0.5]])
    with pytest.raises(ChainError, match="square"):
        TransitionCounts.weighted([[0.5, 1.0]])
    assert (TransitionCounts([[1]]) + TransitionCounts.weighted([[0.5]])).total == 1


# -- the risk score ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def informed(catalogue):
    chance = random.Random(4)  # noqa: S311  # made-up runs, no secret
    runs = [made_run(number, chance) for number in range(240)]
    return fit_model(runs, FLOW, catalogue, FitSettings(risk_score=True), threshold=0.5)[0]


def later_runs(n, gullible):
    """Runs of a model nobody knows, which follow injected instructions more or less often than those fitted on."""
    runs: list[Trajectory] = []
    chance = random.Random(9)  # noqa: S311  # as above
    while len(runs) < n:
        number = 3 * len(runs) if chance.random() < gullible else 3 * len(runs) + 1
        one = made_run(number, chance)
        runs.append(replace(one, id=f"later-{len(runs)}", task=f"later-{len(runs)}", model="unheard-of"))
    return runs


def links(model):
    assert model.risk_score is not None
    return model.risk_score.current.within


def gap(model, runs):
    said, column = said_of(model, runs)[0], 4
    return float(np.mean(1.0 / (1.0 + np.exp(-said.odds[:, column])) - said.happened(column, 10)))


@pytest.mark.parametrize("gullible", [0.3, 0.9])
def test_after_an_update_the_risk_score_expects_what_happens_here(informed, gullible):
    runs = later_runs(300, gullible)
    before, after = gap(informed, runs[150:]), gap(update(informed, runs[:150]).model, runs[150:])
    assert abs(before) > 0.05
    assert abs(after) < abs(before) / 2


def test_few_runs_change_little_and_none_turn_the_ranking_round(informed):
    first = links(informed)[4]
    changed = links(update(informed, later_runs(2, 1.0)).model)[4]
    assert abs(changed.intercept - first.intercept) < 2.0
    contrary = [replace(one, label=Label(not one.label.violated, onset=None)) for one in later_runs(60, 0.5)]
    assert all(link.slope > 0.0 for link in links(update(informed, contrary).model))


def test_corrections_go_on_from_update_to_update(informed, tmp_path):
    runs = later_runs(120, 0.9)
    once = links(update(informed, runs).model)[4]
    first = update(informed, runs[:60]).model
    save_model(first, tmp_path / "m.json")
    twice = links(update(load_model(tmp_path / "m.json"), runs[60:]).model)[4]
    assert (twice.intercept, twice.slope) == pytest.approx((once.intercept, once.slope), abs=0.25)
    assert links(first)[4].intercept != pytest.approx(once.intercept, abs=1e-3)


@pytest.mark.parametrize(
    "damage",
    [{"current": []}, {"current": [[0, 1, 1, 0, 0]]}, {"current": [["a"] * 5], "proposal": []}, 7],
)
def test_corrections_that_no_update_makes_are_refused(informed, damage):
    updated = update(informed, later_runs(5, 0.5)).model
    told = {**updated.provenance["recalibration"], **damage} if isinstance(damage, dict) else damage
    broken = replace(
        updated, provenance={**updated.provenance, "recalibration": json.loads(json.dumps(told))}
    )
    with pytest.raises(ModelFileError, match="corrections of its risk score"):
        update(broken, later_runs(5, 0.5))
