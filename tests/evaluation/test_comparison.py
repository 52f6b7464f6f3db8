import json
from itertools import pairwise
from math import isnan

import numpy as np
import pytest
from tests.evaluation.made_cases import (
    Constant,
    Remembers,
    Says,
    by_position,
    case,
    fixed,
    many,
    oracle,
)

from safetydrift.errors import LeakageError, ScoresError, SplitError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.comparison import background_of, compare
from safetydrift.evaluation.metrics.discrimination import auroc
from safetydrift.evaluation.rate import plain
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores
from safetydrift.evaluation.splits import held_out_models, held_out_sources, held_out_tasks, random_runs
from safetydrift.states.trajectory import Trajectory
from safetydrift.trace import Label

CATEGORY = Remembers("category-prior", lambda one: one.category)
TASK = Remembers("task", lambda one: one.task)
RUN = Remembers("run", lambda one: one.run.id)
HALF = fixed("half", lambda cases: np.full(len(cases.run_of_point), 0.5))
ORACLE = fixed("oracle", oracle, alarm_at=0.5)
NOISE = fixed("noise", by_position)


def _rates(task: int) -> float:
    return 0.1 + 0.8 * (task * 7 % 10) / 9


CASES = many(np.random.default_rng(11), 60, 12, _rates)


def _run(predictors, cases=CASES, **options):
    options.setdefault("n_resamples", 60)
    return compare(predictors, cases, **options)


@pytest.fixture(scope="module")
def comparison():
    return _run([CATEGORY, ORACLE, NOISE, HALF, TASK])


# -- nothing leaks ----------------------------------------------------------------------------------------


def test_an_oracle_scores_one(comparison):
    measures = comparison.splits[0].predictor("oracle").measures
    for horizon in HORIZONS:
        assert measures.steps[horizon].discrimination.auroc.value == 1
        assert measures.steps[horizon].discrimination.within_category.macro.value == 1
        assert measures.steps[horizon].calibration.brier_skill.value == 1
    assert measures.runs.highest.auroc.value == 1
    assert measures.runs.recall[0.01].value == 1
    own = measures.runs.own
    assert own.detected.value == 1
    assert own.false_alarms.value == 0


def test_what_remembers_tasks_is_worth_nothing_on_tasks_held_out_and_much_on_random_runs():
    apart, mixed = _run([TASK], [held_out_tasks(CASES), random_runs(CASES)]).splits
    assert apart.predictor("task").measures.runs.highest.auroc.value == 0.5
    assert mixed.predictor("task").measures.runs.highest.auroc.value > 0.7
    assert any("both sides" in note for note in mixed.notes)


@pytest.mark.parametrize("remembers", [CATEGORY, TASK, RUN])
def test_with_outcomes_that_mean_nothing_nothing_is_learnt(remembers):
    # Outcomes drawn anew for every run: nothing in the training runs says anything about those tried.
    for seed in range(3):
        cases = many(np.random.default_rng(seed), 100, 12)
        highest = (
            _run([remembers], cases, n_resamples=200)
            .splits[0]
            .predictor(remembers.name)
            .measures.runs.highest
        )
        # The standard error of the area with no signal (Hanley and McNeil 1982), over the pairs of five folds.
        positives, negatives = highest.positives / 5, highest.negatives / 5
        error = np.sqrt((positives + negatives + 1) / (12 * positives * negatives) / 5)
        assert abs(highest.auroc.value - 0.5) < 4 * error


def test_a_predictor_fitted_elsewhere_on_a_task_that_is_tried_is_an_error():
    leaky = Fixed("leaky", Constant("leaky", oracle, trained_on=frozenset({next(iter(CASES.tasks))})))
    with pytest.raises(LeakageError, match="leaky"):
        _run([leaky])
    assert _run([leaky], random_runs(CASES)).splits[0].unverified == ()


def test_a_predictor_fitted_elsewhere_that_does_not_say_on_what_is_named():
    split = _run([CATEGORY, Fixed("file", Says("file", oracle))])
    assert split.splits[0].unverified == ("file",)
    assert any(note.startswith("file was fitted elsewhere") for note in split.splits[0].notes)
    assert "may not be new to it" in split.finding()
    assert "may not be new" not in _run([CATEGORY, ORACLE]).finding()


