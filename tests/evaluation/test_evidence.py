"""Evidence: what was found comes first, and what it does not show follows at once."""

import json
import re

import pytest
from msgspec.structs import replace
from tests.evaluation.made_cases import Constant, by_position
from tests.evaluation.predictors.worlds import CATALOGUE, PAPER, world

from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.comparison import compare
from safetydrift.evaluation.document import Drawing, to_html, to_markdown
from safetydrift.evaluation.evidence import Evidence, Plan, gather_evidence
from safetydrift.evaluation.evidence_document import COLUMNS, caveats, evidence_document, summary
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.rate import plain
from safetydrift.evaluation.scores import Fixed
from safetydrift.states.trajectory import Notion

HOSTILE = "<script>alert(1)</script>|$x^{\n# no"
GIVEN = Circumstances(PAPER, CATALOGUE)
NAMES = ("monitor", "category-prior", "model-rate", "coarse-published-by-category", "silent")


def runs(seed=2, n=400):
    made = [case.run for case in world(seed, n).cases]
    return [replace(run, category=HOSTILE) if run.category == "category0" else run for run in made]


def gather(trajectories, plan):
    return gather_evidence(
        trajectories,
        GIVEN,
        lambda _cases: [predictor(name, GIVEN) for name in NAMES],
        plan,
        provenance={"corpus": HOSTILE},
    )


@pytest.fixture(scope="module")
def evidence():
    return gather(runs(), Plan(("tasks", "random"), resamples=20))


@pytest.fixture(scope="module")
def document(evidence):
    return evidence_document(evidence)


@pytest.fixture(scope="module")
def page(document):
    return to_html(document)


def test_the_report_begins_with_the_finding_and_says_what_it_does_not_show(evidence, document, page):
    text = page.replace("&#39;", "'")
    finding = evidence.comparison.finding()
    assert document.lead[0].startswith(finding)
    places = [text.index(finding[:60]), text.index("What this does not show"), text.index("<table>")]
    assert places == sorted(places)
    for caveat in caveats(evidence):
        assert caveat[:50] in text


def test_a_hostile_name_is_text_in_every_form_of_the_report(document, page):
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    text = to_markdown(document)
    assert "<script" not in text.replace("\\<script", "")
    assert "\n# no" not in text


def test_every_split_has_its_section_and_every_predictor_its_row(evidence, document):
    headings = [section.heading for section in document.sections]
    for split in evidence.comparison.splits:
        assert split.name[:1].upper() + split.name[1:] in headings
        assert summary(split, 5).column("predictor") == NAMES
        assert summary(split, 5).columns == ("predictor", *COLUMNS)


def test_evidence_as_plain_data_says_which_split_it_rests_on(evidence):
    told = json.loads(json.dumps(plain(evidence)))
    assert told["comparison"]["splits"][0]["name"] == "held-out tasks"
    assert told["provenance"]["resamples"] == 20
    assert told["provenance"]["corpus"] == HOSTILE
    assert told["sources"]["source0"]["runs"] + told["sources"]["source1"]["runs"] == 400


def test_one_fold_alone_tries_fewer_runs(evidence):
    first = gather(runs(), Plan(("tasks",), first_fold=True, resamples=0))
    assert first.comparison.splits[0].folds == 1
    assert 0 < first.comparison.splits[0].violated.total < evidence.comparison.splits[0].violated.total


# -- in words -----------------------------------------------------------------------------------------------


def test_the_lead_says_what_knowing_the_model_is_worth(document):
    (lead,) = document.lead
    assert "Knowing only which model acts (model-rate)" in lead
    assert "The published chain differs from the category-prior by" in lead


def test_predictors_without_skill_are_named(evidence):
    (said,) = [caveat for caveat in caveats(evidence) if caveat.startswith("No skill as probabilities.")]
    named = said.rpartition(": ")[2].rstrip(".").split(", ")
    figures = {one.name: one.measures.figures() for one in evidence.comparison.splits[0].predictors}
    skills = {name: found["step.5.brier_skill"] for name, found in figures.items() if name != "silent"}
    assert named == [name for name, skill in skills.items() if skill.interval()[0] <= 0]


def test_a_random_split_is_said_to_flatter(evidence):
    assert any(caveat.startswith("A random split flatters.") for caveat in caveats(evidence))


def test_a_source_without_onsets_and_one_without_labels_are_named():
    made = [
        replace(run, source="blind", label=type(run.label)(run.label.violated)) if number % 2 else run
        for number, run in enumerate(runs())
    ]
    made += [replace(run, source="quiet", label=type(run.label)()) for run in made[:3]]
    found = caveats(gather(made, Plan(resamples=5)))
    assert any("No onset in blind." in caveat for caveat in found)
    assert any("No labels in quiet." in caveat for caveat in found)


def test_predictors_of_the_user_are_drawn_first_and_those_that_look_at_nothing_are_not():
    mine = Fixed("mine", Constant("mine", by_position))
    cases, _ = cases_of(runs(), PAPER)
    compared = compare(
        [predictor("monitor", GIVEN), mine, predictor("silent", GIVEN)],
        cases,
        reference="mine",
        n_resamples=2,
    )
    evidence = Evidence(Notion.LABEL, {}, {}, compared, {})
    for drawing in evidence_document(evidence).parts(Drawing):
        names = re.findall(r"(?:^|; )([a-z-]+):", drawing.spoken)
        assert names == ["mine", "monitor"]
