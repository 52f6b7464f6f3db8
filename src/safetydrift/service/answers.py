"""Answers that come from outside of our own page: buttons in Slack, and services that were told of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetydrift.service import slack, webhooks
from safetydrift.service.access import organisation
from safetydrift.service.api import answer_question
from safetydrift.service.approvals import NotPendingError
from safetydrift.service.serving import answered, body_of
from safetydrift.service.settings import secret

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from safetydrift.service.runtime import Runtime

MAX_BODY = 256 << 10


async def from_slack(request: Request, runtime: Runtime) -> Response:
    """Take a button that somebody has pressed; what became of it is shown in the message."""
    told = runtime.settings.slack[_number(request, len(runtime.settings.slack))]
    body = await body_of(request, MAX_BODY)
    click = slack.clicked(told, secret(told.signing_secret_env), request.headers, body)
    if click is None:
        return answered({})
    said = {"approved": click.approved, "presented": click.presented, "reason": ""}
    try:
        await _answer(runtime, told.organisation, click.approval, said, click.by)
    except NotPendingError as late:
        return answered({"response_type": "ephemeral", "replace_original": False, "text": str(late)})
    return answered({})


async def from_webhook(request: Request, runtime: Runtime) -> Response:
    """Take the answer of a service that was told of a question."""
    told = runtime.settings.webhook[_number(request, len(runtime.settings.webhook))]
    body = await body_of(request, MAX_BODY)
    reply = webhooks.replied(secret(told.secret_env), request.headers, body)
    said = {"approved": reply.approved, "presented": reply.presented, "reason": reply.reason}
    by = f"{reply.by[:200] or 'somebody'} by webhook"
    row = await _answer(runtime, told.organisation, reply.id, said, by)
    return answered({"status": row["status"]})


async def _answer(runtime: Runtime, name: str, which: str, said: dict[str, Any], by: str) -> dict[str, Any]:
    org = await runtime.jobs_lane.run(lambda lane: organisation(lane, name))
    return await answer_question(runtime, org, which, said, by)


def _number(request: Request, count: int) -> int:
    number = int(request.path_params["number"])
    if number >= count:
        raise LookupError("nothing is set up under this address")
    return number
