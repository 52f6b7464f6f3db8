"""Sources that the user points to: what a bill, a page or a mail says is then said with their authority, for a role.

"Pay the bill in bill.txt" lets that file supply the values of one payment; "do what task.md says" lets it ask for anything.
"""

from __future__ import annotations

from safetydrift.authority.objects import words_of_value
from safetydrift.authority.vocabulary import ACTION_BITS, MARK_BITS, SCOPE_BITS, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.authority.clauses import Clause
    from safetydrift.authority.reading import Token

_M = MARK_BITS
_READ = ACTION_BITS["read"]
_FETCH = ACTION_BITS["fetch"]
_PLACED = sum(ACTION_BITS[name] for name in ("edit", "publish", "schedule", "move", "delete", "automate", "configure"))
"""Beside these, ``in the file`` says where to, not where from."""
_SOURCE_SHAPES = frozenset(("path", "url", "host", "mail"))
_SOURCE_KINDS = (
    *("file", "document", "mail", "message", "page", "post", "contact", "calendar", "list", "history", "bill", "issue"),
    *("task", "instructions", "data", "database", "folder", "config", "channel", "order", "account"),
)
_NEAR = 6
"""Words between a preposition and the source that it introduces."""


class Source:
    """A source that a clause points to.

    Attributes
    ----------
    clause
        Index of the clause.
    actions
        Actions for which it may supply values, as a bit mask.
    whole, many
        Whether it may ask for acts itself; whether it may supply more than one.
    kinds
        Kinds of the source, as a bit mask.
    keys, words
        Keys of its values, and words that single it out.
    """

    __slots__ = ("actions", "clause", "keys", "kinds", "many", "whole", "words")

    def __init__(self, clause: int, kinds: int, keys: Sequence[str], words: Sequence[str]) -> None:
        self.clause, self.kinds, self.keys, self.words = clause, kinds, keys, words
        self.actions = 0
        self.whole = self.many = False


def delegations_of(clauses: Sequence[Clause]) -> list[Source]:
    """Return the sources that clauses point to, in order."""
    found: list[Source] = []
    for index, clause in enumerate(clauses):
        if not clause.question and not (clause.refused and not clause.asked):
            source = _whole(clauses, index) or _part(clauses, index)
            if source is not None:
                source.many = source.whole or bool(clause.scope & SCOPE_BITS["all"]) or _has(clause, "plural")
                found.append(source)
    return found


def _has(clause: Clause, *marks: str) -> bool:
    wanted = sum(_M[mark] for mark in marks)
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
    if source is None:
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
        source = _named(clause, index, _M["source"] | _M["place"] | _M["find"])
    elif acts and _has(clause, "reply"):
        source = _named(clause, index, 0) or Source(index, _kinds("mail", "message"), (), tuple(clause.parties))
        source.kinds = source.kinds or _kinds("mail", "message")
    elif acts:
        places = 0 if acts & _PLACED else _M["place"]
        source = _named(clause, index, _M["source"] | places)
        if source is None and clause.tokens and clause.tokens[-1].marks & _M["source"]:
            source = _before(clauses, index)
    else:
        return None
    if source is None or not acts:
        return None
    source.actions = acts
    return source


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


def _named(clause: Clause, index: int, introduced_by: int) -> Source | None:
    """Return the source that a clause names, behind one of some marks where any are given."""
    keys: dict[str, None] = {}
    words: dict[str, None] = {}
    kinds = 0
    for token, near in _introduced(clause.tokens, introduced_by):
        if not near:
            continue
        if token.value is not None:
            if token.value.keys[0].partition(":")[0] in _SOURCE_SHAPES:
                keys.update(dict.fromkeys(token.value.keys))
                words.update(dict.fromkeys(words_of_value(token.value.text, token.value.keys[0])))
        elif not token.sign:
            kinds |= token.sense.kinds & _kinds(*_SOURCE_KINDS)
            if token.text in clause.names or token.text in clause.places_named:
                words[token.text] = None
    return Source(index, kinds, tuple(keys), tuple(words)) if keys or kinds else None


def _introduced(tokens: Sequence[Token], marks: int) -> Iterator[tuple[Token, bool]]:
    """Yield each token, and whether it stands shortly behind one of the marks."""
    distance = 0 if not marks else _NEAR + 1
    for token in tokens:
        if marks and token.marks & marks and not token.quoted:
            distance = 0
        yield token, not marks or distance <= _NEAR
        distance += 1


def _kinds(*names: str) -> int:
    return vocabulary().mask_of_kinds(list(names))