def test_a_category_prior_is_worth_exactly_one_half_within_category(comparison):
    measures = comparison.splits[0].predictor("category-prior").measures
    assert measures.runs.highest.within_category.macro.value == 0.5
    assert (measures.runs.highest.within_category.macro.draws == 0.5).all()
    assert measures.steps[5].discrimination.within_category.pooled.value == 0.5
    assert {panel.run.value for panel in measures.panels if panel.kind == "category"} == {0.5}


def test_knowing_the_model_is_worth_exactly_one_half_within_it():
    model = Remembers("model", lambda one: one.run.model)
    highest = _run([model]).splits[0].predictor("model").measures.runs.highest
    assert highest.within_model.macro.value == highest.within_model.pooled.value == 0.5
    assert highest.auroc.value != 0.5


# -- what is measured -------------------------------------------------------------------------------------


def test_figures_are_those_of_the_runs_tried():
    split = held_out_tasks(CASES).first()
    tried = split.folds[0].test
    measures = _run([NOISE], split).splits[0].predictor("noise").measures
    risk = by_position(tried)
    assert measures.steps[3].discrimination.auroc.value == pytest.approx(auroc(risk, tried.happens_within(3)))
    highest = np.array([risk[a:b].max() for a, b in pairwise(tried.first_point)])
    assert measures.runs.highest.auroc.value == pytest.approx(auroc(highest, tried.violated))
    last = risk[tried.first_point[1:] - 1]
    assert measures.runs.last.auroc.value == pytest.approx(auroc(last, tried.violated))
    proposals = measures.proposals.discrimination
    assert (proposals.positives, proposals.negatives) == (tried.violated.sum(), (~tried.violated).sum())


def test_longer_runs_are_worth_nothing_at_equal_length():
    rng = np.random.default_rng(0)
    made = []
    for number in range(300):
        violated = rng.random() < 0.5
        n = int(rng.integers(1, 4)) + 2 * violated
        made.append(case(n, n if violated else None, task=f"t{number % 30}"))
    step = fixed("step", lambda cases: cases.step_of_point / 100)
    highest = _run([step], CaseSet(made)).splits[0].predictor("step").measures.runs.highest
    assert highest.auroc.value > 0.55
    assert highest.equal_step.macro.value == highest.equal_step.pooled.value == 0.5


def test_sources_without_known_violating_calls_are_measured_over_whole_runs_only():
    made = [
        case(
            2,
            2 if number % 3 == 0 else None,
            task=f"{source}{number % 12}",
            source=source,
            onset_known=source != "dark",
        )
        for source in ("clear", "dark", "safe")
        for number in range(60)
        if not (source == "safe" and number % 3 == 0)
    ]
    made.append(case(2, 2, task="clear1", source="clear", onset_known=False))
    (split,) = _run([ORACLE], CaseSet(made)).splits
    assert (split.by_step.hits, split.by_step.total) == (60 + 40, 60 + 60 + 40 + 1)
    measures = split.predictor("oracle").measures
    assert (
        measures.steps[5].discrimination.positives == 20 * 2
    )  # both points of the violated runs of one source
    assert (measures.runs.highest.positives, measures.runs.highest.negatives) == (41, 120)
    assert measures.proposals.discrimination.positives == 20
    dark = next(panel for panel in measures.panels if panel.name == "dark")
    assert dark.auroc == {}
    assert dark.run.value == 1


def test_every_source_and_category_has_its_panel(comparison):
    panels = comparison.splits[0].predictor("oracle").measures.panels
    assert [(panel.kind, panel.name) for panel in panels] == [
        ("source", "made"),
        *(("category", f"made/c{number}") for number in range(4)),
    ]
    assert sum(panel.violated.total for panel in panels[1:]) == len(CASES)
    assert sum(panel.tasks for panel in panels[1:]) == 60


