"""Questions in Slack: a message with two buttons, and what comes back when somebody presses one (Block Kit)."""

from __future__ import annotations

import json
from hashlib import sha256
from hmac import new as hmac
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from msgspec import Struct

from safetydrift.service import view
from safetydrift.service.access import DeniedError, same

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.service.settings import Slack

MAX_AGE = 300.0
"""Seconds after which a request is not believed any more: somebody may have recorded it."""
YES, NO = "safetydrift-allow", "safetydrift-refuse"
MAX_SECTION = 2900
"""Characters of a section; Slack takes 3,000."""


class Click(Struct, frozen=True):
    """A button that was pressed: which question, as it was shown, what was said, and by whom."""

    approval: str
    presented: str
    approved: bool
    by: str


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Return how Slack signs a request."""
    return "v0=" + hmac(secret.encode(), b"v0:" + stamp.encode() + b":" + body, sha256).hexdigest()


def clicked(told: Slack, secret: str, headers: Mapping[str, str], body: bytes) -> Click | None:
    """Return what somebody has pressed; None if it is of no concern.

    Raises
    ------
    DeniedError
        If it is not from Slack, too old, from another workspace, or of somebody who may not answer.
    """
    stamp = headers.get("x-slack-request-timestamp", "")
    if not stamp.isdigit() or abs(time() - int(stamp)) > MAX_AGE:
        raise DeniedError(401, "the request is too old")
    if not same(headers.get("x-slack-signature", ""), signature(secret, stamp, body)):
        raise DeniedError(401, "the signature is not Slack's")
    said = json.loads(parse_qs(body.decode()).get("payload", ["{}"])[0])
    if said.get("type") != "block_actions" or not said.get("actions"):
        return None
    if said["team"]["id"] != told.team:
        raise DeniedError(403, "another workspace")
    name = told.approvers.get(said["user"]["id"])
    if name is None:
        raise DeniedError(403, "this person may not answer")
    action = said["actions"][0]
    approval, _, presented = str(action["value"]).partition(":")
    if action["action_id"] not in {YES, NO}:
        return None
    return Click(approval, presented, action["action_id"] == YES, f"{name} in Slack")


def message(told: Slack, approval: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return the message that puts a question."""
    value = f"{approval['id']}:{approval['presented_digest']}"
    text = _text(approval["question"], url, approval["id"])
    return {
        "channel": told.channel,
        "text": f"May {_plain(approval['question']['run']['agent'] or 'an agent')} call {_plain(approval['tool'])}?",
        "blocks": [
            _section(text),
            {
                "type": "actions",
                "elements": [
                    _button("Allow once", YES, "primary", value),
                    _button("Refuse", NO, "danger", value),
                ],
            },
        ],
    }


def outcome(approval: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return what the message says once the question waits no more."""
    who = _plain(approval["answered_by"] or "nobody")
    reason = f"\n> {_plain(approval['reason'])}" if approval["reason"] else ""
    text = _text(approval["question"], url, approval["id"]) + f"\n*{approval['status']}* by {who}{reason}"
    return {"text": f"{approval['status']} by {who}", "blocks": [_section(text)]}


def _text(question: Mapping[str, Any], url: str, which: str) -> str:
    run = question["run"]
    where = " on ".join([_plain(one) for one in (run["agent"] or "an agent", run["host"]) if one])
    lines = [
        f"*{where}* wants to call *{_plain(question['tool'])}*",
        f"```{_plain(question['arguments'])}```",
    ]
    if question["message"]:
        lines.append(_plain(question["message"])[:1200])
    if run["task"]:
        lines.append(f"_Asked to:_ {_plain(run['task'])[:300]}")
    lines.append(f"Probability of a violation: {view.percent(question['probability'])}")
    lines.append(f"<{url}/approvals/{which}|Look at it>")
    return "\n".join(lines)[:MAX_SECTION]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _button(text: str, action: str, style: str, value: str) -> dict[str, Any]:
    label = {"type": "plain_text", "text": text}
    return {"type": "button", "action_id": action, "text": label, "style": style, "value": value}


def _plain(text: Any) -> str:
    """Return a text in which Slack finds no mentions, links or code of its own."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")
