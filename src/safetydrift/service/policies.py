"""Policies of organisations: versions, which one is in force, which one runs beside it, and what may let more through.

A policy is a text. It is checked when it is put up; what cannot be used never comes into force. One that may let
through what the policy in force does not needs a second person, unless the service was told otherwise.
"""

from __future__ import annotations

import tomllib
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from sqlalchemy import func, insert, select, update

from safetydrift.errors import PolicyFileError
from safetydrift.guard.default_policy import default_policy
from safetydrift.guard.guard import Guard
from safetydrift.guard.policy import STRICTNESS, GuardPolicy
from safetydrift.guard.policy_file import read_policy
from safetydrift.monitor.verdict import Intervention
from safetydrift.service import access, audit
from safetydrift.service.database.schema import events, policies
from safetydrift.service.lanes import TransactionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from safetydrift.effects.labeler import Labeler
    from safetydrift.guard.session import Session
    from safetydrift.monitor.model import Model
    from safetydrift.service.lanes import Lane
    from safetydrift.trace import ToolCall

PROPOSED, LIVE, OBSERVED, RETIRED, REJECTED = "proposed", "live", "observed", "retired", "rejected"
LOOK_AGAIN = 1.0
"""Seconds after which a worker looks whether another policy is in force."""
_OUTCOMES = ("on_error", "on_timeout", "on_lost_state", "on_unanswered")


class Version(Struct, frozen=True):
    """One version of a policy, as it is used."""

    number: int
    policy: GuardPolicy


class _Known:
    """What a process knows of an organisation's policies."""

    __slots__ = ("candidate", "live", "looked")

    def __init__(self) -> None:
        self.live: Version | None = None
        self.candidate: Version | None = None
        self.looked = float("-inf")


class OverlayStore(TransactionStore):
    """Reads what the guard has kept, and keeps nothing itself."""

    def write(self, key: str, session: Session, version: int) -> bool:  # noqa: ARG002  # as every store
        """Do as if it was kept."""
        return True

    def remove(self, key: str) -> None:
        """Do nothing."""


class InForce:
    """A policy that follows the one in force, for a `Guard`."""

    def __init__(self, book: PolicyBook, org: int) -> None:
        self._book, self._org = book, org

    def current(self, usable: Callable[[GuardPolicy], None]) -> GuardPolicy:
        """Return the policy in force."""
        policy = self._book.live(self._org)
        usable(policy)
        return policy


class PolicyBook:
    """The policies in force, as a process knows them, and the guards that go by them.

    Parameters
    ----------
    model
        The model all guards share.
    labeler
        With what is inside the organisation, if a configuration says it.
    """

    def __init__(self, model: Model, labeler: Labeler | None = None, telemetry: Any = None) -> None:
        self.model, self._labeler, self._telemetry = model, labeler, telemetry
        self._known: dict[int, _Known] = {}
        self._default = default_policy()

    def make(self, org: int, store: TransactionStore) -> Guard:
        """Return a guard for an organisation on a store."""
        following: Any = InForce(self, org)
        return Guard(self.model, following, store, labeler=self._labeler, telemetry=self._telemetry)

    def refresh(self, lane: Lane, org: int) -> None:
        """Look whether another policy is in force, if nobody has looked lately."""
        known = self._known.setdefault(org, _Known())
        if monotonic() - known.looked < LOOK_AGAIN:
            return
        statement = select(policies.c.number, policies.c.status, policies.c.text).where(
            policies.c.org == org, policies.c.status.in_((LIVE, OBSERVED))
        )
        found = {status: (number, text) for number, status, text in lane.execute(statement, {})}
        known.live = self._version(known.live, found.get(LIVE))
        known.candidate = self._version(known.candidate, found.get(OBSERVED))
        known.looked = monotonic()

    def look_again(self) -> None:
        """Look at the next request whether another policy is in force."""
        for known in self._known.values():
            known.looked = float("-inf")

    def live(self, org: int) -> GuardPolicy:
        """Return the policy in force; the default one where there is none."""
        known = self._known.get(org)
        return self._default if known is None or known.live is None else known.live.policy

    def number(self, org: int) -> int:
        """Return the number of the policy in force; 0 for the default one."""
        known = self._known.get(org)
        return 0 if known is None or known.live is None else known.live.number

    def candidate(self, lane: Lane, org: int, key: str, call: ToolCall, call_id: str) -> str:
        """Return what the policy that runs beside would do about a call; empty if none does."""
        known = self._known.get(org)
        if known is None or known.candidate is None:
            return ""
        guard = Guard(self.model, known.candidate.policy, OverlayStore(lane, org), labeler=self._labeler)
        decision = guard.propose(key, call, call_id)
        return (decision.would_be or decision.intervention).value

    def checked(self, text: str) -> GuardPolicy:
        """Return the policy that a text describes.

        Raises
        ------
        PolicyFileError
            If it cannot be used.
        """
        try:
            policy = read_policy(tomllib.loads(text))
            policy.check(self.model.space)
        except (ValueError, RecursionError) as error:
            raise PolicyFileError(str(error)) from error
        return policy

    def _version(self, before: Version | None, found: tuple[int, str] | None) -> Version | None:
        if found is None:
            return None
        number, text = found
        return (
            before if before is not None and before.number == number else Version(number, self.checked(text))
        )


