"""A small world in which every probability can be worked out by hand."""

from __future__ import annotations

import pytest

from safetydrift.formats import load_catalogue, load_space
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Move, Trajectory, fold
from safetydrift.trace import Ending, Label

SPACE = load_space("paper")
READ = SPACE.encode({"data": "sensitive"})
WRITE = SPACE.encode({"tool": "file_write", "reversibility": "partially"})
SEND = SPACE.encode({"tool": "network", "reversibility": "irreversible"})


def run(*effects: int, onset: int | None = None, category: str = "office", ending=Ending.COMPLETED, **extra):
    """A labelled run; violated exactly when it has an onset."""
    return Trajectory.of_columns(
        extra.pop("id", f"run-{category}-{effects}"),
        effects=effects,
        states=fold(SPACE, effects),
        category=category,
        ending=ending,
        label=extra.pop("label", Label(onset is not None, onset=onset)),
        tools=("tool",) * len(effects),
        **extra,
    )


def move(effect: int) -> Move:
    """A call that does as it was proposed, of a tool whose name does not matter."""
    return Move("tool", effect, effect)


@pytest.fixture(scope="session")
def catalogue():
    return load_catalogue()


@pytest.fixture(scope="session")
def office_runs():
    """Four runs read and then send: three of these sends violate. Two more only write, and finish."""
    return [run(READ, SEND, onset=2, id=f"v{n}") for n in range(3)] + [
        run(READ, SEND, id="calm"),
        run(WRITE, id="w1"),
        run(WRITE, id="w2"),
    ]


@pytest.fixture(scope="session")
def office(office_runs, catalogue):
    return fit_model(office_runs, SPACE, catalogue, FitSettings(strength=0.0), threshold=0.5)[0]
