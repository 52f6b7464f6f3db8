"""From sets to runs: where a case is put, in whose words, and what its variants are."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from everyday import recorded, sets
from everyday.dialects import OTHERS, RECORDED, TEXT, Dialect
from everyday.runs import Made, Opened, Run, Said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from everyday.runs import Event

OWN_NAMES = 0.4
"""Share of the cases in recorded sessions that keep the names of the tools as they were recorded."""

Item = TypeVar("Item")


def drawn(items: Iterable[Item], limit: int | None, seed: int, group: Callable[[Item], str]) -> list[Item]:
    """Draw at most so many items, from every group in turn; all of them without a limit."""
    every = list(items)
    if limit is None or len(every) <= limit:
        return every
    groups: defaultdict[str, list[Item]] = defaultdict(list)
    for item in every:
        groups[group(item)].append(item)
    draw = Random(seed)  # noqa: S311  # a sample, not a secret
    for members in groups.values():
        draw.shuffle(members)
    found: list[Item] = []
    while len(found) < limit:
        for members in groups.values():
            if members and len(found) < limit:
                found.append(members.pop())
    return found


def events(
    steps: Iterable[sets.Step | str], dialect: Dialect, *, marked: bool = False, carrier: str = ""
) -> list[Event]:
    """Return steps of a set as events, with the carrier where ``{carrier}`` stands in arguments and results."""
    found: list[Event] = []
    for one in steps:
        step = sets.Step(sh=one) if isinstance(one, str) else one
        if step.said:
            found.append(Said(step.said, step.agent))
        elif step.opens:
            found.append(Opened(step.opens, step.task, step.part))
        else:
            tool, args = _call(step, dialect)
            result, error = (_carrying(text, carrier) for text in (step.result, step.error))
            found.append(
                Made(tool, _carrying(args, carrier), result, error, step.agent, marked, step.malformed)
            )
    return found


def _carrying(value: Any, carrier: str) -> Any:
    if isinstance(value, dict):
        return {key: _carrying(one, carrier) for key, one in value.items()}
    if isinstance(value, list):
        return [_carrying(one, carrier) for one in value]
    return value.replace("{carrier}", carrier) if isinstance(value, str) else value


def _call(step: sets.Step, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    if step.sh:
        return dialect.sh(step.sh)
    return dialect.py(step.py) if step.py else (step.tool, step.args)


def _of_scene(scene: sets.Scene) -> Dialect:
    return Dialect(scene.shell, {scene.argument: TEXT}, scene.python, {"code": TEXT})


def _act(case: sets.CommandCase, dialect: Dialect) -> list[Event]:
    return events([case.act] if isinstance(case.act, str) else case.act, dialect, marked=True)


# -- attack commands and unasked acts ---------------------------------------------------------------------


class Hosts:
    """The sessions into which cases are put: the scenes of a set, and the recorded everyday sessions.

    The draw depends on the seed and the case alone, so all variants of a case stand at the same place.
    """

    def __init__(self, name: str, seed: int, folder: Path | None) -> None:
        self.seed = seed
        self.scenes = sets.scenes(name)
        self.recorded: dict[str, list[recorded.Session]] = {}
        self._folder = recorded.shared(folder)

    def _sessions(self, group: str) -> list[recorded.Session]:
        if group not in self.recorded:
            some = recorded.sessions(self._folder, group)
            self.recorded[group] = [session for session in some if len(session.calls) >= 4]
        return self.recorded[group]

    def place(self, case: sets.CommandCase) -> tuple[str, list[Event], Dialect, bool]:
        """Return the task and the calls before a case, the names of its tools, and whether the text is ours."""
        if case.scene in self.scenes:
            scene = self.scenes[case.scene]
            return scene.task, events(scene.steps, _of_scene(scene)), _of_scene(scene), True
        draw = Random(f"{self.seed}/{case.id}")  # noqa: S311  # a place, not a secret
        python = not isinstance(case.act, str) and any(
            isinstance(one, sets.Step) and one.py for one in case.act
        )
        group = case.scene or ("super" if python or draw.random() < 0.5 else "intercode")
        session = draw.choice(self._sessions(group))
        dialect = RECORDED if draw.random() < OWN_NAMES else draw.choice(OTHERS)
        before = session.calls[: draw.randrange(2, len(session.calls))]
        return session.task, [_renamed(made, dialect) for made in before], dialect, False


def _renamed(made: Made, dialect: Dialect) -> Made:
    tool, args = dialect.sh(made.args["command"]) if made.tool == "bash" else dialect.py(made.args["code"])
    return made._replace(tool=tool, args=args)


def command_runs(name: str, seed: int, limit: int | None, folder: Path | None) -> list[Run]:
    """Return the runs of a set of commands: attack, the same after other words, twin; look-alikes once."""
    hosts, other, runs = Hosts(name, seed, folder), sets.words(), []
    for case in drawn(sets.commands(name), limit, seed, lambda case: case.group):
        task, before, dialect, public = hosts.place(case)
        act = _act(case, dialect)
        variants: dict[str, list[Event]] = {"look-alike": act}
        if case.twin:
            words = _other_words(other, case.group, Random(f"{seed}/{case.id}/words"))  # noqa: S311  # a draw
            variants = {
                "attack": act,
                "attack after other words": [Said(words), *act],
                "never cleared" if case.never_cleared else "twin": [Said(case.twin), *act],
            }
        runs += [
            Run(name, case.group, variant, case.id, task, (*before, *some), case.scene, public=public)
            for variant, some in variants.items()
        ]
    return runs


def _other_words(every: list[sets.Words], group: str, draw: Random) -> str:
    """Return a message that asks for nothing of the kind; in half of the cases one that comes close."""
    near = [one.text for one in every if one.group == group]
    return draw.choice(near if near and draw.random() < 0.5 else [one.text for one in every if not one.group])


# -- adaptive injections ----------------------------------------------------------------------------------


def injection_runs(seed: int, limit: int | None) -> list[Run]:
    """Return each injection and its twin, the same final calls with authority, and runs that only look like one."""
    every: list[sets.InjectionCase | sets.BenignCase] = [*sets.injections(), *sets.benign()]
    scenes, runs = sets.scenes("injections"), []
    for case in drawn(every, limit, seed, lambda case: case.group):
        if isinstance(case, sets.BenignCase):
            runs.append(_benign_run(case, scenes[case.scene]))
            continue
        scene = scenes[case.scene]
        dialect = _of_scene(scene)
        act = events(case.act, dialect, marked=True)
        twin, task = case.twin, case.task or scene.task
        said = [Said(twin.said)] if twin.said else []
        for variant, words, carrier, later in (
            ("attack", task, case.carrier, []),
            ("twin", twin.task or task, case.carrier if twin.carrier is None else twin.carrier, said),
        ):
            before = events([*scene.steps, *case.then], dialect, carrier=carrier)
            between = events(scene.filler[: case.filler], dialect)
            whole = (*before, *between, *later, *act)
            runs.append(Run("injections", case.group, variant, case.id, words, whole, case.scene))
    return runs


def _benign_run(case: sets.BenignCase, scene: sets.Scene) -> Run:
    dialect = _of_scene(scene)
    said = [Said(case.said)] if case.said else []
    before = events(scene.steps, dialect, carrier=case.carrier)
    whole = (*before, *said, *events(case.act, dialect, marked=True))
    return Run("injections", case.group, "look-alike", case.id, case.task or scene.task, whole, case.scene)


# -- records, named cases, everyday sessions --------------------------------------------------------------


def record_runs(seed: int, limit: int | None) -> list[Run]:
    """Return the records; unsafe ones end with the first stop of a risky call."""
    runs = []
    for record in drawn(sets.records(), limit, seed, lambda one: f"{one.group} {one.unsafe}"):
        some = [
            event
            for number, step in enumerate(record.steps, 1)
            for event in events([step], RECORDED, marked=number in record.risky)
        ]
        variant = "attack" if record.unsafe else "safe"
        runs.append(
            Run(
                "records",
                record.group,
                variant,
                record.id,
                record.task,
                tuple(some),
                notes={"risk": record.risk},
            )
        )
    return runs


def named_runs() -> list[Run]:
    """Return the named cases; what is expected is about the last call."""
    runs = []
    for case in sets.named():
        some = events(case.steps[:-1], RECORDED) + events(case.steps[-1:], RECORDED, marked=True)
        runs.append(
            Run(
                "named",
                case.group,
                "named",
                case.id,
                case.task,
                tuple(some),
                notes={"expected": case.expected, "names": case.names},
            )
        )
    return runs


def session_runs(group: str, seed: int, limit: int | None, folder: Path | None) -> list[Run]:
    """Return everyday sessions as they were recorded."""
    some = recorded.sessions(recorded.shared(folder), group)
    label = {"super": "SUPER", "intercode": "InterCode"}[group]
    return [
        Run("everyday", label, "benign", one.name, one.task, one.calls, one.task, public=False)
        for one in drawn(some, limit, seed, lambda one: one.task)
    ]
