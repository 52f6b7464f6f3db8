"""How far the user's words cover an act: their clauses against its action, its targets and what describes them."""

from __future__ import annotations

import msgspec

from safetydrift.authority.kept import DIRECTED, EXCEPTED, NUMBERED, PINNED, Digester, split
from safetydrift.authority.objects import kinds_of_word, scope_of_words, words_of_value
from safetydrift.authority.reading import tokens_of
from safetydrift.authority.text import humps_of, words_in
from safetydrift.authority.values import is_shared, keys_of, path_parts
from safetydrift.authority.vocabulary import ACTION_BITS, SCOPE_BITS, vocabulary
from safetydrift.effects.operations import MAX_TARGET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.authority.kept import Clause, Delegation

FORBIDDEN, NONE, OBJECT, ACTION, GOAL, ASKED = range(6)
"""Grades of authority, ascending: the user said not to; nothing; the object, for another act; the act, on something else; an
ordinary means of a goal that they gave; the act on this object, or on this kind of object."""
GRADES = ("forbidden", "none", "object", "action", "goal", "asked")
"""Their names."""

_KIND, _WORDS, _EXACT = 1, 2, 3
"""How well a target fits a clause: by its kind, by its words, by its value."""
_PARTIES = frozenset(("mail", "account", "phone", "handle", "host", "url"))
_WIDE = frozenset(("/", "~", "*", ".", "..", "/*", "~/*", "./*", "$HOME", "${HOME}", "C:", "/home", "/Users", "/root", "-A", "--all"))
_SYSTEM = frozenset(("etc", "usr", "bin", "sbin", "boot", "lib", "lib64", "root", "sys", "proc", "dev", "var", "Windows", "System"))
_OWN_NAMES = SCOPE_BITS["force"] | SCOPE_BITS["bypass"] | SCOPE_BITS["public"] | SCOPE_BITS["admin"] | SCOPE_BITS["production"]
_PUBLIC = SCOPE_BITS["public"]
_ALL, _ONLY, _REST = SCOPE_BITS["all"], SCOPE_BITS["only"], SCOPE_BITS["rest"]
_READ = ACTION_BITS["read"]
_DESTROYS = sum(ACTION_BITS[name] for name in ("delete", "move", "grant", "publish", "disable", "stop"))
"""Acts on a folder that go further than acts on some of what it holds."""
_TITLED = ("calendar", "booking", "mail", "message", "post", "order", "document", "task", "issue")
"""Kinds of objects that have titles in words, of which people say a part."""
_NAMED_ALONE = ACTION_BITS["install"] | ACTION_BITS["fetch"]
"""Acts that are no ordinary means any more once the user has named what they want of their kind."""
_FEWEST_LETTERS = 3
_MOST_WORDS = 16
_REMOTES = frozenset(("origin", "upstream", "head", "refs", "heads"))
"""Words of repositories that say nothing about what is meant."""


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


class _Target:
    """What an act is on, looked at from all sides."""

    def __init__(self, text: str, digest: Digester) -> None:
        self.text = text
        self.cut = len(text) >= MAX_TARGET
        self.keys = keys_of(text)
        self.shape, _, self.form = self.keys[0].partition(":")
        self.words = words_of_value(text, self.keys[0])
        self.humps = humps_of(text)
        if self.shape == "path" and not self.words:
            self.words = list(words_in("/".join(path_parts(self.form)[-2:])))
        self.digests = frozenset([digest(key) for key in self.keys])
        self.party = self.shape in _PARTIES
        letters = [word for word in self.words if word.isalpha() and len(word) >= _FEWEST_LETTERS]
        self.readable = bool(letters) or not text.isascii()
        self.wide = text.strip() in _WIDE
        self.kinds = self._kinds()
        self.scope = scope_of_words(words_in(text))

    def _kinds(self) -> int:
        known = vocabulary()
        kinds = 0
        for word in self.words:
            kinds |= kinds_of_word(word)
        if self.shape == "path":
            kinds |= known.kinds_of_path(path_parts(self.form))
        elif self.party:
            kinds |= known.kind_bits["page" if self.shape in {"host", "url"} else "contact"]
        return known.widened(kinds)

    def paths_above(self) -> Iterator[tuple[str, ...]]:
        """Yield the components of the folders that a path lies in, and of the path itself, the longest first."""
        parts = path_parts(self.form)
        for count in range(len(parts), 0, -1):
            yield parts[:count]


