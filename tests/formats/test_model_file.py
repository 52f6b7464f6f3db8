import json
import math
import operator
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.errors import ModelFileError, SpaceMismatchError
from safetydrift.formats import load_catalogue, load_model, load_space, save_model
from safetydrift.monitor.fitting import fit_model
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label

SPACE = load_space("paper")


@pytest.fixture(scope="module")
def model():
    runs = [
        Trajectory.of_columns(
            "r",
            effects=effects,
            states=fold(SPACE, effects),
            ending=Ending.COMPLETED,
            label=Label(violated=False),
        )
        for effects in ((36, 12), (3,), (36, 11))
    ]
    return fit_model(runs, SPACE, load_catalogue(), threshold=0.3)[0]


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.json"
    save_model(model, path)
    return path


def rewritten(path, change):
    """Return a copy of a model file whose content was changed and whose digest was made to fit again."""
    header, body = path.read_bytes().rstrip(b"\n").split(b"\n")
    content = json.loads(body)
    change(content)
    body = json.dumps(content).encode()
    header = json.dumps({**json.loads(header), "sha256": sha256(body).hexdigest()}).encode()
    copy = path.with_name("rewritten.json")
    copy.write_bytes(header + b"\n" + body + b"\n")
    return copy


def in_table(change):
    return lambda content: change(content["tables"][""])


def test_a_model_survives_its_file_exactly(model, saved):
    again = load_model(saved)
    for name in ("space", "catalogue", "notion", "row_of", "rows", "policy", "settings"):
        assert getattr(again, name) == getattr(model, name), name
    for category, table in model.tables.items():
        # nan is not equal to itself, its representation is
        assert repr(again.tables[category]) == repr(table)
    assert again.provenance == model.provenance


def test_saving_the_same_model_twice_gives_the_same_bytes(model, saved, tmp_path):
    save_model(load_model(saved), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()


def test_one_changed_byte_is_noticed(saved):
    data = bytearray(saved.read_bytes())
    position = data.index(b'"within"') + 30
    data[position] ^= 1
    saved.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"model\.json: damaged: its content has digest"):
        load_model(saved)


