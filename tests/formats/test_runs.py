import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.effects.history.sources import N_SOURCES
from safetydrift.errors import SpaceMismatchError, TraceFormatError
from safetydrift.formats import load_space
from safetydrift.formats.runs import RunWriter, is_runs_header, read_runs
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace
from safetydrift.states.task_words import WORD_BINS
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label

SPACE = load_space("paper")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
steps = st.one_of(st.none(), st.integers(1, 9))

words = st.lists(st.integers(0, WORD_BINS - 1), max_size=3, unique=True).map(sorted).map(tuple)


def per_step(values, n_steps):
    return st.lists(values, min_size=n_steps, max_size=n_steps).map(tuple)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    effects = tuple(draw(st.lists(st.integers(0, 59), max_size=6)))
    proposed = tuple(draw(st.lists(st.integers(0, 59), min_size=len(effects), max_size=len(effects))))
    return Trajectory.of_columns(
        draw(texts),
        effects=effects,
        proposed=proposed,
        states=fold(SPACE, effects),
        kinds=draw(per_step(st.lists(st.sampled_from(KINDS), max_size=2).map(tuple), len(effects))),
        tools=tuple(draw(st.lists(texts, min_size=len(effects), max_size=len(effects)))),
        words=draw(words),
        injected=draw(per_step(words, len(effects))),
        heard=draw(per_step(words, len(effects))),
        sources=draw(per_step(st.integers(0, N_SOURCES - 1), len(effects))),
        source=draw(texts),
        task=draw(texts),
        category=draw(texts),
        model=draw(texts),
        ending=draw(st.sampled_from(Ending)),
        label=Label(
            draw(st.sampled_from([None, True, False])),
            onset=draw(steps),
            exposure=draw(steps),
            attempt=draw(steps),
            attack=draw(texts),
            goal=draw(texts),
            unusable=draw(texts),
            origin=draw(texts),
        ),
    )


def written(*runs):
    stream = io.BytesIO()
    writer = RunWriter(stream, SPACE, "catalogue")
    for run in runs:
        writer.write(run)
    return list(enumerate(stream.getvalue().splitlines(), 1))


@given(st.lists(trajectories(), max_size=4))
def test_labelled_runs_survive_their_file_exactly(runs):
    assert list(read_runs(written(*runs), "runs.jsonl")) == runs


def test_the_header_is_told_from_traces():
    assert is_runs_header(written()[0][1])
    assert not is_runs_header(b'{"format": "safetydrift.trace/1"}')
    assert not is_runs_header(b"not json")
    assert not is_runs_header(b"[" * 100_000)


@given(trajectories())
def test_effects_are_translated_by_level_names_when_another_space_is_asked_for(run):
    space = StateSpace(
        "only data",
        (SPACE.dimensions[0],),
        ("ok", "bad"),
        (Rule({"data": "credentials"}, "bad"), Rule({}, "ok")),
        "bad",
    )
    (read,) = read_runs(written(run), "runs.jsonl", space)
    assert [space.decode(effect) for effect in read.effects] == [
        {"data": SPACE.decode(effect)["data"]} for effect in run.effects
    ]
    assert read.states == fold(space, read.effects)


def test_a_space_with_a_dimension_the_runs_know_nothing_of_is_refused():
    trust = Dimension("untrusted", ("no", "yes"), Accumulation.HIGHEST)
    space = StateSpace("wider", (*SPACE.dimensions, trust), SPACE.risks, SPACE.rules, "violated")
    with pytest.raises(SpaceMismatchError, match="without the dimension 'untrusted' of space 'wider'"):
        list(read_runs(written(), "runs.jsonl", space))
    data = Dimension("data", ("none", "top-secret"), Accumulation.HIGHEST)
    with pytest.raises(SpaceMismatchError, match="no level 'public'"):
        list(read_runs(written(), "r", StateSpace("s", (data,), ("ok", "bad"), (Rule({}, "ok"),), "bad")))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{}", "missing required field `id`"),
        (b"not json", "not a labelled run"),
        (b'{"id": "x", "moves": [["a", 0, 60]], "states": [0, 0]}', "an effect lies outside 0 to 59"),
        (b'{"id": "x", "moves": [["a", 60, 0]], "states": [0, 0]}', "an effect lies outside 0 to 59"),
        (b'{"id": "x", "moves": [["a", 0, -1]], "states": [0, 0]}', "Expected `int` >= 0"),
        (b'{"id": "x", "moves": [["a", 3, 3]], "states": [0, 4]}', "states do not follow from its effects"),
        (b'{"id": "x", "moves": [["a", 3, 3]], "states": [0]}', "states do not follow from its effects"),
        (b'{"id": "x", "moves": [["a", 0, 0, ["rudeness"]]], "states": [0, 0]}', "a kind of violation"),
        (b'{"id": "x", "moves": [["a", 0, 0, [], [16384]]], "states": [0, 0]}', "Expected `int` <= 16383"),
        (b'{"id": "x", "moves": [["a", 0, 0, [], [], 99999]], "states": [0, 0]}', "the sources of arguments"),
        (b'{"id": "x", "moves": [["a", 0, 0, [], [], 0, [], 1]], "states": [0, 0]}', "at most length 7"),
        (b'{"id": "x", "moves": [], "states": [0], "ending": "later"}', "later"),
        (b'{"id": "x", "moves": [], "states": [0], "labels": {}}', "unknown field `labels`"),
        (b"[" * 100_000, "not a labelled run"),
        (None, "too long to be a run"),
    ],
)
def test_a_line_that_is_no_run_is_named_with_its_reason(line, reason):
    with pytest.raises(TraceFormatError, match=r"runs\.jsonl:2: ") as caught:
        list(read_runs([written()[0], (2, line)], "runs.jsonl"))
    assert reason in str(caught.value)


@pytest.mark.parametrize("header", [b"", b"{}", b"[]", b'{"format": 3}'])
def test_a_file_without_a_header_is_refused(header):
    with pytest.raises(TraceFormatError, match="not a header of labelled runs"):
        list(read_runs([(1, header)], "runs.jsonl"))


def test_a_header_of_another_version_or_another_space_is_refused():
    header = json.loads(written()[0][1])
    with pytest.raises(TraceFormatError, match=r"'safetydrift.runs/9' is not supported"):
        list(read_runs([(1, json.dumps({**header, "format": "safetydrift.runs/9"}).encode())], "r"))
    with pytest.raises(TraceFormatError, match="not the one its identity names"):
        list(read_runs([(1, json.dumps({**header, "space_identity": "beef"}).encode())], "r"))
