"""Judges of single calls: one that asks a model, and records what it says; one that replays what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import msgspec

from safetydrift.errors import JudgeError, JudgeFileError, UnknownAnswerError
from safetydrift.study.judge.answer import Answer, Usage, read_reply
from safetydrift.study.judge.asking import AnswerError, Asker
from safetydrift.study.judge.definitions import default_scales
from safetydrift.study.judge.prompt import Prompt
from safetydrift.study.judge.question import Question
from safetydrift.study.judge.records import RecordFile, read_records
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from safetydrift.effects.catalogue.scales import Scales
    from safetydrift.states.effect import Effect
    from safetydrift.study.judge.asking import Budget
    from safetydrift.study.judge.settings import JudgeSettings

    Outcome = Effect | JudgeError


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The first line of a file of answers."""

    format: Literal["safetydrift.judge/1"]


HEADER = Header("safetydrift.judge/1")


class Judge:
    """Asks a language model what a call does, each call once.

    Parameters
    ----------
    model, settings, redact, budget
        As for `Asker`.
    path
        A file in which every answer is written down as it comes; what it answers already is not asked. It is made if
        there is none, and what a crash left of a last line is cut off.
    scales
        The dimensions and levels to ask for; by default those of the shipped catalogue.

    Raises
    ------
    JudgeFileError
        If the file cannot be read or written, or somebody else is writing to it.

    Attributes
    ----------
    model, budget
        The model, as it was named, and what was spent.
    prompt
        What it is told.
    answers
        What was answered, by digest of the question.
    """

    def __init__(
        self,
        model: str,
        settings: JudgeSettings | None = None,
        *,
        path: str | PathLike[str] | None = None,
        scales: Scales | None = None,
        redact: Callable[[str], str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.prompt = Prompt(scales)
        self._asker = Asker(
            model, settings, self.prompt.instructions, self.prompt.schema, redact=redact, budget=budget
        )
        self.model, self.budget = self._asker.model, self._asker.budget
        self.answers: dict[str, Answer] = {}
        self._file = None if path is None else RecordFile(path, HEADER)
        if path is not None:
            try:
                self.answers = read_answers(path, self.prompt.scales)
            except BaseException:
                self.close()
                raise

    def digest(self, question: ToolCall | Question) -> str:
        """Return the digest under which the answer to a question is kept; see `Question.digest`."""
        asked = Question(question) if isinstance(question, ToolCall) else question
        return asked.digest(self.model, self.prompt.version)

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
        (outcome,) = self.assess_all([Question(call, result, task)])
        if isinstance(outcome, JudgeError):
            raise outcome
        return outcome

    def assess_all(
        self,
        calls: Iterable[ToolCall | Question],
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> list[Outcome]:
        """Return what every call does, in their order; an error stands where the model gave no answer.

        What is asked twice is sent once. Not to be called where an event loop is running.

        Parameters
        ----------
        progress
            Called with how many calls are through, and how many there are.
        """
        questions = [Question(call) if isinstance(call, ToolCall) else call for call in calls]
        outcomes: list[Outcome] = [JudgeError("not asked")] * len(questions)
        places: dict[str, list[int]] = {}
        for place, question in enumerate(questions):
            try:
                places.setdefault(self.digest(question), []).append(place)
            except JudgeError as error:
                outcomes[place] = error
        for digest in places.keys() & self.answers.keys():
            for place in places.pop(digest):
                outcomes[place] = self.answers[digest].effect()
        done = len(questions) - sum(map(len, places.values()))

        async def work(item: tuple[str, list[int]]) -> None:
            nonlocal done
            digest, same = item
            try:
                answer = await self._asked(digest, questions[same[0]])
                self._keep(answer)
                outcome: Outcome = answer.effect()
            except JudgeError as error:
                outcome = error
            for place in same:
                outcomes[place] = outcome
            done += len(same)
            progress(done, len(questions))

        if places:
            self._asker.each(places.items(), work)
        return outcomes

    async def _asked(self, digest: str, question: Question) -> Answer:
        put = self.prompt.put(question, self._asker.redact)
        reply, tokens = await self._asker.answer(
            put.text, lambda text: read_reply(text, put.seen, self.prompt.scales), put.again
        )
        return Answer(
            digest=digest,
            levels=reply.levels,
            kinds=reply.kinds,
            external=reply.external,
            reason=reply.reason,
            confidence=float(reply.confidence),
            model=self.model,
            prompt=self.prompt.version,
            usage=Usage(*tokens),
        )

    def _keep(self, answer: Answer) -> None:
        if self._file is not None:
            self._file.add(answer)
        self.answers[answer.digest] = answer

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} on prompt {self.prompt.version}: {self.budget!r}>"


class RecordedJudge:
    """Answers from a file alone; nothing is ever sent.

    Parameters
    ----------
    path
        The file.
    model, prompt
        Whose answers, and to which version of the prompt; needed only where the file holds several.
    scales
        The dimensions and levels of the answers; by default those of the shipped catalogue.
    missing
        What `assess` does about a call it has no answer for: ``"none"`` returns None, ``"raise"`` raises.

    Raises
    ------
    JudgeFileError
        If the file cannot be read, or it is not clear whose answers to take.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        model: str | None = None,
        prompt: str | None = None,
        scales: Scales | None = None,
        missing: Literal["none", "raise"] = "none",
    ) -> None:
        answers = read_answers(path, scales)
        self.model = _only(path, "model", {one.model for one in answers.values()}, model)
        mine = {digest: one for digest, one in answers.items() if one.model == self.model}
        self.prompt_version = _only(path, "prompt", {one.prompt for one in mine.values()}, prompt)
        self.answers = {digest: one for digest, one in mine.items() if one.prompt == self.prompt_version}
        self._missing = missing

    def assess(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect | None:
        """Return what was recorded of a call.

        Raises
        ------
        UnknownAnswerError
            If nothing was, and that is to be an error.
        """
        try:
            digest = Question(call, result, task).digest(self.model, self.prompt_version)
        except JudgeError:
            digest = "it cannot be asked"
        answer = self.answers.get(digest)
        if answer is None and self._missing == "raise":
            raise UnknownAnswerError(digest)
        return None if answer is None else answer.effect()

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        return f"<RecordedJudge {self.model}: {len(self)} answers to prompt {self.prompt_version}>"


def read_answers(path: str | PathLike[str], scales: Scales | None = None) -> dict[str, Answer]:
    """Read recorded answers, by digest of the question.

    Parameters
    ----------
    scales
        The dimensions and levels that answers are given in; by default those of the shipped catalogue.

    Raises
    ------
    JudgeFileError
        If the file cannot be read, or a line is none that a judge has recorded; the message names the line.
    """
    scales = scales or default_scales()
    answers: dict[str, Answer] = {}
    for number, answer in enumerate(read_records(path, HEADER, Answer), 2):
        try:
            answer.check(scales)
        except AnswerError as error:
            raise JudgeFileError(f"{path}:{number}: no answer: {error}") from None
        if answers.setdefault(answer.digest, answer) != answer:
            raise JudgeFileError(f"{path}:{number}: another answer to a question that was answered before")
    return answers


def _only(path: str | PathLike[str], what: str, found: set[str], wanted: str | None) -> str:
    if wanted is not None:
        if found and wanted not in found:
            known = ", ".join(sorted(found))
            raise JudgeFileError(f"{path}: no answers of {what} {wanted!r}; there are: {known}")
        return wanted
    if len(found) > 1:
        known = ", ".join(sorted(found))
        raise JudgeFileError(f"{path}: answers of more than one {what}; choose one of: {known}")
    return next(iter(found), "")
