"""Review of effects: the draw, the sheet, and what decisions say about the program."""

import csv
import io
import json
import random
import re
import warnings
from collections import Counter
from math import isnan, nan, sqrt
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec.structs import replace
from sklearn.metrics import cohen_kappa_score

from safetydrift.effects.labeler import Labeler, Outcome
from safetydrift.effects.proposal import Proposal
from safetydrift.errors import ReviewError
from safetydrift.evaluation.rate import Rate, plain
from safetydrift.formats import load_catalogue
from safetydrift.states.effect import Effect
from safetydrift.study.review.comparison import (
    cohen_kappa,
    compare_sheets,
    compare_with_program,
    exported,
    labelled_again,
    require_drawn,
)
from safetydrift.study.review.excerpt import excerpt, visible
from safetydrift.study.review.judgement import Judgement
from safetydrift.study.review.sampling import (
    MAX_STRATA,
    MAX_TOOL,
    OTHER_TOOLS,
    PER_RUN,
    UNSHOWN,
    Moment,
    Sampler,
    encode_sample,
    found_calls,
    labelled_steps,
    load_sample,
)
from safetydrift.study.review.sheets import guarded, parse_sheet, read_sheet, render_sheet
from safetydrift.trace import Step, ToolCall, Trace

SCALES = {
    "data": ("none", "public", "internal", "sensitive", "credentials"),
    "tool": ("read_only", "file_write", "code_exec", "network"),
    "reversibility": ("fully_reversible", "partially", "irreversible"),
}
READS = {"data": "internal", "tool": "read_only", "reversibility": "fully_reversible"}
SENDS = {"data": "internal", "tool": "network", "reversibility": "irreversible"}


CATALOGUE = load_catalogue()


class ByName(Labeler):
    """A labeler that looks at nothing but the name, and knows what the user said."""

    __slots__ = ()

    def __init__(self):
        pass

    def read_call(self, call, history=None):
        if call.name == "send_again" and "secret" in history.said:
            return Proposal(call.name, Effect.of(SENDS | {"data": "sensitive"}, "rule"))
        if call.name.startswith("send"):
            return Proposal(call.name, Effect.of(SENDS, "rule", kinds=("data_leak",)))
        return Proposal(call.name, Effect.of(READS, "default" if call.name.startswith("new") else "rule"))

    def read_result(self, proposal, result, error=None, history=None):
        failed = Effect.of(READS | {"data": "none"}, "rule")
        return Outcome(proposal.effect if error is None else failed, history)


def trace(number, tools, source="own", **changes):
    steps = tuple(Step(ToolCall(tool, {"n": position}), "done") for position, tool in enumerate(tools))
    return replace(Trace(f"run/{number}", steps, source=source, prompt="Tidy up."), **changes)


def many(source="own", runs=200):
    return [
        trace(n, ["read"] * 8 + (["send"] if n % 10 == 0 else []) + (["new_tool"] if n == 77 else []), source)
        for n in range(runs)
    ]


def drawn(traces, size, seed=0, **options):
    sampler = Sampler(size, seed)
    for one in traces:
        sampler.offer(one, ByName())
    return sampler.draw(CATALOGUE, **options)


# -- the draw -------------------------------------------------------------------------------------------


def test_the_square_root_of_their_counts_decides_how_many_are_drawn_and_rare_ones_appear():
    sample = drawn(many(runs=900), 100)
    counts = Counter(call.tool for call in sample.calls)
    assert {one.stratum.tool: one.calls for one in sample.strata} == {
        "read": 7200,
        "send": 90,
        "new_tool": 1,
    }
    assert counts["new_tool"] == 1
    # sqrt(7200) : sqrt(90) is 8.9 : 1, where the counts are 80 : 1
    assert counts["send"] == pytest.approx(99 / 9.9, abs=1.01)
    assert sum(counts.values()) == 100


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_runs():
    traces = many()
    one, again = drawn(traces, 40), drawn(random.Random(3).sample(traces, len(traces)), 40)  # noqa: S311
    assert [call.id for call in one.calls] == [call.id for call in again.calls]
    assert {call.id for call in one.calls} != {call.id for call in drawn(traces, 40, seed=1).calls}


