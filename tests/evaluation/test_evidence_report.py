import json
import re
from html.parser import HTMLParser
from io import BytesIO
from math import nan
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from msgspec.structs import replace
from tests.evaluation.predictors.worlds import CATALOGUE, PAPER, world

from safetydrift.evaluation import figures
from safetydrift.evaluation.analyses.registry import ANALYSES
from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.evaluation.drawn import SHARES, band, fan
from safetydrift.evaluation.evidence import Plan, drawn_names, gather_evidence
from safetydrift.evaluation.evidence_figures import drawings, save_figures
from safetydrift.evaluation.evidence_report import render_evidence, write_evidence_page
from safetydrift.evaluation.evidence_words import DASH, caveats, finding, summary, written
from safetydrift.evaluation.metrics.resampling import Estimate
from safetydrift.evaluation.predictors import Circumstances, predictor

HOSTILE = "<script>alert(1)</script>|$x^{\n# no"
GIVEN = Circumstances(PAPER, CATALOGUE)
NAMES = ("monitor", "category-prior", "model-rate", "coarse-published-by-category", "silent")


def runs(seed=2, n=400):
    made = [case.run for case in world(seed, n).cases]
    return [replace(run, category=HOSTILE) if run.category == "category0" else run for run in made]


def gather(trajectories, plan):
    return gather_evidence(
        trajectories, GIVEN, lambda _cases: [predictor(name, GIVEN) for name in NAMES], plan
    )


@pytest.fixture(scope="module")
def evidence():
    return gather(runs(), Plan(("tasks", "random"), analyses=tuple(ANALYSES), resamples=20))


@pytest.fixture(scope="module")
def drawn(evidence):
    return drawings(evidence)


@pytest.fixture(scope="module")
def page(evidence, drawn):
    return render_evidence(evidence, drawn)


class Reader(HTMLParser):
    void = frozenset({"meta", "wbr", "use", "path", "rect", "br"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.addresses = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href", "xlink:href"}]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href", "xlink:href"}]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_well_formed_and_loads_nothing(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "object"} & reader.tags
    assert all(address.startswith("#") for address in reader.addresses)
    assert "default-src 'none'" in page
    assert not re.search(r"url\((?!#)", page)


