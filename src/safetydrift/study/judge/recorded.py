"""Answers recorded once and replayed exactly, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from safetydrift.errors import JudgeError, JudgeFileError, UnknownAnswerError
from safetydrift.study.judge.answer_file import AnswerFile, read_answers
from safetydrift.study.judge.judge import Judge
from safetydrift.study.judge.question import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from safetydrift.effects.catalogue.scales import Scales
    from safetydrift.states.effect import Effect
    from safetydrift.study.judge.answer import Answer
    from safetydrift.study.judge.budget import Budget
    from safetydrift.study.judge.settings import JudgeSettings
    from safetydrift.trace import ToolCall


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

    Attributes
    ----------
    unknown
        How many questions had no answer so far.
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
        if missing not in {"none", "raise"}:
            raise ValueError(f"missing: expected 'none' or 'raise', got {missing!r}")
        answers = read_answers(path, scales)
        self.path, self.missing = Path(path), missing
        self.model = _only(path, "model", {answer.model for answer in answers.values()}, model)
        mine = {digest: answer for digest, answer in answers.items() if answer.model == self.model}
        self.prompt_version = _only(path, "prompt", {answer.prompt for answer in mine.values()}, prompt)
        self._answers = {
            digest: answer for digest, answer in mine.items() if answer.prompt == self.prompt_version
        }
        self.unknown = 0

    def __len__(self) -> int:
        return len(self._answers)

    def digest(self, call: ToolCall, result: str | None = None, task: str = "") -> str:
        """Return the digest under which the answer to a question is kept."""
        return Question(call, result, task).digest(self.model, self.prompt_version)

    def answer(self, call: ToolCall, result: str | None = None, task: str = "") -> Answer | None:
        """Return the answer as it was recorded, None if there is none."""
        try:
            return self._answers.get(self.digest(call, result, task))
        except JudgeError:  # what cannot be asked was never answered
            return None

    def known(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect | None:
        """Return the effect that was recorded, None if there is none."""
        answer = self.answer(call, result, task)
        return None if answer is None else answer.effect()

    def assess(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect | None:
        """Return the effect that was recorded.

        Raises
        ------
        UnknownAnswerError
            If there is none, and ``missing`` says to raise.
        """
        effect = self.known(call, result, task)
        if effect is None:
            self.unknown += 1
            if self.missing == "raise":
                raise UnknownAnswerError(self.digest(call, result, task))
        return effect

    async def assess_async(self, call: ToolCall, result: str | None = None, task: str = "") -> Effect | None:
        """Return the effect that was recorded; like `assess`."""
        return self.assess(call, result, task)

    def assess_all(self, calls: Iterable[ToolCall | Question]) -> list[Effect | None]:
        """Return the effects that were recorded, in the order of the calls; like `assess`."""
        questions = [call if isinstance(call, Question) else Question(call) for call in calls]
        return [self.assess(one.call, one.result, one.task) for one in questions]

    def __repr__(self) -> str:
        return f"<RecordedJudge {self.model}: {len(self)} answers to prompt {self.prompt_version}>"


def _only(path: str | PathLike[str], what: str, found: set[str], wanted: str | None) -> str:
    if wanted is not None:
        if found and wanted not in found:
            raise JudgeFileError(
                f"{path}: no answers of {what} {wanted!r}; there are: {', '.join(sorted(found))}"
            )
        return wanted
    if len(found) > 1:
        raise JudgeFileError(
            f"{path}: answers of more than one {what}; choose one of: {', '.join(sorted(found))}"
        )
    return next(iter(found), "")


class RecordingJudge(Judge):
    """A judge that writes every answer to a file as it comes, and asks nothing that the file answers already.

    Parameters
    ----------
    path
        The file; it is made if there is none. What a crash left of a last line is cut off.
    model, settings, scales, redact, budget
        As for `Judge`.

    Raises
    ------
    JudgeFileError
        If the file cannot be read or written, or somebody else is writing to it.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        model: str,
        settings: JudgeSettings | None = None,
        *,
        scales: Scales | None = None,
        redact: Callable[[str], str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(model, settings, scales=scales, redact=redact, budget=budget)
        self.file = AnswerFile(path, self.prompt.scales)
        self._answers = dict(self.file.answers)

    def _keep(self, digest: str, answer: Answer) -> None:
        self.file.add(digest, answer)
        self._answers[digest] = answer

    def close(self) -> None:
        """Close the connections and the file."""
        super().close()
        self.file.close()
