"""Decisions for a SIEM: OCSF API Activity events as JSON lines, or CEF, into a file or to syslog (RFC 5424).

Each decision is told at least once and in order. How far each receiver has come is kept in the database; what could not
be delivered is tried again at the next turn, and holds up nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import insert, select, update

from safetydrift._version import __version__
from safetydrift.errors import ConfigError
from safetydrift.service import view
from safetydrift.service.access import organisation
from safetydrift.service.database.schema import calls, positions, runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime
    from safetydrift.service.settings import Siem

AT_ONCE = 500
SETTLED = 3.0
"""Seconds after which nobody is in the middle of writing a decision with a smaller number."""
PATIENCE = 5.0
NOTICE, WARNING = 13 * 8 + 5, 13 * 8 + 4
"""Priorities of syslog: the facility "log audit" with a severity."""
SEVERITIES = {"allow": 1, "warn": 2, "ask": 3, "suggest": 4, "block": 4, "made": 4}
"""By intervention, from OCSF's informational (1) to high (4)."""
OTHER, API_ACTIVITY = 99, 6003
_COLUMNS = tuple(
    calls.c[name]
    for name in (
        "id",
        "call_id",
        "tool",
        "at",
        "decided",
        "would_be",
        "rule",
        "probability",
        "threshold",
        "policy",
    )
) + tuple(calls.c[name] for name in ("message", "error"))
_ABOUT = (runs.c.key, runs.c.agent, runs.c.person, runs.c.host, runs.c.framework)