def test_at_most_a_few_calls_of_a_run_are_drawn_and_one_per_stratum():
    traces = [trace(0, [f"tool_{n}" for n in range(30)]), trace(1, ["read"] * 50)]
    sample = drawn(traces, 100)
    per_run = Counter(call.id.rpartition("/")[0] for call in sample.calls)
    assert per_run == {"own/run/0": PER_RUN, "own/run/1": 1}


def test_sources_can_be_drawn_from_evenly():
    traces = many("large", 500) + many("small", 50)
    evenly = Counter(call.source for call in drawn(traces, 40, even_sources=True).calls)
    assert evenly == {"large": 20, "small": 20}
    assert Counter(call.source for call in drawn(traces, 40).calls)["large"] > 22


def test_a_small_corpus_is_drawn_whole_and_the_same_run_twice_is_drawn_once():
    traces = [trace(n, ["read"]) for n in range(5)]
    assert len(drawn(traces * 2, 100).calls) == 5


def test_made_up_names_cannot_fill_the_memory():
    sampler = Sampler(5)
    for n in range(MAX_STRATA + 50):
        sampler.offer(trace(n, [f"made_up_{n}"]), ByName())
    strata = sampler.draw(CATALOGUE).strata
    assert len(strata) == MAX_STRATA + 1
    assert [one.calls for one in strata if one.stratum.tool == OTHER_TOOLS] == [50]


@pytest.mark.parametrize("bad", ["x" * 5000, "a\nb", "a\x1b[2J"])
def test_a_call_whose_name_cannot_stand_on_a_sheet_is_passed_over_and_counted(bad):
    sample = drawn([trace(0, ["read", "send"], id=bad), trace(1, ["read"])], 10)
    assert [call.id for call in sample.calls] == ["own/run/1/1"]
    assert sample.unnamed == 2


def test_a_tool_whose_name_cannot_be_shown_is_named_otherwise():
    traces = [trace(n, ["send\x1b[2J", "x" * 999]) for n in range(4)]
    assert {call.tool for call in drawn(traces, 10).calls} == {
        UNSHOWN + "send<U+001B>[2J",
        UNSHOWN + "x" * MAX_TOOL,
    }


def test_drawn_calls_are_found_again_with_their_texts():
    traces = many()
    sample = drawn(traces, 30)
    found = {call.id: (one.steps[at].call.name, at) for call, one, at in found_calls(traces, sample.calls)}
    assert found == {call.id: (call.tool, int(call.id.rpartition("/")[2]) - 1) for call in sample.calls}


def test_calls_are_read_in_view_of_the_run_before_or_after_they_are_made():
    steps = (
        Step(ToolCall("send_again"), "sent"),
        Step(ToolCall("send_again"), "sent", said="The secret, please."),
        Step(ToolCall("send"), error="denied"),
    )
    one = Trace("t", steps, prompt="Tidy up.")
    proposed = [effect["data"] for _, effect in labelled_steps(one, ByName())]
    assert proposed == ["internal", "sensitive", "internal"]
    done = [effect["data"] for _, effect in labelled_steps(one, ByName(), Moment.DONE)]
    assert done == ["internal", "sensitive", "none"]


# -- what a reviewer is shown ---------------------------------------------------------------------------


def test_an_excerpt_is_short_shows_both_ends_and_hides_nothing():
    step = Step(
        ToolCall("send", {"body": "x" * 9000 + "THE END", "to": "a\nto: b"}), "\u202eevil\x00", said="Now!"
    )
    texts = excerpt(Trace("t", (step,), prompt="The task."), 0)
    assert len(texts.arguments) < 3000
    assert "THE END" in texts.arguments
    assert "characters left out" in texts.arguments
    assert texts.arguments.endswith("to: a\n    to: b")  # a second line cannot pass for another argument
    assert texts.result == "<U+202E>evil<U+0000>"
    assert texts.task == "The task.\n\nThe user's latest words: Now!"


