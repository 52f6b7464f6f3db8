import pickle

import pytest
from msgspec.structs import replace

from safetydrift.trace import Label, Step, ToolCall, Trace


def test_a_call_cannot_be_changed_after_construction():
    call = ToolCall("read", {"path": "a"})
    with pytest.raises(AttributeError, match="immutable"):
        setattr(call, "name", "write")  # noqa: B010  # what a type checker would not let through
    with pytest.raises(AttributeError, match="immutable"):
        del call.name
    assert replace(call, name="write") == ToolCall("write", {"path": "a"})
    assert call.name == "read"


def test_calls_without_arguments_do_not_share_a_table():
    assert ToolCall("read").args is not ToolCall("read").args


def test_traces_compare_by_content_and_survive_pickling():
    step = Step(ToolCall("read"), "text", said="please")
    trace = Trace("t", (step,), label=Label(violated=True, onset=1))
    assert pickle.loads(pickle.dumps(trace)) == trace  # noqa: S301 - our own bytes
    assert trace != replace(trace, id="other")
    assert hash(Label(violated=True)) == hash(Label(violated=True))
    assert "violated=True" in repr(trace)
