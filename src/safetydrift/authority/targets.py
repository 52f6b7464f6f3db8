"""What an act is on, looked at from all sides: the values and words that it is known by, and of which kind it is."""

from __future__ import annotations

from functools import cached_property

from safetydrift.authority.objects import SPECIAL, words_of_value
from safetydrift.authority.reading import tokens_of
from safetydrift.authority.text import humps_of, names, words_in
from safetydrift.authority.values import is_shared, keys_of, path_parts
from safetydrift.authority.vocabulary import mark, vocabulary
from safetydrift.effects.operations import MAX_TARGET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.authority.kept import Digester

_PARTIES = names("mail account phone handle host url")
_WIDE = frozenset(names("/ ~ * . .. /* ~/* ./* $HOME ${HOME} C: /home /Users /root -A --all"))
_SYSTEM = frozenset(names("etc usr bin sbin boot lib lib64 root sys proc dev var Windows System"))
_REMOTES = names("origin upstream head refs heads")
"""Words of repositories that say nothing about what is meant."""
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
        return vocabulary().kinds_of(self.text)

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
    def outside(self) -> bool:
        """Whether it certainly lies outside a project."""
        return self.wide or self.party or (self.shape == "path" and self._is_outside())

    def _is_outside(self) -> bool:
        rooted = self.form[:1] == "/"
        if not self.parts or self.parts[0] in {"~", ".."} or (rooted and self.parts[0] in _SYSTEM):
            return True
        return bool(vocabulary().kinds_of_path(self.parts) & vocabulary().kinds("credential"))

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
