"""The score of concerns: additive, monotone, and refused where it does not fit."""

from math import exp
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.authority.concerns import FEATURE_NAMES, FEATURES, Concern
from safetydrift.authority.grading import FORBIDDEN
from safetydrift.authority.score import CLEAR, FORBIDDEN_ODDS, Score, decode_score
from safetydrift.errors import ModelFileError
from safetydrift.formats.score_file import SHIPPED, load_score

SCORE = load_score()
CELLS = st.tuples(*[st.integers(0, size - 1) for size in FEATURES.values()])


@given(CELLS, st.sampled_from(["asked", "source", "overlap"]))
def test_more_authority_never_raises_the_probability(cells, feature):
    at = FEATURE_NAMES.index(feature)
    if cells[at] + 1 < FEATURES[feature]:
        more = (*cells[:at], cells[at] + 1, *cells[at + 1 :])
        assert SCORE.log_odds(more) <= SCORE.log_odds(cells) + 1e-3


@given(CELLS, st.sampled_from(["certainty", "carried", "speaks"]))
def test_more_harm_never_lowers_the_probability(cells, feature):
    at = FEATURE_NAMES.index(feature)
    if cells[at] + 1 < FEATURES[feature]:
        more = (*cells[:at], cells[at] + 1, *cells[at + 1 :])
        assert SCORE.log_odds(more) >= SCORE.log_odds(cells) - 1e-3


@given(CELLS)
def test_the_parts_add_up_to_the_whole(cells):
    parts = SCORE.parts(Concern(cells, "send"))
    assert SCORE.tables.base + sum(parts.values()) == pytest.approx(SCORE.log_odds(cells), abs=1e-9)


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_a_call_is_as_bad_as_its_worst_concern(several):
    concerns = [Concern(cells, "send", target=str(number)) for number, cells in enumerate(several)]
    found = SCORE.assess(concerns)
    assert found.concern is not None
    asked = FEATURE_NAMES.index("asked")
    odds = [
        max(SCORE.log_odds(cells), FORBIDDEN_ODDS if cells[asked] == FORBIDDEN else -1e9) for cells in several
    ]
    assert found.probability == pytest.approx(1 / (1 + exp(-max(odds))))
    assert 0.0 <= found.probability <= 1.0


def test_a_call_without_concerns_is_clear():
    assert SCORE.assess([]) == CLEAR


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables | {"format": "safetydrift.authority-score/9"},
        lambda tables: tables | {"tables": dict(list(tables["tables"].items())[1:])},
        lambda tables: tables | {"tables": tables["tables"] | {"asked": [0.0]}},
        lambda tables: tables | {"pairs": [{"features": ["act", "nothing"], "values": [[0.0]]}]},
        lambda tables: tables | {"base": "high"},
        lambda tables: tables | {"more": 1},
    ],
)
def test_tables_that_do_not_fit_are_refused(change):
    tables = msgspec.json.decode(Path(SHIPPED).read_bytes())
    with pytest.raises(ModelFileError):
        decode_score(msgspec.json.encode(change(tables)))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"x" * (5 << 20)])
def test_what_is_no_score_is_refused(data):
    with pytest.raises(ModelFileError):
        decode_score(data)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.json"):
        load_score(tmp_path / "none.json")


def test_a_score_says_what_it_was_fitted_on():
    assert isinstance(SCORE, Score)
    assert sum(SCORE.tables.fitted_on.values()) > 1000