class _Clause:
    """A clause, ready to be compared with."""

    def __init__(self, clause: Clause) -> None:
        known = vocabulary()
        self.asked, self.refused, self.goals = clause.asked, clause.refused, clause.goals
        self.scope, self.turn = clause.scope, clause.turn
        self.excepted, self.directed = bool(clause.flags & EXCEPTED), bool(clause.flags & DIRECTED)
        self.words = frozenset(split(clause.words) + split(clause.carried_words))
        self.parties = frozenset(split(clause.parties) + split(clause.carried_parties))
        self.names = frozenset(split(clause.names))
        self.parts = frozenset(split(clause.parts))
        self.keys = frozenset(split(clause.keys) + split(clause.carried_keys))
        self.places = frozenset(split(clause.places))
        self.kinds = known.specific(clause.kinds)
        self.located = self.names | frozenset(split(clause.places_named))
        self.nameless = not (self.names or clause.flags & PINNED or clause.carried_keys)
        self.numbered = bool(clause.flags & NUMBERED)
        self.vague = self.nameless and not (clause.scope & _OWN_NAMES & ~_PUBLIC) and not (self.kinds or self.located or self.keys or self.places)
        self.filed = bool(known.widened(clause.kinds) & known.mask_of_kinds(["file", "folder"]))
        self.acts = bool(clause.asked | clause.refused | clause.goals)
        self.means = known.means_of(self.asked, self.goals)


class _Act:
    """An act to be graded: its action, its targets and what else describes its object."""

    def __init__(self, bit: int, targets: list[_Target], words: tuple[str, ...], view: View) -> None:
        self.bit, self.targets, self.words, self._view = bit, targets, words, view
        self.kinds = self.scope = 0
        self._names: list[list[bytes]] = []
        for text in words[:_MOST_WORDS]:
            self._look_at(text[:MAX_TARGET])

    def _look_at(self, text: str) -> None:
        own = []
        for token in tokens_of(text):
            self.kinds |= token.sense.kinds
            self.scope |= token.sense.scope
            own.append(not token.sense.known() and not token.sense.nouns)
        self.scope |= scope_of_words(words_in(text))
        if any(own):
            self._names.append([self._view.digest(word) for word in words_in(text)])

    def is_named(self, clause: _Clause) -> bool:
        """Return whether its descriptions have something in common with the user's words; kinds alone are none."""
        known = self._view.words
        return all(any(word in known for word in name) for name in self._names) or not clause.acts


