"""A language model as judge of the calls that no rule decides.

Asking needs the extra ``safetydrift[judge]``; reading answers that were recorded needs nothing. Evaluation uses
recorded answers alone, so that it stays offline and exact.
"""

from __future__ import annotations

from safetydrift._lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.judge.answer import Answer
    from safetydrift.judge.budget import Budget
    from safetydrift.judge.judge import Judge
    from safetydrift.judge.labeler import JudgedLabeler, judged
    from safetydrift.judge.question import Question
    from safetydrift.judge.recorded import RecordedJudge, RecordingJudge
    from safetydrift.judge.redaction import redact_secrets
    from safetydrift.judge.settings import JudgeSettings

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
        "Answer": "safetydrift.judge.answer",
        "Budget": "safetydrift.judge.budget",
        "Judge": "safetydrift.judge.judge",
        "JudgeSettings": "safetydrift.judge.settings",
        "JudgedLabeler": "safetydrift.judge.labeler",
        "Question": "safetydrift.judge.question",
        "RecordedJudge": "safetydrift.judge.recorded",
        "RecordingJudge": "safetydrift.judge.recorded",
        "judged": "safetydrift.judge.labeler",
        "redact_secrets": "safetydrift.judge.redaction",
    },
)
