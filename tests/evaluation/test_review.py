"""Review of effects: the draw, the sheet, the page, and what decisions say about the program."""

import csv
import io
import json
import random
import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from math import isnan
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from safetydrift.effects.labeler import Labeler
from safetydrift.errors import ReviewError
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.review.against_program import (
    compare_with_program,
    exported,
    labelled_again,
    require_drawn,
)
from safetydrift.evaluation.review.comparison import Comparison, Judgement, Pair, compare_sheets
from safetydrift.evaluation.review.exceptions import corrections, render_additions
from safetydrift.evaluation.review.excerpt import excerpt, visible
from safetydrift.evaluation.review.page import render_page
from safetydrift.evaluation.review.sample_file import encode_sample, load_sample, sample_file
from safetydrift.evaluation.review.sampling import (
    MAX_STRATA,
    MAX_TOOL,
    OTHER_TOOLS,
    PER_RUN,
    UNSHOWN,
    Moment,
    Sampler,
    found_calls,
    labelled_steps,
)
from safetydrift.evaluation.review.sheets import guarded, parse_sheet, read_sheet, render_sheet
from safetydrift.formats import load_catalogue
from safetydrift.states.effect import Effect
from safetydrift.trace import Step, ToolCall, Trace

SCALES = {
    "data": ("none", "public", "internal", "sensitive", "credentials"),
    "tool": ("read_only", "file_write", "code_exec", "network"),
    "reversibility": ("fully_reversible", "partially", "irreversible"),
}
READS = {"data": "internal", "tool": "read_only", "reversibility": "fully_reversible"}
SENDS = {"data": "internal", "tool": "network", "reversibility": "irreversible"}
HOSTILE = "</script><script>alert(1)</script><!--\"'&{{ 7 * 7 }}\u2028"


class ByName(Labeler):
    """A labeler that looks at nothing but the name, and knows what the user said."""

    __slots__ = ()

    def __init__(self):
        pass

    def propose(self, call, history=None):
        if call.name == "send_again" and "secret" in history.said:
            return Effect.of(SENDS | {"data": "sensitive"}, "rule")
        if call.name.startswith("send"):
            return Effect.of(SENDS, "rule", kinds=("data_leak",))
        return Effect.of(READS, "default" if call.name.startswith("new") else "rule")

    def effect(self, step, proposed=None, history=None):
        return proposed if step.error is None else Effect.of(READS | {"data": "none"}, "rule")

    def remember(self, history, step, effect):
        return history


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


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
    return sampler.draw(**options)


# -- the draw -------------------------------------------------------------------------------------------


def test_the_square_root_of_their_counts_decides_how_many_are_drawn_and_rare_ones_appear():
    sample = drawn(many(runs=900), 100)
    counts = Counter(call.tool for call in sample.calls)
    assert {stratum.tool: n for stratum, n in sample.seen.items()} == {
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
    sample = sampler.draw()
    assert len(sample.seen) == MAX_STRATA + 1
    assert sample.seen[next(key for key in sample.seen if key.tool == OTHER_TOOLS)] == 50


@pytest.mark.parametrize("bad", ["x" * 5000, "a\nb", "a\x1b[2J"])
def test_a_call_whose_name_cannot_stand_on_a_sheet_is_passed_over_and_counted(bad):
    sample = drawn([trace(0, ["read", "send"], id=bad), trace(1, ["read"])], 10)
    assert [call.id for call in sample.calls] == ["own/run/1/1"]
    assert sample.unnamed == 2


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
    assert row["program_tool_level"] == sample.calls[0].effect["tool"]
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
        "sample_id,source,tool,data,level_tool,reversibility,unsure",
        "sample_id,source,tool_name,data,tool,reversibility,unsure",
        "\ufeffSample_ID;source;tool;data;level_tool;reversibility;unsure",
        "sample_id\tsource\ttool\tlevel_data\tlevel_tool\tlevel_reversibility\tunsure",
    ],
)
def test_headers_and_delimiters_of_other_hands_are_understood(tmp_path, header):
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


