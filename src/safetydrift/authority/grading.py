"""How far the user's words cover an act: their clauses against its action, its targets and what describes them."""

from __future__ import annotations

import msgspec

from safetydrift.authority.kept import DIRECTED, EXCEPTED, NUMBERED, PINNED, Digester, split
from safetydrift.authority.objects import SPECIAL
from safetydrift.authority.targets import Act, Target
from safetydrift.authority.text import names, words_in
from safetydrift.authority.vocabulary import ACTION_BITS, actions, scope, vocabulary
from safetydrift.effects.operations import MAX_TARGET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.authority.kept import Clause, Kept

FORBIDDEN, NONE, OBJECT, ACTION, GOAL, ASKED = range(6)
"""Grades of authority, ascending: the user said not to; nothing; the object, for another act; the act, on something
else; an ordinary means of a goal that they gave; the act on this object, or on this kind of object."""
GRADES = names("forbidden none object action goal asked")
"""Their names."""

_KIND, _WORDS, _EXACT = 1, 2, 3
"""How well a target fits a clause: by its kind, by its words, by its value."""
_PUBLIC, _ALL, _ONLY, _REST = scope("public"), scope("all"), scope("only"), scope("rest")
_DESTROYS = actions("delete", "move", "grant", "publish", "disable", "stop")
"""Acts on a folder that go further than acts on some of what it holds."""
_TAKES = actions("delete", "move", "stop")
"""Acts on one thing that are not on what it is in: to delete an issue of a project is not to delete the project."""
_NAMED_ALONE = actions("install", "fetch")
"""Acts that are no ordinary means any more once the user has named what they want of their kind."""
_TITLED = names("calendar booking mail message post order document task issue")
"""Kinds of objects that have titles in words, of which people say a part."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """The authority that the user's words give for an act.

    Parameters
    ----------
    grade
        One of `FORBIDDEN` to `ASKED`.
    clause
        The number of the clause that decides it, from 0; -1 where none does.
    within
        Where a goal covers the act: inside the ``"project"`` alone, on a kind of object alone, or anywhere (empty).
    """

    grade: int
    clause: int = -1
    within: str = ""

    @property
    def name(self) -> str:
        """The name of the grade."""
        return GRADES[self.grade]


class _Clause:
    """A clause, ready to be compared with."""

    def __init__(self, clause: Clause) -> None:
        known = vocabulary()
        self.asked, self.refused, self.scope, self.turn = (
            clause.asked,
            clause.refused,
            clause.scope,
            clause.turn,
        )
        self.acts = bool(clause.asked | clause.refused | clause.goals)
        self.excepted, self.directed = bool(clause.flags & EXCEPTED), bool(clause.flags & DIRECTED)
        self.numbered = bool(clause.flags & NUMBERED)
        self.names, self.parts = frozenset(split(clause.names)), frozenset(split(clause.parts))
        self.located = self.names | frozenset(split(clause.places_named))
        aside = clause.scope & _ALL or clause.kinds & known.kinds("account", "user")
        self.aside = frozenset() if aside else self.located - self.names
        self.words = frozenset(split(clause.words) + split(clause.carried_words))
        self.parties = frozenset(split(clause.parties) + split(clause.carried_parties))
        self.keys = frozenset(split(clause.keys) + split(clause.carried_keys))
        self.places = frozenset(split(clause.places))
        self.kinds = known.specific(clause.kinds)
        self.filed = bool(known.widened(clause.kinds) & known.kinds("file", "folder"))
        self.nameless = not (self.names or clause.flags & PINNED or clause.carried_keys)
        objects = self.kinds or self.located or self.keys or self.places
        self.vague = self.nameless and not clause.scope & SPECIAL & ~_PUBLIC and not objects
        self.means = known.means_of(clause.asked, clause.goals)


class View:
    """A request unpacked, to be asked.

    Parameters
    ----------
    request
        What was kept of it.
    """

    def __init__(self, request: Kept) -> None:
        self._digest, self._delegations = Digester(request.salt), request.delegations
        self._clauses = tuple([_Clause(clause) for clause in request.clauses])
        self._words, self._keys = frozenset(split(request.words)), frozenset(split(request.keys))
        self._refused_beyond = request.refused_beyond
        self._containers, self._titled = vocabulary().kinds("file", "folder"), vocabulary().kinds(*_TITLED)
        self.memo: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Asked] = {}

    # -- what was said -----------------------------------------------------------------------------------------

    def said(self, value: str) -> bool:
        """See `safetydrift.authority.request.Request.said`."""
        if not value.strip() or len(value) >= MAX_TARGET:
            return False
        target = Target(value, self._digest)
        if not target.said_as.isdisjoint(self._keys):
            whole = target.shape != "path" or self._digest(f"path:{target.form}") in self._keys
            return whole or self._digest(f"twice:tail:{target.form}") not in self._keys
        named = target.shape == "name" or (target.shape == "id" and target.readable)
        words = [word.digest for word in target.words if not word.joins] if named else []
        return bool(words) and any(
            (clause.words | clause.parts).issuperset(words) for clause in self._clauses
        )

    def overlap(self, value: str) -> int:
        """See `safetydrift.authority.request.Request.overlap`."""
        if self.said(value):
            return _EXACT
        target = Target(value[:MAX_TARGET], self._digest)
        own = set(words_in(target.form.partition("@")[0]) if target.shape == "mail" else ())
        telling = [word for word in target.words if not word.tells_nothing]
        telling = [word for word in telling if word.text in own] or telling
        rows = [row for word in telling for row in (word.parts or (word.digest,))]
        shared = sum([row in self._words for row in rows])
        return _WORDS if shared and shared == len(rows) else min(shared, 1)

    # -- what was asked for ------------------------------------------------------------------------------------

    def asks(self, action: str, targets: tuple[str, ...], words: tuple[str, ...]) -> Asked:
        """See `safetydrift.authority.request.Request.asks`."""
        act = Act(ACTION_BITS[action], targets, words, self._digest)
        best, forbidden = Asked(NONE), -1
        for number, clause in enumerate(self._clauses):
            if clause.refused & act.bit and self._forbids(clause, act):
                forbidden = number
            found = self._grade(number, clause, act)
            if found.grade > best.grade or (found.grade == best.grade == ASKED):
                best = found
        asking = [number for number, clause in enumerate(self._clauses) if clause.asked & act.bit]
        if (
            best.grade == GOAL
            and act.bit & _NAMED_ALONE
            and any(not self._clauses[at].nameless for at in asking)
        ):
            best = Asked(ACTION, asking[0])
        if best.grade == ACTION and self._spread(asking, act):
            best = Asked(ASKED, asking[0])
        if self._refused_beyond & act.bit:
            return Asked(FORBIDDEN)
        if forbidden >= 0 and not self._lifted(best, forbidden, act):
            return Asked(FORBIDDEN, forbidden)
        return best

    def _grade(self, number: int, clause: _Clause, act: Act) -> Asked:
        fit = min(
            [self._fit(clause, target, act) for target in act.targets] or [self._fit_described(clause, act)]
        )
        if fit and (act.scope if fit == _EXACT else act.reach) & ~clause.scope:
            fit = -1  # force, production or the public, of which the clause does not speak
        within = clause.means.get(act.bit)
        if fit >= (_KIND if clause.asked & act.bit else _WORDS) and (
            clause.asked & act.bit or within is not None
        ):
            return Asked(ASKED, number)
        if within is not None and fit >= 0 and _is_within(within, act):
            return Asked(GOAL, number, within)
        if clause.asked & act.bit:
            return Asked(NONE if clause.scope & _ONLY else ACTION, number)
        named = fit > 0 or all(not target.said_as.isdisjoint(clause.places) for target in act.targets)
        return Asked(OBJECT, number) if named and act.targets else Asked(NONE)

    def _spread(self, asking: list[int], act: Act) -> bool:
        """Return whether every target fits some clause that asks for the act, or is what the user wrote beside it."""
        clauses = [clause for number in asking if not (clause := self._clauses[number]).scope & _ONLY]
        if not clauses or any(act.reach & ~clause.scope for clause in clauses):
            return False
        beside = [clause for clause in self._clauses if not clause.acts]
        covered = 0
        for target in act.targets:
            if any(self._fit(clause, target, act) for clause in clauses) or self._is_beside(beside, target):
                covered += 1
            elif target.shape != "path" or target.said_as.isdisjoint(self._keys):
                return False
        return covered > 0

    def _is_beside(self, clauses: list[_Clause], target: Target) -> bool:
        """Return whether clauses without an act hold a value, or all words of a name."""
        if any(not target.said_as.isdisjoint(clause.keys) for clause in clauses):
            return True
        words = [self._digest(word) for word in words_in(target.text)] if target.shape == "name" else []
        return len(words) > 1 and any((clause.words | clause.parts).issuperset(words) for clause in clauses)

    def _lifted(self, best: Asked, forbidden: int, act: Act) -> bool:
        """Return whether what was forbidden was asked for afterwards, or is the exception that was made."""
        after = self._clauses[forbidden + 1 : forbidden + 2]
        if (
            after
            and after[0].excepted
            and act.targets
            and all(self._fit(after[0], t, act) for t in act.targets)
        ):
            return True
        later, earlier = self._clauses[best.clause], self._clauses[forbidden]
        rest = bool(earlier.scope & _REST)
        return best.grade == ASKED and (rest or (later.turn > earlier.turn and best.clause > forbidden))

    def _forbids(self, clause: _Clause, act: Act) -> bool:
        """Return whether a clause that forbids an action means these targets; in doubt it does."""
        if clause.vague or not act.targets:
            return clause.vague or not act.described or self._fit_described(clause, act) > 0
        if clause.scope & act.reach:
            return True
        placed = clause.keys or clause.places
        for target in act.targets:
            if (
                (target.party and not clause.directed)
                or (target.wide and not placed)
                or self._fit(clause, target, act)
            ):
                return True
            if not target.inside.isdisjoint(clause.places):
                return True
            above = f"above:{target.form.rstrip('/') or '/'}"
            if target.shape == "path" and self._digest(above) in clause.keys:
                return True
        return False

    # -- how a target fits a clause ----------------------------------------------------------------------------

    def _fit(self, clause: _Clause, target: Target, act: Act) -> int:
        """Return how well a target fits the objects of a clause; 0 for not at all."""
        if not target.inside.isdisjoint(clause.keys):
            return _EXACT
        if target.cut or target.wide or target.party:
            everything = target.wide and clause.scope & _ALL and clause.vague
            return _WORDS if not target.cut and (everything or self._fits_party(clause, target)) else 0
        if clause.places and target.shape == "path":
            return self._fit_place(clause, target, act)
        if not target.readable and target.shape != "path":
            words = [word.digest for word in target.words if not word.tells_nothing]
            if words and clause.words.issuperset(words):
                return _WORDS
            return 0 if clause.numbered else self._fit_described(clause, act, target.kinds)
        return self._fit_words(clause, target, act) or self._fit_kind(clause, target, act)

    def _fit_kind(self, clause: _Clause, target: Target, act: Act) -> int:
        """Return how well a readable target fits a clause that names none of its objects, by its kind."""
        strict = target.shape == "path" or not clause.kinds & target.kinds
        vague = clause.nameless and not (strict and (clause.located or clause.places))
        return self._fit_described(clause, act, target.kinds) if vague else 0

    def _fit_described(self, clause: _Clause, act: Act, kinds: int = 0) -> int:
        """Return how well an act fits a clause by kinds; not at all if described by what the user never spoke of."""
        named = all(not self._words.isdisjoint(name) for name in act.names)
        return _KIND if clause.kinds & (kinds | act.kinds) and named else 0

    def _fit_place(self, clause: _Clause, target: Target, act: Act) -> int:
        """Return how well a path fits objects of which it was said where they are: ``the logs in /srv/app``."""
        kinds = clause.kinds & ~self._containers
        particular = kinds or clause.keys or clause.names
        if not target.said_as.isdisjoint(clause.places):
            return 0 if act.bit & _DESTROYS and not (clause.scope & _ALL and not particular) else _EXACT
        if target.inside.isdisjoint(clause.places):
            return 0
        if not act.bit & _DESTROYS or not particular:
            return _WORDS
        if self._digest(f"tail:*.{target.parts[-1].rpartition('.')[2]}") in clause.keys:
            return _WORDS
        rest = Target("/".join(target.parts[:-1]), self._digest).words + target.words
        named = any(word.is_in(clause.names | clause.parts) for word in rest)
        return _WORDS if named or (kinds & target.kinds and not clause.names) else 0

    def _fit_words(self, clause: _Clause, target: Target, act: Act) -> int:
        """Return how well a name fits, all of whose words are words of the clause or say the kind of its objects."""
        if clause.filed and target.shape == "path":
            folders = [self._digest(word) for part in target.parts[:-1] for word in words_in(part)]
            if not clause.located.isdisjoint(folders):
                return _WORDS
        known = clause.words if target.shape == "path" else clause.words | clause.parts
        matched = [word for word in target.words if word.is_in(known)]
        others = [
            word
            for word in target.words
            if not (word.is_in(known) or word.tells_nothing or word.kinds & clause.kinds)
        ]
        titled = " " in target.text and any(word.is_in(clause.names) for word in matched)
        if act.bit & _TAKES and len(act.targets) == 1:
            matched = [word for word in matched if not word.is_in(clause.aside)]
        if not matched or (others and not (titled and clause.kinds & act.kinds & self._titled)):
            return 0
        return _EXACT if len(matched) == len(target.words) else _WORDS

    def _fits_party(self, clause: _Clause, target: Target) -> bool:
        """Return whether a clause names whom an address belongs to: ``Bob`` for bob.miller@example.com."""
        if target.shape not in {"mail", "handle"}:
            return False
        words = [self._digest(word) for word in words_in(target.form.partition("@")[0])]
        return not clause.parties.isdisjoint(
            [*words, *[part for word in target.words for part in word.parts]]
        )

    # -- sources -----------------------------------------------------------------------------------------------

    def designated(self, source: str, words: tuple[str, ...]) -> list[int]:
        """Return the indices of the delegations that point to a source."""
        target, act = Target(source, self._digest), Act(0, (), words, self._digest)
        described = [self._digest(word) for text in words for word in words_in(text[:MAX_TARGET])]
        said = {word.digest for word in target.words} | set(described)
        found = []
        for index, delegation in enumerate(self._delegations):
            keys, own = split(delegation.keys), split(delegation.words)
            kinds = vocabulary().kinds(*delegation.kinds) & (target.kinds | act.kinds)
            if (
                not target.said_as.isdisjoint(keys)
                if keys
                else kinds and (not own or not said.isdisjoint(own))
            ):
                found.append(index)
        return found


def _is_within(within: str, act: Act) -> bool:
    """Return whether an act stays where an ordinary means belongs."""
    if within == "project":
        return not any(target.outside or target.shape == "account" for target in act.targets)
    return not within or (within != "named" and bool(act.kinds & vocabulary().kinds(within)))
