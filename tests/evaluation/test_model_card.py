import pytest
from msgspec.structs import replace

from safetydrift import load_model
from safetydrift.errors import ScoresError
from safetydrift.evaluation.document import to_markdown
from safetydrift.evaluation.model_card import model_card


def made_evaluation(**predictor):
    figures = {
        "name": "ours",
        "steps": {
            "5": {
                "discrimination": {"auroc": {"value": 0.81234, "low": 0.7, "high": 0.9}},
                "calibration": {"ece": 0.02, "brier_skill": {"value": None}},
            }
        },
        **predictor,
    }
    split = {
        "name": "held-out tasks",
        "tasks": 12,
        "violated": {"hits": 7, "total": 90},
        "predictors": [figures],
        "in_sample": ["leaky"],
    }
    return {
        "comparison": {"resamples": 200, "splits": [split]},
        "provenance": {"corpus_digest": "0123456789"},
    }


@pytest.fixture(scope="module")
def shipped():
    return load_model()


def card(model, name, evaluation=None):
    return to_markdown(model_card(model, name, evaluation))


def rows(text):
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return {first.strip(): [cell.strip() for cell in rest] for first, *rest in cells}


def test_figures_stand_with_their_intervals_and_what_is_unknown_is_a_dash(shipped):
    text = card(shipped, "shipped", made_evaluation())
    told = rows(text)
    assert told["AUROC, within 5 calls"] == ["0.812 (0.700 to 0.900)"]
    assert told["expected calibration error"] == ["0.020"]
    assert told["Brier skill"] == ["\N{EN DASH}"]
    assert told["AUROC of proposals"] == ["\N{EN DASH}"]
    assert "90 runs of 12 tasks, 7 violated" in text
    assert "no evidence: leaky" in text


def test_it_tells_what_the_shipped_model_was_fitted_on(shipped):
    told = rows(card(shipped, "shipped"))
    ends, left_out = (
        shipped.provenance["runs"]["banking"],
        shipped.provenance["left_out"]["no attack in this run"],
    )
    assert told["banking"] == [f"{ends[end]:,}" for end in ("violated", "completed", "censored")]
    assert told["no attack in this run"] == [f"{left_out:,}"]


def test_updates_and_corrections_are_told(shipped):
    updates = [{"runs": 1000, "tasks": 20, "half_life": 500.0}]
    updated = replace(shipped, provenance={**shipped.provenance, "updates": updates, "recalibration": {}})
    text = card(updated, "ours")
    assert rows(text)["1"] == ["1,000", "20", "500.000"]
    assert "corrected by the runs added since" in text


def test_a_model_of_tables_alone_has_no_risk_score_to_tell_of(shipped):
    text = card(replace(shipped, risk_score=None, provenance={}), "tables")
    assert rows(text)["risk score"] == ["none"]
    assert "never seen counts as an average one" not in text
    assert "Their origin: given by hand" in text


def test_names_are_no_markup(shipped):
    text = card(shipped, "a|b `c` <d>\n# e", made_evaluation(name="x|y"))
    assert text.startswith("# Model card: a\\|b \\`c\\` \\<d\\>\N{REPLACEMENT CHARACTER}\\# e\n")
    assert "| x\\|y |" in text


@pytest.mark.parametrize(
    "wrong", [{}, {"comparison": 3}, {"comparison": {"splits": [{}]}, "provenance": {}}, []]
)
def test_what_is_no_evaluation_is_refused(shipped, wrong):
    with pytest.raises(ScoresError, match="no evaluation that safetydrift evaluate"):
        card(shipped, "shipped", wrong)