def test_a_sample_file_holds_effects_and_counts_and_no_text(tmp_path, catalogue):
    traces = [trace(n, ["read", "send"], prompt="A SECRET TASK") for n in range(30)]
    sample = drawn(traces, 10)
    kept = sample_file(sample, catalogue, seed=0, per="tool")
    data = encode_sample(kept)
    (tmp_path / "sample.json").write_bytes(data)
    assert b"SECRET" not in data
    assert b"done" not in data
    assert load_sample(tmp_path / "sample.json") == kept
    assert kept.catalogue.identity == catalogue.identity
    assert sum(stratum.drawn for stratum in kept.strata) == 10
    assert sum(stratum.calls for stratum in kept.strata) == 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other/1"}, "expected format"),
        ({"extra": 1}, "not a sample of a review"),
        ({"strata": []}, "is of stratum"),
        ({"scales": {"data": ["none"]}}, "has no level of 'data'"),
    ],
)
def test_a_damaged_sample_is_refused(tmp_path, catalogue, change, message):
    kept = json.loads(encode_sample(sample_file(drawn(many(), 5), catalogue, seed=0, per="tool")))
    (tmp_path / "sample.json").write_text(json.dumps(kept | change))
    with pytest.raises(ReviewError, match=message):
        load_sample(tmp_path / "sample.json")


# -- agreement ------------------------------------------------------------------------------------------


def reviewed(traces, decide, catalogue, size=20):
    sample, text = exported_sheet(traces, size)
    sheet = parse_sheet(filled(text, decide), SCALES)
    kept = sample_file(sample, catalogue, seed=0, per="tool")
    require_drawn(sheet, kept)
    return compare_with_program(sheet, exported(kept), SCALES)


def agreeing(row):
    return as_columns(SENDS if row["tool_name"] == "send" else READS)


def test_a_reviewer_who_agrees_throughout(catalogue):
    compared = reviewed(many(), agreeing, catalogue)
    found = compared.agreement("tool")
    assert found.same == Rate(20, 20)
    assert found.kappa.value == found.weighted_kappa.value == 1.0
    assert compared.everywhere == Rate(20, 20)
    assert compared.of_all_calls("tool") == 1.0
    assert compared.disagreements() == []
    assert isnan(
        compared.agreement("data").kappa.value
    )  # one level throughout: agreement beyond chance is unknown


def test_disagreements_are_counted_where_they_are(catalogue):
    def decide(row):
        sure = {"unsure": "1", "remark": "hm"} if row["tool_name"] == "send" else {}
        return as_columns(READS) | sure | {"kinds": "none"}

    compared = reviewed(many(runs=900), decide, catalogue, size=100)
    sends = sum(pair.tool == "send" for pair in compared.pairs)
    found = compared.agreement("tool")
    assert found.same == Rate(100 - sends, 100)
    assert found.same_when_sure == Rate(100 - sends, 100 - sends)
    assert found.table[0] == (100 - sends, 0, 0, sends)
    assert compared.of_all_calls("tool") == pytest.approx(7201 / 7291)
    assert compared.by_layer("tool")["default"].same == Rate(1, 1)
    assert compared.by_source("tool")["own"].same == found.same
    assert len(compared.disagreements()) == sends
    first = compared.disagreements()[0].as_dict()
    assert first["levels"]["tool"] == ("read_only", "network")
    assert (first["kinds"], first["unsure"], first["remark"]) == ([[], ["data_leak"]], True, "hm")
    assert compared.kinds()["data_leak"].table == ((100 - sends, sends), (0, 0))
    assert json.dumps(compared.as_dict())


def test_a_level_that_is_not_decided_counts_for_nothing(catalogue):
    compared = reviewed(many(), lambda row: {"data": "internal"}, catalogue)
    assert compared.agreement("data").same.total == 20
    assert compared.agreement("tool").same.total == 0
    assert compared.everywhere.total == 0
    assert compared.disagreements() == []