def put_up(lane: Lane, org: int, book: PolicyBook, text: str, by: str, *, note: str = "") -> dict[str, Any]:
    """Add a version of the policy, which is not in force yet.

    Raises
    ------
    PolicyFileError
        If it cannot be used.
    """
    policy = book.checked(text)
    book.refresh(lane, org)
    reasons = loosened(book.live(org), policy)
    last = lane.execute(select(func.max(policies.c.number)).where(policies.c.org == org), {}).scalar()
    row = {
        "org": org,
        "number": int(last or 0) + 1,
        "name": policy.name[:200],
        "text": text,
        "status": PROPOSED,
        "loosens": "; ".join(reasons),
        "note": note,
        "created_by": by,
        "created": time(),
    }
    lane.execute(insert(policies), row)
    audit.entry(lane, org, by, "policy put up", str(row["number"]), loosens=row["loosens"])
    _told(lane, org, str(row["number"]))
    return row


def decide(lane: Lane, org: int, number: int, action: str, by: str, *, four_eyes: bool) -> dict[str, Any]:
    """Put a version in force (``enforce``), beside the one in force (``observe``), or turn it down (``reject``).

    Raises
    ------
    LookupError
        If there is no such version, or it is past.
    PermissionError
        If it may let more through, and the one who put it up is the one who would put it in force.
    """
    found = (
        lane.execute(select(policies).where(policies.c.org == org, policies.c.number == number), {})
        .mappings()
        .first()
    )
    if found is None or found["status"] not in {PROPOSED, OBSERVED}:
        raise LookupError(f"policy {number} is not waiting for a decision")
    alone = action == "enforce" and four_eyes and bool(found["loosens"])
    if alone and access.akin(lane, org, str(found["created_by"]), by):
        raise PermissionError(
            f"this policy may let more through ({found['loosens']}): somebody other than {by} has to put it in force"
        )
    status = {"enforce": LIVE, "observe": OBSERVED, "reject": REJECTED}[action]
    if status in {LIVE, OBSERVED}:
        before = update(policies).where(policies.c.org == org, policies.c.status == status)
        lane.execute(before.values(status=RETIRED), {})
    values = {"status": status, "decided_by": by, "decided": time()}
    lane.execute(
        update(policies).where(policies.c.org == org, policies.c.number == number).values(**values), {}
    )
    audit.entry(lane, org, by, f"policy {status}", str(number), loosens=found["loosens"])
    _told(lane, org, str(number))
    return dict(found) | values