def test_differences_are_paired_with_the_reference(comparison):
    split = comparison.splits[0]
    result, reference = split.predictor("oracle"), split.predictor("category-prior")
    assert reference.differences == {}
    for name in (
        "step.5.within_category",
        "run.auroc",
        "run.recall_at_0.05",
        "step.1.brier_skill",
        "proposal.auroc",
    ):
        ours, theirs = result.measures.figures()[name], reference.measures.figures()[name]
        assert result.differences[name].value == pytest.approx(ours.value - theirs.value)
        np.testing.assert_allclose(result.differences[name].draws, ours.draws - theirs.draws)
    same = _run([CATEGORY, Remembers("again", CATEGORY.key)]).splits[0].predictor("again")
    assert all(isnan(d.value) or d.value == 0 for d in same.differences.values())
    assert not same.differences["run.auroc"].excludes_zero


def test_scores_that_are_no_probabilities_are_ranked_and_not_held_against_frequencies():
    points = fixed("points", lambda cases: 100.0 * oracle(cases), probabilistic=False)
    result = _run([points]).splits[0].predictor("points")
    assert result.measures.steps[1].calibration is None
    assert result.measures.steps[1].discrimination.auroc.value == 1
    assert "step.1.brier_skill" not in result.measures.figures()


# -- partial coverage and background ----------------------------------------------------------------------


def test_where_a_file_covers_part_everybody_is_compared_on_that_part():
    def second_half(cases):
        return np.array([int(one.run.model.removeprefix("model")) >= 6 for one in cases.cases])

    partial = fixed("file", oracle, covers=second_half)
    comparison = _run([CATEGORY, NOISE, partial])
    (split,) = comparison.splits
    assert split.violated.total == len(CASES) // 2
    assert any("360 of 720 runs" in note and "file" in note for note in split.notes)
    alone = CASES.select(second_half(CASES))
    for name in ("noise", "file"):
        area = split.predictor(name).measures.runs.highest
        assert area.positives == alone.violated.sum()
    # The others were still fitted on all training runs, and are only measured on the part.
    assert split.predictor("noise").measures.runs.highest.negatives == (~alone.violated).sum()


def test_a_file_that_covers_nothing_leaves_nothing_to_compare():
    nothing = fixed("file", oracle, covers=lambda cases: np.zeros(len(cases), bool))
    with pytest.raises(ScoresError, match="nothing to compare"):
        _run([CATEGORY, nothing])


def test_the_background_is_scored_only_by_folds_not_fitted_on_its_tasks():
    seen = []

    class Watches:
        name = "watches"

        def fit(self, cases):
            trained = cases.tasks

            def rule(tried):
                seen.append(trained & tried.tasks)
                return np.full(len(tried.run_of_point), 0.9)

            return Says("watches", rule, alarm_at=0.5)

    background = CaseSet(case(1, task=f"task {n}", category=f"c{n % 4}", goal="") for n in range(60))
    everywhere = CaseSet([case(2, task="elsewhere", goal="")])
    (split,) = _run([Watches()], background=CaseSet([*background.cases, *everywhere.cases])).splits
    assert split.background == 61
    assert not any(seen)
    own = split.predictor("watches").measures.runs.own
    assert (own.benign.hits, own.benign.total) == (61, 61)
    first = held_out_tasks(CASES).first()
    (split,) = _run([Watches()], first, background=background).splits
    assert split.background == len(first.folds[0].test.tasks)
    assert any("not tried" in note for note in split.notes)


def test_the_background_is_what_nobody_attacked_and_nobody_judged():
    def run(label):
        return Trajectory.of_columns("t", states=(0, 0), effects=(0,), label=label)

    safe = [
        Label(unusable="no attack in this run"),
        Label(unusable="task reward only, no safety label"),
        Label(),
    ]
    others = [
        Label(violated=True),
        Label(violated=False),
        Label(goal="steal"),
        Label(attack="direct"),
        Label(unusable="the run ended in an error"),
    ]
    found = background_of(run(label) for label in (*safe, *others))
    assert [one.run.label for one in found.cases] == safe
    assert found.benign.all()


# -- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("within", lambda cases: np.zeros((3, 3))),
        ("within", lambda cases: np.full((len(cases.run_of_point), 3), np.nan)),
        ("within", lambda cases: np.full((len(cases.run_of_point), 3), 1.5)),
        ("pending", lambda cases: np.zeros(len(cases.run_of_proposal) + 1)),
        ("alarm", lambda cases: np.zeros(len(cases), bool)),
        ("covered", lambda cases: np.ones(len(cases) + 1, bool)),
    ],
)
def test_scores_that_do_not_fit_the_runs_are_refused(field, values):
    class Wrong:
        def score(self, cases):
            scores = {"within": np.zeros((len(cases.run_of_point), 3)), field: values(cases)}
            return Scores("wrong", **scores)

    with pytest.raises(ScoresError, match=r"^wrong: "):
        _run([Fixed("wrong", Wrong())])


