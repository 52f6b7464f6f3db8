"""What an act is on, looked at from all sides: the values and words that it is known by, and of which kind it is."""

from __future__ import annotations

import re
from functools import cached_property

from safetydrift.authority.objects import SPECIAL, words_of_value
from safetydrift.authority.reading import tokens_of
from safetydrift.authority.text import humps_of, names, words_in
from safetydrift.authority.values import is_shared, keys_of, path_parts, shape_of, values_in
from safetydrift.authority.vocabulary import mark, vocabulary
from safetydrift.effects.operations import MAX_TARGET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.authority.kept import Digester

_PARTIES = names("mail account phone handle host url")
_WIDE = frozenset(names("/ ~ * . .. /* ~/* ./* $HOME ${HOME} C: /home /Users /root -A --all"))
_SYSTEM = frozenset(names("etc usr bin sbin boot lib lib64 root sys proc dev var Windows System"))
_CREDENTIALS = re.compile(
    r"\.?(?:env(?:\..+)?|netrc|pgpass|npmrc|pypirc|git-credentials|credentials(?:\..+)?|htpasswd|shadow|id_[a-z0-9]+)\Z"
)
_SAMPLES = names("example sample template dist")
_REMOTES = names("origin upstream head refs heads")
"""Words of repositories that say nothing about what is meant."""
_MOST_TEXTS, _LONGEST_TEXT, _MOST_VALUES = 8, 4096, 32
"""Arguments of a call that are searched for what the user named, how much of each, and values in it."""
_MEASURES = names("amount date day anyyear")
_VAGUE = names("file folder document page server list answer data code")
"""Kinds that a description of any act may speak of."""
_FEWEST_LETTERS, _MOST_WORDS = 3, 16
_FUNCTION = mark("function")


class Word:
    """A word of a target: its digest, those of the parts of one like ``fooBar``, and what it tells by itself."""

    def __init__(self, text: str, parts: tuple[str, ...], digest: Digester) -> None:
        self.text, self.digest = text, digest(text)
        self.parts = tuple([digest(part) for part in parts])

    @cached_property
    def kinds(self) -> int:
        """Kinds of objects that it stands for."""
        return vocabulary().kinds_of_name(self.text)

    @cached_property
    def joins(self) -> bool:
        """Whether it is a function word."""
        known = vocabulary()
        return bool(known.sense(self.text, known.languages_of(self.text)).marks & _FUNCTION)

    @cached_property
    def tells_nothing(self) -> bool:
        """Whether it says nothing about what is meant."""
        text = self.text
        return text.isdigit() or len(text) == 1 or text in _REMOTES or self.joins

    def is_in(self, known: frozenset[bytes]) -> bool:
        """Return whether the word, or all its parts, are among some words."""
        return self.digest in known or (bool(self.parts) and known.issuperset(self.parts))


