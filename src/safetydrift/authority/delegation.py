"""Sources that the user points to: what a bill, a page or a mail says is then said with their authority, for a role.

"Pay the bill in bill.txt" lets that file supply the values of one payment; "do what task.md says" lets it ask for
anything.
"""

from __future__ import annotations

import msgspec

from safetydrift.authority.objects import words_of_value
from safetydrift.authority.text import names
from safetydrift.authority.vocabulary import actions, mark, scope, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.authority.clauses import Clause
    from safetydrift.authority.reading import Token

_ALL, _READ, _FETCH = scope("all"), actions("read"), actions("fetch")
_SEND = actions("send", "control")
"""What ``send`` asks for: what is sent may be a message or a machine."""
_INSTALL, _COMMANDS = actions("install"), actions("run", "fetch")
"""What a description of an installation consists of."""
_PLACED = actions("edit", "publish", "schedule", "move", "delete", "automate", "configure")
"""Beside these, ``in the file`` says where to, not where from."""
_SOURCE_SHAPES = names("path url host mail")
_SOURCE_KINDS = names(
    "file document mail message page post contact calendar list history bill issue task instructions data database "
    "folder config channel order account"
)
_NEAR, _CLOSE = 6, 3
"""Words between a preposition and the source that it introduces, and between a source and a verb that says what it
tells."""


class Source(msgspec.Struct):
    """A source that a clause points to.

    It may supply values for `actions`, or ask for acts itself (`whole`), and for more than one (`many`); `kinds`,
    `keys` and `words` are what it is known by.
    """

    clause: int
    kinds: int
    keys: tuple[str, ...]
    words: tuple[str, ...]
    actions: int = 0
    whole: bool = False
    many: bool = False


def delegations_of(clauses: Sequence[Clause]) -> list[Source]:
    """Return the sources that clauses point to, in order."""
    found: list[Source] = []
    for index, clause in enumerate(clauses):
        if not clause.question and not (clause.refused and not clause.asked):
            source = _whole(clauses, index) or _part(clauses, index) or _held(clauses, index)
            if source is not None:
                source.many = source.whole or bool(clause.scope & _ALL) or _has(clause, "plural")
                found.append(source)
    return found


def _has(clause: Clause, *marks: str) -> bool:
    wanted = mark(*marks)
    return any(token.marks & wanted and not token.quoted for token in clause.tokens)


def _whole(clauses: Sequence[Clause], index: int) -> Source | None:
    """Return the source of which a clause says that it holds the task, as in ``do what task.md says``."""
    clause = clauses[index]
    if not _has(clause, "task") or _has(clause, "negation"):
        return None
    source = _named(clause, index, 0)
    if source is not None:
        source.kinds &= ~_kinds("task", "instructions")
    if source is None or not (source.kinds or source.keys):
        source = _before(clauses, index)
    both = mark("task") | mark("follow")
    bare = all(token.marks & both == both for token in clause.tokens if token.marks & mark("task"))
    if source is None or (bare and not source.keys):
        return None
    if _has(clause, "follow"):
        source.whole = True
        return source
    if clause.asked or clause.goals or not _has(clause, "place", "source"):
        return None
    earlier = _asked_before(clauses, index)
    source.whole, source.actions = not earlier, earlier
    return source


def _part(clauses: Sequence[Clause], index: int) -> Source | None:
    """Return the source of values for the acts of a clause, as in ``pay the bill in bill.txt``."""
    clause = clauses[index]
    acts = clause.asked & ~_READ
    if not acts & ~_FETCH and _has(clause, "find"):
        acts = _asked_before(clauses, index) or _asked_after(clauses, index)
        source = _named(clause, index, mark("source", "place", "find"))
    elif acts and _has(clause, "reply"):
        source = _named(clause, index, 0) or Source(
            index, _kinds("mail", "message"), (), tuple(clause.parties)
        )
        source.kinds = source.kinds or _kinds("mail", "message")
    elif acts:
        source = _named(clause, index, mark("source") if acts & _PLACED else mark("source", "place"))
        if source is None and clause.tokens and clause.tokens[-1].marks & mark("source"):
            source = _before(clauses, index)
        source = None if _is_addressed(clause, acts) else source or _telling(clause, index)
    else:
        return None
    if source is None or not acts:
        return None
    source.actions = acts | (_COMMANDS if acts & _INSTALL else 0)
    return source


def _is_addressed(clause: Clause, acts: int) -> bool:
    """Return whether a clause sends something to somebody whom it names, so that a source has nothing to supply."""
    mails = any(key.startswith(("mail:", "handle:")) for key in clause.keys)
    return not acts & ~_SEND and bool(clause.parties or mails) and not clause.kinds & _kinds("contact")


def _held(clauses: Sequence[Clause], index: int) -> Source | None:
    """Return the source that the clause before says to hold what is now to be done: ``plan.txt says how; do it``."""
    clause, before = clauses[index], clauses[index - 1] if index else None
    if before is None or before.question or before.refused or before.asked & ~_READ:
        return None
    source = _telling(before, index - 1) or _named(before, index - 1, mark("source", "place"))
    if source is None or not source.keys or clause.keys or clause.names or clause.parties:
        return None
    source.clause, source.actions = index, clause.asked & ~_READ
    source.whole = not source.actions and not clause.goals and _has(clause, "follow")
    return source if source.actions or source.whole else None


def _telling(clause: Clause, index: int) -> Source | None:
    """Return the source of which a clause says that it tells something: ``as plan.txt says``."""
    for tokens in (clause.tokens[::-1], clause.tokens):
        source = _named(clause, index, mark("tells"), tokens)
        if source is not None and (source.keys or (source.words and source.kinds & _kinds("mail"))):
            return source
    return None


def _before(clauses: Sequence[Clause], index: int) -> Source | None:
    """Return the source that the clause before names."""
    return _named(clauses[index - 1], index, 0) if index else None


def _asked_before(clauses: Sequence[Clause], index: int) -> int:
    asked = 0
    for clause in clauses[:index]:
        asked |= clause.asked & ~_READ
    return asked


def _asked_after(clauses: Sequence[Clause], index: int) -> int:
    return next((clause.asked & ~_READ for clause in clauses[index + 1 :] if clause.asked & ~_READ), 0)


def _named(
    clause: Clause, index: int, introduced_by: int, tokens: Sequence[Token] | None = None
) -> Source | None:
    """Return the source that a clause names, shortly behind one of some marks where any are given.

    With `tokens`, these are looked through instead of those of the clause, and very close to the mark alone.
    """
    keys: dict[str, None] = {}
    words: dict[str, None] = {}
    tokens, near = tokens or clause.tokens, _CLOSE if tokens else _NEAR
    if introduced_by and not any(token.marks & introduced_by for token in tokens):
        return None
    kinds, possible = 0, _kinds(*_SOURCE_KINDS)
    distance = near + 1 if introduced_by else 0
    for token in tokens:
        distance = 0 if not introduced_by or (token.marks & introduced_by and not token.quoted) else distance
        if distance <= near and not token.sign:
            kinds |= token.sense.kinds & possible
            if token.text in clause.names or token.text in clause.places_named:
                words[token.text] = None
            if token.value is not None and token.value.keys[0].partition(":")[0] in _SOURCE_SHAPES:
                keys |= dict.fromkeys(token.value.keys)
                words |= dict.fromkeys(words_of_value(token.value.text, token.value.keys[0]))
        distance += 1
    return Source(index, kinds, tuple(keys), tuple(words)) if keys or kinds else None


def _kinds(*wanted: str) -> int:
    return vocabulary().kinds(*wanted)
