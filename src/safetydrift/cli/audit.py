"""``safetydrift audit``."""

from __future__ import annotations

from typing import Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import emit_json, say


@click.group
def audit() -> None:
    """Check the records of a guard.

    \b
    Example:
      safetydrift audit verify decisions.jsonl
    """


@audit.command
@click.argument("log", type=click.Path(exists=True, dir_okay=False), metavar="FILE")
@click.option(
    "--digest",
    metavar="HEX",
    help="The last digest as you kept it: says whether it is still part of the log.",
)
@options.as_json
@click.pass_context
def verify(context: click.Context, log: str, digest: str | None, as_json: bool) -> None:
    """Check that no record of a decision log was changed, taken out or put in.

    Records that were cut off at the end are only found with --digest. The exit code is 3 if something is wrong.

    \b
    Example:
      safetydrift audit verify decisions.jsonl
    """
    from safetydrift.guard.decision_log import records
    from safetydrift.guard.decision_log import verify as check

    found = check(log)
    kept = digest is None or any(record.get("digest") == digest for record in records(log))
    if as_json:
        emit_json(
            {
                "holds": found.holds and kept,
                "records": found.records,
                "digest": found.digest,
                "problems": [{"line": line, "problem": problem} for line, problem in found.problems],
                "sealed": found.sealed,
                "torn": found.torn,
                "digest_found": None if digest is None else kept,
            }
        )
    else:
        for line in _told(found, digest, kept=kept):
            say(line)
    if not (found.holds and kept):
        from safetydrift.cli import EXIT_REFUSED

        context.exit(EXIT_REFUSED)


def _told(found: Any, digest: str | None, *, kept: bool) -> list[str]:
    lines = [f"line {line}: {problem}" for line, problem in found.problems]
    if found.torn:
        lines.append("the last record is torn: its writer was killed, and nobody has written since")
    if found.sealed:
        lines.append(f"{found.sealed} torn records were sealed by the next writer")
    if not kept:
        lines.append(f"no record has the digest {digest}: the log was cut off, or is another one")
    says = "the chain holds" if found.holds else "the chain is broken"
    return [*lines, f"{found.records} records; {says}; the last digest is {found.digest}"]