def test_calls_that_failed_or_could_not_be_decoded_are_shown_as_such():
    steps = (Step(ToolCall("a", malformed="{oops"), error="denied"), Step(ToolCall("b", {"x": [1, {2, 3}]})))
    one = Trace("t", steps)
    assert excerpt(one, 0).arguments == "{oops"
    assert excerpt(one, 0).result == "The call failed: denied"
    assert excerpt(one, 1).result == "(no result)"
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "cannot be shown" in excerpt(Trace("t", (Step(ToolCall("c", {"x": deep})),)), 0).arguments


@given(st.text())
def test_shown_text_holds_no_control_characters(text):
    assert all(char.isprintable() or char in "\n\t" or category(char) == "Zs" for char in visible(text))


# -- the sheet ------------------------------------------------------------------------------------------


def exported_sheet(traces, size=20, **options):
    sample = drawn(traces, size)
    excerpts = {call.id: excerpt(one, at) for call, one, at in found_calls(traces, sample.calls)}
    return sample, render_sheet(sample.calls, excerpts, list(SCALES), **options)


def filled(text, decide):
    """Return a sheet on which every row was decided: ``decide`` maps a row to the cells it changes."""
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(row | decide(row) for row in rows)
    return out.getvalue()


def as_columns(levels):
    return {"tool_level" if name == "tool" else name: level for name, level in levels.items()}


def test_a_sheet_is_blind_unless_effects_are_asked_for():
    _, blind = exported_sheet(many())
    assert not any(level in blind for level in ("read_only", "irreversible", "data_leak"))
    sample, shown = exported_sheet(many(), include_effects=True)
    row = next(csv.DictReader(io.StringIO(shown, newline="")))
    assert row["program_tool_level"] == sample.calls[0].levels["tool"]
    assert row["tool_level"] == ""
    assert len(parse_sheet(shown, SCALES).decisions) == 20


def test_no_cell_of_a_sheet_is_a_formula_and_names_survive():
    traces = [
        trace(0, ["=cmd()"], prompt='=HYPERLINK("http://x")'),
        trace(1, ["@SUM(A1)"], source="-1+1", prompt="+1"),
        trace(2, ["'quoted"], source="\u2019"),
    ]
    sample, text = exported_sheet(traces)
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    sheet = parse_sheet(text, SCALES)
    assert {(call.id, call.tool) for call in sample.calls} == {
        (name, decision.tool) for name, decision in sheet.decisions.items()
    }


@given(st.text(alphabet="=+-@'a\t ", min_size=1).map(str.strip).filter(bool))
def test_guarding_a_cell_loses_nothing(text):
    cell = guarded(text)
    assert not cell.startswith(("=", "+", "-", "@"))
    out = io.StringIO()
    csv.writer(out).writerows([["sample_id", "data", "remark"], ["a", "none", cell]])
    assert parse_sheet(out.getvalue(), SCALES).decisions["a"].remark == text


def test_what_is_empty_is_not_decided():
    _, text = exported_sheet(many())
    sheet = parse_sheet(text, SCALES)
    assert (len(sheet.decisions), sheet.decided) == (20, 0)
    one = parse_sheet("sample_id,data,kinds\na,none,\nb,,\nc,,none\n", SCALES).decisions
    assert [(d.levels, d.kinds) for d in one.values()] == [
        ({"data": "none"}, None),
        ({}, None),
        ({}, frozenset()),
    ]


def test_kinds_left_empty_beside_levels_are_none_on_a_sheet_that_never_says_so():
    sheet = parse_sheet("sample_id,data,kinds\na,none,\nb,none,data_leak; integrity\nc,,\n", SCALES)
    assert [d.kinds for d in sheet.decisions.values()] == [frozenset(), {"data_leak", "integrity"}, None]