def test_a_file_cut_short_is_noticed(saved):
    saved.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a SafetyDrift model file"),
        (b"hello\n{}", "not a SafetyDrift model file"),
        (b"[1, 2]\n{}", "not a SafetyDrift model file"),
        (b"\x80\x04\x95 a pickle", "not a SafetyDrift model file"),
        (b'{"format": "safetydrift.model/9", "sha256": ""}\n{}', "'safetydrift.model/9' is not supported"),
        (
            b'{"format": "safetydrift.model/2", "sha256": ""}\n{}',
            r"/2' is not supported.*fit the model again",
        ),
        (b'{"format": "safetydrift.model/3"}\n{}', "damaged"),
        (b"[" * 100_000, "not a SafetyDrift model file"),
    ],
)
def test_what_is_no_model_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"odd\.json: .*{message}"):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("rows"), "missing or of the wrong shape.*rows"),
        (lambda content: content["tables"].pop(""), "lack the aggregate"),
        (in_table(lambda table: table["within"].pop()), "differ in horizon"),
        (in_table(lambda table: table["within"][3].pop()), "has not 60 rows"),
        (
            in_table(lambda table: table["within"].__setitem__(5, [None] * 60)),
            "not known of a row that was visited",
        ),
        (
            in_table(lambda table: operator.setitem(table["within"][5], 0, True)),
            "missing or of the wrong shape",
        ),
        (in_table(lambda table: table["within"][0].__setitem__(0, 0.5)), "within no steps at all"),
        (in_table(lambda table: table["within"][2].__setitem__(0, 0.9)), "falls as the horizon grows"),
        (in_table(lambda table: table.__setitem__("within", [])), "missing or of the wrong shape"),
        (in_table(lambda table: table["eventually"].__setitem__(0, 1.5)), "missing or of the wrong shape"),
        (in_table(lambda table: table["arrival"].__setitem__(1, math.nan)), "missing or of the wrong shape"),
        (in_table(lambda table: table["eventually"].__setitem__(0, "x")), "missing or of the wrong shape"),
        (in_table(lambda table: table["uncertain"][1].__setitem__(0, 9)), "missing or of the wrong shape"),
        (in_table(lambda table: table["arrival"].__setitem__(0, 7.5)), "missing or of the wrong shape"),
        (in_table(lambda table: table["arrival"].__setitem__(0, -3)), "missing or of the wrong shape"),
        (in_table(lambda table: table["departures"].__setitem__(0, -1)), "missing or of the wrong shape"),
        (in_table(lambda table: table["departures"].__setitem__(0, None)), "missing or of the wrong shape"),
        (
            in_table(lambda table: table["visited"].__setitem__(0, "yes")),
            "missing or of the wrong shape",
        ),
        (in_table(lambda table: table["expected_steps"].__setitem__(0, -4)), "missing or of the wrong shape"),
        (in_table(lambda table: table["bounds"]["low"].__setitem__(0, 1.0)), "'low' lies above 'high'"),
        (in_table(lambda table: table["bounds"]["high"].pop()), "bounds that have not 60 rows"),
        (in_table(lambda table: table["bounds"].__setitem__("horizon", 99)), "bounds for a horizon of 99"),
        (in_table(lambda table: table["endings"].__setitem__("kinds", [])), "missing or of the wrong shape"),
        (
            in_table(lambda table: table["endings"]["kinds"].__setitem__("boredom", [0.5] * 60)),
            "shares of kinds that do not add up",
        ),
        (
            in_table(lambda table: table["endings"]["steps"].__setitem__(0, -1)),
            "missing or of the wrong shape",
        ),
        (
            in_table(lambda table: table["endings"]["completes"].__setitem__(0, 2)),
            "missing or of the wrong shape",
        ),
        (lambda content: content["policy"].__setitem__("bound", "lower"), "Invalid enum value 'lower'"),
        (in_table(lambda table: table.__setitem__("counts", "abc")), "missing or of the wrong shape"),
        (in_table(lambda table: table["counts"].append([99999, 1, 1])), "a transition that cannot be"),
        (in_table(lambda table: table["counts"].append([0, 1, -1])), "missing or of the wrong shape"),
        (in_table(lambda table: table["counts"].append([0, 1])), "a transition that cannot be"),
        (in_table(lambda table: table["counts"].append([0, 1, 5, 2, 0])), "a transition that cannot be"),
        (lambda content: content.__setitem__("rows", "x" * 60), "missing or of the wrong shape"),
        (lambda content: operator.setitem(content["row_of"], 0, True), "missing or of the wrong shape"),
        (lambda content: content["settings"].pop("unknown_onset"), "unknown_onset"),
        (lambda content: content.__setitem__("settings", []), "wrong shape"),
        (
            lambda content: content["policy"].__setitem__("alarm_unseen", "false"),
            "missing or of the wrong shape",
        ),
        (lambda content: content["policy"].__setitem__("horizon", 0), "at least 1 step, got 0"),
        (lambda content: content["policy"].__setitem__("horizon", 5.9), "missing or of the wrong shape"),
        (lambda content: content["row_of"].__setitem__(0, 999), "do not fit its state space"),
        (lambda content: content["space"]["rules"].pop(0), "not the one its identity names"),
        (lambda content: content.__setitem__("notion", "mood"), "Invalid enum value 'mood'"),
        (lambda content: content["policy"].__setitem__("threshold", 7), "between 0 and 1, got 7"),
        (lambda content: content["catalogue"].__setitem__("format", "other"), "expected format"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(saved, change, message):
    with pytest.raises(ModelFileError, match=message):
        load_model(rewritten(saved, change))


def test_a_model_is_read_without_bounds_and_endings(saved, model):
    def bare(content):
        for table in content["tables"].values():
            del table["bounds"], table["endings"]

    again = load_model(rewritten(saved, bare))
    assert again.tables[""].bounds is None
    assert repr(again.tables[""].within) == repr(model.tables[""].within)
    assert again.policy == model.policy


def test_a_model_of_another_space_is_refused_by_both_names(saved):
    data = Dimension("data", ("none", "secret"), Accumulation.HIGHEST)
    other = StateSpace("mine", (data,), ("ok", "bad"), (Rule({}, "ok"),), "bad")
    with pytest.raises(SpaceMismatchError, match=r"fitted on space 'paper' .* not on 'mine'"):
        load_model(saved, space=other)
    assert load_model(saved, space=SPACE).space == SPACE


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"nowhere\.json: cannot be read: No such file"):
        load_model(tmp_path / "nowhere.json")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(tmp_path)


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_but_a_refusal(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "model.json"
    path.write_bytes(
        b'{"format": "safetydrift.model/3", "sha256": "%s"}\n' % sha256(data).hexdigest().encode() + data
    )
    with pytest.raises(ModelFileError):
        load_model(path)
