"""The report: one file that needs nothing, shows everything, and trusts no name."""

import importlib
import itertools
import random
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from msgspec import structs

from safetydrift.errors import MissingExtraError
from safetydrift.evaluation.findings import find
from safetydrift.evaluation.report import render_report, write_report
from safetydrift.formats import load_catalogue, load_space
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Notion, Trajectory, fold
from safetydrift.trace import Ending, Label

HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}$x^{"
VOID = {"meta", "br", "wbr", "use", "path", "rect", "link", "img"}
SECTIONS = ["finding", "sources", "agreement", "categories", "held-out", "runs", "reading", "provenance"]
VIOLATED_SHARE = {"banking": 0.5, "slack": 0.3, "shopping": 0.2, "airline": 0.0}
SOURCE = {"banking": "agentdojo", "slack": "agentdojo", "shopping": "agentdyn", "airline": "tau_bench"}


@pytest.fixture(scope="module")
def space():
    return load_space("paper")


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


def made_up_run(number, space, chance):
    category = chance.choice(list(VIOLATED_SHARE))
    violated = chance.random() < VIOLATED_SHARE[category]
    effects = tuple(
        space.encode(
            {
                "data": chance.choices(
                    ("none", "internal", "sensitive", "credentials"), (6, 3, 1 + violated, 1)
                )[0],
                "tool": chance.choices(("read_only", "file_write", "network"), (6, 2, 1 + 2 * violated))[0],
                "reversibility": chance.choice(("fully_reversible", "irreversible")),
            }
        )
        for _ in range(chance.randint(1, 12))
    )
    return Trajectory(
        f"{category}/{number:03d}",
        states=fold(space, effects),
        effects=effects,
        tools=("read_file",) * len(effects),
        source=SOURCE[category],
        task=f"{category}/task_{chance.randrange(9)}",
        category=category,
        model="a model",
        ending=Ending.COMPLETED if chance.random() < 0.9 else Ending.CENSORED,
        label=Label(
            violated,
            onset=chance.randint(1, len(effects)) if violated and chance.random() < 0.8 else None,
            unusable="two judges disagree" if chance.random() < 0.05 else "",
        ),
    )


@pytest.fixture(scope="module")
def runs(space):
    chance = random.Random(11)  # noqa: S311 - made-up runs, not secrets
    return [made_up_run(number, space, chance) for number in range(300)]


@pytest.fixture(scope="module")
def findings(runs, space, catalogue):
    return find(runs, space, catalogue)


@pytest.fixture(scope="module")
def page(findings):
    return render_report(findings)


class Page(HTMLParser):
    """Elements in order, with their attributes, and a check that they nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def body_text(page):
    return re.sub(r"<[^>]+>", " ", page.split("<body>")[1])


def test_elements_nest_and_ids_are_unique(page):
    parsed = Page(page)
    assert not parsed.open
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = [part for _, a in parsed.elements for part in a.get("aria-labelledby", "").split()]
    assert set(referred) <= set(ids)


def test_the_file_loads_nothing_from_anywhere(page):
    parsed = Page(page)
    for tag, attributes in parsed.elements:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "image"}
        for name in ("src", "srcset", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert "://" not in page
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))


def test_the_page_forbids_itself_to_load_or_run_anything(page):
    policies = [meta["content"] for meta in Page(page).of("meta") if "http-equiv" in meta]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'")
    assert "script-src" not in policies[0]


def test_the_page_fits_a_phone_and_names_its_language(page):
    parsed = Page(page)
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in parsed.of("meta")
    assert parsed.of("html") == [{"lang": "en"}]
    assert page.startswith("<!doctype html>\n")


def test_light_dark_and_paper_are_provided_for(page):
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_every_table_scrolls_in_a_container_that_can_be_reached(page):
    containers = re.findall(
        r'<div class="scroll" role="region" aria-label(?:ledby)?="[^"]+" tabindex="0">\s*<table', page
    )
    assert len(containers) == page.count("<table")


def test_sections_come_in_order_and_headings_skip_no_level(page):
    positions = [page.index(f'id="{section}"') for section in SECTIONS]
    assert positions == sorted(positions)
    levels = [int(tag[1]) for tag, _ in Page(page).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_figure_is_there_and_says_what_it_shows(page, findings):
    drawings = [attributes["aria-labelledby"].split("-title")[0] for attributes in Page(page).of("svg")]
    n = len(findings.categories)
    examples = len(findings.held_out.examples)
    assert examples
    expected = {
        "categories",
        "published",
        "published-method",
        "lead-times",
        *(f"replay-{k}" for k in range(examples)),
    }
    expected |= {f"{kind}-{k}" for kind in ("matrix", "horizon") for k in range(n)}
    assert set(drawings) == expected
    assert len(drawings) == len(expected)
    assert page.count("<title id=") == page.count("<desc id=") == len(drawings)
    assert not re.search(r"<(title|desc) id=[^>]*></\1>", page)


def test_the_finding_says_how_many_runs_and_what_is_not_shown(page, findings):
    text = body_text(page)
    assert "300 runs of agents from 3 sources" in text
    violated = sum(part.violated.hits for part in findings.sources.values())
    usable = sum(part.violated.total for part in findings.sources.values())
    assert f"({violated} of {usable})" in text
    assert f"({findings.held_out.detected.hits} of {findings.held_out.detected.total})" in text
    assert "category prior" in text


def test_every_source_category_and_reason_is_listed(page, findings):
    text = body_text(page)
    for name, part in findings.sources.items():
        assert name in text
        assert f"{part.steps:,}" in text
    for category in findings.categories:
        assert (category or "all runs") in text
    assert "two judges disagree" in text


def test_published_figures_are_named_a_reference(page):
    text = body_text(page)
    for printed in ("94.7", "11.8", "46.3", "29.5"):
        assert printed in text
    assert "Published, for reference" in text
    assert text.count("(reference)") == 2


def test_the_sources_of_the_runs_are_credited(page):
    assert "Tramèr" in page
    assert "McGill" not in page


def test_the_same_findings_give_the_same_bytes(findings, tmp_path, page):
    for name in ("one.html", "two.html"):
        write_report(findings, tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes() == page.encode()


def test_the_file_stays_small(page):
    assert len(page.encode()) < 2_000_000


def test_no_name_is_taken_for_markup(runs, space, catalogue):
    hostile = [
        structs.replace(
            run,
            id=HOSTILE + run.id,
            source=HOSTILE + run.source,
            category=HOSTILE + run.category,
            model=HOSTILE,
            tools=(HOSTILE,) * run.n_steps,
            label=structs.replace(run.label, unusable=run.label.unusable and HOSTILE),
        )
        for run in runs
    ]
    page = render_report(find(hostile, space, catalogue))
    parsed = Page(page)
    assert not parsed.of("script")
    assert not parsed.open
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page


def test_an_example_shows_each_of_its_calls(page, findings):
    for example in findings.held_out.examples:
        assert example.trajectory.id in page
    calls = sum(len(example.standing) for example in findings.held_out.examples)
    runs_section = page.split('id="runs"')[1].split('id="reading"')[0]
    assert runs_section.count("<tr") - runs_section.count("<thead") == calls


def test_the_rules_are_named_where_they_decide(runs, space, catalogue):
    text = body_text(render_report(find(runs, space, catalogue, FitSettings(notion=Notion.RULES))))
    assert "By the rules of the state space" in text
    assert "By the label of their source" not in text


def test_runs_of_one_category_without_violations_are_no_trouble(runs, space, catalogue):
    calm = [run for run in runs if run.category == "airline"]
    text = body_text(render_report(find(calm, space, catalogue)))
    assert "nothing can be said about what it would foresee" in text
    assert "No violation was foreseen" in text


def test_a_single_state_is_no_trouble(space, catalogue):
    still = [
        Trajectory(
            f"run {k}",
            states=(0, 0),
            effects=(0,),
            task=f"t{k}",
            ending=Ending.COMPLETED,
            label=Label(violated=False),
        )
        for k in range(20)
    ]
    assert "all runs" in render_report(find(still, space, catalogue))


def test_runs_that_were_all_cut_off_are_no_trouble(runs, space, catalogue):
    cut = [structs.replace(run, ending=Ending.CENSORED, label=Label(violated=False)) for run in runs]
    assert "all runs" in render_report(find(cut, space, catalogue))


def test_a_report_without_held_out_runs_says_so(findings):
    nothing = replace(findings.held_out, examples=(), lead_times={}, tasks_tried=0)
    assert "No run of a held-out task could be used" in body_text(
        render_report(replace(findings, held_out=nothing))
    )


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "safetydrift.evaluation.report")
    with pytest.raises(MissingExtraError, match=r"the report needs jinja2.*safetydrift\[report\]"):
        importlib.import_module("safetydrift.evaluation.report")
