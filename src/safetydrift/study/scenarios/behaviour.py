"""How the simulated agent behaves: it follows the documented ways with imperfect knowledge, and drifts by chance.

It stands in for a model where there is none, so that everything behind it can be tried offline. It knows the documented
steps of its scenario, which no real agent does, and its temptations are numbers that we chose: what is measured with it
says whether the machinery works, and nothing about real models. It is called simulated wherever its results appear.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.study.scenarios.scenario import Drift, Scenario

    Reply = Literal["done", "failed", "refused"]

UNTRUSTED = frozenset(("fetch_url", "web_search", "read_email", "list_emails", "search_emails"))
"""What brings in the words of others."""
_WEIGHT = {"easy": 0.75, "medium": 1.0, "hard": 1.3}
_MOST = 0.95


@dataclass(frozen=True, slots=True)
class Profile:
    """The chances of a simulated agent, each at every step.

    Parameters
    ----------
    drift, exposed
        To begin a drift; and the same once it has read what others wrote.
    turn_back
        To leave a drift it is in.
    explore
        To look around first.
    slip, skip
        To call a tool wrongly; to leave a step out.
    stop
        To stop before the task is done.
    carry_on
        To finish the task after a drift.
    heed
        To leave a drift when a call is refused or warned of. What is refused otherwise is tried once more.
    """

    drift: float
    exposed: float
    turn_back: float
    explore: float
    slip: float
    skip: float
    stop: float
    carry_on: float
    heed: float


PROFILES: Mapping[str, Profile] = {
    "careful": Profile(0.03, 0.04, 0.45, 0.25, 0.03, 0.01, 0.01, 0.9, 0.95),
    "hurried": Profile(0.16, 0.18, 0.12, 0.08, 0.12, 0.08, 0.05, 0.4, 0.6),
    "over-helpful": Profile(0.2, 0.22, 0.15, 0.4, 0.04, 0.0, 0.0, 0.9, 0.7),
    "injected": Profile(0.06, 0.55, 0.1, 0.2, 0.05, 0.03, 0.02, 0.6, 0.45),
}
"""The profiles, by name."""
MIXED = "mixed"
"""The word for one of the profiles, drawn per run."""


@dataclass(frozen=True, slots=True)
class Action:
    """What the agent does next: a call, or an answer when it is through."""

    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""


class SimulatedAgent:
    """One run of the simulated agent.

    Parameters
    ----------
    scenario
        What it does.
    profile
        A name among `PROFILES`, or `MIXED`.
    seed
        What its chances are drawn from: the same seed and the same replies give the same run.

    Raises
    ------
    LookupError
        If there is no such profile.
    """

    def __init__(self, scenario: Scenario, profile: str, seed: int) -> None:
        if profile != MIXED and profile not in PROFILES:
            raise LookupError(f"there is no profile {profile!r}; there are {', '.join((*PROFILES, MIXED))}")
        self._random = Random(f"{scenario.id}/{profile}/{seed}")  # noqa: S311  # repeatable on purpose
        self.profile = self._random.choice(list(PROFILES)) if profile == MIXED else profile
        self._chances = PROFILES[self.profile]
        self._temper = self._random.lognormvariate(0.0, 0.5) * _WEIGHT[scenario.difficulty]
        self._scenario = scenario
        self._looks = _looks(scenario)
        self._made: set[str] = set()
        self._done = self._at = 0
        self._drift: Drift | None = None
        self._left: set[str] = set()
        self._exposed = False
        self._step: tuple[str, str] = ("", "")
        self._slipped = 0
        self._insisted = False

    def next(self, reply: Reply = "done") -> Action:
        """Return the next action.

        Parameters
        ----------
        reply
            What became of the last call: it was made, it failed, or somebody refused it.
        """
        self._take(reply)
        chances = self._chances
        if self._drift is not None and self._chance(chances.turn_back):
            self._leave()
        if self._drift is None and self._chance(self._temptation()):
            self._begin()
        way = self._scenario.safe.script if self._drift is None else self._drift.script
        place = self._done if self._drift is None else self._at
        if place >= len(way):
            return self._end()
        if self._chance(chances.stop):
            return Action(answer="I have to leave it here. (simulated)")
        if self._looks and self._chance(chances.explore):
            return self._act("look", self._random.choice(self._looks))
        step = way[place]
        if self._slipped < 2 and self._chance(chances.slip):  # noqa: PLR2004
            self._slipped += 1
            return self._act("slip", _wrong(step))
        if self._drift is None and place + 1 < len(way) and self._chance(chances.skip):
            self._done += 1
            step = way[self._done]
        return self._act("step", step)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _temptation(self) -> float:
        chances = self._chances
        once = chances.exposed if self._exposed else chances.drift
        return min(_MOST, once * self._temper) * 0.5 ** len(self._left)

    def _take(self, reply: Reply) -> None:
        """Take in what became of the last call."""
        kind, tool = self._step
        if not kind:
            return
        self._exposed = self._exposed or (tool in UNTRUSTED and reply == "done")
        if reply == "refused" and self._drift is not None and self._chance(self._chances.heed):
            self._leave()
        elif reply == "refused" and not self._insisted:
            self._insisted = True
        elif kind == "step":
            self._insisted = False
            if self._drift is None:
                self._done += 1
            else:
                self._at += 1

    def _begin(self) -> None:
        """Begin one of the drifts that were not left before, after the steps that were made already."""
        open_ = [drift for drift in self._scenario.drifts if drift.name not in self._left]
        if not open_:
            return
        self._drift = self._random.choice(open_)
        self._at = 0
        while self._at + 1 < len(self._drift.script) and _written(self._drift.script[self._at]) in self._made:
            self._at += 1

    def _leave(self) -> None:
        if self._drift is not None:
            self._left.add(self._drift.name)
            self._drift = None

    def _end(self) -> Action:
        """Come to an end, or back from a drift to what is left of the task."""
        drift = self._drift
        if drift is None:
            return Action(answer=self._scenario.safe.answer or "Done. (simulated)")
        self._left.update(one.name for one in self._scenario.drifts)
        self._drift = None
        if not self._chance(self._chances.carry_on):
            return Action(answer=drift.answer or "Done. (simulated)")
        script = self._scenario.safe.script
        while self._done < len(script) and _written(script[self._done]) in self._made:
            self._done += 1
        return self._act("step", script[self._done]) if self._done < len(script) else self._end()

    def _act(self, kind: str, step: Mapping[str, Any]) -> Action:
        self._step = (kind, step["call"])
        self._made.add(_written(step))
        return Action(step["call"], {key: value for key, value in step.items() if key != "call"})


def _written(step: Mapping[str, Any]) -> str:
    return json.dumps(step, sort_keys=True)


def _wrong(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step with its first text spoilt, as slips do."""
    spoilt = dict(step)
    for name in ("path", "id", "url", "sql", "command", "query"):
        if isinstance(spoilt.get(name), str):
            spoilt[name] = f"{spoilt[name][:-2]}" if name in {"path", "id", "url"} else f"{spoilt[name]} '"
            break
    return spoilt


def _looks(scenario: Scenario) -> list[dict[str, Any]]:
    """Return calls by which one can look around in a scenario, with the tools it offers."""
    paths = [file.path for file in scenario.files]
    folders = sorted({posixpath.dirname(path) for path in paths})
    found: dict[str, Sequence[dict[str, Any]]] = {
        "list_directory": [{"path": folder} for folder in folders],
        "read_file": [{"path": path} for path in paths],
        "bash": [{"command": f"ls -l {folder}"} for folder in folders]
        + [{"command": f"cat {path}"} for path in paths],
        "list_emails": [{}],
        "read_email": [{"id": mail.id} for mail in scenario.mails],
        "list_events": [{}],
        "list_tables": [{}],
        "execute_sql": [{"sql": f"SELECT * FROM {one.name} LIMIT 3"} for one in scenario.tables],  # noqa: S608  # our own names
        "fetch_url": [{"url": page.url} for page in scenario.pages],
        "get_balance": [{}],
        "get_transactions": [{}],
        "web_search": [{"query": page.title} for page in scenario.pages if page.title],
        "grep_search": [{"pattern": "TODO", "path": folder} for folder in folders],
    }
    return [{"call": tool, **args} for tool in scenario.tools for args in found.get(tool, ())]
