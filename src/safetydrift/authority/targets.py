"""What an act is on, looked at from all sides: the values and words that it is known by, and of which kind it is."""

from __future__ import annotations

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

    __slots__ = ("digest", "joins", "kinds", "parts", "tells_nothing", "text")

    def __init__(self, text: str, parts: tuple[str, ...], digest: Digester) -> None:
        self.text, self.digest = text, digest(text)
        self.parts = tuple([digest(part) for part in parts])
        self.kinds = vocabulary().kinds_of(text)
        self.joins = bool(vocabulary().sense(text, vocabulary().languages_of(text)).marks & _FUNCTION)
        self.tells_nothing = self.joins or text.isdigit() or len(text) == 1 or text in _REMOTES

    def is_in(self, known: frozenset[bytes]) -> bool:
        """Return whether the word, or all its parts, are among some words."""
        return self.digest in known or (bool(self.parts) and known.issuperset(self.parts))


class Target:
    """One target of an act.

    Parameters
    ----------
    text
        As written; longer than `MAX_TARGET` characters it is cut off and unknown.
    digest
        Makes digests with the salt of the request.

    Attributes
    ----------
    shape, form, words, kinds, scope
        Its shape and canonical form, its words, and the kinds and scopes that these say.
    said_as, inside
        Digests of keys: those by which a user may have written it, and these or folders that it lies in.
    party, readable, wide, outside
        Whether it is somebody or some host; whether its words tell what it is; whether it is everything at once;
        whether it certainly lies outside a project.
    """

    def __init__(self, text: str, digest: Digester) -> None:
        known = vocabulary()
        keys = keys_of(text)
        self.text, self.cut = text, len(text) >= MAX_TARGET
        self.shape, _, self.form = keys[0].partition(":")
        self.parts = path_parts(self.form) if self.shape == "path" else ()
        own = words_of_value(text, keys[0]) or list(words_in("/".join(self.parts[-2:])))
        humps = humps_of(text)
        self.words = [Word(word, humps.get(word, ()), digest) for word in own]
        self.said_as = frozenset() if self.cut else frozenset([digest(key) for key in self._writings(keys)])
        self.inside = self.said_as
        if self.parts and not self.cut:
            self.inside |= {
                digest(key) for count in range(1, len(self.parts)) for key in self._paths(self.parts[:count])
            }
        self.party, self.wide = self.shape in _PARTIES, text.strip() in _WIDE
        letters = any(word.text.isalpha() and len(word.text) >= _FEWEST_LETTERS for word in self.words)
        self.readable = letters or not text.isascii()
        kinds = known.kinds_of_path(self.parts) if self.shape == "path" else 0
        for word in self.words:
            kinds |= word.kinds
        if self.party:
            kinds |= known.kinds("page" if self.shape in {"host", "url"} else "contact")
        self.kinds, self.scope = known.widened(kinds), known.scope_of(words_in(text)) & SPECIAL
        self.outside = self.wide or self.party or (self.shape == "path" and self._is_outside())

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

    def __init__(self, bit: int, targets: tuple[str, ...], words: tuple[str, ...], digest: Digester) -> None:
        self.bit = bit
        self.targets = [Target(target, digest) for target in targets if target.strip()]
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