@pytest.mark.parametrize(
    "header",
    [
        "sample_id,source,tool_name,data,tool_level,reversibility,unsure",
        "\ufeffSample_ID;source;tool_name;data;tool_level;reversibility;unsure",
        "sample_id\tsource\ttool_name\tdata\ttool_level\treversibility\tunsure",
    ],
)
def test_delimiters_of_other_programs_are_understood(tmp_path, header):
    sign = next(sign for sign in ";\t," if sign in header)
    row = sign.join(["own/run/1/2", "own", "send", "internal", "Network", "irreversible", "x"])
    (tmp_path / "s.csv").write_text(f"{header}\r\n{row}\r\n\r\n", encoding="utf-8")
    decision = read_sheet(tmp_path / "s.csv", SCALES).decisions["own/run/1/2"]
    assert (decision.tool, decision.levels, decision.unsure, decision.row) == ("send", SENDS, True, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "row 1: lacks the column 'sample_id'"),
        ("sample_id,remark\n", "row 1: lacks a column of levels, such as data, tool_level, reversibility"),
        ("sample_id,data,datta\n", "row 1: unknown column 'datta'"),
        ("sample_id,data,data\n", "row 1: the column 'data' is there twice"),
        ("sample_id,data\na,none\n,none\n", "row 3: lacks a sample_id"),
        ("sample_id,data\na,secret\n", "row 2: data: there is no level 'secret'; it has: none, public"),
        ("sample_id,data\na,none\nb,none\na,none\n", "row 4: 'a' stands in row 2 already"),
        ("sample_id,data\na,none,extra\n", "row 2: has 3 cells under 2 columns"),
        ("sample_id,data,kinds\na,none,theft\n", "row 2: kinds: there is no kind 'theft'"),
        ("sample_id,data,kinds\na,none,none data_leak\n", "there is no kind 'none'"),
        ("sample_id,data,unsure\na,none,perhaps\n", "row 2: unsure: expected 1 or nothing, got 'perhaps'"),
        (
            "sample_id,data,alternative\na,none,data=secret\n",
            "row 2: alternative: there is no level 'secret' of data",
        ),
        ('sample_id,data\n"a,none\n', "row 2: not CSV"),
        ("sample_id,data\na," + "x" * 200_000, "row 2: not CSV"),
    ],
)
def test_a_mistake_on_a_sheet_is_named_with_its_row(text, message):
    with pytest.raises(ReviewError, match=re.escape(message)):
        parse_sheet(text, SCALES, "my.csv")


def test_files_that_are_no_sheets_are_refused(tmp_path):
    (tmp_path / "s.csv").write_bytes(b"sample_id,data\n\xff\xfe,none")
    with pytest.raises(ReviewError, match=r"s\.csv: not UTF-8"):
        read_sheet(tmp_path / "s.csv", SCALES)
    with pytest.raises(ReviewError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", SCALES)


# -- the sample file ------------------------------------------------------------------------------------


def test_a_sample_file_holds_effects_and_counts_and_no_text(tmp_path):
    traces = [trace(n, ["read", "send"], prompt="A SECRET TASK") for n in range(30)]
    sample = drawn(traces, 10)
    data = encode_sample(sample)
    (tmp_path / "sample.json").write_bytes(data)
    assert b"SECRET" not in data
    assert b"done" not in data
    assert load_sample(tmp_path / "sample.json") == sample
    assert sample.catalogue[2] == CATALOGUE.identity
    assert sum(one.calls for one in sample.strata) == 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other/1"}, "expected format"),
        ({"extra": 1}, "not a sample of a review"),
        ({"strata": []}, "is of a stratum that is not listed"),
        ({"scales": {"data": ["none"]}}, "has no level of 'data'"),
    ],
)
def test_a_damaged_sample_is_refused(tmp_path, change, message):
    kept = json.loads(encode_sample(drawn(many(), 5)))
    (tmp_path / "sample.json").write_text(json.dumps(kept | change))
    with pytest.raises(ReviewError, match=message):
        load_sample(tmp_path / "sample.json")


