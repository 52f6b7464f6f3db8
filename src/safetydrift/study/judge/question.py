"""What a judge is asked, and the digest under which its answer is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from safetydrift.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.trace import ToolCall

MAX_RESULT = 4000
"""Characters of a result that count; of a longer one its beginning and end."""
MAX_TASK = 4000
"""Characters of the task that count."""
MAX_ARGUMENTS = 1 << 20
"""Arguments of more characters than this, written as JSON, are not asked about."""
_LONG_KEY = 20


@dataclass(frozen=True, slots=True)
class Question:
    """A call to be judged.

    Parameters
    ----------
    call
        The call as the agent proposed it.
    result
        What came back, where it is known.
    task
        What the agent was asked to do, where that is known.
    """

    call: ToolCall
    result: str | None = None
    task: str = ""

    def digest(self, model: str, prompt: str) -> str:
        """Return the SHA-256 of everything the answer depends on, in hexadecimal.

        Parameters
        ----------
        model
            The model, as it was named to the judge.
        prompt
            The version of the prompt.

        Raises
        ------
        JudgeError
            If the arguments are no JSON, or too long.

        Notes
        -----
        All of the arguments count, also what is cut out of them before they are sent.
        """
        whole = [
            prompt,
            model,
            self.call.name,
            self.call.args,
            self.call.malformed,
            None if self.result is None else excerpt(self.result, MAX_RESULT),
            excerpt(self.task, MAX_TASK),
        ]
        return sha256(canonical(whole).encode()).hexdigest()


def canonical(value: object) -> str:
    """Return plain data as JSON that is the same for the same content.

    Raises
    ------
    JudgeError
        If it cannot be written as JSON, or is too long.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise JudgeError(f"the call cannot be written as JSON: {type(error).__name__}") from None
    if len(text) > MAX_ARGUMENTS:
        raise JudgeError(f"the call has more than {MAX_ARGUMENTS} characters and is not sent to a judge")
    return text


def excerpt(text: str, limit: int) -> tuple[str, int, str]:
    """Return the beginning of a text, the number of characters left out, and its end.

    Three quarters of the limit go to the beginning.
    """
    if len(text) <= limit:
        return text, 0, ""
    end = limit // 4
    return text[: limit - end], len(text) - limit, text[len(text) - end :]


def leaves(value: object) -> Iterator[str]:
    """Yield the texts in plain data without recursion; of keys only those too long for a name."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [key for key in one if isinstance(key, str) and len(key) > _LONG_KEY]
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
