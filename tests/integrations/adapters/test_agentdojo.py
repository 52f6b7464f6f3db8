"""AgentDojo: real pipelines and tasks of the installed package, with a scripted element as the model.

AgentDojo stands in an environment of its own; run this there: ``pytest -m long tests/integrations/adapters``.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agentdojo.agent_pipeline", reason="needs the extra 'agentdojo', in an environment of its own"
)
from agentdojo.agent_pipeline import AgentPipeline, BasePipelineElement, InitQuery, ToolsExecutionLoop
from agentdojo.functions_runtime import EmptyEnv, FunctionCall, FunctionsRuntime, make_function
from agentdojo.task_suite import get_suite
from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

from safetydrift.guard import GuardPolicy, Rule
from safetydrift.guard.guard import Guard
from safetydrift.integrations.agentdojo import GuardedToolsExecutor
from safetydrift.monitor.verdict import Intervention

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
KEY = "run"


class Scripted(BasePipelineElement):
    name = "scripted"

    def __init__(self, *turns):
        self.turns = list(turns)

    def query(self, query, runtime, env=EmptyEnv(), messages=(), extra_args=None):  # noqa: B008
        calls = self.turns.pop(0) if self.turns else None
        text = [text_content_block_from_string("" if calls else "Done.")]
        said = ChatAssistantMessage(role="assistant", content=text, tool_calls=calls)
        return query, runtime, env, [*messages, said], extra_args or {}


def call(name, call_id=None, **args):
    return FunctionCall(function=name, args=args, id=call_id)


def run(executor, tools, *turns):
    def documented(name):
        tool = tools.make(name)

        def plain(text: str) -> str:
            """Do something.

            :param text: with this
            """
            return str(tool(text))

        plain.__name__ = name
        return make_function(plain)

    runtime = FunctionsRuntime([documented(name) for name in ("look", "drop", "pay", "post", "peek", "fail")])
    model = Scripted(*turns)
    pipeline = AgentPipeline([InitQuery(), model, ToolsExecutionLoop([executor, model])])
    *_, messages, _ = pipeline.query("Look at it", runtime)
    return [one for one in messages if one["role"] == "tool"]


def test_each_intervention_reaches_the_model(guard, tools, standing):
    turn = [call(name, text="x") for name in ("look", "drop", "pay", "post", "peek")]
    look, drop, pay, post, peek = run(GuardedToolsExecutor(guard, key=KEY), tools, turn)
    assert look["error"] is None
    assert "nothing is dropped" in drop["error"]
    assert "Nobody answered" in pay["error"]
    assert "nothing is posted" in post["error"]
    assert "look away" in peek["content"][-1]["content"]
    assert tools.made == [("look", "x"), ("peek", "x")]
    assert standing(guard, KEY)[:2] == (2, [])


def test_calls_with_the_same_id_are_calls_of_their_own(guard, tools, standing):
    run(
        GuardedToolsExecutor(guard, key=KEY),
        tools,
        [call("look", "1", text="x")],
        [call("look", "1", text="x")],
    )
    assert standing(guard, KEY)[0] == 2


def test_every_task_is_a_run(guard, tools):
    executor = GuardedToolsExecutor(guard)
    for _ in range(2):
        run(executor, tools, [call("look", text="x")])
    assert len(guard.store._sessions) == 2


@pytest.mark.parametrize("odd", [{"other": 1}, {"text": {"not": "a text"}}, {"text": call("look", text="x")}])
def test_arguments_that_do_not_fit_raise_nothing_of_ours(guard, tools, odd):
    run(GuardedToolsExecutor(guard, key=KEY), tools, [call("look", **odd)], [call("nowhere")])
    assert guard._sessions.read(KEY)[0].proposals == 2


@pytest.mark.parametrize("which", ["broken", "unopenable"])
def test_a_guard_that_fails_refuses(request, tools, which):
    (answer,) = run(GuardedToolsExecutor(request.getfixturevalue(which)), tools, [call("look", text="x")])
    assert "could not judge" in answer["error"]
    assert tools.made == []


def test_what_a_task_needs_and_is_refused_makes_it_fail(model):
    suite = get_suite("v1.2.2", "banking")
    task = suite.user_tasks["user_task_0"]
    for refused in ((), ("send_money",)):
        guard = Guard(
            model,
            GuardPolicy(
                when=(Rule(Intervention.BLOCK, tools=refused),) if refused else (),
                otherwise=Intervention.ALLOW,
            ),
        )
        turns = [[one] for one in task.ground_truth(suite.load_and_inject_default_environment({}))]
        replay = Scripted(*turns)
        pipeline = AgentPipeline(
            [InitQuery(), replay, ToolsExecutionLoop([GuardedToolsExecutor(guard), replay])]
        )
        utility, _ = suite.run_task_with_pipeline(pipeline, task, None, {})
        assert utility is (not refused)
