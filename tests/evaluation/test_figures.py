"""Figures: safe with any name, blind to the caller's settings, and the same every time."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from safetydrift.evaluation import figures
from safetydrift.evaluation.metrics.calibration import ReliabilityPoint
from safetydrift.evaluation.metrics.detection import Sweep
from safetydrift.evaluation.rate import Rate
from safetydrift.markov.chain import AbsorbingChain
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.reference_chains import published_chain

HOSTILE = "$x^{ <script>alert(1)</script> & \n\u202e 中"


def chain(name="safe"):
    matrix = [[0.6, 0.3, 0.1, 0.0], [0.0] * 4, [0.0] * 4, [0.0] * 4]
    ends = {"violated": [2], "completed": [3]}
    return AbsorbingChain(matrix, ends, [name, "lost", "violated", "completed"], [True, False, True, True])


SWEEP = Sweep((0.1, 0.5), (3, 1), (2, 0), (2.0, 1.0), violated=4, not_violated=5)
DRAW = {
    "matrix": lambda name: figures.matrix_figure(chain(name), [7, 0, 0, 0], chain(name)),
    "horizons": lambda name: figures.horizons_figure({name: horizon_table(chain(name))}, {name: 0.5}),
    "recall": lambda name: figures.recall_figure({name: SWEEP}),
    "reliability": lambda name: figures.reliability_figure({name: [ReliabilityPoint(0.2, Rate(1, 4))]}),
    "lead-time": lambda _name: figures.lead_time_figure({1: 4, 3: 1, 40: 2}, 3.7),
    "curves": lambda name: figures.curves_figure(
        {name: ([0, 1], [1, 0])}, "x", "y", points={name: ([0.5], [0.5])}
    ),
}


def texts(figure):
    svg = figures.encoded(figure, "svg")
    return [element.text for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_is_the_same_every_time_whatever_the_caller_has_set(name):
    expected = [figures.encoded(DRAW[name]("safe"), suffix) for suffix in ("svg", "png")]
    with mpl.rc_context(
        {"font.size": 30, "lines.linewidth": 9, "xtick.color": "red", "svg.fonttype": "path"}
    ):
        assert [figures.encoded(DRAW[name]("safe"), suffix) for suffix in ("svg", "png")] == expected


@pytest.mark.parametrize("name", sorted(set(DRAW) - {"lead-time"}))
def test_a_hostile_name_is_drawn_as_plain_text_on_one_line(name):
    drawn = [text for text in texts(DRAW[name](HOSTILE)) if text and text.startswith("$x^{ <script>")]
    assert drawn
    assert not any("\n" in text or "\u202e" in text for text in drawn)


def test_names_are_cut_when_too_long():
    assert len(figures.name_of("long" * 30)) == figures.LONGEST_NAME


def test_drawing_leaves_the_settings_of_the_caller_alone():
    settings = set(mpl.rcParams) - {"backend"}  # asking for the backend would choose one
    before = {name: mpl.rcParams[name] for name in settings}
    figures.encoded(DRAW["matrix"]("safe"), "svg")
    assert {name: mpl.rcParams[name] for name in settings} == before


def test_no_drawing_chooses_a_backend():
    program = (
        "import sys; from safetydrift.evaluation import figures;"
        "figures.encoded(figures.lead_time_figure({1: 2}), 'svg');"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_states_that_play_no_part_are_not_drawn():
    matrix = [[0.5, 0.0, 0.5], [0.0] * 3, [0.0] * 3]
    aside = AbsorbingChain(matrix, {"violated": [2]}, ["here", "aside", "violated"], [True, False, True])
    shown = texts(figures.matrix_figure(aside))
    assert "here" in shown
    assert "aside" not in shown


def test_the_published_chain_is_drawn_with_its_printed_figures():
    assert {"0.54", "0.32", "0.93"} <= set(texts(figures.matrix_figure(published_chain().chain)))


def test_lead_times_beyond_the_last_bar_are_gathered_not_dropped():
    heights = [bar.get_height() for bar in DRAW["lead-time"]("").axes[0].containers[0]]
    assert sum(heights) == 7
    assert heights[-1] == 2


def test_a_recall_curve_goes_from_everything_alarms_to_nothing_does():
    (line,) = DRAW["recall"]("ours").axes[0].lines
    across, up = line.get_xydata().T  # type: ignore[union-attr]  # as an array
    np.testing.assert_allclose(across**2, [1, 0.4, 0, 0])
    np.testing.assert_allclose(up, [1, 0.75, 0.25, 0])


@pytest.mark.parametrize("draw", [figures.recall_figure, figures.reliability_figure, figures.horizons_figure])
def test_nothing_to_draw_is_an_empty_figure(draw):
    assert figures.encoded(draw({}), "svg")
