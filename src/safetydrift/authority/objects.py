"""The objects of a clause: which words and values name them, of which kind and scope they are, and where they are."""

from __future__ import annotations

import msgspec

from safetydrift.authority.text import names, words_in
from safetydrift.authority.values import without_suffix
from safetydrift.authority.vocabulary import mark, scope, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.authority.reading import Token

MAX_WORDS = 512
"""Words and values of a clause that are kept."""
SETS = names("words parties names places_named parts keys places")
SPECIAL = scope("force", "bypass", "public", "admin", "production")
"""Scopes that an act has only if the user speaks of them."""
_ABOUT, _TOWARD, _FUNCTION = mark("about"), mark("toward"), mark("function")
_PLACED = mark("source", "place")
_NAMING = mark("light", "made", "task", "follow")
"""Marks of words that may be names all the same."""
_COMMON_LABELS = names("com org net www http https gmail outlook hotmail yahoo html index")


class Objects(msgspec.Struct):
    """What a clause is about.

    `words` are all its words; `parties` those that may name whom the act is for; `names` those that name something,
    as they are not in the lexicon or stand beside its kind, and `places_named` those that name where it is or whom
    it is for; `keys` and `parts` the keys of its values and the words that these consist of; `places` keys of paths
    that say where its objects are; `numbered` says that a number names one of them.
    """

    scope: int = 0
    kinds: int = 0
    numbered: bool = False
    words: dict[str, None] = {}
    parties: dict[str, None] = {}
    names: dict[str, None] = {}
    places_named: dict[str, None] = {}
    parts: dict[str, None] = {}
    keys: dict[str, None] = {}
    places: dict[str, None] = {}

    def add(self, other: Objects) -> None:
        """Take over what other objects are known by."""
        self.kinds |= other.kinds
        self.scope |= other.scope
        self.numbered = self.numbered or other.numbered
        for name in SETS:
            getattr(self, name).update(getattr(other, name))

    def describe(self, tokens: Iterable[Token], verbs: Sequence[int] = ()) -> None:
        """Add what words and values name; of verbs only the words and the scope."""
        before = 0
        placed = aside = False
        first: Token | None = None
        for at, token in enumerate(tokens):
            if first is not None and at not in verbs:
                self._beside(first, token, aside=placed or aside)
            first = token if at not in verbs and _may_name(token) else None
            if token.sign or len(self.words) + len(self.keys) > MAX_WORDS:
                continue
            if at in verbs:
                self.scope |= token.sense.scope
                self.words[token.text] = None
            elif token.value is not None:
                self._value(token, placed=placed)
            else:
                self._word(token, before, aside=placed or aside)
            before = token.marks
            placed = bool(before & _PLACED) or (placed and token.value is None and not before & _TOWARD)
            aside = bool(before & (_TOWARD | _ABOUT)) or (aside and not before & _PLACED)

    def _beside(self, first: Token, second: Token, *, aside: bool) -> None:
        """Take account of an object's word and the one behind it, one of which may name the other."""
        if name := _name_of(first, second):
            (self.places_named if aside else self.names)[name] = None
        if (
            second.value is not None
            and second.value.keys[0][:3] in {"amo", "id:", "acc"}
            and not second.sense.month
        ):
            self.numbered = True

    def _value(self, token: Token, *, placed: bool) -> None:
        value = token.value
        if value is None:
            return
        is_path = value.keys[0].startswith("path:")
        (self.places if placed and is_path else self.keys).update(dict.fromkeys(value.keys))
        if not token.sense.month and token.sense.number < 0:
            relative = is_path and any(key.startswith("relative:") for key in value.keys[1:2])
            words = [*words_of_value(value.text, value.keys[0]), *(words_in(value.text) if relative else ())]
            self.parts.update(dict.fromkeys(words))
            self.scope |= vocabulary().scope_of(words_in(value.text)) & SPECIAL

    def _word(self, token: Token, before: int, *, aside: bool) -> None:
        sense, text = token.sense, token.text
        if not token.quoted:
            self.kinds |= sense.kinds
            self.scope |= sense.scope
            if token.marks & _FUNCTION:
                return
        self.words[text] = None
        parts = None if sense.kinds or sense.strict else vocabulary().compound(text)
        if parts is not None:
            self.words.update(dict.fromkeys(parts))
            self.kinds |= vocabulary().kinds_of(parts[1])
            self.names[parts[0]] = None
        elif token.quoted or (token.named and sense.strict) or not (token.marks & ~_NAMING or sense.known()):
            if len(text) > 1 or text.isascii():
                (self.places_named if aside else self.names)[text] = None
            if not (token.owned or before & _ABOUT):
                self.parties[text] = None


def _may_name(token: Token) -> bool:
    """Return whether a word may name the object beside it, or be named by it."""
    sense = token.sense
    return bool(sense.kinds or ((sense.imperatives or sense.verbs) and sense.strict and not token.marks))


def _name_of(first: Token, second: Token) -> str:
    """Return which of an object's word and the one behind it is the name of the other, if any is.

    The ``branch release`` and the ``test database`` have names; ``log files`` and ``the file again`` have none.
    """
    if second.sign or second.quoted or second.value is not None:
        return ""
    known = vocabulary()
    kinds, others = first.sense.kinds, second.sense.kinds
    if known.widened(kinds) & others or known.widened(others) & kinds:
        return ""
    if kinds & known.nameable and not second.marks & ~_NAMING:
        return second.text
    return first.text if others else ""


def direct_kinds(part: Sequence[Token], verbs: Sequence[int]) -> int:
    """Return the kinds of the objects that stand with the verb, before anything that a preposition introduces."""
    kinds = 0
    aside = False
    for at, token in enumerate(part):
        aside = bool(token.marks & (_PLACED | _ABOUT) and kinds) or (aside and not token.marks & _TOWARD)
        if token.sense.kinds and not aside and not token.quoted and at not in verbs:
            narrows = at + 1 < len(part) and _name_of(token, part[at + 1]) == token.text
            kinds |= 0 if narrows else token.sense.kinds
    return kinds


def words_of_value(text: str, key: str) -> list[str]:
    """Return the words that a value is known by: of a path its last part's, of a host all but its ending."""
    shape, _, form = key.partition(":")
    if shape == "path":
        return list(words_in(without_suffix(form.rpartition("/")[2]) or form))
    if shape in {"host", "url", "mail"}:
        return [word for word in words_in(form) if word not in _COMMON_LABELS]
    return list(words_in(text))
