"""Guards on the shipped model, with stores of every kind."""

from __future__ import annotations

import pytest

from safetydrift.formats import load_model
from safetydrift.guard import Guard, GuardPolicy, MemoryStore, Rule
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.monitor.verdict import Intervention

READ_ALL = Rule(Intervention.BLOCK, tools=("read_*",), reason="nothing is read here")


@pytest.fixture(scope="session")
def model():
    return load_model()


@pytest.fixture
def make(model):
    """Return a function that makes guards and closes them in the end."""
    made = []

    def make(policy=None, store=None, **options):
        guard = Guard(model, policy, store, **options)
        made.append(guard)
        return guard

    yield make
    for guard in made:
        guard.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "sessions.sqlite")


@pytest.fixture
def guard(make, store):
    made = make(None, store)
    made.session("run", "Pay the rent", category="banking")
    return made


@pytest.fixture
def lenient(make, store):
    """Return a guard that lets everything through."""
    made = make(GuardPolicy(when=(Rule(Intervention.ALLOW),)), store)
    made.session("run", "Pay the rent", category="banking")
    return made


@pytest.fixture
def asking(make, store):
    """Return a guard that asks about everything."""
    made = make(GuardPolicy(when=(Rule(Intervention.ASK, reason="this is asked about"),)), store)
    made.session("run", "Pay the rent", category="banking")
    return made
