"""Operations: what one call does to what, in words that the user's request can be compared with.

An effect says how far a call reaches (its levels); its operations say what it does: which files it deletes, whom it
writes to, which host it sends to. A reader of a language or a catalogue entry adds one per thing that the call acts on.
The same vocabulary of actions describes what a user asked for, so that the two can be matched.
"""

from __future__ import annotations

import msgspec

ACTIONS: dict[str, str] = {
    "read": "shows, lists or searches something and changes nothing",
    "edit": "creates or changes a file, record or document that can be put back",
    "delete": "removes or overwrites something so that it cannot be put back from where it stood",
    "move": "moves, renames, copies or archives something",
    "run": "runs a program, a script, a build, a test or a training",
    "install": "installs a package, a tool or a model",
    "fetch": "opens a page or downloads something from a host",
    "send": "sends a message, a file or data to somebody",
    "publish": "makes something readable for many: a post, a comment, a package, a public bucket",
    "push": "hands commits to a remote repository, or merges them there",
    "pay": "moves money, places or cancels an order, books or refunds",
    "schedule": "creates or changes an appointment, a reminder or a task",
    "automate": "arranges for something to happen later or again unasked: a job, a filter, a webhook, a hook",
    "grant": "gives somebody access or rights: a share, an invitation, a role, a key, a permission",
    "revoke": "takes access or rights away from somebody",
    "configure": "changes how a system or an account behaves",
    "disable": "switches off a safeguard, a record or a check, or goes around it",
    "deploy": "changes what others rely on: a deployment, a migration, a restart, a scaling, a DNS record",
    "stop": "ends a process, a service or a machine",
    "connect": "opens a connection that can carry anything: a tunnel, a remote shell, an open port",
    "authenticate": "uses, makes or changes a credential",
    "control": "acts on a physical thing: a lock, an oven, a car",
}
"""Every action, with what it means."""

HARMS: dict[str, str] = {
    "exfiltration": "data leaves for somebody who is not entitled to it",
    "credential_access": "passwords, keys or tokens are taken out of where they are kept",
    "destruction": "what existed before, or belongs to others, is lost",
    "transaction": "money or orders are moved",
    "access": "somebody gains standing control: a share, a key, a role, a remote shell, a tunnel",
    "privilege": "a program or user gains rights on the host beyond those it was given",
    "persistence": "something is arranged to run or act again without being asked",
    "untrusted_code": "code that nobody vouched for is fetched and run",
    "safeguards": "what records, warns or protects is switched off or falsified",
    "integrity": "records, results or communication in the user's name are falsified",
    "production": "what others rely on is changed or interrupted",
    "physical": "a physical thing is acted on in a way that can hurt or expose people",
}
"""Every kind of harm that an operation may be if nobody with authority asked for it."""

ROLES = ("path", "host", "recipient", "account", "command", "package", "resource", "person", "text")
"""What a target is."""

NONE, POSSIBLE, LIKELY, CERTAIN = range(4)
"""How certain it is that the operation brings its harm about, taken for itself."""

MAX_OPERATIONS = 32
"""Operations of one call that are kept; those with the most certain harm stay."""
MAX_TARGET = 512
"""Characters of a target that are kept."""


class Operation(msgspec.Struct, frozen=True, gc=False):
    """One thing that a call does to one target.

    Parameters
    ----------
    action
        One of `ACTIONS`.
    target
        What it acts on, as written, at most `MAX_TARGET` characters: a path, a host or address, a recipient, an
        account, the name of a resource. Empty where it cannot be told.
    role
        One of `ROLES`: what the target is.
    harm
        One of `HARMS`: what it is if nobody with authority asked for it; empty for what harms nobody by itself.
        Whether sensitive data leaves is not said here, since that depends on what the run has read.
    certainty
        `NONE` to `CERTAIN`: how sure it is that the operation is that harm, taken for itself.
    note
        What it does, in plain words that complete "this would": ``"delete everything below /"``.
    """

    action: str
    target: str = ""
    role: str = "resource"
    harm: str = ""
    certainty: int = NONE
    note: str = ""
