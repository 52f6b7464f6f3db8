"""Reports: one file that needs nothing, shows everything, and trusts no name."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from math import nan
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from safetydrift.evaluation.document import (
    Document,
    Drawing,
    Section,
    Table,
    figure,
    save_drawings,
    to_html,
    to_markdown,
    written,
)
from safetydrift.evaluation.metrics.resampling import Estimate
from safetydrift.evaluation.rate import Rate

HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}|$x^{\n# no"
VOID = {"meta", "br", "img"}


def drawing(key="lines"):
    curves = {HOSTILE: ([0, 1], [0, 1])}
    return Drawing(key, HOSTILE, HOSTILE, HOSTILE, figure("curves_figure", curves, "across", "up"))


@pytest.fixture(scope="module")
def document():
    table = Table(
        HOSTILE, HOSTILE, ("name", HOSTILE, "published"), ((HOSTILE, 0.5, 1), (None, nan, Rate(1, 2)))
    )
    parts = (HOSTILE, (HOSTILE, "an item"), table, drawing())
    return Document(HOSTILE, (HOSTILE, "second"), (Section(HOSTILE, parts),))


@pytest.fixture(scope="module")
def page(document):
    return to_html(document)


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

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_page_is_well_formed_and_loads_nothing_from_anywhere(page):
    read = Page(page)
    assert read.open == []
    assert not {tag for tag, _ in read.elements} & {"script", "link", "iframe", "object", "embed", "base"}
    for tag, attributes in read.elements:
        addresses = [attributes[name] for name in ("src", "srcset", "href", "action") if name in attributes]
        assert all(tag == "img" and one.startswith("data:image/svg+xml;base64,") for one in addresses)
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in page
    assert "url(" not in page


def test_a_page_forbids_itself_to_run_anything(page):
    (policy,) = [meta["content"] for meta in Page(page).of("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy


def test_hostile_names_are_text_in_a_page(page):
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 10
    assert "49" not in page.replace("7 * 7", "")[page.index("<body>") :].split("data:")[0]


def test_a_drawing_in_a_page_is_a_picture_with_words_for_those_who_cannot_see_it(page):
    (image,) = Page(page).of("img")
    assert image["alt"] == HOSTILE
    drawn = b64decode(image["src"].partition(",")[2])
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314  # our own drawing


def test_figures_of_other_runs_are_set_apart(page):
    assert '<td class="muted">1</td>' in page


def test_no_text_is_markup_in_markdown_and_rows_are_as_wide_as_their_head(document):
    text = to_markdown(document, "figures")
    assert "<script" not in text.replace("\\<script", "")
    assert "\n# no" not in text
    assert "](figures/lines.svg)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}


def test_drawings_are_left_out_of_markdown_that_has_no_place_for_them(document):
    assert "lines.svg" not in to_markdown(document)


def test_the_same_document_gives_the_same_bytes(document, page, tmp_path):
    assert to_html(document) == page
    for folder in ("one", "two"):
        save_drawings([drawing()], tmp_path / folder)
    for suffix in ("svg", "png"):
        assert (tmp_path / "one" / f"lines.{suffix}").read_bytes() == (
            tmp_path / "two" / f"lines.{suffix}"
        ).read_bytes()


def test_plain_data_holds_every_entry(document):
    (section,) = document.as_dict()["sections"].values()
    assert section[2]["rows"][0] == {"name": HOSTILE, HOSTILE: 0.5, "published": 1}
    assert section[2]["rows"][1]["published"]["total"] == 2


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, ""),
        (nan, "\N{EN DASH}"),
        (0.0, "0.000"),
        (0.25, "0.250"),
        (0.00012345, "0.000123"),
        (12345, "12,345"),
        (Rate(1, 2), "1/2 = 50.0 % [9.5, 90.5]"),
        (Estimate(nan, np.zeros(3)), "\N{EN DASH}"),
        (Estimate(0.25, np.empty(0)), "0.250"),
        (Estimate(0.25, np.full(9, 0.25)), "0.250 [0.25, 0.25]"),
    ],
)
def test_entries_are_written_with_their_intervals(cell, expected):
    assert written(cell) == expected


def test_a_difference_that_is_not_zero_for_sure_has_a_star():
    assert Estimate(0.25, np.full(9, 0.25)).written(signed=True) == "+0.250 [0.25, 0.25]*"
    assert Estimate(0.0, np.array([-0.5, 0.5])).written(signed=True) == "+0.000 [-0.47, 0.47]"


def test_a_table_refuses_rows_and_columns_that_cannot_be_told_apart():
    with pytest.raises(ValueError, match="share a name"):
        Table("", "", ("a", "a"), ())
    with pytest.raises(ValueError, match="2 columns and a row of 1"):
        Table("", "", ("a", "b"), ((1,),))