class Target:
    """One target of an act; what is not asked about it is never worked out.

    Parameters
    ----------
    text
        As written; longer than `MAX_TARGET` characters it is cut off and unknown.
    digest
        Makes digests with the salt of the request.

    Attributes
    ----------
    shape, form, parts
        Its shape and canonical form; of a path, its parts.
    cut, party, wide
        Whether it is cut off; whether it is somebody or some host; whether it is everything at once.
    """

    def __init__(self, text: str, digest: Digester) -> None:
        self._keys, self._digest = keys_of(text), digest
        self.text, self.cut = text, len(text) >= MAX_TARGET
        self.shape, _, self.form = self._keys[0].partition(":")
        self.parts = path_parts(self.form) if self.shape == "path" else ()
        self.party, self.wide = self.shape in _PARTIES, text.strip() in _WIDE

    @cached_property
    def words(self) -> list[Word]:
        """Its words."""
        own = words_of_value(self.text, self._keys[0]) or list(words_in("/".join(self.parts[-2:])))
        humps = humps_of(self.text)
        return [Word(word, humps.get(word, ()), self._digest) for word in own]

    @cached_property
    def said_as(self) -> frozenset[bytes]:
        """Digests of the keys by which a user may have written it."""
        return (
            frozenset() if self.cut else frozenset([self._digest(key) for key in self._writings(self._keys)])
        )

    @cached_property
    def inside(self) -> frozenset[bytes]:
        """These, and those of folders that it lies in."""
        if not self.parts or self.cut:
            return self.said_as
        counts = range(1, len(self.parts))
        return self.said_as | {
            self._digest(key) for count in counts for key in self._paths(self.parts[:count])
        }

    @cached_property
    def readable(self) -> bool:
        """Whether its words tell what it is."""
        letters = any(word.text.isalpha() and len(word.text) >= _FEWEST_LETTERS for word in self.words)
        return letters or not self.text.isascii()

    @cached_property
    def kinds(self) -> int:
        """The kinds of objects that its words, or the path, say."""
        known = vocabulary()
        kinds = known.kinds_of_path(self.parts) if self.shape == "path" else 0
        for word in self.words:
            kinds |= word.kinds
        if self.party:
            kinds |= known.kinds("page" if self.shape in {"host", "url"} else "contact")
        return known.widened(kinds)

    @cached_property
    def scope(self) -> int:
        """The scopes that its words say."""
        return vocabulary().scope_of(words_in(self.text)) & SPECIAL

    @cached_property
    def guarded(self) -> bool:
        """Whether credentials are kept there."""
        known = vocabulary()
        held = known.kinds_of_path(self.parts) if self.parts else self.kinds
        return not self.party and bool(known.widened(held) & known.kinds("credential") or self._is_kept())

    @cached_property
    def outside(self) -> bool:
        """Whether it certainly lies outside a project."""
        return self.wide or self.party or (self.shape == "path" and self._is_outside())

    def _is_outside(self) -> bool:
        rooted = self.form[:1] == "/"
        if not self.parts or self.parts[0] in {"~", ".."} or (rooted and self.parts[0] in _SYSTEM):
            return True
        return bool(vocabulary().kinds_of_path(self.parts) & vocabulary().kinds("credential"))

    def _is_kept(self) -> bool:
        """Return whether the name of a file says that credentials are kept in it."""
        if self.parts and self.parts[-1].rpartition(".")[2] in _SAMPLES:
            return False
        return bool(self.parts) and _CREDENTIALS.match(self.parts[-1].lower()) is not None

    def _writings(self, keys: tuple[str, ...]) -> Iterator[str]:
        """Yield the keys of what a user may have written to name it."""
        if self.shape in {"host", "url"}:
            yield from self._pages()
        elif self.shape == "path":
            yield from self._paths(self.parts)
            if self.form[:1] not in {"/", "~"}:
                yield f"tail:{self.form}"
        elif self.shape == "amount":
            yield keys[0]
        elif self.shape == "date":
            yield from [key.replace("day:", "anyyear:") for key in keys]
        else:
            yield from keys

    def _pages(self) -> Iterator[str]:
        """Yield a host, written alone or with a page; of a page, what is above it, its host unless it is shared."""
        host, slash, path = self.form.partition("/")
        host = host.partition("?")[0]
        if host == self.form:
            yield f"at:{host}"
            return
        yield f"url:{self.form}"
        if not is_shared(host):
            yield f"host:{host}"
        above = path.partition("?")[0].split("/") if slash else []
        yield from [f"url:{host}/{'/'.join(above[:count])}" for count in range(1, len(above))]

    def _paths(self, parts: tuple[str, ...]) -> Iterator[str]:
        """Yield the keys of a path and of its tails, which a user may have written as relative paths."""
        yield f"path:{'/' * (self.form[:1] == '/')}{'/'.join(parts)}"
        yield from [f"relative:{'/'.join(parts[start:])}" for start in range(len(parts))]


