"""The words of the lexicon: what a word can mean in which language, and what follows for acts on kinds of objects.

`safetydrift.authority.compiling` makes one data file of the reviewed lexicon; it is read when a message is first
heard. Sets of actions, kinds, marks and scopes are bit masks.
"""

from __future__ import annotations

from functools import lru_cache
from os.path import dirname, join

import msgspec

from safetydrift.authority.text import names
from safetydrift.effects.operations import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEXICON_FORMAT = "safetydrift.lexicon/1"
DATA = join(dirname(__file__), "lexicon", "lexicon.json")  # noqa: PTH118, PTH120  # importing pathlib takes longer than this

ACTION_BITS = {name: 1 << index for index, name in enumerate(ACTIONS)}
GROUPS = names("alter handle include draft")
"""Verbs of many meanings; the lexicon says which actions they ask for, and which they forbid when they are
negated."""
VERB_BITS = {name: 1 << index for index, name in enumerate((*ACTIONS, *GROUPS))}
SENSES = names(
    "verbs imperatives nouns thirds gerunds participles refused goals kinds scope marks number month phrases"
)
"""What an entry says of a word: an act in any place, an act at the head of its clause, the noun of an act,
inflected forms, a form that already says no, a goal, a kind of object, a scope, a grammatical mark, a number, a
month, the start of a phrase."""
MARKS = names(
    "function determiner refers person subject relative polite want infinitive adverb connect contrast except instead "
    "negation negation_after forget condition question howto light follow task source consent until provisional assent "
    "dissent made report gerund be causes after_noun about place toward reply plural find quoted generic repeat tells "
    "switched"
)
"""The parts that words play in a sentence, as far as requests are told apart by them."""
SCOPES = names("all only one temporary aged force bypass public admin production staging rest")
_MARK_BITS = {name: 1 << index for index, name in enumerate(MARKS)}
_SCOPE_BITS = {name: 1 << index for index, name in enumerate(SCOPES)}
_NAMEABLE = names("file folder branch namespace channel bucket repository table group service")
"""Kinds of objects behind whose word a name may stand: ``the branch release``."""
_FEWEST, _LONGEST, _LONGEST_STEM = 2, 6, 24
"""Letters of the shortest stem, of the longest word in a script without blanks, and of the longest stem."""
_SHORTEST_COMPOUND, _SHORTEST_PART, _SHORTEST_WITH_CLITIC = 8, 3, 5
_SEMITIC = ("\u0590", "\u08ff")


@lru_cache(256)
def mark(*wanted: str) -> int:
    """Return marks as a mask."""
    return sum(_MARK_BITS[name] for name in wanted)


def scope(*wanted: str) -> int:
    """Return scopes as a mask."""
    return sum(_SCOPE_BITS[name] for name in wanted)


def actions(*wanted: str) -> int:
    """Return actions as a mask."""
    return sum(ACTION_BITS[name] for name in set(wanted))


def named_actions(mask: int) -> tuple[str, ...]:
    """Return the actions of a mask by name."""
    return tuple([name for name, bit in ACTION_BITS.items() if mask & bit])


def packed(kind: int, item: int) -> int:
    """Return an entry of the lexicon, one of `SENSES` and its item, as one number."""
    return item << 4 | kind


class Table(msgspec.Struct, frozen=True, gc=False):
    """The entries of one language: by word, by stem, and phrases as their further words with what they mean."""

    words: dict[str, list[int]]
    stems: dict[str, list[int]]
    phrases: list[tuple[str, int]]


class Lexicon(msgspec.Struct, frozen=True, gc=False):
    """The data file; the table of a language is decoded when it is first spoken."""

    format: str
    languages: list[str]
    strict: list[int]
    compounds: list[int]
    prefixes: str
    clitics: list[str]
    known: dict[str, int]
    known_stems: dict[str, int]
    tables: list[msgspec.Raw]
    numbers: list[float]
    kinds: dict[str, list[str]]
    goals: list[str]
    suffixes: dict[str, list[str]]
    places: dict[str, list[str]]
    programs: dict[str, list[str]]
    derived: dict[str, list[str]]
    groups: dict[str, list[str]]
    means: dict[str, list[str]]


