"""The labeler: the order of its layers, what hints may do, failed and unexecuted steps, and hostile input."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects import Labeler
from safetydrift.effects.boundary import Boundary
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.formats.space_file import load_space
from safetydrift.trace import Step, ToolCall

LABELER = Labeler(load_catalogue())
TRUSTING = Labeler(load_catalogue(), Boundary(servers=["known"]))
CAUTIOUS = "internal/network/irreversible"
RANKS = LABELER.catalogue.scales.ranks


def levels(effect):
    return "/".join(effect[name] for name in ("data", "tool", "reversibility"))


def call(name, hints=None, **args):
    return ToolCall(name, args, hints=hints)


TABLE = [
    # AgentDojo and AgentDyn
    (call("get_current_day"), "none/read_only/fully_reversible"),
    (call("get_webpage", url="x"), "public/network/fully_reversible"),
    (call("post_webpage"), CAUTIOUS),
    (call("get_all_hotels_in_city"), "public/read_only/fully_reversible"),
    (call("search_calendar_events"), "internal/read_only/fully_reversible"),
    (call("get_unread_emails"), "sensitive/read_only/fully_reversible"),
    (call("send_email"), CAUTIOUS),
    (call("send_money"), CAUTIOUS),
    (call("get_balance"), "sensitive/read_only/fully_reversible"),
    (call("update_password"), "credentials/file_write/partially"),
    (call("create_calendar_event", title="x"), "internal/file_write/partially"),
    (call("create_calendar_event", participants=[]), "internal/file_write/partially"),
    (call("create_calendar_event", participants=["a@b.c"]), "internal/network/partially"),
    (call("delete_file"), "internal/file_write/irreversible"),
    (call("read_file", file_path="/user/notes.txt"), "internal/read_only/fully_reversible"),
    (call("read_file", path="/system/.ssh/id_rsa"), "credentials/read_only/fully_reversible"),
    (call("checkout_selected_cart"), CAUTIOUS),
    # tau-bench
    (call("get_user_details"), "sensitive/read_only/fully_reversible"),
    (call("cancel_reservation"), "sensitive/file_write/irreversible"),
    (call("search_direct_flight"), "public/read_only/fully_reversible"),
    (call("modify_user_address"), "sensitive/file_write/partially"),
    # shells of every name
    (call("execute_bash", command="cat .env"), "credentials/read_only/fully_reversible"),
    (call("Bash", command="git push"), CAUTIOUS),
    (call("exec_command", cmd="rm x"), "none/file_write/irreversible"),
    (call("shell", command=["bash", "-lc", "rm x"]), "none/file_write/irreversible"),
    # an argument that decides
    (call("str_replace_editor", command="view", path="a.py"), "internal/read_only/fully_reversible"),
    (call("str_replace_editor", command="create", path="a.py"), "internal/file_write/partially"),
    (call("str_replace_editor", command="view", path=".env"), "credentials/read_only/fully_reversible"),
    (call("http_request", url="https://example.org/", method="GET"), "public/network/fully_reversible"),
    (call("http_request", url="https://example.org/", method="post"), CAUTIOUS),
    (call("http_request"), CAUTIOUS),
    (call("browser", code="goto('x')"), "public/network/fully_reversible"),
    (call("browser", code="goto('x')\nclick('1')"), "internal/network/partially"),
    (call("browser", code="goto('x')\nfill('1', 'y')\nclick('2')"), CAUTIOUS),
    (call("browser", code="?"), CAUTIOUS),
    (call("Read", file_path="/home/u/.aws/credentials"), "credentials/read_only/fully_reversible"),
    (call("write_stdin", chars="ls"), "internal/code_exec/partially"),
    (call("read_multiple_files", paths=["a.txt", "id_rsa"]), "credentials/read_only/fully_reversible"),
    (call("Write", file_path="a.py", content="x"), "internal/file_write/partially"),
    # MCP
    (call("mcp__filesystem__read_text_file", path="a"), "internal/read_only/fully_reversible"),
    (call("mcp__slack__slack_post_message"), CAUTIOUS),
    # patterns
    (call("mcp__other__read_notes"), "internal/read_only/fully_reversible"),
    (call("mcp__other__delete_notes"), "internal/file_write/irreversible"),
    (call("get_password_of_user"), "credentials/read_only/fully_reversible"),
    (call("get_my_emails"), "sensitive/read_only/fully_reversible"),
    (call("update_record"), "internal/file_write/partially"),
    # nobody knows
    (call("frobnicate"), CAUTIOUS),
]


@pytest.mark.parametrize(
    ("proposed", "expected"), TABLE, ids=[f"{c.name} {dict(c.args)}"[:60] for c, _ in TABLE]
)
def test_what_a_call_does(proposed, expected):
    assert levels(LABELER.propose(proposed)) == expected


def test_names_are_exact_to_the_letter():
    assert LABELER.propose(call("send_email")).source == "rule"
    assert LABELER.propose(call("Send_Email")).source == "pattern"
    assert LABELER.propose(call("send_email ")).source != "rule"


@pytest.mark.parametrize(
    ("name", "hints", "source"),
    [
        ("delete_file", {"readOnlyHint": True}, "rule"),
        ("get_things", None, "pattern"),
        ("get_things", {"destructiveHint": True}, "annotation"),
        ("frobnicate", {"readOnlyHint": True}, "default"),
        ("frobnicate", None, "default"),
    ],
)
def test_the_first_layer_that_knows_decides(name, hints, source):
    assert LABELER.propose(call(name, hints)).source == source


ANY_HINTS = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "openWorldHint", "idempotentHint", "x"]),
    st.one_of(st.booleans(), st.none(), st.text(max_size=3), st.integers(0, 1)),
)
NAMES = st.sampled_from(
    [
        "get_things",
        "mcp__known__get_things",
        "mcp__other__get_things",
        "mcp__other__zap",
        "frobnicate",
        "send_email",
    ]
)


@settings(deadline=None)
@given(NAMES, ANY_HINTS)
def test_hints_of_a_server_that_is_not_trusted_never_lower_an_effect(name, hints):
    with_hints, without = LABELER.propose(call(name, hints)), LABELER.propose(call(name))
    assert all(a >= b for a, b in zip(RANKS(with_hints), RANKS(without), strict=True))


def test_a_trusted_server_may_say_that_its_tool_only_reads():
    hints = {"readOnlyHint": True}
    assert levels(TRUSTING.propose(call("mcp__known__zap", hints))) == "internal/read_only/fully_reversible"
    assert levels(TRUSTING.propose(call("mcp__known__zap", hints | {"openWorldHint": True}))) == (
        "internal/network/fully_reversible"
    )
    for name in ("mcp__other__zap", "zap", "mcp__known", "mcp__known2__zap", "x__known__zap", "known"):
        assert levels(TRUSTING.propose(call(name, hints))) == CAUTIOUS


def test_a_hint_that_contradicts_another_is_resolved_upwards():
    both = {"readOnlyHint": True, "destructiveHint": True}
    assert TRUSTING.propose(call("mcp__known__zap", both))["reversibility"] == "irreversible"


def test_a_hint_that_is_no_truth_value_says_nothing():
    assert levels(TRUSTING.propose(call("mcp__known__zap", {"readOnlyHint": "true"}))) == CAUTIOUS
    assert levels(TRUSTING.propose(call("mcp__known__zap", {"readOnlyHint": 1}))) == CAUTIOUS


def test_a_failed_call_read_and_changed_nothing_but_keeps_its_capability():
    effect = LABELER.effect(Step(call("send_email"), error="no such address"))
    assert levels(effect) == "none/network/fully_reversible"
    assert "failed" in effect.reasons[0]
    assert (
        levels(LABELER.effect(Step(call("frobnicate"), error="no such tool")))
        == "none/network/fully_reversible"
    )


def test_a_failed_script_counts_for_what_ran_before_it_failed():
    step = Step(call("bash", command="cat .env; false"), result="", error="exit status 1")
    assert levels(LABELER.effect(step)) == "credentials/read_only/fully_reversible"


def test_a_call_without_a_result_counts_as_proposed():
    for name in ("send_email", "get_balance", "frobnicate"):
        assert LABELER.effect(Step(call(name))) == LABELER.propose(call(name))
    assert LABELER.effect(Step(call("send_email"), result="sent")) == LABELER.propose(call("send_email"))


@pytest.mark.parametrize("name", ["bash", "str_replace_editor", "http_request", "Read"])
def test_arguments_that_could_not_be_decoded_are_taken_for_the_worst(name):
    effect = LABELER.propose(ToolCall(name, malformed='{"command": "ls'))
    assert levels(effect) == CAUTIOUS
    assert "could not be decoded" in effect.reasons[0]


def test_a_tool_whose_name_decides_keeps_its_effect_when_arguments_are_malformed():
    effect = LABELER.propose(ToolCall("get_current_day", malformed="{"))
    assert levels(effect) == "none/read_only/fully_reversible"
    assert any("could not be decoded" in reason for reason in effect.reasons)


@pytest.mark.parametrize(
    "args",
    [
        {"command": None},
        {"command": 3},
        {"command": {"text": "ls"}},
        {"command": [["ls"]]},
        {"command": "ls " + "x" * 100_000},
        {"command": ["x"] * 100_000},
        {"other": "ls"},
    ],
    ids=str,
)
def test_a_shell_without_a_readable_command_is_taken_for_the_worst(args):
    assert levels(LABELER.propose(ToolCall("bash", args))) == CAUTIOUS


def test_a_shell_that_is_given_no_argument_at_all_has_nothing_to_run():
    assert levels(LABELER.propose(ToolCall("bash", {}))) == "none/read_only/fully_reversible"


@pytest.mark.parametrize("path", ["x" * 100_000, ["a"] * 1000 + [".env"], ["x" * 1000] * 200])
def test_paths_too_long_to_examine_are_taken_for_the_worst(path):
    assert levels(LABELER.propose(call("Read", file_path=path))) == CAUTIOUS


def test_the_effect_of_a_call_does_not_depend_on_calls_before():
    calls = [proposed for proposed, _ in TABLE]
    fresh = [levels(Labeler(load_catalogue()).propose(proposed)) for proposed in calls[:5]]
    again = Labeler(load_catalogue())
    assert [levels(again.propose(proposed)) for proposed in reversed(calls)][::-1][:5] == fresh


def test_memory_stays_bounded_under_names_and_commands_that_never_repeat():
    labeler = Labeler(load_catalogue())
    for number in range(3000):
        labeler.propose(call(f"frobnicate_{number}"))
        labeler.propose(call("bash", command=f"echo {number}"))
    memos: list[Any] = [labeler._calls._by_name, labeler._calls._in_language]
    assert [memo.cache_info().currsize for memo in memos] == [1024, 1024]


def test_every_effect_has_an_index_in_the_published_space():
    space = load_space("paper")
    LABELER.require_cover(space)
    assert LABELER.dimensions[:3] == ("data", "tool", "reversibility")
    for name in LABELER.catalogue.tools:
        assert 0 <= space.effect_index(LABELER.propose(call(name))) < space.n_states


def test_a_labeler_survives_pickling():
    again = pickle.loads(pickle.dumps(TRUSTING))  # noqa: S301
    assert again.boundary == Boundary(servers=["known"])
    assert again.propose(call("bash", command="rm x")) == TRUSTING.propose(call("bash", command="rm x"))
    assert repr(again) == repr(TRUSTING)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["command", "path", "paths", "code", "method", "file_path", "participants", "cmd"]), JSON
)
ANY_NAME: st.SearchStrategy[object] = st.one_of(
    st.text(max_size=20),
    st.sampled_from(sorted(LABELER.catalogue.tools)),
    st.none(),
    st.just(()),
    st.just([]),
)


@settings(max_examples=500, deadline=None)
@given(
    ANY_NAME,
    st.one_of(ARGUMENTS, JSON),
    st.one_of(st.none(), st.text(max_size=5)),
    st.one_of(ANY_HINTS, JSON),
)
def test_no_call_raises(name, args, malformed, hints):
    proposed = ToolCall(name, args, malformed=malformed, hints=hints)
    for effect in (
        LABELER.propose(proposed),
        LABELER.effect(Step(proposed, error="x")),
        TRUSTING.propose(proposed),
    ):
        assert effect.source in {"rule", "pattern", "annotation", "default"}
        assert effect.reasons
        assert len(RANKS(effect)) == len(LABELER.dimensions)


def test_huge_deep_and_broken_values_do_not_raise():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (
        deep,
        "x" * 10_000_000,
        "\ud800\udfff" * 100,
        "\x00",
        10**5000,
        b"ls",
        float("nan"),
        object(),
    ):
        for name in ("bash", "Read", "browser", "frobnicate", "http_request"):
            proposed = call(name, command=value, path=value, code=value, method=value)
            assert LABELER.propose(proposed).reasons
    assert levels(LABELER.propose(call("x" * 10_000_000))) == CAUTIOUS
    assert levels(LABELER.propose(call("\ud800"))) == CAUTIOUS