class Act:
    """An act to be graded: its action as a bit, its targets, and what describes its object."""

    def __init__(self, bit: int, targets: list[Target], words: tuple[str, ...], digest: Digester) -> None:
        self.bit, self.targets = bit, targets
        self.kinds = self.scope = 0
        self.described = bool(words)
        self.names: list[list[bytes]] = []
        for text in words[:_MOST_WORDS]:
            tokens = tokens_of(text[:MAX_TARGET])
            for token in tokens:
                self.kinds |= token.sense.kinds
                self.scope |= token.sense.scope
            self.scope |= vocabulary().scope_of(words_in(text[:MAX_TARGET]))
            if any(not token.sense.known() and not token.sense.nouns for token in tokens):
                self.names.append([digest(word) for word in words_in(text[:MAX_TARGET])])
        self.scope &= SPECIAL
        self.reach = self.scope
        for target in self.targets:
            self.reach |= target.scope


class Spoken:
    """The words and values of a call's arguments, in which what a user named is looked for."""

    def __init__(self, texts: Sequence[str], digest: Digester) -> None:
        self.words: set[str] = set()
        self.keys: set[bytes] = set()
        for text in texts[:_MOST_TEXTS]:
            part = text[:_LONGEST_TEXT]
            self.words |= _words_with_parts(part)
            for value in values_in(part)[:_MOST_VALUES]:
                if value.keys[0].partition(":")[0] not in _MEASURES:
                    self.keys |= Target(value.text, digest).inside
        self.digests = frozenset([digest(word) for word in self.words])


class About:
    """What an act is known by where its target is a description.

    Parameters
    ----------
    described
        Descriptions; the last one is as written in the call.
    spoken
        What else the call says.
    """

    def __init__(self, described: Sequence[str], spoken: Spoken, digest: Digester) -> None:
        known = vocabulary()
        kinds = 0
        own: set[str] = set()
        for text in described:
            vague = 0 if text is described[-1] else known.kinds(*_VAGUE)
            kinds |= _kinds_in(text[:MAX_TARGET]) & ~vague
            own |= _words_with_parts(text[:MAX_TARGET])
        target = described[-1][:MAX_TARGET]
        self.scope = known.scope_of(words_in(target)) & SPECIAL
        self.loose = " " in target or is_generic(target)
        self.kinds = known.widened(kinds) & ~known.kinds("file", "folder")
        self.words = frozenset([digest(word) for word in own])
        self.said = self.words | spoken.digests
        self.meant = self.said | {digest(word) for word in known.words_of(self.kinds)}
        self.keys = spoken.keys | Spoken((target,), digest).keys
        self.spoken = known.scope_of(own | spoken.words)


def _kinds_in(text: str) -> int:
    """Return the kinds of objects that a description speaks of, by its words, programs and path."""
    known = vocabulary()
    kinds = known.kinds_of_path(path_parts(text)) if "/" in text and " " not in text else 0
    for token in tokens_of(text):
        kinds |= token.sense.kinds
    for word in words_in(text):
        kinds |= known.kinds_of(word)
    return kinds


def _words_with_parts(text: str) -> set[str]:
    """Return the words of a text, and the parts of those like ``fooBar``."""
    return {*words_in(text), *[part for parts in humps_of(text).values() for part in parts]}


def is_party(value: str) -> bool:
    """Return whether a value is somebody or some host by its shape."""
    return shape_of(value) in _PARTIES


def is_generic(value: str) -> bool:
    """Return whether all words of a value stand for kinds of objects or scopes: it names nobody and nothing."""
    known = vocabulary()
    return all(known.kinds_of(word) or known.scope_of((word,)) for word in words_in(value[:MAX_TARGET]))


def is_act(value: str) -> bool:
    """Return whether a value is the word for an act, such as the command of a program, and names nothing."""
    sense = vocabulary().sense(value.lower(), vocabulary().languages_of(value.lower()))
    return bool(sense.verbs | sense.imperatives) and not sense.kinds