def ocsf(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decision as an OCSF event: class API Activity (6003) with the profile security_control.

    Parameters
    ----------
    row
        A call with what is known of its run.
    """
    done = str(row["would_be"] or row["decided"])
    stopped = row["decided"] not in {"allow", "warn", "made"}
    action = 3 if row["would_be"] or row["decided"] == "made" else 2 if stopped else 1
    return {
        "class_uid": API_ACTIVITY,
        "category_uid": 6,
        "activity_id": OTHER,
        "activity_name": "Propose",
        "type_uid": API_ACTIVITY * 100 + OTHER,
        "time": round(row["at"] * 1000),
        "severity_id": SEVERITIES.get(done, 0),
        "status_id": 1,
        "action_id": action,
        "disposition_id": {1: 1, 2: 2, 3: 17}[action],
        "is_alert": done in {"ask", "suggest", "block", "made"},
        "message": row["message"],
        "actor": {"user": {"name": row["person"]}, "app_name": row["agent"], "session": {"uid": row["key"]}},
        "api": {
            "operation": row["tool"],
            "request": {"uid": row["call_id"]},
            "service": {"name": row["framework"]},
        },
        "src_endpoint": {"hostname": row["host"]},
        "policy": {"name": row["rule"], "version": str(row["policy"])},
        "metadata": {
            "version": "1.5.0",
            "uid": str(row["id"]),
            "profiles": ["security_control"],
            "product": {"name": "SafetyDrift", "vendor_name": "SafetyDrift", "version": __version__},
        },
        "unmapped": {
            "intervention": done,
            "probability": row["probability"],
            "threshold": row["threshold"],
            "error": row["error"],
        },
    }


def cef(row: Mapping[str, Any]) -> str:
    """Return a decision in ArcSight's Common Event Format, version 0."""
    done = str(row["would_be"] or row["decided"])
    head = ["CEF:0", "SafetyDrift", "guard", __version__, row["rule"] or "none", view.WORDS.get(done, done)]
    severity = {1: 1, 2: 4, 3: 6, 4: 8}.get(SEVERITIES.get(done, 0), 0)
    said = {
        "rt": str(round(row["at"] * 1000)),
        "externalId": str(row["id"]),
        "act": done,
        "suser": row["person"],
        "shost": row["host"],
        "cs1Label": "run",
        "cs1": row["key"],
        "cs2Label": "agent",
        "cs2": row["agent"],
        "cs3Label": "tool",
        "cs3": row["tool"],
        "msg": row["message"],
    }
    if row["probability"] is not None:
        said |= {"cfp1Label": "probability", "cfp1": f"{row['probability']:.4f}"}
    whole = [head[0], *[_escaped(str(one), "|") for one in head[1:]], str(severity)]
    return (
        "|".join(whole)
        + "|"
        + " ".join([f"{name}={_escaped(value, '=')}" for name, value in said.items() if value])
    )


def _escaped(text: str, sign: str) -> str:
    for one in ("\\", sign):
        text = text.replace(one, "\\" + one)
    lines = text.splitlines()
    return ("\\n" if sign == "=" else " ").join(
        ["".join([c if c.isprintable() else " " for c in line]) for line in lines]
    )


class Forwarding:
    """Tells receivers of decisions.

    Parameters
    ----------
    runtime
        The worker.

    Raises
    ------
    ConfigError
        If a receiver is not named as it has to be.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        for told in runtime.settings.siem:
            require_receiver(told)

    async def turn(self) -> None:
        """Tell every receiver of the decisions that it has not been told of, a batch of them at most."""
        for number, told in enumerate(self._runtime.settings.siem):
            name = f"siem:{number}"
            org, after = await self._runtime.jobs_lane.run(partial(_place, told=told, name=name))
            rows = await asyncio.to_thread(self._runtime.read, partial(_rows, org=org, after=after))
            if not rows:
                continue
            wanted = [row for row in rows if told.allowed or row["would_be"] or row["decided"] != "allow"]
            try:
                await asyncio.to_thread(send, told, wanted)
            except OSError:
                self._runtime.metrics.errors.labels("siem").inc()
                continue
            await self._runtime.jobs_lane.run(partial(_moved, name=name, to=int(rows[-1]["id"])))


def require_receiver(told: Siem) -> None:
    """Check that a receiver is a file, or syslog by UDP or TCP.

    Raises
    ------
    ConfigError
        If it is not.
    """
    if bool(told.file) == bool(told.syslog):
        raise ConfigError("settings: a section of siem names a file or a syslog address, one of both")
    if told.syslog:
        where = urlsplit(told.syslog)
        if where.scheme not in {"udp", "tcp"} or not where.hostname:
            raise ConfigError(f"settings: syslog is udp://host:port or tcp://host:port, not {told.syslog!r}")


def send(told: Siem, rows: list[dict[str, Any]]) -> None:
    """Write decisions to a receiver.

    Raises
    ------
    OSError
        If it cannot be reached, or not be written.
    """
    lines = [json.dumps(ocsf(row), ensure_ascii=False) if told.format == "ocsf" else cef(row) for row in rows]
    if told.file:
        with Path(told.file).open("a", encoding="utf-8") as file:
            file.write("".join([line + "\n" for line in lines]))
            file.flush()
            os.fsync(file.fileno())
        return
    where = urlsplit(told.syslog)
    messages = [_syslog(row, line) for row, line in zip(rows, lines, strict=True)]
    address = (str(where.hostname), where.port or 514)
    if where.scheme == "udp":
        family, kind, *_, place = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as sender:
            for message in messages:
                sender.sendto(message, place)
        return
    with socket.create_connection(address, PATIENCE) as connection:
        connection.sendall(b"".join([b"%d %b" % (len(one), one) for one in messages]))


def _syslog(row: Mapping[str, Any], line: str) -> bytes:
    """Return a message of syslog; over TCP its length stands before it (RFC 6587, 3.4.1)."""
    at = datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    priority = NOTICE if row["decided"] in {"allow", "warn"} else WARNING
    return f"<{priority}>1 {at} {socket.gethostname()} safetydrift {os.getpid()} decision - {line}".encode()


def _place(lane: Lane, told: Siem, name: str) -> tuple[int, int]:
    """Return the organisation of a receiver, and the last decision that it was told of."""
    org = organisation(lane, told.organisation)
    found = lane.execute(select(positions.c.at).where(positions.c.name == name), {}).scalar()
    if found is None:
        lane.execute(insert(positions), {"name": name, "at": 0})
    return org, int(found or 0)


def _moved(lane: Lane, name: str, to: int) -> None:
    lane.execute(update(positions).where(positions.c.name == name).values(at=to), {})


def _rows(connection: Connection, org: int, after: int) -> list[dict[str, Any]]:
    own = (runs.c.id == calls.c.run_id) & (runs.c.org == org)
    where = (calls.c.org == org) & (calls.c.id > after)
    statement = select(*_COLUMNS, *_ABOUT).join(runs, own).where(where).order_by(calls.c.id).limit(AT_ONCE)
    before = time() - SETTLED
    found = [dict(row) for row in connection.execute(statement).mappings()]
    return list(takewhile(lambda row: row["at"] < before, found))
