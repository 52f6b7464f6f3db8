"""The judge: asks a language model what a call does, within bounds of time and cost."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Self

from safetydrift.errors import JudgeError
from safetydrift.judge.answer import Answer, AnswerError, read_reply
from safetydrift.judge.background import Background
from safetydrift.judge.budget import Budget
from safetydrift.judge.endpoint import Endpoint, HopelessError, PassingError
from safetydrift.judge.prompt import Prompt
from safetydrift.judge.question import Question
from safetydrift.judge.redaction import redact_secrets
from safetydrift.judge.settings import JudgeSettings, ModelName, is_local
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safetydrift.effects.catalogue.scales import Scales
    from safetydrift.judge.endpoint import Told
    from safetydrift.judge.prompt import Put
    from safetydrift.states.effect import Effect

    Outcome = Effect | JudgeError

MAX_WAIT = 60.0
"""Seconds between two tries that a judge chooses by itself, at most; an endpoint may ask for more."""
_CHARACTERS_PER_TOKEN = 3


class Judge:
    """Asks a language model what a call does. Made for threads and event loops alike; close it after use.

    Parameters
    ----------
    model
        ``anthropic:NAME``, ``openai:NAME`` or ``openai-compatible:NAME`` (then ``settings.base_url`` says where).
    settings
        How to ask, and what it may cost.
    scales
        The dimensions and levels to ask for; by default those of the shipped catalogue.
    redact
        Takes secrets out of a text; by default `redact_secrets`. Used as ``settings.redact`` says.
    budget
        What may be spent, if it is shared with other judges; by default what the settings say.

    Raises
    ------
    MissingExtraError
        If the packages of the extra ``judge`` are not installed.
    JudgeSettingsError
        If the model, the address or a setting is of no use, or the key is not in the environment.

    Attributes
    ----------
    model
        The model, as it was named.
    prompt
        What it is told.
    budget
        What was spent.
    """

    def __init__(
        self,
        model: str,
        settings: JudgeSettings | None = None,
        *,
        scales: Scales | None = None,
        redact: Callable[[str], str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        name = ModelName.parse(model)
        self.model = str(name)
        self.settings = settings or JudgeSettings()
        self.prompt = Prompt(scales)
        self.budget = budget or Budget(self.settings.max_requests, self.settings.max_total_tokens)
        redacts = self.settings.redact
        if redacts is None:
            redacts = not is_local(name.address(self.settings))
        self._redact = (redact or redact_secrets) if redacts else None
        self._endpoint = Endpoint(name, self.settings, self.prompt)
        self._answers: dict[str, Answer] = {}
        self._background = Background()
        self._gate = asyncio.Semaphore(self.settings.concurrency)
        self._lock = threading.Lock()
        self._closed = False
        self._hopeless = ""

    # -- one call -----------------------------------------------------------------------------------------

    def digest(self, call: ToolCall, result: str | None = None, task: str = "") -> str:
        """Return the digest under which the answer to a question is kept; see `Question.digest`."""
        return Question(call, result, task).digest(self.model, self.prompt.version)

    def known(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect | None:
        """Return what was answered before, None if this was not asked yet; sends nothing."""
        answer = self._answers.get(self.digest(call, result, task))
        return None if answer is None else answer.effect()

    def assess(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect:
        """Return what a call does, in the model's opinion.

        Parameters
        ----------
        result
            What came back, where it is known.
        task
            What the agent was asked to do, where that is known.

        Raises
        ------
        JudgeBudgetError
            If there is nothing left to spend.
        JudgeError
            If the model gives no answer that can be used, within the deadline.
        """
        question = Question(call, result, task)
        answer = self._before_asking(question)
        if answer is None:
            answer = self._background.wait(self._answer(question))
        return answer.effect()

    async def assess_async(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect:
        """Return what a call does, in the model's opinion; like `assess`."""
        question = Question(call, result, task)
        answer = self._before_asking(question)
        if answer is None:
            answer = await self._background.wait_async(self._answer(question))
        return answer.effect()

    # -- many calls ---------------------------------------------------------------------------------------

    def assess_all(
        self,
        calls: Iterable[ToolCall | Question],
        *,
        concurrency: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Outcome]:
        """Return what every call does, in their order; an error stands where there is no answer.

        Parameters
        ----------
        calls
            Calls, or questions where more than the call is known. What is asked twice is sent once.
        concurrency
            Requests under way at the same time, if fewer than the settings allow.
        progress
            Called with the number of questions done and their number in all, from another thread.
        """
        return self._background.wait(self._all(_questions(calls), concurrency, progress))

    async def assess_all_async(
        self,
        calls: Iterable[ToolCall | Question],
        *,
        concurrency: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Outcome]:
        """Return what every call does; like `assess_all`."""
        return await self._background.wait_async(self._all(_questions(calls), concurrency, progress))

    async def _all(
        self,
        questions: list[Question],
        concurrency: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[Outcome]:
        places: dict[str, list[int]] = {}
        outcomes: list[Outcome] = [JudgeError("not asked")] * len(questions)
        for place, question in enumerate(questions):
            try:
                places.setdefault(question.digest(self.model, self.prompt.version), []).append(place)
            except JudgeError as error:
                outcomes[place] = error
        done = len(questions) - sum(map(len, places.values()))

        async def work(waiting: Iterator[list[int]]) -> None:
            nonlocal done
            for same in waiting:
                outcome = await self._outcome(questions[same[0]])
                for place in same:
                    outcomes[place] = outcome
                done += len(same)
                if progress is not None:
                    progress(done, len(questions))

        waiting = iter(places.values())
        workers = max(1, min(concurrency or self.settings.concurrency, self.settings.concurrency))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(workers, len(places))):
                    group.create_task(work(waiting))
        except ExceptionGroup as errors:  # of whoever was told of the progress, or of the file of answers
            raise errors.exceptions[0] from None
        return outcomes

    async def _outcome(self, question: Question) -> Outcome:
        try:
            return (await self._answer(question)).effect()
        except JudgeError as error:
            return error

    # -- asking -------------------------------------------------------------------------------------------

    def _before_asking(self, question: Question) -> Answer | None:
        """Return what is known already; refuse to go on if it is not and the judge is closed."""
        answer = self._answers.get(question.digest(self.model, self.prompt.version))
        if answer is None and self._closed:
            raise JudgeError("the judge is closed")
        return answer

    async def _answer(self, question: Question) -> Answer:
        digest = question.digest(self.model, self.prompt.version)
        async with self._gate:
            answer = self._answers.get(digest)
            if answer is None:
                answer = await self._ask(question)
                self._keep(digest, answer)
        return answer

    def _keep(self, digest: str, answer: Answer) -> None:
        """Remember an answer; if there are too many, the oldest is forgotten for it."""
        if self.settings.max_cached:
            if len(self._answers) >= self.settings.max_cached:
                del self._answers[next(iter(self._answers))]
            self._answers[digest] = answer

    async def _ask(self, question: Question) -> Answer:
        """Ask until there is an answer, or no hope for one."""
        put = self.prompt.put(question, self._redact)
        ends = asyncio.get_running_loop().time() + self.settings.deadline
        failed = refused = 0
        used = (0, 0)
        text = put.text
        while True:
            try:
                told = await self._request(text, ends)
                used = (used[0] + told.tokens[0], used[1] + told.tokens[1])
                return self._read(told.text, put, used)
            except PassingError as error:
                await self._pause(error, failed, ends)
                failed += 1
            except AnswerError as error:
                if refused >= self.settings.malformed_retries:
                    raise JudgeError(
                        f"{refused + 1} replies and none is an answer; of the last: {error}"
                    ) from None
                refused += 1
                text = put.again(str(error))

    async def _request(self, text: str, ends: float) -> Told:
        """Send one request and account for it; none once the key or the model was refused."""
        if self._hopeless:
            raise JudgeError(self._hopeless)
        left = ends - asyncio.get_running_loop().time()
        if left <= 0:
            raise JudgeError(f"no answer within {self.settings.deadline:g} seconds")
        estimate = (
            len(self.prompt.instructions) + len(text)
        ) // _CHARACTERS_PER_TOKEN + self.settings.max_tokens
        self.budget.reserve(estimate)
        try:
            told = await self._endpoint.ask(text, left)
        except PassingError as error:
            self.budget.settle(estimate, estimate if error.charged else 0)
            raise
        except JudgeError as error:
            self.budget.settle(estimate, 0)
            if isinstance(error, HopelessError):
                self._hopeless = str(error)
            raise
        self.budget.settle(estimate, sum(told.tokens) or estimate)
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

    def _read(self, text: str, put: Put, used: tuple[int, int]) -> Answer:
        reply = read_reply(text, put.seen, self.prompt.scales)
        return Answer(
            levels=tuple(sorted(reply.levels.items())),
            kinds=tuple(reply.kinds),
            external=reply.external,
            reason=reply.reason,
            confidence=float(reply.confidence),
            model=self.model,
            prompt=self.prompt.version,
            usage=used,
        )

    # -- manners ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections; what was answered stays known."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._background.started:
            self._background.wait(self._endpoint.close())
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} on prompt {self.prompt.version}: {self.budget!r}>"


def _questions(calls: Iterable[ToolCall | Question]) -> list[Question]:
    return [Question(call) if isinstance(call, ToolCall) else call for call in calls]
