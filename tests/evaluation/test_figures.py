"""Figures: usable on their own, safe with any name, and the same every time."""

import importlib
import itertools
import subprocess
import sys
from io import BytesIO
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from safetydrift.errors import MissingExtraError
from safetydrift.evaluation import figures
from safetydrift.evaluation.inline_svg import inline_svg
from safetydrift.evaluation.palette import CSS_COLOURS
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.replay import Replay
from safetydrift.markov.chain import AbsorbingChain
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.reference_chains import published_chain
from safetydrift.monitor.session import TrajectoryState
from safetydrift.monitor.verdict import Basis, Intervention, Verdict
from safetydrift.states.trajectory import Trajectory

HOSTILE = "$x^{ <script>alert(1)</script> & \n\u202e 中"


def verdict(probability, *, alarm=False):
    unseen = np.isnan(probability)
    return Verdict(
        state=0,
        risk="safe",
        probability=probability,
        horizon=5,
        within=(0.0,) * 6,
        eventually=0.0,
        uncertain=0.0,
        basis=Basis.UNSEEN if unseen else Basis.ESTIMATED,
        alarm=alarm,
        intervention=Intervention.WARN if alarm else Intervention.ALLOW,
    )


def replayed(probabilities, onset=None, threshold=0.4):
    verdicts = [verdict(value, alarm=bool(np.isnan(value) or value >= threshold)) for value in probabilities]
    steps = len(verdicts) - 1
    run = Trajectory.of_columns("run", states=(0,) * (steps + 1), effects=(0,) * steps)
    positions = tuple(TrajectoryState("", 0, step, (0, 0, 0)) for step in range(steps + 1))
    return Replay(run, positions, tuple(verdicts), tuple(verdicts[:-1]), onset)


def chain(name="safe"):
    matrix = [[0.6, 0.3, 0.1, 0.0], [0.0] * 4, [0.0] * 4, [0.0] * 4]
    visited = [True, False, True, True]
    return AbsorbingChain(
        matrix, {"violated": [2], "completed": [3]}, [name, "lost", "violated", "completed"], visited
    )


DRAW = {
    "matrix": lambda name: figures.matrix_figure(chain(name), np.array([7, 0, 0, 0])),
    "horizon": lambda name: figures.horizon_figure(horizon_table(chain(name))),
    "category": lambda name: figures.category_figure({"": Rate(3, 9), name: Rate(0, 4), "none": Rate(0, 0)}),
    "lead-time": lambda name: figures.lead_time_figure({1: 4, 3: 1, 40: 2}),
    "replay": lambda name: figures.replay_figure(
        replayed([0.1, 0.5, np.nan, 0.2], onset=3), 0.4, pending_threshold=0.5
    ),
}


def inline(figure, key="a"):
    return inline_svg(figure, key=key, title="t", description="d")


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter("text")]  # noqa: S314 - our own drawing


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_can_be_saved_as_it_is(name):
    for suffix in ("svg", "png"):
        stream = BytesIO()
        DRAW[name]("safe").savefig(stream, format=suffix)
        assert stream.getvalue()


@pytest.mark.parametrize("name", DRAW)
def test_an_inline_drawing_is_the_same_every_time(name):
    first, second = (inline(DRAW[name]("safe")) for _ in range(2))
    assert first == second


def test_drawing_leaves_the_settings_of_the_caller_alone():
    settings = set(mpl.rcParams) - {"backend"}  # asking for the backend would choose one
    before = {name: mpl.rcParams[name] for name in settings}
    inline(DRAW["matrix"]("safe"))
    assert {name: mpl.rcParams[name] for name in settings} == before


