"""A language model as judge: of the calls that no rule decides, and of every step.

- ``settings``, ``endpoint``, ``asking``: one model, one request, and many within bounds of time and cost
- ``definitions``, ``prompt``, ``answer``: what it is told of a call, and what it may answer
- ``calls``: a judge of calls that is asked, and records; and one that replays what was recorded
- ``labeler``: a labeler that takes its word where no rule decides
- ``steps``: how risky a run looks after every call, recorded for comparison
"""

from __future__ import annotations

from safetydrift.study.judge.answer import Answer
from safetydrift.study.judge.asking import Budget
from safetydrift.study.judge.calls import Judge, RecordedJudge
from safetydrift.study.judge.labeler import JudgedLabeler, judged
from safetydrift.study.judge.question import Question
from safetydrift.study.judge.settings import JudgeSettings

__all__ = [
    "Answer",
    "Budget",
    "Judge",
    "JudgeSettings",
    "JudgedLabeler",
    "Question",
    "RecordedJudge",
    "judged",
]