class Sense(msgspec.Struct):
    """What a word means in some languages, see `SENSES`.

    `number` is -1 for what is no number; `strict` says whether a language that knows the word puts the verb of a
    request first, and `acts` whether it names an act in any form.
    """

    verbs: int = 0
    imperatives: int = 0
    nouns: int = 0
    thirds: int = 0
    gerunds: int = 0
    participles: int = 0
    refused: int = 0
    goals: int = 0
    kinds: int = 0
    scope: int = 0
    marks: int = 0
    number: float = -1
    month: int = 0
    phrases: list[tuple[list[str], int]] = msgspec.field(default_factory=list)
    strict: bool = False
    acts: bool = False

    def settle(self) -> Sense:
        """Note whether it names any act, and return it."""
        forms = self.verbs | self.imperatives | self.nouns | self.thirds | self.gerunds | self.participles
        self.acts = bool(forms | self.refused | self.goals)
        return self

    def known(self) -> int:
        """Return whether the lexicon has the word as an object, a scope or a verb."""
        return self.verbs | self.imperatives | self.kinds | self.scope


class Vocabulary:
    """The lexicon, ready to be asked.

    Parameters
    ----------
    lexicon
        The data.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.kind_bits = {name: 1 << index for index, name in enumerate(lexicon.kinds)}
        self.goal_bits = {name: 1 << index for index, name in enumerate(lexicon.goals)}
        self.kinds = lru_cache(256)(self._kinds)
        self._parents = {self.kind_bits[kind]: self.kinds(*above) for kind, above in lexicon.kinds.items()}
        self.nameable = self.kinds(*_NAMEABLE)
        split = [(key.partition("."), actions(*more)) for key, more in lexicon.derived.items()]
        self._derived = [(VERB_BITS[verb], self.kind_bits[kind], more) for (verb, _, kind), more in split]
        asked = {name: actions(*lexicon.groups[name]) for name in GROUPS}
        denied = {name: actions(*lexicon.groups.get(f"not {name}", lexicon.groups[name])) for name in GROUPS}
        self._groups = [(VERB_BITS[name], (asked[name], denied[name])) for name in GROUPS]
        self._suffixes, self._places, self._programs = (
            self._inverse(table) for table in (lexicon.suffixes, lexicon.places, lexicon.programs)
        )
        self._compounding = sum(1 << language for language in lexicon.compounds)
        self._tables: dict[int, Table] = {}
        self.languages_of = lru_cache(8192)(self._languages_of)
        self.sense = lru_cache(8192)(self._sense)
        self.asked = lru_cache(4096)(self._asked)
        self.denied = lru_cache(4096)(self._denied)
        self.widened = lru_cache(4096)(self._widened)

    def _kinds(self, *wanted: str) -> int:
        """Return kinds of objects as a mask."""
        return sum(self.kind_bits[name] for name in set(wanted))

    def _inverse(self, table: dict[str, list[str]]) -> dict[str, int]:
        found: dict[str, int] = {}
        for kind, words in table.items():
            for word in words:
                found[word] = found.get(word, 0) | self.kind_bits[kind]
        return found

    # -- what follows from verbs and kinds ---------------------------------------------------------------------

    def _asked(self, verbs: int, kinds: int) -> int:
        """Return the actions that verbs ask for beside objects of some kinds."""
        found = self._expanded(verbs, 0)
        own, kinds = verbs | self._expanded(verbs & ~VERB_BITS["draft"], 0), self.widened(kinds)
        for verb, kind, more in self._derived:
            if own & verb and kinds & kind:
                found |= more
        return found

    def _denied(self, verbs: int, kinds: int) -> int:
        """Return the actions that negated verbs forbid beside objects of some kinds."""
        return self._asked(verbs, kinds) | self._expanded(verbs, 1)

    def _expanded(self, verbs: int, negated: int) -> int:
        for bit, meant in self._groups:
            if verbs & bit:
                verbs = verbs & ~bit | meant[negated]
        return verbs

    def means_of(self, asked: int, goals: int) -> dict[int, str]:
        """Return the actions that are ordinary means of actions and goals, with where: see the lexicon."""
        ends = [*named_actions(asked), *[name for name, bit in self.goal_bits.items() if goals & bit]]
        found: dict[int, str] = {}
        for means in [means for end in ends for means in self.lexicon.means[end]]:
            action, _, within = means.partition("@")
            bit = ACTION_BITS[action]
            found[bit] = within if bit not in found else found[bit] and within
        return found

    def specific(self, kinds: int) -> int:
        """Return kinds without those of which others are a case."""
        for bit, parents in self._parents.items():
            if kinds & bit:
                kinds &= ~parents
        return kinds

    def _widened(self, kinds: int) -> int:
        """Return kinds with those that they are a case of."""
        wider = kinds
        for bit, parents in self._parents.items():
            wider |= parents if kinds & bit else 0
        return wider if wider == kinds else self._widened(wider)

    def kinds_of_path(self, parts: tuple[str, ...]) -> int:
        """Return the kinds of a file by the suffix of its name and the folders that it is in."""
        found = 0
        for part in parts:
            found |= self._places.get(part.lower().lstrip("."), 0)
        suffix = parts[-1].rpartition(".")[2].lower() if parts and "." in parts[-1] else ""
        return found | self._suffixes.get(suffix, 0) | self.kinds("file" if suffix else "folder")

    def kinds_of(self, word: str) -> int:
        """Return the kinds of objects that a word stands for in any language, or a program works on."""
        return self.sense(word, self.languages_of(word)).kinds | self._programs.get(word, 0)

    def scope_of(self, words: Iterable[str]) -> int:
        """Return the scopes that words stand for in any language: ``prod`` in ``db-prod-1``."""
        found = 0
        for word in words:
            found |= self.sense(word, self.languages_of(word)).scope
        return found

    # -- words -------------------------------------------------------------------------------------------------

    def _table(self, language: int) -> Table:
        if language not in self._tables:
            self._tables[language] = msgspec.json.decode(self.lexicon.tables[language], type=Table)
        return self._tables[language]

    def _languages_of(self, word: str) -> int:
        """Return the languages that know a word, as bits."""
        found = self.lexicon.known.get(word, 0)
        for length in range(_FEWEST, min(len(word), _LONGEST_STEM) + 1):
            found |= self.lexicon.known_stems.get(word[:length], 0)
        bare = "" if found else self._bare(word)
        return self._languages_of(bare) if bare else found

    def _bare(self, word: str) -> str:
        """Return a word without prefixes (Arabic, Hebrew) or clitics, if the lexicon has it like that."""
        known = self.lexicon.known
        cuts = []
        if len(word) >= _SHORTEST_WITH_CLITIC and word.isascii():
            cuts = [word[: -len(clitic)] for clitic in self.lexicon.clitics if word.endswith(clitic)]
        elif word and _SEMITIC[0] <= word[0] <= _SEMITIC[1]:
            cuts = [word[length:] for length in (1, 2) if set(word[:length]) <= set(self.lexicon.prefixes)]
        return next((bare for bare in cuts if len(bare) >= _FEWEST and bare in known), "")

    def _sense(self, word: str, active: int) -> Sense:
        """Return what a word means in the languages of a mask."""
        sense = Sense()
        languages = (self.languages_of(word) | self._compounding) & active
        if word not in self.lexicon.known:
            word = self._bare(word) or word
        for language in range(len(self.lexicon.languages)):
            if languages >> language & 1:
                self._read(sense, word, language)
        return sense.settle()

    def _read(self, sense: Sense, word: str, language: int) -> None:
        table = self._table(language)
        codes = [*table.words.get(word, ())]
        for length in range(_FEWEST, min(len(word), _LONGEST_STEM) + 1):
            codes += table.stems.get(word[:length], ())
        sense.strict = sense.strict or (bool(codes) and language in self.lexicon.strict)
        for code in codes:
            if SENSES[code & 15] == "phrases":
                rest, meaning = table.phrases[code >> 4]
                sense.phrases.append((rest.split(), meaning))
            else:
                self.add(sense, code)

    def add(self, sense: Sense, code: int) -> None:
        """Add the meaning of an entry to a sense."""
        name, item = SENSES[code & 15], code >> 4
        if name == "number":
            sense.number = self.lexicon.numbers[item]
        elif name == "month":
            sense.month = item
        else:
            setattr(sense, name, getattr(sense, name) | 1 << item)

    def compound(self, word: str) -> tuple[str, str] | None:
        """Return the two parts of a compound whose second part is an object, or nothing."""
        if len(word) >= _SHORTEST_COMPOUND:
            for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART):
                known = self.lexicon.known.get(word[cut:], 0) & self._compounding
                if known and self.sense(word[cut:], known).kinds:
                    return word[:cut], word[cut:]
        return None

    def pieces(self, run: str) -> Iterator[str]:
        """Yield the known words of a run of characters without blanks, and what stands between them."""
        at = unknown = 0
        while at < len(run):
            lengths = range(min(_LONGEST, len(run) - at), 0, -1)
            length = next((length for length in lengths if run[at : at + length] in self.lexicon.known), 0)
            if length and unknown < at:
                yield run[unknown:at]
            if length:
                yield run[at : at + length]
                unknown = at + length
            at += length or 1
        if unknown < at:
            yield run[unknown:at]


@lru_cache(1)
def vocabulary() -> Vocabulary:
    """Return the shipped vocabulary, read when it is first asked for."""
    with open(DATA, "rb") as file:  # noqa: PTH123  # as above
        return Vocabulary(msgspec.json.decode(file.read(), type=Lexicon))
