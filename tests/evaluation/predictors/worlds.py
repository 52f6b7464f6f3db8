"""Small worlds of made-up runs for predictors to be fitted and tried on."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.formats import load_catalogue, load_space
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label

PAPER, FLOW = load_space("paper"), load_space("flow")
CATALOGUE = load_catalogue()


def made(*effects, onset=None, space=PAPER, ending=Ending.COMPLETED, **extra):
    """A case; violated exactly when it has an onset."""
    run = Trajectory.of_columns(
        extra.pop("id", f"run-{effects}-{onset}"),
        effects=effects,
        states=fold(space, effects),
        ending=ending,
        tools=extra.pop("tools", ("tool",) * len(effects)),
        label=Label(onset is not None, onset=onset),
        category=extra.pop("category", "office"),
        **extra,
    )
    return Case(run, onset)


def world(seed, n=150, space=PAPER, few_effects=12, **fixed):
    """Runs that were drawn: what calls do decides, in part, whether one of them violates."""
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, space.n_states, size=few_effects)
    cases = []
    for number in range(n):
        steps = int(rng.integers(0, 8))
        effects = [int(one) for one in rng.choice(palette, size=steps)]
        proposed = [one if rng.random() < 0.9 else int(rng.choice(palette)) for one in effects]
        risky = [place for place, one in enumerate(effects, 1) if one % 3 == 0 and rng.random() < 0.4]
        case = made(
            *effects,
            onset=risky[0] if risky else None,
            space=space,
            id=f"{seed}-{number}",
            proposed=tuple(proposed),
            kinds=tuple((str(rng.choice(KINDS)),) if rng.random() < 0.2 else () for _ in effects),
            injected=tuple((int(rng.integers(50)),) if rng.random() < 0.2 else () for _ in effects),
            words=tuple(sorted({int(one) for one in rng.integers(0, 100, size=5)})),
            tools=tuple(f"tool{int(rng.integers(6))}" for _ in effects),
            source=f"source{int(rng.integers(2))}",
            category=f"category{int(rng.integers(3))}",
            task=f"task{int(rng.integers(10))}",
            model=f"model{int(rng.integers(4))}",
            ending=Ending.COMPLETED if rng.random() < 0.8 else Ending.CENSORED,
            **fixed,
        )
        cases.append(case)
    return CaseSet(cases)


def cut(case, calls, space):
    """The run as it was known after some calls."""
    moves = case.run.moves[:calls]
    return Case(
        replace(
            case.run,
            moves=moves,
            states=fold(space, [move.effect for move in moves]),
            ending=Ending.CENSORED,
            label=Label(violated=False),
        ),
        None,
    )
