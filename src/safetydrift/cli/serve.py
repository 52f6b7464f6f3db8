"""``safetydrift serve``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from safetydrift.cli.output import notes, shown

_FILE = click.Path(exists=True, dir_okay=False)
STOPPING = 20
"""Seconds that requests have to end when the service is stopped."""


@click.command
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="Listen here.")
@click.option(
    "--database",
    metavar="URL",
    envvar="SAFETYDRIFT_DATABASE",
    help="postgresql://user@host/name; a SQLite file in the folder if not given.",
)
@click.option("--data", type=click.Path(file_okay=False), metavar="FOLDER", help="Where files are kept.")
@click.option("--demo", is_flag=True, help="Show made-up runs, in a folder of their own.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--policy", type=_FILE, metavar="FILE", help="The first policy of a new service.")
@click.option("--model", type=_FILE, metavar="FILE", help="Model file.")
@click.option(
    "--config",
    type=_FILE,
    envvar="SAFETYDRIFT_CONFIG",
    metavar="FILE",
    help="What is inside your organisation.",
)
@click.option(
    "--settings",
    type=_FILE,
    metavar="FILE",
    help="Slack, webhooks, SIEM, retention, limits (docs/how-to/serve.md).",
)
@click.option("--public-url", metavar="URL", help="The address under which people reach the page.")
@click.option(
    "--four-eyes/--one-person",
    default=None,
    help="Whether a policy that may let more through needs a second person [default: beyond this machine].",
)
@click.pass_context
def serve(context: click.Context, /, settings: str | None, **told: Any) -> None:
    """Run a team's guard: one decision point for many agents, and a page with runs, questions and history.

    At the first start a token is made and printed; the page asks for it. Agents are given one of their own.

    \b
    Exit codes:
      0  stopped
      3  a file or the database cannot be used

    \b
    Example:
      safetydrift serve --demo
      safetydrift serve --host 0.0.0.0 --database postgresql://guard@db/guard --workers 4
    """
    import asyncio

    import msgspec
    import uvicorn

    from safetydrift.integrations.claude_code import state_folder
    from safetydrift.service import metrics
    from safetydrift.service.access import organisation
    from safetydrift.service.app import VARIABLE
    from safetydrift.service.runtime import Runtime, first_start
    from safetydrift.service.settings import LOOPBACK, read_settings, settings_of

    given = {
        name: value
        for name, value in told.items()
        if value is not None
        and (settings is None or context.get_parameter_source(name) is not ParameterSource.DEFAULT)
    }
    said = (read_settings(settings) if settings else {}) | given
    said.setdefault("data", str(Path(state_folder()) / ("demo" if said.get("demo") else "service")))
    said.setdefault("four_eyes", said.get("host", "127.0.0.1") not in LOOPBACK)
    chosen = settings_of(said)
    Path(chosen.data).mkdir(mode=0o700, parents=True, exist_ok=True)
    runtime = Runtime(chosen)
    ordered = chosen.organisations
    secret = asyncio.run(runtime.jobs_lane.run(lambda lane: first_start(runtime, lane, ordered)))
    if chosen.demo:
        from safetydrift.service.demo import Demo

        demo = Demo(runtime, asyncio.run(runtime.jobs_lane.run(lambda lane: organisation(lane, "default"))))
        demo.fill(lambda work: asyncio.run(runtime.jobs_lane.run(work)))
    runtime.close()
    _say(chosen.url, secret)
    os.environ[VARIABLE] = msgspec.json.encode(chosen).decode()
    metrics.prepare(chosen.data)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ended)  # what uvicorn gives the signal back to once everything is finished
    uvicorn.run(
        "safetydrift.service.app:create",
        factory=True,
        host=chosen.host,
        port=chosen.port,
        workers=chosen.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=STOPPING,
        timeout_keep_alive=75,
    )


def _ended(*_: object) -> None:
    raise SystemExit(0)


def _say(url: str, secret: str) -> None:
    """Tell where the page is, and the first token, which is never shown again."""
    if secret:
        notes.print(shown(f"first token (admin and agent; keep it): {secret}"), markup=False)
        notes.print(shown(f"open {url}/sign-in#{secret}"), markup=False)
    else:
        notes.print(shown(f"serving at {url}"), markup=False)
