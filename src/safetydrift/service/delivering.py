"""Delivers what the outbox holds, each thing until it has arrived, later and later each time."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
from msgspec import Struct
from sqlalchemy import insert, select, update

from safetydrift.errors import ServiceError
from safetydrift.service import approvals, outbox, queries, slack, webhooks
from safetydrift.service.access import organisation
from safetydrift.service.database.schema import outbox as waiting
from safetydrift.service.settings import Slack, Webhook, secret

if TYPE_CHECKING:
    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime

AT_ONCE = 50
PATIENCE = 10.0
LONGEST_PAUSE = 300.0
MOST = 24
"""Attempts after which something is given up."""


class Letter(Struct, frozen=True):
    """Something to deliver."""

    id: int
    org: int
    channel: str
    subject: str
    attempts: int


class Delivery:
    """Tells others.

    Parameters
    ----------
    runtime
        The worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._client = httpx.AsyncClient(timeout=PATIENCE, follow_redirects=False, trust_env=False)
        settings = runtime.settings
        self._channels: dict[str, Slack | Webhook] = {
            f"slack:{n}": one for n, one in enumerate(settings.slack)
        }
        self._channels |= {f"webhook:{n}": one for n, one in enumerate(settings.webhook)}
        self._orgs: dict[str, int] = {}

    async def turn(self) -> None:
        """Deliver what is due."""
        for letter in await self._runtime.jobs_lane.run(_due):
            if letter.channel in {outbox.QUESTION, outbox.ANSWERED}:
                await self._runtime.jobs_lane.run(lambda lane, letter=letter: self._spread(lane, letter))  # type: ignore[misc]  # bound now
                continue
            receipt, problem = "", ""
            try:
                receipt = await self._deliver(letter)
            except (httpx.HTTPError, ServiceError, ValueError, OSError) as error:
                problem = f"{type(error).__name__}: {error}"[:500]
                self._runtime.metrics.errors.labels("delivery").inc()
            await self._runtime.jobs_lane.run(
                lambda lane, letter=letter, receipt=receipt, problem=problem: _note(
                    lane, letter, receipt, problem
                )  # type: ignore[misc]  # as above
            )

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    def _spread(self, lane: Lane, letter: Letter) -> None:
        """Make one letter of each channel of the organisation."""
        for name, told in self._channels.items():
            if organisation(lane, told.organisation) == letter.org:
                row = {"org": letter.org, "channel": f"{name}/{letter.channel}", "subject": letter.subject}
                lane.execute(insert(waiting), row | {"due": time()})
        _note(lane, letter, "", "")

    async def _deliver(self, letter: Letter) -> str:
        name, _, kind = letter.channel.partition("/")
        told = self._channels.get(name)
        found = await asyncio.to_thread(
            self._runtime.read, lambda c: queries.approval(c, letter.org, letter.subject)
        )
        if told is None or found is None:
            return "gone"
        approval = approvals.shown(found)
        if kind == outbox.QUESTION and approval["status"] != approvals.PENDING:
            return "too late"
        if isinstance(told, Webhook):
            return await self._post(told, approval)
        return await self._slack(told, letter, approval, kind)

    async def _post(self, told: Webhook, approval: dict[str, Any]) -> str:
        if not told.private:
            await asyncio.to_thread(webhooks.require_public, told.url)
        body = msgspec.json.encode(webhooks.message(approval, self._runtime.settings.url), enc_hook=str)
        headers = {
            "Content-Type": "application/json",
            webhooks.HEADER: webhooks.signed(secret(told.secret_env), body),
        }
        reply = await self._client.post(told.url, content=body, headers=headers)
        reply.raise_for_status()
        return str(reply.status_code)

    async def _slack(self, told: Slack, letter: Letter, approval: dict[str, Any], kind: str) -> str:
        url = self._runtime.settings.url
        if kind == outbox.QUESTION:
            return await self._slack_asked(told, "chat.postMessage", slack.message(told, approval, url))
        name = letter.channel.partition("/")[0]

        def put(lane: Lane) -> list[str]:
            where = (waiting.c.org == letter.org) & (waiting.c.subject == letter.subject)
            where &= waiting.c.channel == f"{name}/{outbox.QUESTION}"
            rows = lane.execute(select(waiting.c.receipt).where(where, waiting.c.receipt.like("%:%")), {})
            return [str(receipt) for (receipt,) in rows]

        for receipt in await self._runtime.jobs_lane.run(put):
            channel, _, stamp = receipt.partition(":")
            said = slack.outcome(approval, url) | {"channel": channel, "ts": stamp}
            await self._slack_asked(told, "chat.update", said)
        return "updated"

    async def _slack_asked(self, told: Slack, method: str, body: dict[str, Any]) -> str:
        headers = {"Authorization": f"Bearer {secret(told.token_env)}"}
        reply = await self._client.post(f"{told.address}/{method}", json=body, headers=headers)
        reply.raise_for_status()
        said = reply.json()
        if said.get("ok") is not True:
            raise ServiceError(f"Slack says {str(said.get('error'))[:200]}")
        return f"{said.get('channel', '')}:{said.get('ts', '')}"


def _due(lane: Lane) -> list[Letter]:
    columns = [waiting.c[name] for name in Letter.__struct_fields__]
    where = waiting.c.delivered.is_(None) & (waiting.c.due <= time())
    rows = lane.execute(select(*columns).where(where).order_by(waiting.c.id).limit(AT_ONCE), {})
    return [Letter(*row) for row in rows]


def _note(lane: Lane, letter: Letter, receipt: str, problem: str) -> None:
    """Write down that something was delivered, or when to try again."""
    attempts = letter.attempts + 1
    values: dict[str, Any] = {"attempts": attempts, "receipt": receipt, "error": problem}
    if not problem or attempts >= MOST:
        values["delivered"] = time()
    else:
        values["due"] = time() + min(LONGEST_PAUSE, 2.0**attempts)
    lane.execute(
        update(waiting).where(waiting.c.org == letter.org, waiting.c.id == letter.id).values(**values), {}
    )