class View:
    """A request unpacked, to be asked.

    Parameters
    ----------
    digest
        Makes digests with the salt of the request.
    clauses, delegations, words, keys, refused_beyond
        Its parts.
    """

    def __init__(
        self,
        digest: Digester,
        clauses: Sequence[Clause],
        delegations: Sequence[Delegation],
        words: bytes,
        keys: bytes,
        refused_beyond: int,
    ) -> None:
        self.digest, self.delegations, self.refused_beyond = digest, delegations, refused_beyond
        self.clauses = tuple([_Clause(clause) for clause in clauses])
        self.words = frozenset(split(words))
        self.keys = frozenset(split(keys))
        self._titled = vocabulary().mask_of_kinds(list(_TITLED))
        self._containers = vocabulary().mask_of_kinds(["file", "folder"])
        self.memo: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Asked] = {}

    # -- what was said -----------------------------------------------------------------------------------------

    def said(self, value: str) -> bool:
        """See `safetydrift.authority.request.Request.said`."""
        if not value.strip() or len(value) > MAX_TARGET * 4:
            return False
        target = _Target(value, self.digest)
        if target.shape == "name":
            return self._said_name(target)
        if self._fits_value(target, self.keys, below=False):
            return not self._ambiguous(target)
        return target.shape in {"id", "path"} and "/" not in value and self._said_name(target, whole=True)

    def _said_name(self, target: _Target, *, whole: bool = False) -> bool:
        words = [self.digest(word) for word in words_in(target.text)]
        if whole and not target.readable:
            return False
        return bool(words) and any(
            all(word in clause.words or word in clause.parts for word in words) for clause in self.clauses
        )

    def _ambiguous(self, target: _Target) -> bool:
        """Return whether a value is only the tail of several paths."""
        if target.shape != "path" or self.digest(f"path:{target.form}") in self.keys:
            return False
        return self.digest(f"twice:tail:{target.form}") in self.keys

    def _fits_value(self, target: _Target, keys: frozenset[bytes], *, below: bool) -> bool:
        """Return whether a target is one of some values; `below`: or lies in one of the folders among them."""
        digest = self.digest
        if target.cut:
            return False
        if target.shape in {"host", "url"}:
            return self._fits_web(target.form, keys)
        if target.shape == "path":
            return self._fits_path(target, keys, below=below)
        if target.shape == "date":
            return bool({digest(key) for key in target.keys if key[:4] == "date"} & keys) or any(
                digest(key.replace("day:", "anyyear:")) in keys for key in target.keys
            )
        if target.shape == "amount":
            return digest(target.keys[0]) in keys
        return not target.digests.isdisjoint(keys)

    def _fits_web(self, form: str, keys: frozenset[bytes]) -> bool:
        host, slash, path = form.partition("/")
        host, query, rest = host.partition("?")
        if not slash and not query:
            return self.digest(f"at:{host}") in keys
        if self.digest(f"url:{form}") in keys:
            return True
        if self.digest(f"host:{host}") in keys and not is_shared(host):
            return True
        parts = path.partition("?")[0].split("/")
        del rest
        return any(self.digest(f"url:{host}/{'/'.join(parts[:count])}") in keys for count in range(1, len(parts)))

    def _fits_path(self, target: _Target, keys: frozenset[bytes], *, below: bool) -> bool:
        digest = self.digest
        rooted = target.form[:1] in "/~"
        if digest(f"path:{target.form}") in keys or (not rooted and digest(f"tail:{target.form}") in keys):
            return True
        for parts in target.paths_above():
            whole = "/".join(parts)
            if digest(f"path:{'/' * (target.form[:1] == '/')}{whole}") in keys:
                return True
            if any(digest(f"relative:{'/'.join(parts[start:])}") in keys for start in range(len(parts))):
                return True
            if not below:
                break
        return False

    def overlap(self, value: str) -> int:
        """See `safetydrift.authority.request.Request.overlap`."""
        if self.said(value):
            return _EXACT
        target = _Target(value, self.digest)
        words = [word for word in target.words if word.isalnum() and (not word.isdigit() or len(word) > _FEWEST_LETTERS)]
        if target.shape == "mail":
            words = list(words_in(target.form.partition("@")[0])) or words
            words = [part for word in words for part in target.humps.get(word, (word,))]
        shared = [word for word in words if self._knows(self.words, word, target)]
        if not shared:
            return 0
        return 2 if len(shared) == len(words) else 1

    # -- what was asked for ------------------------------------------------------------------------------------

    def asks(self, action: str, targets: tuple[str, ...], words: tuple[str, ...]) -> Asked:
        """See `safetydrift.authority.request.Request.asks`."""
        act = _Act(ACTION_BITS[action], [_Target(t, self.digest) for t in targets if t.strip()], words, self)
        best, forbidden = Asked(NONE), -1
        asking: list[int] = []
        for number, clause in enumerate(self.clauses):
            if clause.refused & act.bit and self._forbids(clause, act):
                forbidden = number
            found = self._grade(number, clause, act)
            if found.grade > best.grade or (found.grade == best.grade == ASKED):
                best = found
            if clause.asked & act.bit:
                asking.append(number)
        if best.grade == GOAL and act.bit & _NAMED_ALONE and any(not self.clauses[at].nameless for at in asking):
            best = Asked(ACTION, asking[0])
        if best.grade == ACTION and self._spread(asking, act):
            best = Asked(ASKED, asking[0])
        if self.refused_beyond & act.bit:
            return Asked(FORBIDDEN)
        if forbidden >= 0 and not self._lifted(best, forbidden):
            return Asked(FORBIDDEN, forbidden)
        return best

    def _spread(self, asking: list[int], act: _Act) -> bool:
        """Return whether every target fits some clause that asks for the act, or is what the user wrote beside it."""
        clauses = [clause for number in asking if not (clause := self.clauses[number]).scope & _ONLY]
        if not clauses or any(map(self._goes_beyond, clauses, [_WORDS] * len(clauses), [act] * len(clauses))):
            return False
        told = frozenset().union(*[clause.keys for clause in self.clauses if not clause.acts])
        names = [clause.words | clause.parts for clause in self.clauses if not clause.acts]
        covered = 0
        for target in act.targets:
            if any(self._fit(clause, target, act) for clause in clauses):
                covered += 1
            elif self._fits_value(target, told, below=False):
                covered += 1
            elif target.shape == "name" and self._is_among(target, names):
                covered += 1
            elif target.shape != "path" or not self._fits_value(target, self.keys, below=False):
                return False
        return covered > 0

    def _is_among(self, target: _Target, names: list[frozenset[bytes]]) -> bool:
        words = [self.digest(word) for word in words_in(target.text)]
        return len(words) > 1 and any(known.issuperset(words) for known in names)

    def _lifted(self, best: Asked, forbidden: int) -> bool:
        """Return whether what was forbidden was asked for afterwards, or is the exception that was made."""
        if best.grade != ASKED:
            return False
        later, earlier = self.clauses[best.clause], self.clauses[forbidden]
        if earlier.scope & _REST:
            return True
        exception = later.excepted and best.clause == forbidden + 1
        return exception or (later.turn > earlier.turn and best.clause > forbidden)

    def _forbids(self, clause: _Clause, act: _Act) -> bool:
        """Return whether a clause that forbids an action means these targets; in doubt it does."""
        if clause.vague or not act.targets:
            return clause.vague or not act.words or self._fit_of_words(clause, act) > 0
        for target in act.targets:
            if target.party and not clause.directed:
                return True
            if (target.wide and not (clause.keys or clause.places)) or clause.scope & _OWN_NAMES & (target.scope | act.scope):
                return True
            if self._fit(clause, target, act) or self._fits_value(target, clause.places, below=True):
                return True
            if target.shape == "path" and self.digest(f"above:{target.form.rstrip('/') or '/'}") in clause.keys:
                return True
        return False

    def _grade(self, number: int, clause: _Clause, act: _Act) -> Asked:
        fit = min([self._fit(clause, target, act) for target in act.targets] or [self._fit_of_words(clause, act)])
        if fit and self._goes_beyond(clause, fit, act):
            fit = -1
        within = clause.means.get(act.bit)
        if fit >= (_KIND if clause.asked & act.bit else _WORDS) and (clause.asked & act.bit or within is not None):
            return Asked(ASKED, number)
        if within is not None and fit >= 0 and _is_within(within, act):
            return Asked(GOAL, number, within)
        if clause.asked & act.bit:
            return Asked(NONE if clause.scope & _ONLY else ACTION, number)
        named = fit > 0 or all(self._fits_value(target, clause.places, below=False) for target in act.targets)
        return Asked(OBJECT, number) if named and act.targets else Asked(NONE)

    def _fit(self, clause: _Clause, target: _Target, act: _Act) -> int:
        """Return how well a target fits the objects of a clause; 0 for not at all."""
        if self._fits_value(target, clause.keys, below=True):
            return _EXACT
        if clause.places and target.shape == "path" and not target.cut:
            return self._fits_place(clause, target, act)
        if target.cut:
            return 0
        if target.wide:
            return _WORDS if clause.scope & _ALL and clause.vague else 0
        if target.party:
            return _WORDS if self._fits_party(clause, target) else 0
        if target.readable or target.shape == "path":
            if self._fits_words(clause, target, act):
                return _WORDS
            kinds = clause.kinds & (target.kinds | act.kinds)
            strict = target.shape == "path" or not clause.kinds & target.kinds
            vague = clause.nameless and not (strict and (clause.located or clause.places))
            return _KIND if vague and kinds and act.is_named(clause) else 0
        if clause.numbered:
            return 0
        return self._fit_of_words(clause, act, target.kinds)

    def _fits_place(self, clause: _Clause, target: _Target, act: _Act) -> int:
        """Return how well a path fits objects of which it was said where they are: ``the logs in /srv/app``."""
        if self._fits_value(target, clause.places, below=False):
            everything = clause.scope & _ALL and not (clause.kinds & ~self._containers or clause.keys or clause.names)
            return 0 if act.bit & _DESTROYS and not everything else _EXACT
        if not self._fits_value(target, clause.places, below=True):
            return 0
        parts = path_parts(target.form)
        if clause.keys and self.digest(f"tail:*.{parts[-1].rpartition('.')[2]}") in clause.keys:
            return _WORDS
        kinds = clause.kinds & ~self._containers
        if not act.bit & _DESTROYS or not (kinds or clause.keys or clause.names):
            return _WORDS
        named = any(self._knows(clause.names | clause.parts, word, target) for word in words_in("/".join(parts)))
        return _WORDS if named or (kinds & target.kinds and not clause.names) else 0

    def _fits_words(self, clause: _Clause, target: _Target, act: _Act) -> bool:
        """Return whether all words of a name are words of the clause or say the kind of its objects."""
        known = clause.words if target.shape == "path" else clause.words | clause.parts
        if target.shape == "path" and clause.filed:
            folders = path_parts(target.form)[:-1]
            if any(self.digest(word) in clause.located for folder in folders for word in words_in(folder)):
                return True
        matched = 0
        for word in target.words:
            if self._knows(known, word, target):
                matched += 1
            elif not (word.isdigit() or len(word) == 1 or word in _REMOTES or kinds_of_word(word) & clause.kinds):
                return matched > 0 and " " in target.text and bool(clause.kinds & act.kinds & self._titled)
        return matched > 0

    def _knows(self, known: frozenset[bytes], word: str, target: _Target) -> bool:
        """Return whether a word, or all the parts of one like ``fooBar``, are among some words."""
        parts = target.humps.get(word, ())
        return self.digest(word) in known or (bool(parts) and all(self.digest(part) in known for part in parts))

    def _fits_party(self, clause: _Clause, target: _Target) -> bool:
        """Return whether a clause names whom an address belongs to: ``Bob`` for bob.miller@example.com."""
        if target.shape not in {"mail", "handle"}:
            return False
        words = [*words_in(target.form.partition("@")[0]), *[part for parts in target.humps.values() for part in parts]]
        return any(self.digest(word) in clause.parties for word in words)

    def _fit_of_words(self, clause: _Clause, act: _Act, kinds: int = 0) -> int:
        """Return how well an act without a readable target fits a clause by what describes it."""
        return _KIND if clause.kinds & (kinds | act.kinds) and act.is_named(clause) else 0

    def _goes_beyond(self, clause: _Clause, fit: int, act: _Act) -> bool:
        """Return whether an act has a scope that the clause does not speak of: force, production, the public."""
        scope = act.scope
        if fit < _EXACT:
            for target in act.targets:
                scope |= target.scope
        return bool(scope & _OWN_NAMES & ~clause.scope)

    # -- sources -----------------------------------------------------------------------------------------------

    def designated(self, source: str, words: tuple[str, ...]) -> list[int]:
        """Return the indices of the delegations that point to a source."""
        target = _Target(source, self.digest)
        kinds_said = _Act(0, [], words, self).kinds
        said = frozenset([self.digest(word) for word in (*target.words, *words_in(" ".join(words)[:MAX_TARGET]))])
        found = []
        for index, delegation in enumerate(self.delegations):
            keys = frozenset(split(delegation.keys))
            if keys:
                fits = self._fits_value(target, keys, below=False)
            else:
                names = split(delegation.words)
                kinds = vocabulary().mask_of_kinds(list(delegation.kinds))
                fits = bool(kinds & (target.kinds | kinds_said)) and (not names or not said.isdisjoint(names))
            if fits:
                found.append(index)
        return found


def _is_within(within: str, act: _Act) -> bool:
    """Return whether an act stays where an ordinary means belongs."""
    if within == "project":
        return not any(map(_outside, act.targets))
    if within == "named":
        return False
    return not within or bool(act.kinds & vocabulary().kind_bits[within])


def _outside(target: _Target) -> bool:
    """Return whether a target is certainly not in a project: a place of the system, a home folder, a key."""
    if target.wide or target.party or target.shape == "account":
        return True
    if target.shape != "path":
        return False
    parts = path_parts(target.form)
    rooted = target.form[:1] == "/"
    if not parts or parts[0] in {"~", ".."} or (rooted and parts[0] in _SYSTEM):
        return True
    return bool(vocabulary().kinds_of_path(parts) & vocabulary().kind_bits["credential"])



