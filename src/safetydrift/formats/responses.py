"""Items of OpenAI's Responses: a list of what went in and came out, or the request and response that hold them.

Calls are items of their own; those that follow each other belong to one answer of the model. Tools that the provider
runs itself bring their result along, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetydrift.formats.format import FormatMismatch
from safetydrift.formats.messages import AGENT, USER, are_items, messages_of, tools_of
from safetydrift.formats.run_builder import RunBuilder

if TYPE_CHECKING:
    from safetydrift.trace import Trace


class Responses:
    """Reads items of OpenAI's Responses."""

    name = "responses"
    description = "OpenAI Responses: a list of items, {input, output}, or a response"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record is a list of items, or holds one."""
        if isinstance(record, dict):
            held = record.get("output")
            whole = record.get("object") == "response" or {"input", "output"} <= record.keys()
            return whole and isinstance(held, list) and are_items(held, or_messages=True)
        return are_items(record)

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a list of items."""
        whole = record if isinstance(record, dict) else {"input": record}
        builder = RunBuilder()
        model = whole.get("model")
        builder.model = model if isinstance(model, str) else ""
        builder.offers(tools_of(whole.get("tools")))
        output = whole.get("output")
        told = messages_of(whole.get("input"), USER) + messages_of(
            output if isinstance(output, list) else None, AGENT
        )
        if not told:
            raise FormatMismatch("it holds no item that can be read")
        for message in told:
            if message.role == AGENT:
                builder.agent()
                for call in message.calls:
                    builder.add(call)
            elif message.role == USER and message.text:
                builder.user(message.text)
            for result in message.results:
                found = builder.find(result.call_id)
                if found is None:
                    raise FormatMismatch("a tool result belongs to no call")
                found.answer(result.text, result.error, refused_by=result.refused_by)
        own = whole.get("id")
        return builder.trace(own if isinstance(own, str) else fallback_id, self.name)
