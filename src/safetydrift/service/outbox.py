"""What others are told: written in the transaction in which it happened, delivered afterwards, until it arrives."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from sqlalchemy import insert

from safetydrift.service.database.schema import outbox

if TYPE_CHECKING:
    from safetydrift.service.lanes import Lane

QUESTION, ANSWERED = "question", "answered"


def question(lane: Lane, org: int, which: str) -> None:
    """Have everybody who is told of questions told of this one."""
    _put(lane, org, QUESTION, which)


def answered(lane: Lane, org: int, which: str) -> None:
    """Have those who were told of a question told what became of it."""
    _put(lane, org, ANSWERED, which)


def _put(lane: Lane, org: int, channel: str, which: str) -> None:
    row = {"org": org, "channel": channel, "subject": which, "due": time()}
    lane.execute(insert(outbox), row)
