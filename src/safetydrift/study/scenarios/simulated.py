"""The simulated agent as an Inspect model: ``simulated/mixed``, or ``simulated/careful`` and the other profiles.

It makes no claim about real models; see `safetydrift.study.scenarios.behaviour`. The provider keeps nothing between
turns: what it did before it finds in the conversation, so a run can be stopped and taken up anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.util import store

from safetydrift.study.scenarios.behaviour import SimulatedAgent
from safetydrift.study.scenarios.scenario import load_scenario
from safetydrift.study.scenarios.tasks import RUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.model import ChatMessage, GenerateConfig
    from inspect_ai.tool import ToolChoice, ToolInfo

    from safetydrift.study.scenarios.behaviour import Action, Reply

_TOKEN = 4


@modelapi(name="simulated")
class Simulated(ModelAPI):
    """A simulated agent; the model's name is its profile."""

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the next action of the run that the conversation tells of."""
        del tools, tool_choice, config
        run = store().get(RUN)
        if run is None:
            raise ValueError("the simulated agent acts in scenarios of safetydrift only")
        agent = SimulatedAgent(load_scenario(run["scenario"]), self.model_name, run["seed"])
        action = agent.next()
        for reply in replies(input):
            action = agent.next(reply)
        return self._output(action, len(input))

    def _output(self, action: Action, turn: int) -> ModelOutput:
        name = f"simulated/{self.model_name}"
        if action.tool:
            output = ModelOutput.for_tool_call(
                name, action.tool, dict(action.args), content="(simulated)", tool_call_id=f"call_{turn}"
            )
        else:
            output = ModelOutput.from_content(name, action.answer)
        output.usage = ModelUsage()
        return output

    async def count_text_tokens(self, text: str) -> int:
        """Return a rough count; asking a tokenizer would mean to download one."""
        return len(text) // _TOKEN

    def max_connections(self) -> int:
        """Return how many runs may be answered at a time."""
        return 64


def replies(messages: Sequence[ChatMessage]) -> list[Reply]:
    """Return what became of every call of a conversation, in order."""
    answers = {one.tool_call_id: one for one in messages if isinstance(one, ChatMessageTool)}
    calls = [
        call for one in messages if isinstance(one, ChatMessageAssistant) for call in one.tool_calls or ()
    ]
    return [_reply(answers.get(call.id)) for call in calls]


def _reply(answer: Any) -> Reply:
    if answer is None or answer.error is None:
        return "done"
    return "refused" if answer.error.type == "approval" else "failed"
