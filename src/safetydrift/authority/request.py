"""What the user asked for: the acts, objects and values of their own words, kept as keyed digests.

A `Request` hears the task and the follow-up messages. It keeps no text: words and values are digests of 8 bytes, keyed with
a salt of the session. That hides them from whoever reads a store; who has the salt as well can test words that they guess.
"""

from __future__ import annotations

import msgspec

from safetydrift.authority.clauses import clauses_of
from safetydrift.authority.delegation import delegations_of
from safetydrift.authority.grading import Asked, View
from safetydrift.authority.kept import (
    DIRECTED,
    EXCEPTED,
    NUMBERED,
    PINNED,
    PROVISIONAL,
    QUESTION,
    Clause,
    Delegation,
    Digester,
    split,
)
from safetydrift.authority.reading import read_message
from safetydrift.authority.vocabulary import MARK_BITS, actions_of, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.authority.clauses import Clause as Heard
    from safetydrift.authority.delegation import Source
    from safetydrift.authority.reading import Message

MAX_CLAUSES = 256
"""Clauses that are kept; the first ones stay."""
MAX_KEPT = 8192
"""Words and, apart from them, values that are kept in all; the first ones stay."""
MAX_DELEGATIONS = 64
"""Sources pointed to that are kept; the first ones stay."""
MAX_MEMO = 4096
"""Answers that are remembered."""