def loosened(old: GuardPolicy, new: GuardPolicy) -> list[str]:
    """Return why a policy may let through what another one does not; empty if it is plain that it does not.

    What cannot be compared counts as looser: a second pair of eyes costs less than a hole.
    """
    before, after = to_builtins(old), to_builtins(new)
    reasons = _outcomes(old, new)
    if after["shadow"] and not before["shadow"]:
        reasons.append("it only records what it would do")
    gone = [one for one in before["never"] if not _covered(one, after["never"])]
    still = [*after["always_ask"], *_as_asked(after["never"])]
    asked = [one for one in before["always_ask"] if not _covered(one, still)]
    reasons += [f"it no longer refuses {_named(one)}" for one in gone]
    reasons += [f"it no longer asks about {_named(one)}" for one in asked]
    allowed = set(after["always_allow"]) - set(before["always_allow"])
    reasons += [f"it always allows {name}" for name in sorted(allowed)]
    reasons += _rules(before["when"], after["when"])
    known = {
        "name",
        "never",
        "always_ask",
        "always_allow",
        "when",
        "shadow",
        "timeout",
        "ask_timeout",
        *_OUTCOMES,
    }
    for name in sorted((before.keys() | after.keys()) - known):
        if before.get(name) != after.get(name) and not _stricter(name, before.get(name), after.get(name)):
            reasons.append(f"{name} changes from {before.get(name)!r} to {after.get(name)!r}")
    return reasons


def _outcomes(old: GuardPolicy, new: GuardPolicy) -> list[str]:
    reasons = []
    for name in _OUTCOMES:
        then, now = (getattr(one, name) or one.on_error for one in (old, new))
        if STRICTNESS[now] < STRICTNESS[then]:
            reasons.append(f"{name} changes from {then.value} to {now.value}")
    return reasons


def _covered(old: dict[str, Any], rules: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of some rules plainly holds wherever an old one does."""
    lists, words = ("tools", "kinds", "categories"), {"name", "reason"}
    for new in rules:
        same = all(old.get(name) == new.get(name) for name in (old.keys() | new.keys()) - words - {*lists})
        if same and all(_reaches(new.get(name), old.get(name)) for name in lists):
            return True
    return False


def _reaches(new: Sequence[str] | None, old: Sequence[str] | None) -> bool:
    """Return whether one list of names holds another; an empty one holds for every name."""
    return not new or bool(old and set(old) <= set(new))


def _as_asked(refused: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rules that refuse as they would stand among those that ask: who refuses need not ask."""
    return [one | {"then": Intervention.ASK.value} for one in refused]


def _rules(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[str]:
    """Compare the rules of ``when``, of which the first that holds decides."""
    if bool(before) != bool(after) or len(before) > len(after):
        return ["the rules of 'when' are others"]
    reasons = []
    for number, old in enumerate(before):
        new = after[number]
        strictest = max([STRICTNESS[Intervention(rule["then"])] for rule in after[number:]])
        # The first rule that holds decides: one that reaches further must not take calls from a stricter one behind it.
        takes_over = new != old and STRICTNESS[Intervention(new["then"])] < strictest
        if takes_over or not _at_least(old, new):
            reasons.append(f"rule {number + 1} of 'when' is another one, or weaker")
    return reasons


def _at_least(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether a rule holds wherever another one does, on the same conditions, and does no less."""
    free = {"then", "name", "reason", "proposal", "current"}
    if any(old.get(name) != new.get(name) for name in (old.keys() | new.keys()) - free):
        return False
    if STRICTNESS[Intervention(new["then"])] < STRICTNESS[Intervention(old["then"])]:
        return False
    if new["then"] == Intervention.ALLOW.value and old != new:
        return False
    return all((new.get(name) or 0.0) <= (old.get(name) or 0.0) for name in ("proposal", "current"))


def _stricter(name: str, old: Any, new: Any) -> bool:
    if name == "ask_odds":
        return bool(new <= old)
    if name in {"otherwise", "unseen"} and old is not None and new is not None:
        return STRICTNESS[Intervention(new)] >= STRICTNESS[Intervention(old)]
    return False


def _named(rule: dict[str, Any]) -> str:
    return str(rule.get("name") or ", ".join(rule.get("tools") or rule.get("kinds") or ["something"]))[:200]


def _told(lane: Lane, org: int, number: str) -> None:
    row = {"org": org, "at": time(), "kind": "policy", "subject": number}
    lane.execute(insert(events), row)
