"""A language model as judge of the calls that no rule decides.

Asking needs the extra ``safetydrift[judge]``; reading answers that were recorded needs nothing. Evaluation uses
recorded answers alone, so that it stays offline and exact.
"""

from __future__ import annotations

from safetydrift._lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.content.redaction import redact_secrets
    from safetydrift.study.judge.answer import Answer
    from safetydrift.study.judge.budget import Budget
    from safetydrift.study.judge.judge import Judge
    from safetydrift.study.judge.labeler import JudgedLabeler, judged
    from safetydrift.study.judge.question import Question
    from safetydrift.study.judge.recorded import RecordedJudge, RecordingJudge
    from safetydrift.study.judge.settings import JudgeSettings

__all__ = [
    "Answer",
    "Budget",
    "Judge",
    "JudgeSettings",
    "JudgedLabeler",
    "Question",
    "RecordedJudge",
    "RecordingJudge",
    "judged",
    "redact_secrets",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Answer": "safetydrift.study.judge.answer",
        "Budget": "safetydrift.study.judge.budget",
        "Judge": "safetydrift.study.judge.judge",
        "JudgeSettings": "safetydrift.study.judge.settings",
        "JudgedLabeler": "safetydrift.study.judge.labeler",
        "Question": "safetydrift.study.judge.question",
        "RecordedJudge": "safetydrift.study.judge.recorded",
        "RecordingJudge": "safetydrift.study.judge.recorded",
        "judged": "safetydrift.study.judge.labeler",
        "redact_secrets": "safetydrift.effects.content.redaction",
    },
)
