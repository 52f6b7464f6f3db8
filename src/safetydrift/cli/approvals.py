"""``safetydrift approvals``."""

from __future__ import annotations

import sys
from contextlib import closing
from time import time
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import console, emit_json, notes, percent, shown

if TYPE_CHECKING:
    from safetydrift.guard.remote_client import Client

PATIENCE = 10.0


@click.command
@click.option("--url", envvar="SAFETYDRIFT_URL", required=True, metavar="URL", help="The service.")
@click.option(
    "--token", envvar="SAFETYDRIFT_TOKEN", required=True, metavar="TOKEN", help="One with the scope approver."
)
@click.option("--allow", metavar="ID", help="Allow one call, once.")
@click.option("--refuse", metavar="ID", help="Refuse one call.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the audit log.")
@click.option("--plain-http", is_flag=True, help="Let the token go over a network in clear.")
@options.as_json
def approvals(
    url: str,
    token: str,
    allow: str | None,
    refuse: str | None,
    reason: str,
    plain_http: bool,
    as_json: bool,
) -> None:
    """List the questions that wait in a team's guard, and answer them, one after the other.

    With --allow or --refuse one is answered as it stands now; without, on a terminal, each is shown and asked about.

    \b
    Exit codes:
      0  done
      3  the service cannot be reached, or the question waits no more

    \b
    Example:
      safetydrift approvals --url http://127.0.0.1:8787 --token $TOKEN
    """
    from safetydrift.errors import ConfigError
    from safetydrift.guard.remote_client import Client

    if allow and refuse:
        raise click.UsageError("--allow and --refuse exclude each other")
    try:
        client = Client(url, token, plain_http=plain_http)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    with closing(client):
        named = allow or refuse
        if named:
            (question,) = client.ask("GET", f"/api/v1/approvals/{named}", None, PATIENCE)["items"]
            _answer(client, question, approved=bool(allow), reason=reason)
            return
        found = client.ask("GET", "/api/v1/approvals", None, PATIENCE)["items"]
        if as_json:
            emit_json(found)
        else:
            _one_by_one(client, found, reason)


def _one_by_one(client: Client, found: list[dict[str, Any]], reason: str) -> None:
    if not found:
        notes.print("nothing waits")
    for question in found:
        _show(question)
        if sys.stdin.isatty():
            said = click.prompt("Allow this one call?", type=click.Choice(["y", "n", "skip"]), default="skip")
            if said != "skip":
                _answer(client, question, approved=said == "y", reason=reason)


def _show(question: dict[str, Any]) -> None:
    asked = question["question"]
    run = asked["run"]
    left = max(0, round(question["expires"] - time()))
    lines = [
        f"{question['id']}  {run['agent'] or 'an agent'}{' on ' + run['host'] if run['host'] else ''}, {left} s left",
        f"  wants to call {asked['tool']} with {asked['arguments']}",
        f"  why you are asked: {asked['message'] or asked['rule']}",
        f"  probability of a violation: {percent(asked['probability'] or float('nan'))}",
        f"  asked to: {run['task'] or 'nothing that is known'}",
    ]
    for line in lines:
        console.print(shown(line), markup=False)


def _answer(client: Client, question: dict[str, Any], *, approved: bool, reason: str) -> None:
    body = {"approved": approved, "presented": question["presented_digest"], "reason": reason}
    (answered,) = client.ask("POST", f"/api/v1/approvals/{question['id']}/answer", body, PATIENCE)["items"]
    notes.print(shown(f"{question['id']}: {answered['status']}"), markup=False)
