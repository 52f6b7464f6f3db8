"""The objects of a clause: which words and values name them, of which kind and scope they are, and where they are."""

from __future__ import annotations

from safetydrift.authority.text import words_in
from safetydrift.authority.values import without_suffix
from safetydrift.authority.vocabulary import MARK_BITS, SCOPE_BITS, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.authority.reading import Token

_ABOUT, _TOWARD, _FUNCTION = (MARK_BITS[name] for name in ("about", "toward", "function"))
_PLACED = MARK_BITS["source"] | MARK_BITS["place"]
_PREPOSITION = _PLACED | _ABOUT
_NO_NAME = sum(bit for name, bit in MARK_BITS.items() if name not in {"made", "task", "light"})
MAX_WORDS = 512
"""Words and values of a clause that are kept."""


class Objects:
    """What a clause is about.

    Attributes
    ----------
    scope, kinds, numbered
        Scopes and kinds of objects, as bit masks; whether one of them is named by a number.
    words, parties, names, places_named
        Its words; those that may name whom the act is for; those that name something, as they are not in the lexicon or
        stand beside its kind; those that name where it is.
    keys, parts, places
        Keys of its values, and the words that these consist of; keys of paths that say where its objects are.
    """

    __slots__ = ("keys", "kinds", "names", "numbered", "parties", "parts", "places", "places_named", "scope", "words")

    def __init__(self) -> None:
        self.scope = self.kinds = 0
        self.numbered = False
        self.words: dict[str, None] = {}
        self.parties: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self.keys: dict[str, None] = {}
        self.parts: dict[str, None] = {}
        self.places: dict[str, None] = {}
        self.places_named: dict[str, None] = {}

    def add(self, other: Objects) -> None:
        """Take over what other objects are known by."""
        self.kinds |= other.kinds
        self.scope |= other.scope
        self.numbered = self.numbered or other.numbered
        for name in ("words", "parties", "names", "keys", "parts", "places", "places_named"):
            getattr(self, name).update(getattr(other, name))

    def describe(self, tokens: Iterable[Token], verbs: Iterable[int] = ()) -> None:
        """Add what words and values name; of verbs only the words and the scope."""
        before = 0
        placed = aside = False
        modifier: Token | None = None
        for at, token in enumerate(tokens):
            if modifier is not None and at not in verbs and (name := _name_of(modifier, token)):
                (self.places_named if placed or aside else self.names)[name] = None
            self.numbered = self.numbered or (modifier is not None and _is_number(token))
            modifier = token if at not in verbs and _may_name(token) else None
            if token.sign or len(self.words) + len(self.keys) > MAX_WORDS:
                continue
            if at in verbs:
                self.scope |= token.sense.scope
                self.words[token.text] = None
            elif token.value is not None:
                self._value(token, placed=placed)
            else:
                self._word(token, before, placed=placed or aside)
            before = token.marks
            placed = bool(before & _PLACED) or (placed and token.value is None and not before & _TOWARD)
            aside = bool(before & (_TOWARD | _ABOUT)) or (aside and not before & _PLACED)

    def _value(self, token: Token, *, placed: bool) -> None:
        value = token.value
        if value is None:
            return
        is_place = placed and value.keys[0][:5] == "path:"
        (self.places if is_place else self.keys).update(dict.fromkeys(value.keys))
        if not token.sense.month and token.sense.number < 0:
            self.parts.update(dict.fromkeys(words_of_value(value.text, value.keys[0])))
            if value.keys[0].startswith("path:") and value.keys[1:2] and value.keys[1].startswith("relative:"):
                self.parts.update(dict.fromkeys(words_in(value.text)))
            self.scope |= scope_of_words(words_in(value.text))

    def _word(self, token: Token, before: int, *, placed: bool) -> None:
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
            self.kinds |= kinds_of_word(parts[1])
            self.names[parts[0]] = None
        elif token.quoted or (token.named and sense.strict) or not (token.marks & _NO_NAME or sense.known()):
            (self.places_named if placed else self.names)[text] = None
            if not (token.owned or before & _ABOUT):
                self.parties[text] = None


def _is_number(token: Token) -> bool:
    """Return whether a value is a number that may name one of several things: ``issue 118``."""
    return token.value is not None and not token.sense.month and token.value.keys[0][:3] in {"amo", "id:", "acc"}


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


_NAMING = sum(MARK_BITS[name] for name in ("light", "made", "task", "follow"))


def direct_kinds(part: Sequence[Token], verbs: Iterable[int]) -> int:
    """Return the kinds of the objects that stand with the verb, before anything that a preposition introduces."""
    kinds = 0
    aside = False
    for at, token in enumerate(part):
        aside = bool(token.marks & _PREPOSITION and kinds) or (aside and not token.marks & _TOWARD)
        if token.sense.kinds and not aside and not token.quoted and at not in verbs:
            narrows = at + 1 < len(part) and _name_of(token, part[at + 1]) == token.text
            kinds |= 0 if narrows else token.sense.kinds
    return kinds


def words_of_value(text: str, key: str) -> list[str]:
    """Return the words by which a value may be known: of a path those of its last part, of a host without its ending."""
    shape, _, form = key.partition(":")
    if shape == "path":
        return list(words_in(without_suffix(form.rpartition("/")[2]) or form))
    if shape in {"host", "url", "mail"}:
        return [word for word in words_in(form) if word not in _COMMON_LABELS]
    return list(words_in(text))


_COMMON_LABELS = frozenset(
    ("com", "org", "net", "www", "http", "https", "gmail", "outlook", "hotmail", "yahoo", "html", "index")
)


def kinds_of_word(word: str) -> int:
    """Return the kinds of objects that a word stands for in any language."""
    known = vocabulary()
    return known.sense(word, known.languages_of(word)).kinds | known.kinds_of_program(word)


def scope_of_words(words: Iterable[str]) -> int:
    """Return the scopes that a name's words stand for: ``prod`` in ``db-prod-1``."""
    known = vocabulary()
    scope = 0
    for word in words:
        scope |= known.sense(word, known.languages_of(word)).scope
    return scope & _NAMED


_NAMED = SCOPE_BITS["force"] | SCOPE_BITS["bypass"] | SCOPE_BITS["production"] | SCOPE_BITS["admin"] | SCOPE_BITS["public"]