def test_what_a_reviewer_would_accept_too_is_counted_apart():
    text = (
        "sample_id,data,level_tool,alternative\n"
        "a,none,network,data=internal; level_tool=read_only;kinds=none\n"
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
    assert compared.by_source("data")["t"].same == Rate(1, 1)
    assert isnan(compared.of_all_calls("data"))
    assert [found.levels for found in compared.disagreements()] == [{"data": ("none", "sensitive")}]


def test_a_sheet_of_another_sample_is_refused(catalogue):
    sample = sample_file(drawn(many(), 5), catalogue, seed=0, per="tool")
    with pytest.raises(ReviewError, match="row 2: 'x/y/1' is not in the sample"):
        require_drawn(parse_sheet("sample_id,data\nx/y/1,none\n", SCALES), sample)
    call = sample.calls[0]
    with pytest.raises(ReviewError, match=r"row 2: .* not 'other'"):
        require_drawn(parse_sheet(f"sample_id,tool,data\n{call.id},other,none\n", SCALES), sample)


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


# -- corrections ----------------------------------------------------------------------------------------


def pair(number, tool, reviewer, program=SENDS):
    return Pair(f"own/{number}/1", "own", "default", tool, Judgement(reviewer), Judgement(program))


def compared(*pairs):
    return Comparison(tuple(pairs), SCALES)


LOCAL = READS | {"data": "none"}


def test_a_tool_that_all_reviewers_correct_alike_becomes_an_addition_that_loads(tmp_path, catalogue):
    name = 'peek "at" \\ it'
    found = corrections([compared(*(pair(n, name, LOCAL) for n in range(3)))], catalogue)
    (tmp_path / "ours.toml").write_text(render_additions(found, 3), encoding="utf-8")
    extended = load_catalogue(additions=[tmp_path / "ours.toml"])
    entry = extended.tools[name]
    assert entry.ranks == extended.scales.read(LOCAL, "test")
    assert "tool is read_only and not network (3 of 3 reviewed calls)" in entry.note
    assert len(extended.tools) == len(catalogue.tools) + 1


@pytest.mark.parametrize(
    "pairs",
    [
        [pair(1, "peek", LOCAL), pair(2, "peek", LOCAL)],  # too few
        [pair(1, "peek", LOCAL)] * 3,  # three reviewers, one call
        [
            *(pair(n, "peek", LOCAL) for n in range(5)),
            pair(9, "peek", SENDS),
        ],  # one reviewer thinks otherwise
        [*(pair(n, "peek", SENDS) for n in range(5))],  # nothing to correct
    ],
)
def test_nothing_less_than_one_voice_corrects_the_catalogue(catalogue, pairs):
    assert corrections([compared(*pairs)], catalogue).tools == ()


def test_dimensions_without_one_voice_stay_as_the_program_has_them(catalogue):
    wanted = [SENDS | {"data": "none", "tool": "read_only" if n else "network"} for n in range(4)]
    (fix,) = corrections([compared(*(pair(n, "peek", one) for n, one in enumerate(wanted)))], catalogue).tools
    assert fix.levels == SENDS | {"data": "none"}
    assert list(fix.changed) == ["data"]


def test_tools_whose_arguments_decide_are_left_to_people(tmp_path, catalogue):
    found = corrections(
        [compared(*(pair(n, tool, LOCAL) for tool in ("bash", "bad\nname") for n in range(3)))], catalogue
    )
    assert found.tools == ()
    assert "looks at the arguments" in found.by_hand["bash"]
    text = render_additions(found, 3)
    assert "# bash: corrected" in text
    (tmp_path / "ours.toml").write_text(text)
    assert load_catalogue(additions=[tmp_path / "ours.toml"]).tools.keys() == catalogue.tools.keys()


def test_a_tool_whose_name_cannot_be_shown_is_named_otherwise_and_never_corrected(catalogue):
    traces = [trace(n, ["send\x1b[2J", "x" * 999]) for n in range(4)]
    tools = {call.tool for call in drawn(traces, 10).calls}
    assert tools == {UNSHOWN + "send<U+001B>[2J", UNSHOWN + "x" * MAX_TOOL}
    found = corrections([compared(*(pair(n, tool, LOCAL) for tool in tools for n in range(3)))], catalogue)
    assert found.tools == ()
    assert found.by_hand.keys() == tools


@given(st.text(min_size=1, max_size=40))
def test_no_name_of_a_tool_can_break_out_of_the_file(catalogue, name):
    import tomllib  # noqa: PLC0415

    found = corrections([compared(*(pair(n, name, LOCAL) for n in range(3)))], catalogue)
    data = tomllib.loads(render_additions(found, 3))
    assert [names for entry in data.get("tools", []) for names in entry["names"]] == [
        fix.tool for fix in found.tools
    ]


# -- the page -------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._open = f"{tag} {attributes.get('id', '')}".strip() if tag in {"script", "style"} else ""

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open:
            self.texts[self._open] = self.texts.get(self._open, "") + data


@pytest.fixture(scope="module")
def hostile_traces():
    steps = (Step(ToolCall(HOSTILE, {"x": HOSTILE}), HOSTILE), Step(ToolCall("send"), "sent"))
    return [Trace(f"{n}", steps, source="<own>", prompt=HOSTILE) for n in range(3)]


def page_of(traces, **options):
    sample = drawn(traces, 10)
    excerpts = {call.id: excerpt(one, at) for call, one, at in found_calls(traces, sample.calls)}
    return sample, render_page(sample.calls, excerpts, SCALES, **options)


def test_the_page_allows_its_own_script_and_style_and_nothing_else(hostile_traces):
    _, page = page_of(hostile_traces)
    tags = Tags(page)
    (policy,) = [a["content"] for tag, a in tags.elements if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def source(text):
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "script-src": source(tags.texts["script"]),
        "style-src": source(tags.texts["style"]),
    }
    assert len([tag for tag, _ in tags.elements if tag == "script"]) == 2  # the data, and the page's own
    assert not [a for _, a in tags.elements if {"src", "href", "style"} & a.keys()]
    assert not [name for _, a in tags.elements for name in a if name.startswith("on")]
    assert not re.search(r"https?://|innerHTML|insertAdjacent|document\.write|eval\(", page)


def test_the_page_holds_what_traces_say_as_data_only(hostile_traces):
    sample, page = page_of(hostile_traces)
    embedded = Tags(page).texts["script data"]
    assert not set("<>&\u2028") & set(embedded)
    data = json.loads(embedded)
    assert [call["id"] for call in data["calls"]] == [call.id for call in sample.calls]
    assert data["calls"][0]["task"] == HOSTILE.replace("\u2028", "<U+2028>")
    assert [one["levels"] for one in data["dimensions"]] == [list(levels) for levels in SCALES.values()]
    assert [one["column"] for one in data["dimensions"]] == ["data", "tool_level", "reversibility"]
    assert "alert(1)" not in page.replace(embedded, "")


def test_the_page_is_blind_unless_effects_are_asked_for(hostile_traces):
    _, blind = page_of(hostile_traces)
    assert not any("program" in call for call in json.loads(Tags(blind).texts["script data"])["calls"])
    sample, shown = page_of(hostile_traces, include_effects=True)
    first = json.loads(Tags(shown).texts["script data"])["calls"][0]
    assert first["program"] == dict(sample.calls[0].effect.levels)


def test_the_same_calls_give_the_same_page_and_other_calls_another_place_to_keep_decisions(hostile_traces):
    one, again, other = (page_of(traces)[1] for traces in (hostile_traces, hostile_traces, many()))
    assert one == again
    keys = [json.loads(Tags(page).texts["script data"])["key"] for page in (one, other)]
    assert keys[0] != keys[1]