def test_a_hostile_name_is_text_in_the_report(page):
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_ids_of_the_report_are_unique(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_same_evidence_gives_the_same_bytes(evidence, page):
    assert render_evidence(evidence) == page


def test_the_report_begins_with_the_finding_and_says_what_it_does_not_show(evidence, page):
    text = page.replace("&#39;", "'")
    places = [
        text.index(finding(evidence)[:60]),
        text.index("What this does not show"),
        text.index("<table>"),
    ]
    assert places == sorted(places)
    for caveat in caveats(evidence):
        assert caveat.split("'")[0][:50] in text


def test_every_figure_of_the_study_and_of_ours_is_drawn(drawn):
    keys = {one.key for one in drawn}
    study = {
        "matrix",
        "horizons",
        "horizons-by-category",
        "thresholds",
        "lead-times",
        "ablation",
        "learning-curve",
    }
    assert {one.key for one in drawn if one.published} == study
    assert {"recall", "reliability", "warning", "categories", "risk-by-step-monitor"} <= keys
    assert len(keys) == len(drawn)


def test_figures_are_saved_in_both_formats_and_are_the_same_every_time(evidence, drawn, tmp_path):
    first = save_figures(drawn[:2], tmp_path / "one")
    again = save_figures(drawings(evidence)[:2], tmp_path / "two")
    assert {path.suffix for path in first} == {".svg", ".png"}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    for path in first:
        if path.suffix == ".svg":
            assert ET.parse(path).getroot().tag.endswith("svg")  # noqa: S314 - our own drawing


def test_the_page_of_the_documentation_shows_its_figures_and_no_markup_of_others(evidence, drawn, tmp_path):
    path = tmp_path / "evidence.md"
    write_evidence_page(evidence, path, drawn=drawn)
    text = path.read_text("utf-8")
    shown = re.findall(r"\]\((evidence/[^)]+)\)", text)
    assert len(shown) == len(drawn)
    assert all((tmp_path / name).is_file() for name in shown)
    assert "<script" not in text.replace("\\<script", "")
    assert "\n# no" not in text
    assert "## What it does not show" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    assert all(line.endswith("|") for line in tables)


def test_every_row_of_a_table_is_as_wide_as_its_head(evidence, tmp_path):
    path = tmp_path / "evidence.md"
    write_evidence_page(evidence, path, drawn=[])
    width = 0
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert width in {0, cells}
        width = cells


def test_evidence_as_plain_data_says_which_split_it_rests_on(evidence):
    plain = json.loads(json.dumps(evidence.as_dict()))
    assert plain["comparison"]["splits"][0]["name"] == "held-out tasks"
    assert set(plain["analyses"]) == set(evidence.analyses)
    assert plain["provenance"]["resamples"] == 20


# -- in words -------------------------------------------------------------------------------------------


def test_the_finding_says_what_knowing_the_model_is_worth(evidence):
    assert "Knowing only which model acts (model-rate)" in finding(evidence)
    assert "The published chain differs from the category-prior by" in finding(evidence)


def test_predictors_without_skill_are_named(evidence):
    said = " ".join(caveats(evidence))
    rows = {row.name: row for row in summary(evidence.comparison.splits[0], 5)}
    for name, row in rows.items():
        skill = row.cells["Brier skill"]
        if isinstance(skill, Estimate) and skill.interval()[0] <= 0:
            assert name in said.partition("No skill as probabilities.")[2]


def test_a_source_without_onsets_is_named():
    made = [
        replace(run, source="blind", label=type(run.label)(run.label.violated)) if number % 2 else run
        for number, run in enumerate(runs())
    ]
    found = gather(made, Plan(resamples=5, with_curves=False))
    assert any("No onset in blind." in caveat for caveat in caveats(found))


@pytest.mark.parametrize(
    ("cell", "signed", "expected"),
    [
        (None, False, DASH),
        (nan, False, DASH),
        (Estimate(nan, np.zeros(3)), False, DASH),
        (0.25, False, "0.250"),
        (Estimate(0.25, np.empty(0)), False, "0.250"),
        (Estimate(0.25, np.full(9, 0.25)), True, "+0.250 [0.25, 0.25]*"),
        (Estimate(0.0, np.array([-0.5, 0.5])), True, "+0.000 [-0.47, 0.47]"),
    ],
)
def test_figures_are_written_with_their_intervals(cell, signed, expected):
    assert written(cell, signed=signed) == expected


# -- what is drawn --------------------------------------------------------------------------------------


def test_the_curve_of_an_oracle_detects_everything_without_false_alarms():
    cases = world(4, 200)
    curve = band(cases, cases.happens_within(100).astype(float), np.random.default_rng(0))
    assert curve.false_alarms == SHARES
    assert curve.detected[0] == 1
    assert curve.low[0] == 1


def test_a_curve_never_falls_and_lies_within_its_band():
    cases = world(4, 200)
    risk = np.random.default_rng(1).random(int(cases.first_point[-1]))
    curve = band(cases, risk, np.random.default_rng(0))
    assert list(curve.detected) == sorted(curve.detected)
    assert curve.detected[-1] == 1


def test_quantiles_of_risk_follow_the_runs_still_going():
    cases = world(4, 300)
    part = fan(cases, cases.step_of_point.astype(float)).calm
    assert list(part.runs) == sorted(part.runs, reverse=True)
    assert part.runs[0] == int((~cases.violated).sum())
    for row in part.quantiles:
        assert list(row) == list(range(len(part.runs)))


def test_runs_whose_violating_call_is_not_known_have_no_part_in_the_risk_by_step():
    cases = CaseSet(Case(case.run, case.onset, not case.violated) for case in world(4, 100).cases)
    assert fan(cases, np.zeros(int(cases.first_point[-1]))).violated.runs == (0,)


def test_what_the_user_brings_is_drawn_first():
    assert drawn_names(["monitor", "mine", "silent", "model-rate"]) == ["mine", "monitor", "model-rate"]


@pytest.mark.parametrize("maker", [figures.recall_figure, figures.warning_figure, figures.reliability_figure])
def test_nothing_to_draw_is_an_empty_figure(maker):
    stream = BytesIO()
    maker({}).savefig(stream, format="svg")
    assert stream.getvalue()