# -- agreement ------------------------------------------------------------------------------------------


def reviewed(traces, decide, size=20):
    sample, text = exported_sheet(traces, size)
    sheet = parse_sheet(filled(text, decide), SCALES)
    require_drawn(sheet, sample)
    return compare_with_program(sheet, exported(sample), SCALES)


def agreeing(row):
    return as_columns(SENDS if row["tool_name"] == "send" else READS)


def test_a_reviewer_who_agrees_throughout():
    compared = reviewed(many(), agreeing)
    found = compared.agreement("tool")
    assert found.same == Rate(20, 20)
    assert found.kappa.value == found.weighted_kappa.value == 1.0
    assert compared.everywhere == Rate(20, 20)
    assert compared.of_all_calls("tool") == 1.0
    assert compared.disagreements() == []
    assert isnan(
        compared.agreement("data").kappa.value
    )  # one level throughout: agreement beyond chance is unknown


def test_disagreements_are_counted_where_they_are():
    def decide(row):
        sure = {"unsure": "1", "remark": "hm"} if row["tool_name"] == "send" else {}
        return as_columns(READS) | sure | {"kinds": "none"}

    compared = reviewed(many(runs=900), decide, size=100)
    sends = sum(pair.tool == "send" for pair in compared.pairs)
    found = compared.agreement("tool")
    assert found.same == Rate(100 - sends, 100)
    assert found.same_when_sure == Rate(100 - sends, 100 - sends)
    assert found.table[0] == (100 - sends, 0, 0, sends)
    assert compared.of_all_calls("tool") == pytest.approx(7201 / 7291)
    assert compared.parts("tool")["layer default"].same == Rate(1, 1)
    assert compared.parts("tool")["source own"].same == found.same
    rows = {row[1]: row for row in compared.disagreements()}
    assert rows["tool"][:5] == ("send", "tool", "read_only", "network", "unsure")
    assert rows["kinds"][2:4] == ("", "data_leak")
    assert len(compared.disagreements()) == 3 * sends
    assert compared.kinds()["data_leak"].table == ((100 - sends, sends), (0, 0))
    assert json.dumps(plain(compared))


def test_a_level_that_is_not_decided_counts_for_nothing():
    compared = reviewed(many(), lambda row: {"data": "internal"})
    assert compared.agreement("data").same.total == 20
    assert compared.agreement("tool").same.total == 0
    assert compared.everywhere.total == 0
    assert compared.disagreements() == []


def test_what_a_reviewer_would_accept_too_is_counted_apart():
    text = (
        "sample_id,data,tool_level,alternative\n"
        "a,none,network,data=internal; tool_level=read_only;kinds=none\n"
        "b,none,network,or something else\n"
        "c,internal,read_only,data=none\n"
    )
    sheet = parse_sheet(text, SCALES)
    assert sheet.decisions["a"].alternatives == {"data": {"internal"}, "tool": {"read_only"}}
    other = parse_sheet("sample_id,data\na,internal\nb,internal\nc,internal\n", SCALES)
    found = compare_sheets(sheet, other, SCALES).agreement("data")
    assert (found.same, found.accepted) == (Rate(1, 3), Rate(2, 3))


def test_two_reviewers_are_compared_on_the_calls_both_decided():
    one = parse_sheet("sample_id,source,data\na,s,none\nb,s,none\nc,s,\nd,t,public\n", SCALES, "one")
    other = parse_sheet("sample_id,data\na,none\nb,sensitive\nc,none\nd,public\ne,none\n", SCALES, "other")
    compared = compare_sheets(one, other, SCALES)
    assert compared.judges == ("one", "other")
    assert compared.agreement("data").same == Rate(2, 3)
    assert compared.parts("data")["source t"].same == Rate(1, 1)
    assert isnan(compared.of_all_calls("data"))
    assert [row[1:4] for row in compared.disagreements()] == [("data", "none", "sensitive")]


