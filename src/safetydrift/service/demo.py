"""The demo: made-up runs that go through the real decision point, some of them while somebody watches."""

from __future__ import annotations

import tomllib
from functools import cache, partial
from importlib.resources import files
from random import Random
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import func, select, update

from safetydrift.service import approvals, policies
from safetydrift.service.database.schema import approvals as questions
from safetydrift.service.database.schema import calls, runs
from safetydrift.service.wire import OpenRun, Propose, Settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime

RUNS = 72
HOURS = 30.0
LIVELY = 6
SKIPPED = 0.15


class Story(Struct, frozen=True):
    """A run that can be told again and again."""

    agent: str
    framework: str
    hosts: list[str]
    people: list[str]
    task: str
    calls: list[dict[str, Any]]
    category: str = ""
    pipeline: str = ""


class Told(Struct, frozen=True):
    """Everything the demo is made of."""

    policy: str
    other_policy: str
    runs: list[Story]


@cache
def told() -> Told:
    """Return what the file says."""
    from msgspec import convert  # noqa: PLC0415  # only for the demo

    text = files("safetydrift.service").joinpath("demo.toml").read_text("utf-8")
    return convert(tomllib.loads(text), Told)


class Demo:
    """Tells stories to a decision point.

    Parameters
    ----------
    runtime
        The worker.
    org
        The organisation.
    """

    def __init__(self, runtime: Runtime, org: int) -> None:
        self._runtime, self._org = runtime, org
        self._random = Random(7)  # noqa: S311  # made-up runs, always the same
        self._open: list[tuple[str, Story, int]] = []
        self._number = 0

    def fill(self, do: Callable[[Callable[[Lane], Any]], Any]) -> None:
        """Tell the stories of the last day, if nobody has told any yet.

        Parameters
        ----------
        do
            Does work in a lane.
        """
        there = select(func.count()).select_from(runs).where(runs.c.org == self._org)
        if do(lambda lane: lane.execute(there, {}).scalar_one()):
            return
        do(self._with_policies)
        stories = told().runs
        for number in range(RUNS):
            story = stories[number % len(stories)]
            key = do(partial(self._begin, story=story))
            for at in range(len(story.calls)):
                if self._random.random() > SKIPPED:  # no two days are alike
                    do(partial(self._call, key=key, story=story, at=at))
            age = 120.0 + HOURS * 3600 * (1 - (number + 1) / RUNS) ** 2
            do(partial(self._aged, key=key, age=age, answered=number < RUNS - len(stories)))

    def turn(self, lane: Lane) -> None:
        """Go on with one of the runs that are under way, or begin another one."""
        stories = told().runs
        if len(self._open) < LIVELY:
            story = stories[self._number % len(stories)]
            self._open.append((self._begin(lane, story), story, 0))
            return
        key, story, at = self._open.pop(self._random.randrange(len(self._open)))
        self._call(lane, key, story, at)
        if at + 1 < len(story.calls):
            self._open.append((key, story, at + 1))

    # -- inside -------------------------------------------------------------------------------------------

    def _with_policies(self, lane: Lane) -> None:
        book, by = self._runtime.book, "noor@harbour.example"
        first = policies.put_up(lane, self._org, book, told().policy, by, note="The first one.")
        policies.decide(lane, self._org, first["number"], "enforce", "sam@harbour.example", four_eyes=False)
        book.look_again()
        policies.put_up(
            lane, self._org, book, told().other_policy, by, note="Releases are reviewed elsewhere."
        )

    def _begin(self, lane: Lane, story: Story) -> str:
        self._number += 1
        key = f"{story.agent}-{int(time())}-{self._number}/main"
        about = {
            name: getattr(story, name) for name in ("agent", "framework", "task", "category", "pipeline")
        }
        person, host = self._random.choice(story.people), self._random.choice(story.hosts)
        asked = OpenRun(run=key, person=person, host=host, **about)
        self._runtime.point.open(lane, self._org, asked, story.agent)
        return key

    def _call(self, lane: Lane, key: str, story: Story, at: int) -> None:
        call = story.calls[at]
        asked = Propose(run=key, call_id=f"c{at}", tool=call["tool"], arguments=call["args"])
        found = self._runtime.point.propose(lane, self._org, asked)
        if found.decision.allowed:
            settled = Settle(run=key, call_id=f"c{at}", result=call.get("result", "done"))
            self._runtime.point.settle(lane, self._org, settled)

    def _aged(self, lane: Lane, key: str, age: float, *, answered: bool) -> None:
        """Have a run lie in the past, its questions answered as people would have."""
        org = self._org
        number = lane.execute(select(runs.c.id).where(runs.c.org == org, runs.c.key == key), {}).scalar_one()
        mine = (
            (questions.c.org == org)
            & (questions.c.run_id == number)
            & (questions.c.status == approvals.PENDING)
        )
        for row in lane.execute(select(questions).where(mine), {}).mappings().all() if answered else []:
            yes = row["tool"] in {"post_public", "deploy"}
            said = {
                "approved": yes,
                "presented": row["presented_digest"],
                "reason": "" if yes else "nobody asked for this",
            }
            approvals.answer(lane, org, row["id"], said, "sam@harbour.example", holds=600.0)
            self._runtime.point.answer(lane, org, key, row["call_id"], yes, by="sam@harbour.example")
            status = approvals.CONSUMED if yes else approvals.DENIED
            lane.execute(
                update(questions)
                .where(questions.c.org == org, questions.c.id == row["id"])
                .values(status=status),
                {},
            )
        own = (calls.c.org == org) & (calls.c.run_id == number)
        lane.execute(update(calls).where(own).values(at=calls.c.at - age + 7 * calls.c.number), {})
        ended = time() - age + 60 if answered else None
        lane.execute(
            update(runs)
            .where(runs.c.org == org, runs.c.id == number)
            .values(opened=runs.c.opened - age, last=runs.c.last - age, ended=ended),
            {},
        )
