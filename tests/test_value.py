import pickle

import pytest

from safetydrift.trace import Label, Step, ToolCall, Trace


def test_a_value_cannot_be_changed_after_construction():
    call = ToolCall("read", {"path": "a"})
    with pytest.raises(AttributeError, match=r"immutable; use replace\(name="):
        call.name = "write"
    with pytest.raises(AttributeError, match="immutable"):
        del call.name
    assert call.replace(name="write") == ToolCall("write", {"path": "a"})
    assert call.name == "read"


def test_values_compare_by_type_and_content_and_survive_pickling():
    step = Step(ToolCall("read"), "text", said="please")
    trace = Trace("t", (step,), label=Label(violated=True, onset=1))
    assert pickle.loads(pickle.dumps(trace)) == trace  # noqa: S301 - our own bytes
    assert trace != trace.replace(id="other")
    assert Label() != ToolCall("")
    assert hash(Label(violated=True)) == hash(Label(violated=True))
    assert "violated=True" in repr(trace)