class Request(msgspec.Struct, frozen=True, dict=True):
    """What the user has asked for so far; hearing more makes a new one.

    Parameters
    ----------
    salt
        The key of the digests, at most 64 bytes; one per session.
    clauses
        What was asked for, forbidden and spoken about, in order.
    delegations
        Sources that the user pointed to, in order.
    words, keys
        Digests of all words and of the keys of all values, one after the other.
    turns
        Messages heard.
    refused_beyond
        Actions that were forbidden after `MAX_CLAUSES` clauses, as a bit mask: they are forbidden on everything.

    Examples
    --------
    >>> request = Request.empty(b"salt").hear("Delete the old logs and send Bob the summary. Don't touch backup.log.")
    >>> request.asks("send", ["bob@example.com"]).name, request.asks("send", ["eve@example.com"]).name
    ('asked', 'action')
    >>> request.asks("delete", ["logs/app.log"]).name, request.asks("delete", ["logs/backup.log"]).name
    ('asked', 'forbidden')
    >>> request.said("BACKUP.log"), request.overlap("bob.miller@example.com")
    (False, 1)
    """

    salt: bytes
    clauses: tuple[Clause, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    words: bytes = b""
    keys: bytes = b""
    turns: int = 0
    refused_beyond: int = 0

    @classmethod
    def empty(cls, salt: bytes) -> Request:
        """Return the request of a session in which nothing was said yet."""
        return cls(salt)

    def hear(self, text: str, *, follow_up: bool = False) -> Request:
        """Return the request after the user has said something.

        Parameters
        ----------
        text
            The user's own words; of a longer text the first and last 32 Ki characters are read.
        follow_up
            Whether it answers the agent: then agreement lifts what was forbidden for now, and a bare refusal forbids
            everything that changes anything.
        """
        message = read_message(text)
        heard = clauses_of(message)
        keeper = _Keeper(self)
        if follow_up:
            heard = keeper.answer(message, heard)
        keeper.keep(heard, delegations_of(heard))
        keeper.values([key for value in message.values for key in value.keys])
        return keeper.result()

    def said(self, value: str) -> bool:
        """Return whether the user wrote a value, in whatever form.

        A host counts as a whole, or with a path below one that was written; a path by its tail where that is
        unambiguous; a name by all its words in one clause.
        """
        return self._view().said(value)

    def overlap(self, value: str) -> int:
        """Return how much of a value the user's words share: 0 nothing, 1 a part, 2 all its own words, 3 the value."""
        return self._view().overlap(value)

    def asks(self, action: str, targets: Sequence[str] = (), words: Sequence[str] = ()) -> Asked:
        """Return the authority that the user's words give for an act.

        Parameters
        ----------
        action
            One of `safetydrift.effects.operations.ACTIONS`.
        targets
            What the act is on, as written; each of them must be covered.
        words
            What else describes the object: kinds (``"file"``), titles, options (``"force"``).

        Raises
        ------
        KeyError
            If there is no such action.
        """
        memo = self._view().memo
        question = (action, tuple(targets), tuple(words))
        answer = memo.get(question)
        if answer is None:
            if len(memo) >= MAX_MEMO:
                memo.clear()
            answer = memo[question] = self._view().asks(*question)
        return answer

    def designated(self, source: str, words: Iterable[str] = ()) -> tuple[Delegation, ...]:
        """Return the delegations that point to a source.

        Parameters
        ----------
        source
            What the source is known by: its path, URL, sender or name.
        words
            What else describes it: its kind (``"email"``), its sender, its subject.
        """
        return tuple([self.delegations[index] for index in self._view().designated(source, tuple(words))])

    def _view(self) -> View:
        view: View | None = self.__dict__.get("_made")
        if view is None:
            view = View(Digester(self.salt), self.clauses, self.delegations, self.words, self.keys, self.refused_beyond)
            self.__dict__["_made"] = view
        return view


class _Keeper:
    """Turns what was heard into digests, within bounds."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.digest = Digester(request.salt)
        self.clauses = list(request.clauses)
        self.delegations = list(request.delegations)
        self.words = dict.fromkeys(split(request.words))
        self.keys = dict.fromkeys(split(request.keys))
        self.beyond = request.refused_beyond

    def answer(self, message: Message, heard: list[Heard]) -> list[Heard]:
        """Take account of agreement and refusal at the head of a follow-up."""
        first = next((s for s in message.sentences if any(not t.sign for t in s)), [])
        words = [token for token in first if not token.sign]
        if words and words[0].marks & MARK_BITS["assent"]:
            self.clauses = [_agreed(clause) for clause in self.clauses]
        short = len(words) <= 3  # noqa: PLR2004  # "no, wait", "stop that now"
        if words and short and len(message.sentences) <= 1 and all(t.marks & _OF_REFUSALS for t in words):
            if words[0].marks & MARK_BITS["dissent"]:
                self._refuse_all()
                return []
        return heard

    def _refuse_all(self) -> None:
        changes = vocabulary().all_changes()
        nothing = (b"",) * 10
        self.clauses.append(Clause(0, changes, 0, 0, 0, 0, self.request.turns, *nothing))

    def keep(self, heard: list[Heard], sources: list[Source]) -> None:
        """Keep clauses and delegations."""
        numbers: dict[int, int] = {}
        for index, clause in enumerate(heard):
            self._words((*clause.words, *clause.parts))
            if len(self.clauses) >= MAX_CLAUSES:
                self.beyond |= clause.refused
                continue
            numbers[index] = len(self.clauses)
            self.clauses.append(self._kept(clause))
        for source in sources:
            if source.clause in numbers and len(self.delegations) < MAX_DELEGATIONS:
                self.delegations.append(self._delegation(source, numbers[source.clause]))

    def _kept(self, clause: Heard) -> Clause:
        before = self.clauses[-1] if self.clauses and clause.refers else None
        kinds, asked, refused = clause.kinds, clause.asked, clause.refused
        if before is not None:
            known = vocabulary()
            kinds |= before.kinds
            asked = known.asked(asked, kinds)
            refused = known.denied(refused, kinds) if refused else 0
        return Clause(
            asked,
            refused,
            clause.goals,
            clause.scope | (before.scope if before else 0),
            kinds,
            PROVISIONAL * clause.provisional
            | EXCEPTED * clause.excepted
            | QUESTION * clause.question
            | DIRECTED * clause.directed
            | NUMBERED * clause.numbered
            | PINNED * any(key.partition(":")[0] in _PINNING for key in clause.keys),
            self.request.turns,
            self._blob(clause.words),
            self._blob(clause.parties),
            self._blob(clause.names),
            self._blob(clause.places_named),
            self._blob(clause.parts),
            self._blob(_with_ancestors(clause) if clause.refused else clause.keys),
            self._blob(clause.places),
            before.words + before.carried_words if before else b"",
            before.keys + before.places + before.carried_keys if before else b"",
            next((each.parties for each in reversed(self.clauses) if each.parties), b"") if clause.person else b"",
        )

    def _delegation(self, source: Source, clause: int) -> Delegation:
        names = vocabulary().kind_bits
        return Delegation(
            clause,
            actions_of(source.actions),
            source.whole,
            source.many,
            tuple([name for name, bit in names.items() if source.kinds & bit]),
            self._blob(source.keys),
            self._blob(source.words),
        )

    def _blob(self, texts: Iterable[str]) -> bytes:
        return b"".join([self.digest(text) for text in texts])

    def _words(self, words: Iterable[str]) -> None:
        for word in words:
            if len(self.words) < MAX_KEPT:
                self.words[self.digest(word)] = None

    def values(self, keys: Iterable[str]) -> None:
        """Keep the keys of values; the tail of a second path is noted as ambiguous."""
        for key in dict.fromkeys(keys):
            if len(self.keys) >= MAX_KEPT:
                return
            digest = self.digest(key)
            if key.startswith("path:"):
                self.known = digest in self.keys
            elif key.startswith("tail:") and digest in self.keys and not self.known:
                self.keys[self.digest("twice:" + key)] = None
            self.keys[digest] = None

    def result(self) -> Request:
        """Return the new request."""
        return Request(
            self.request.salt,
            tuple(self.clauses),
            tuple(self.delegations),
            b"".join(self.words),
            b"".join(self.keys),
            self.request.turns + 1,
            self.beyond,
        )


_PINNING = frozenset(("path", "id", "url", "host"))
_OF_REFUSALS = MARK_BITS["dissent"] | MARK_BITS["function"] | MARK_BITS["polite"] | MARK_BITS["adverb"] | MARK_BITS["refers"]


def _agreed(clause: Clause) -> Clause:
    """Return a clause after the user has agreed: what it forbade for now, it asks for."""
    if not clause.flags & PROVISIONAL:
        return clause
    return msgspec.structs.replace(
        clause, asked=clause.asked | clause.refused, refused=0, flags=clause.flags & ~PROVISIONAL
    )


def _with_ancestors(clause: Heard) -> list[str]:
    """Return the keys of a clause that forbids, with the folders above its paths: deleting these would delete them."""
    keys = list(clause.keys)
    for key in (*clause.keys, *clause.places):
        if key.startswith("path:"):
            parts = key[5:].split("/")
            keys += [f"above:{'/'.join(parts[:count]) or '/'}" for count in range(1, len(parts))]
    return keys