def test_a_sheet_of_another_sample_is_refused():
    sample = drawn(many(), 5)
    with pytest.raises(ReviewError, match="row 2: 'x/y/1' is not in the sample"):
        require_drawn(parse_sheet("sample_id,data\nx/y/1,none\n", SCALES), sample)
    call = sample.calls[0]
    with pytest.raises(ReviewError, match=r"row 2: .* not 'other'"):
        require_drawn(parse_sheet(f"sample_id,tool_name,data\n{call.id},other,none\n", SCALES), sample)


def test_calls_are_found_in_traces_by_name_also_where_the_source_is_called_otherwise():
    text = (
        "sample_id,source,data\nown/run/1/1,own,none\nfolder/run/2/1,folder,none\n"
        "a/run/3/1,a,none\nb/run/3/1,b,none\nown/run/99/1,own,none\n"
    )
    sheet = parse_sheet(text, SCALES)
    traces = [trace(n, ["send"]) for n in range(4)] + [trace(1, ["read"])]
    seen = labelled_again(traces, ByName(), sheet.decisions)
    assert set(seen) == {"own/run/1/1", "folder/run/2/1"}  # run/3 might be of either source
    assert seen["own/run/1/1"].judgement == Judgement(SENDS, frozenset({"data_leak"}))  # the first of that id
    assert len(compare_with_program(sheet, seen, SCALES).pairs) == 2


# -- kappa ----------------------------------------------------------------------------------------------


def judged_levels(table):
    """The levels that two judges gave, one entry per call."""
    cells = np.repeat(np.arange(table.size), table.ravel())
    return np.unravel_index(cells, table.shape)


@pytest.mark.parametrize(
    ("table", "value"),
    [
        ([[20, 5], [10, 15]], 0.4),  # observed 0.7, by chance 0.5
        ([[75, 1, 4], [5, 4, 1], [0, 0, 10]], 0.676),  # a worked example of Fleiss, Levin and Paik's book
        ([[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]], 0.1293),  # Hout, Duncan and Sobel 1987
    ],
)
def test_kappa_is_that_of_textbooks(table, value):
    found = cohen_kappa(np.array(table))
    assert found.value == pytest.approx(value, abs=5e-4)
    low, high = found.interval()
    assert low < found.value < high


def test_weighted_kappa_of_a_table_worked_out_by_hand():
    # Observed cost (2 * 1 + 1 * 4) / 10 = 0.6; by chance (1*4*3 + 4*4*2 + 1*3*5 + 1*3*2 + 4*3*5 + 1*3*3) / 100 = 1.34.
    found = cohen_kappa(np.array([[3, 1, 0], [1, 2, 0], [1, 0, 2]]), quadratic=True)
    assert found.value == pytest.approx(1 - 0.6 / 1.34, abs=1e-12)


@given(st.integers(2, 5).flatmap(lambda n: arrays(np.int64, (n, n), elements=st.integers(0, 30))))
def test_kappa_and_its_resamples_agree_with_scikit_learn(table):
    one, other = judged_levels(table)
    for quadratic, weights in ((False, None), (True, "quadratic")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = (
                cohen_kappa_score(one, other, labels=range(len(table)), weights=weights) if len(one) else nan
            )
        assert cohen_kappa(table, quadratic=quadratic).value == pytest.approx(
            expected, abs=1e-12, nan_ok=True
        )


def test_the_bootstrap_meets_the_large_sample_error_on_many_calls():
    # The standard error of Fleiss, Cohen and Everitt (1969) for the worked example, 40 times as many calls.
    found = cohen_kappa(40 * np.array([[75, 1, 4], [5, 4, 1], [0, 0, 10]]))
    low, high = found.interval()
    assert (high - low) / (2 * 1.96) == pytest.approx(0.0877 / sqrt(40), rel=0.08)


@pytest.mark.parametrize("table", [[[0, 0], [0, 0]], [[7, 0], [0, 0]]])
def test_where_nothing_varies_kappa_is_undefined(table):
    found = cohen_kappa(np.array(table))
    assert isnan(found.value)
    assert isnan(found.interval()[0])