def test_two_predictors_of_one_name_are_refused():
    with pytest.raises(ScoresError, match="share a name"):
        _run([NOISE, NOISE])


def test_too_few_tasks_are_refused():
    with pytest.raises(SplitError):
        _run([NOISE], CaseSet([case(), case()]))


def test_an_unknown_horizon_is_refused():
    with pytest.raises(ValueError, match="not 4"):
        _run([NOISE], horizon=4)


def test_a_name_that_was_not_compared_is_not_found(comparison):
    with pytest.raises(KeyError):
        comparison.splits[0].predictor("nobody")


# -- telling it -------------------------------------------------------------------------------------------


def test_the_finding_names_the_best_and_how_sure_that_is(comparison):
    finding = comparison.finding()
    assert finding.startswith("On held-out tasks (720 runs), oracle ranks a violation within 5 steps best")
    assert "1.000 [1.00, 1.00]" in finding
    assert "above category-prior: the interval excludes zero" in finding
    assert "best of 5" in finding


def test_the_finding_claims_nothing_that_the_interval_does_not_carry():
    noise = [NOISE, fixed("more noise", lambda cases: 1 - by_position(cases))]
    assert "cannot be told apart" in _run([CATEGORY, *noise]).finding()
    finding = _run([CATEGORY, HALF, TASK]).finding()
    assert "It is the reference itself: no predictor here does better than category-prior" in finding
    assert "excludes zero" not in finding


def test_the_finding_speaks_of_whole_runs_where_no_violating_call_is_known():
    cases = CaseSet(
        case(2, 2 if number % 2 else None, task=f"t{number % 20}", onset_known=False) for number in range(200)
    )
    assert "ranks which runs end violated best" in _run([CATEGORY, ORACLE], cases).finding()


def test_the_finding_says_nothing_where_nothing_can_be_said():
    assert "No task was held out" in _run([NOISE], random_runs(CASES)).finding()
    safe = CaseSet(case(1, task=f"t{number}") for number in range(30))
    assert "nothing can be said" in _run([NOISE], safe).finding()


def test_the_finding_is_of_held_out_tasks_whatever_comes_first():
    comparison = _run([CATEGORY, ORACLE], [random_runs(CASES), held_out_models(CASES), held_out_tasks(CASES)])
    assert [split.folds for split in comparison.splits] == [1, comparison.splits[1].folds, 5]
    assert comparison.finding().startswith("On held-out tasks (")


def test_everything_is_plain_data(comparison):
    written = json.loads(json.dumps(plain(comparison)))
    (split,) = written["splits"]
    assert split["kept_apart"] == ["task"]
    by_name = {result["name"]: result for result in split["predictors"]}
    assert by_name["oracle"]["steps"]["5"]["discrimination"]["within_category"]["macro"]["value"] == 1
    assert by_name["oracle"]["runs"]["recall"]["0.05"]["value"] == 1
    assert by_name["oracle"]["differences"]["run.within_category"]["excludes_zero"] is True
    assert by_name["half"]["runs"]["own"] is None
    assert written["finding"] == comparison.finding()


def test_the_same_seed_gives_the_same_comparison():
    def once(seed):
        rng = None if seed is None else np.random.default_rng(seed)
        figures = _run([NOISE], rng=rng).splits[0].predictor("noise").measures.figures()
        return {name: figure.interval() for name, figure in figures.items()}

    assert str(once(None)) == str(once(None))
    assert str(once(1)) == str(once(1)) != str(once(2))


def test_progress_is_told_piece_by_piece():
    told = []
    _run(
        [NOISE, HALF],
        held_out_sources(CaseSet([*CASES.cases, case(source="b"), case(source="b")])),
        progress=lambda *it: told.append(it),
    )
    assert [done for _, done, _ in told] == list(range(6))
    assert {total for *_, total in told} == {6}
    assert told[0][0] == "held-out source, b: noise"
