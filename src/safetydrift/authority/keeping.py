"""Turns what was heard into what is kept of it, within bounds."""

from __future__ import annotations

import msgspec

from safetydrift.authority import kept as flag
from safetydrift.authority.kept import Clause, Delegation, Digester, split
from safetydrift.authority.objects import SETS
from safetydrift.authority.text import names
from safetydrift.authority.vocabulary import ACTION_BITS, actions, mark, named_actions, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.authority.clauses import Clause as Heard
    from safetydrift.authority.delegation import Source
    from safetydrift.authority.kept import Kept
    from safetydrift.authority.reading import Message

MAX_CLAUSES = 256
"""Clauses that are kept; the first ones stay."""
MAX_KEPT = 8192
"""Words and, apart from them, values that are kept in all; the first ones stay."""
MAX_DELEGATIONS = 64
"""Sources pointed to that are kept; the first ones stay."""
_PINNING = names("path id url host")
"""Shapes of values that say which object is meant."""
_ADDRESSED, _SENT = actions("edit", "send", "publish"), actions("send", "publish")
"""Acts on what is for somebody: to send ``it`` means to the same."""
_ASSENT, _DISSENT = mark("assent"), mark("dissent")
_OF_REFUSALS = mark("dissent", "function", "polite", "adverb", "refers")
_SHORT = 3
"""Words of a bare refusal: "no, wait", "stop that now"."""


class Keeper:
    """The parts of a request, while a message is added to them.

    Parameters
    ----------
    request
        What was kept before.
    """

    def __init__(self, request: Kept) -> None:
        self._digest = Digester(request.salt)
        self._clauses, self._delegations = list(request.clauses), list(request.delegations)
        self._words, self._keys = dict.fromkeys(split(request.words)), dict.fromkeys(split(request.keys))
        self._turns, self._beyond = request.turns, request.refused_beyond

    def answered(self, message: Message) -> bool:
        """Take account of agreement at the head of an answer; return whether it is a bare refusal of everything."""
        first = next((s for s in message.sentences if any(not token.sign for token in s)), [])
        said = [token for token in first if not token.sign]
        if said and said[0].marks & _ASSENT:
            self._clauses = [_agreed(clause) for clause in self._clauses]
        bare = 0 < len(said) <= _SHORT and len(message.sentences) == 1 and said[0].marks & _DISSENT
        if bare and all(token.marks & _OF_REFUSALS for token in said):
            changes = sum(ACTION_BITS.values()) & ~ACTION_BITS["read"]
            self._clauses.append(Clause(refused=changes, turn=self._turns))
            return True
        return False

    def hear(self, heard: list[Heard], sources: list[Source]) -> None:
        """Keep clauses and delegations."""
        numbers: dict[int, int] = {}
        for index, clause in enumerate(heard):
            self._fill(self._words, (*clause.words, *clause.parts))
            if len(self._clauses) < MAX_CLAUSES:
                numbers[index] = len(self._clauses)
                self._clauses.append(self._clause(clause))
            else:
                self._beyond |= clause.refused
        for source in sources:
            if source.clause in numbers and len(self._delegations) < MAX_DELEGATIONS:
                self._delegations.append(self._delegation(source, numbers[source.clause]))

    def _clause(self, clause: Heard) -> Clause:
        """Return what is kept of a clause, with what it refers back to."""
        known = vocabulary()
        before = self._clauses[-1] if self._clauses and clause.refers else Clause()
        kinds = clause.kinds | before.kinds
        sent = (clause.asked | clause.refused) & _SENT
        drafted = clause.refers and not clause.parties and sent and before.asked & _ADDRESSED
        whom = [each.names for each in reversed(self._clauses) if each.names] if clause.person else []
        whom += [before.parties] if drafted else []
        flags = (
            flag.PROVISIONAL * clause.provisional
            | flag.EXCEPTED * clause.excepted
            | flag.QUESTION * clause.question
        )
        pinned = any(key.partition(":")[0] in _PINNING for key in clause.keys)
        sets = {name: self._blob(getattr(clause, name)) for name in SETS}
        if clause.refused:
            sets["keys"] += self._blob(_above(clause))
        return Clause(
            asked=known.asked(clause.asked, kinds) if before.kinds else clause.asked,
            refused=known.denied(clause.refused, kinds)
            if clause.refused and before.kinds
            else clause.refused,
            goals=clause.goals,
            scope=clause.scope | before.scope,
            kinds=kinds,
            flags=flags
            | flag.DIRECTED * clause.directed
            | flag.NUMBERED * clause.numbered
            | flag.PINNED * pinned,
            turn=self._turns,
            carried_words=before.words + before.carried_words,
            carried_keys=b"" if pinned else before.keys + before.places + before.carried_keys,
            carried_parties=b"".join(whom[:1]),
            **sets,
        )

    def _delegation(self, source: Source, clause: int) -> Delegation:
        kinds = tuple([name for name, bit in vocabulary().kind_bits.items() if source.kinds & bit])
        keys, words = self._blob(source.keys), self._blob(source.words)
        return Delegation(
            clause, named_actions(source.actions), source.whole, source.many, kinds, keys, words
        )

    def _blob(self, texts: Iterable[str]) -> bytes:
        return b"".join([self._digest(text) for text in texts])

    def _fill(self, kept: dict[bytes, None], texts: Iterable[str]) -> None:
        if len(kept) < MAX_KEPT:
            kept.update(dict.fromkeys([self._digest(text) for text in texts]))

    def keep_values(self, keys: list[str]) -> None:
        """Keep the keys of values; the tail of a second path is noted as ambiguous."""
        is_new = False
        for key in keys:
            digest = self._digest(key)
            if key.startswith("path:"):
                is_new = digest not in self._keys
            elif key.startswith("tail:") and is_new and digest in self._keys:
                self._fill(self._keys, (f"twice:{key}",))
            self._fill(self._keys, (key,))

    def parts(self) -> tuple[tuple[Clause, ...], tuple[Delegation, ...], bytes, bytes, int, int]:
        """Return the parts of the new request, in the order of its fields, without the salt."""
        words, keys = b"".join(self._words), b"".join(self._keys)
        return tuple(self._clauses), tuple(self._delegations), words, keys, self._turns + 1, self._beyond


def _agreed(clause: Clause) -> Clause:
    """Return a clause after the user has agreed: what it forbade for now, it asks for."""
    if not clause.flags & flag.PROVISIONAL:
        return clause
    return msgspec.structs.replace(
        clause, asked=clause.asked | clause.refused, refused=0, flags=clause.flags & ~flag.PROVISIONAL
    )


def _above(clause: Heard) -> list[str]:
    """Return keys of the folders above a clause's paths: deleting these would delete them."""
    found = []
    for key in (*clause.keys, *clause.places):
        parts = key[5:].split("/") if key.startswith("path:") else []
        found += [f"above:{'/'.join(parts[:count]) or '/'}" for count in range(1, len(parts))]
    return found