def test_no_drawing_chooses_a_backend():
    program = (
        "import sys; from safetydrift.evaluation import figures;"
        "from safetydrift.evaluation.inline_svg import inline_svg;"
        "inline_svg(figures.lead_time_figure({1: 2}), key='a', title='t', description='d');"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_settings_of_the_caller_do_not_change_a_drawing():
    expected = inline(DRAW["replay"]("safe"))
    with mpl.rc_context(
        {"font.size": 30, "lines.linewidth": 9, "xtick.color": "red", "svg.fonttype": "path"}
    ):
        assert inline(DRAW["replay"]("safe")) == expected


@pytest.mark.parametrize("name", DRAW)
def test_every_colour_of_an_inline_drawing_belongs_to_the_page(name):
    svg = inline(DRAW[name]("safe"))
    assert "var(--" in svg
    assert not [colour for colour in CSS_COLOURS if colour in svg.lower()]


def test_ids_of_two_drawings_on_a_page_do_not_meet():
    drawings = [inline(DRAW["replay"]("safe"), key) for key in ("one", "two")]
    one, two = ({part.get("id") for part in ET.fromstring(svg).iter() if part.get("id")} for svg in drawings)  # noqa: S314
    assert one
    assert not one & two


def test_references_inside_a_drawing_lead_to_something_in_it():
    root = ET.fromstring(inline(DRAW["replay"]("safe"), "one"))  # noqa: S314
    ids = {part.get("id") for part in root.iter()}
    references = [part.get("href", "")[1:] for part in root.iter() if part.get("href")]
    references += [part.get("clip-path", "")[5:-1] for part in root.iter() if part.get("clip-path")]
    assert references
    assert set(references) <= ids


def test_a_drawing_has_a_title_and_a_description_for_those_who_cannot_see_it():
    svg = inline_svg(DRAW["matrix"]("safe"), key="m", title="a <title>", description="what it shows")
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "m-title m-desc"
    assert [root.findtext(part) for part in ("title", "desc")] == ["a <title>", "what it shows"]


def test_a_drawing_brings_no_style_sheet_and_no_metadata_into_the_page():
    svg = inline(DRAW["matrix"]("safe"))
    assert not {"style", "metadata", "script"} & {part.tag for part in ET.fromstring(svg).iter()}  # noqa: S314
    assert "http" not in svg


@pytest.mark.parametrize("name", ["matrix", "horizon", "category"])
def test_a_hostile_name_is_drawn_as_plain_text(name):
    svg = inline_svg(DRAW[name](HOSTILE), key="a", title=HOSTILE, description=HOSTILE)
    assert "<script" not in svg
    assert any(text and text.startswith("$x^{ <script>") for text in texts(svg))


def test_names_are_drawn_on_one_line_and_cut_when_too_long():
    assert "\n" not in figures.plain_text("a\nb")
    assert len(figures.plain_text("long" * 30)) == figures.LONGEST_NAME


def test_a_risk_level_is_not_mistaken_for_the_end_of_a_run():
    both = AbsorbingChain(np.eye(2)[[1, 1]], {"violated": [1]}, ["violated", "violated"])
    assert figures.state_names(both) == ["violated (rules)", "ends violated"]


def test_a_row_that_was_never_left_is_marked_so():
    svg = inline(DRAW["matrix"]("safe"))
    assert "never left" in texts(svg)


def test_states_that_play_no_part_are_not_drawn():
    matrix = [[0.5, 0.0, 0.5], [0.0] * 3, [0.0] * 3]
    aside = AbsorbingChain(matrix, {"violated": [2]}, ["here", "aside", "violated"], [True, False, True])
    shown = texts(inline(figures.matrix_figure(aside)))
    assert "here" in shown
    assert "aside" not in shown


def test_the_published_chain_is_drawn_with_its_printed_figures():
    shown = texts(inline(figures.matrix_figure(published_chain().chain)))
    assert {"0.54", "0.32", "0.93"} <= set(shown)


def test_lead_times_beyond_the_last_bar_are_gathered_not_dropped():
    figure = figures.lead_time_figure({1: 4, 16: 1, 40: 2})
    heights = [bar.get_height() for bar in figure.axes[0].containers[0]]
    assert sum(heights) == 7
    assert heights[-1] == 3


@pytest.mark.parametrize(
    "replay",
    [
        replayed([0.0]),
        replayed([np.nan, np.nan], onset=1),
        replayed([0.1] * 70),
        replayed([1.0, 1.0], onset=1),
    ],
    ids=["no calls", "all unseen", "long", "certain"],
)
def test_every_shape_of_run_can_be_drawn(replay):
    assert "<svg" in inline(figures.replay_figure(replay, 0.4))


def test_a_category_without_runs_has_an_interval_and_no_point():
    axes = figures.category_figure({"none": Rate(0, 0)}).axes[0]
    assert [line.get_marker() for line in axes.lines] == ["None"]


def test_many_states_are_drawn_in_one_colour_and_the_highest_are_named():
    n = 12
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, n] = np.linspace(0.01, 0.9, n)
    matrix[range(n), range(n)] = 1 - matrix[:n, n]
    many = AbsorbingChain(matrix, {"violated": [n]}, [f"s{state}" for state in range(n)] + ["end"])
    shown = texts(inline(figures.horizon_figure(horizon_table(many))))
    named = [text for text in shown if text and text.startswith("s") and text[1].isdigit()]
    assert len(named) == figures.LEGIBLE_CURVES
    assert any(text.startswith("s11") for text in named)


@pytest.mark.parametrize("heights", [[0.9, 0.9, 0.9], [0.01, 0.005, 0.0], [0.5], [], [1.0, 0.5, 0.49, 0.1]])
def test_labels_beside_curves_keep_apart_and_inside(heights):
    spread = figures.spread_apart(heights, 0.09, 1.0)
    assert all(above - below >= 0.09 - 1e-12 for above, below in itertools.pairwise(spread))
    assert all(-1e-12 <= height <= 1.0 for height in spread)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "safetydrift.evaluation.figures")
    with pytest.raises(MissingExtraError, match=r"the report needs matplotlib.*safetydrift\[report\]"):
        importlib.import_module("safetydrift.evaluation.figures")
