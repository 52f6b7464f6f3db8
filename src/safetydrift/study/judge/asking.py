"""Many questions to one model, within bounds of time and cost."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, TypeVar

from safetydrift.effects.content.redaction import redact_secrets
from safetydrift.errors import JudgeBudgetError, JudgeError
from safetydrift.study.judge.endpoint import Endpoint, HopelessError, PassingError
from safetydrift.study.judge.settings import JudgeSettings, ModelName, is_local

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    T = TypeVar("T")

MAX_WAIT = 60.0
"""Seconds between two tries that a judge chooses by itself, at most; an endpoint may ask for more."""
_CHARACTERS_PER_TOKEN = 3


class AnswerError(ValueError):
    """A reply that is no answer. The message says why and holds nothing of the reply."""


class Budget:
    """What judges may spend: a number of requests and of tokens for as long as the process lives.

    Parameters
    ----------
    max_requests
        Requests that may be sent, retries included.
    max_tokens
        Tokens that may be used, in and out.

    Attributes
    ----------
    requests, tokens
        What was spent. Tokens of a request under way, and of one whose end is not known, count as estimated.

    Notes
    -----
    A request is only begun if its estimate still fits, so the limit holds as far as the estimates do.
    """

    def __init__(self, max_requests: int, max_tokens: int) -> None:
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.requests = self.tokens = 0

    def reserve(self, tokens: int) -> None:
        """Account for a request before it is sent.

        Raises
        ------
        JudgeBudgetError
            If it would go beyond the limit; nothing is accounted for then.
        """
        if self.requests + 1 > self.max_requests:
            raise JudgeBudgetError(
                f"the {self.max_requests} requests a judge may send are spent; raise max_requests to go on"
            )
        if self.tokens + tokens > self.max_tokens:
            raise JudgeBudgetError(
                f"a further request may go beyond the {self.max_tokens} tokens a judge may use; "
                "raise max_total_tokens to go on"
            )
        self.requests += 1
        self.tokens += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace the estimate of a request by what it used."""
        self.tokens += used - reserved

    def __repr__(self) -> str:
        return (
            f"<Budget: {self.requests} of {self.max_requests} requests, "
            f"{self.tokens} of {self.max_tokens} tokens spent>"
        )


class Asker:
    """Asks one model.

    Parameters
    ----------
    model
        ``anthropic:NAME``, ``openai:NAME`` or ``openai-compatible:NAME`` (then ``settings.base_url`` says where).
    settings
        How to ask, and what it may cost.
    instructions, schema
        What it is told before any question, and the form of its answer as JSON Schema.
    redact
        Takes secrets out of a text; by default `redact_secrets`. Used as ``settings.redact`` says.
    budget
        What may be spent, if it is shared with others; by default what the settings say.

    Raises
    ------
    MissingExtraError
        If the packages of the extra ``study`` are not installed.
    JudgeSettingsError
        If the model, the address or a setting is of no use, or the key is not in the environment.

    Attributes
    ----------
    model
        The model, as it was named.
    budget
        What was spent.
    redact
        Takes secrets out of a text; None where that is not asked for.
    """

    def __init__(
        self,
        model: str,
        settings: JudgeSettings | None,
        instructions: str,
        schema: dict[str, Any],
        *,
        redact: Callable[[str], str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        name = ModelName.parse(model)
        self.model, self.settings = str(name), settings or JudgeSettings()
        self.budget = budget or Budget(self.settings.max_requests, self.settings.max_total_tokens)
        redacts = self.settings.redact
        if redacts is None:
            redacts = not is_local(name.address(self.settings))
        self.redact = (redact or redact_secrets) if redacts else None
        self.hopeless = ""
        self._endpoint = Endpoint(name, self.settings, instructions, schema)
        self._told = len(instructions)
        self._ask: Callable[[str, float], Awaitable[tuple[str, int, int]]]

    def each(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Do some work on every item, on several at a time; an error of the work ends it all.

        Not to be called where an event loop is running.
        """

        async def run() -> None:
            waiting = iter(items)

            async def worker() -> None:
                for item in waiting:
                    await work(item)

            async with self._endpoint.connected() as self._ask, asyncio.TaskGroup() as group:
                for _ in range(self.settings.concurrency):
                    group.create_task(worker())

        try:
            asyncio.run(run())
        except ExceptionGroup as errors:  # of whoever was told of the progress, or of the file of answers
            raise errors.exceptions[0] from None

    async def answer(
        self, text: str, read: Callable[[str], T], again: Callable[[str], str] | None = None
    ) -> tuple[T, tuple[int, int]]:
        """Ask until there is an answer, or no hope for one; return it with the tokens used in and out.

        Parameters
        ----------
        text
            The question.
        read
            Reads a reply; raises `AnswerError` for one that is no answer.
        again
            Returns the question to ask after such a reply, given what was wrong; by default the same.

        Raises
        ------
        JudgeBudgetError
            If there is nothing left to spend.
        JudgeError
            If the model gives no answer that can be used, within the deadline.
        """
        ends = asyncio.get_running_loop().time() + self.settings.deadline
        failed, refused, asked = 0, 0, text
        used = (0, 0)
        while True:
            try:
                reply, tokens_in, tokens_out = await self._request(asked, ends)
                used = (used[0] + tokens_in, used[1] + tokens_out)
                return read(reply), used
            except PassingError as error:
                await self._pause(error, failed, ends)
                failed += 1
            except AnswerError as error:
                if refused >= self.settings.malformed_retries:
                    raise JudgeError(
                        f"{refused + 1} replies and none is an answer; of the last: {error}"
                    ) from None
                refused += 1
                asked = text if again is None else again(str(error))

    async def _request(self, text: str, ends: float) -> tuple[str, int, int]:
        """Send one request and account for it; none once the key or the model was refused."""
        if self.hopeless:
            raise JudgeError(self.hopeless)
        left = ends - asyncio.get_running_loop().time()
        if left <= 0:
            raise JudgeError(f"no answer within {self.settings.deadline:g} seconds")
        estimate = (self._told + len(text)) // _CHARACTERS_PER_TOKEN + self.settings.max_tokens
        self.budget.reserve(estimate)
        try:
            told = await self._ask(text, left)
        except PassingError as error:
            self.budget.settle(estimate, estimate if error.charged else 0)
            raise
        except JudgeError as error:
            self.budget.settle(estimate, 0)
            if isinstance(error, HopelessError):
                self.hopeless = str(error)
            raise
        self.budget.settle(estimate, sum(told[1:]) or estimate)
        return told

    async def _pause(self, error: PassingError, failed: int, ends: float) -> None:
        """Wait before the next try, as long as the endpoint asks for.

        Raises
        ------
        JudgeError
            If there have been tries enough, or the deadline is nearer than the next.
        """
        if failed >= self.settings.retries:
            raise JudgeError(f"{failed + 1} requests failed; of the last: {error}") from None
        own = min(self.settings.backoff * 2**failed, MAX_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311
        wait = max(own, error.retry_after or 0.0)
        if asyncio.get_running_loop().time() + wait >= ends:
            raise JudgeError(f"the next try would come after the deadline; of the last: {error}") from None
        await asyncio.sleep(wait)
