"""The words of the lexicon: what a word can mean in which language, and what follows for acts on kinds of objects.

`safetydrift.authority.compiling` makes one data file of the reviewed lexicon; it is read when a message is first heard.
"""

from __future__ import annotations

from functools import lru_cache
from os.path import dirname, join

import msgspec

from safetydrift.effects.operations import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LEXICON_FORMAT = "safetydrift.lexicon/1"
DATA = join(dirname(__file__), "lexicon", "lexicon.json")  # noqa: PTH118, PTH120  # pathlib takes longer to import than this

ACTION_NAMES = tuple(ACTIONS)
ACTION_BITS = {name: 1 << index for index, name in enumerate(ACTION_NAMES)}
GROUPS = ("alter", "handle", "include")
"""Verbs of many meanings; the lexicon says which actions they ask for, and which they forbid when they are negated."""
VERB_BITS = {**ACTION_BITS, **{name: 1 << len(ACTIONS) + index for index, name in enumerate(GROUPS)}}

SENSES = (
    "verb",
    "imperative",
    "noun",
    "third",
    "gerund",
    "participle",
    "refused",
    "goal",
    "kind",
    "scope",
    "mark",
    "number",
    "month",
    "phrase",
)
"""What an entry of the lexicon says of a word: an act in any place, an act at the head of its clause, the noun of an act,
inflected forms, a form that already says no, a goal, an object, a scope, a grammatical mark, a number, a month."""
(VERB, IMPERATIVE, NOUN, THIRD, GERUND, PARTICIPLE, REFUSED, GOAL, KIND, SCOPE, MARK, NUMBER, MONTH, PHRASE) = range(
    len(SENSES)
)
MARKS = (
    "function",
    "determiner",
    "refers",
    "person",
    "subject",
    "relative",
    "polite",
    "want",
    "infinitive",
    "adverb",
    "connect",
    "contrast",
    "except",
    "instead",
    "negation",
    "negation_after",
    "forget",
    "condition",
    "question",
    "howto",
    "light",
    "follow",
    "task",
    "source",
    "consent",
    "until",
    "provisional",
    "assent",
    "dissent",
    "made",
    "report",
    "gerund",
    "be",
    "after_noun",
    "about",
    "place",
    "toward",
    "reply",
    "plural",
    "find",
    "quoted",
    "generic",
)
MARK_BITS = {name: 1 << index for index, name in enumerate(MARKS)}
SCOPES = (
    "all",
    "only",
    "one",
    "temporary",
    "aged",
    "force",
    "bypass",
    "public",
    "admin",
    "production",
    "staging",
    "rest",
)
SCOPE_BITS = {name: 1 << index for index, name in enumerate(SCOPES)}
_NAMEABLE = ("file", "folder", "branch", "namespace", "channel", "bucket", "repository", "table", "group", "service")
"""Kinds of objects behind whose word a name may stand: ``the branch release``."""
FEWEST = 2
"""Letters of the shortest stem."""
LONGEST = 6
"""Letters of the longest word that is looked for in a script without blanks."""
_LONGEST_STEM = 24
_SEMITIC = ("\u0590", "\u08ff")
_SHORTEST_COMPOUND = 8
_SHORTEST_PART = 3
_SHORTEST_WITH_CLITIC = 5


class Table(msgspec.Struct, frozen=True, gc=False):
    """The entries of one language: by word, by stem, and phrases as their further words with what they mean."""

    words: dict[str, list[int]]
    stems: dict[str, list[int]]
    phrases: list[tuple[str, int]]


class Lexicon(msgspec.Struct, frozen=True, gc=False):
    """The data file, see `safetydrift.authority.compiling`; a language is decoded when it is first spoken."""

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


class Sense:
    """What a word means in some languages; sets are bit masks.

    Attributes
    ----------
    verbs, imperatives, nouns, thirds, gerunds, participles, refused
        Actions that it names in one of these forms.
    goals, kinds, scope, marks
        Goals, kinds of objects, scopes and grammatical marks that it stands for.
    number
        The number that it is, or -1.
    month
        1 to 12, or 0.
    strict, acts
        Whether its language puts the verb of a request first; whether it names an act in any form.
    phrases
        Phrases that it may begin: their further words, and what they mean.
    """

    __slots__ = (
        "acts",
        "gerunds",
        "goals",
        "imperatives",
        "kinds",
        "marks",
        "month",
        "nouns",
        "number",
        "participles",
        "phrases",
        "refused",
        "scope",
        "strict",
        "thirds",
        "verbs",
    )

    def __init__(self) -> None:
        self.verbs = self.imperatives = self.nouns = self.thirds = self.gerunds = self.participles = self.refused = 0
        self.goals = self.kinds = self.scope = self.marks = self.month = 0
        self.number: float = -1
        self.phrases: list[tuple[list[str], int]] = []
        self.strict = self.acts = False

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
        self.strict = frozenset(lexicon.strict)
        self.kind_bits = {name: 1 << index for index, name in enumerate(lexicon.kinds)}
        self.goal_bits = {name: 1 << index for index, name in enumerate(lexicon.goals)}
        self.parents = {self.kind_bits[kind]: self.mask_of_kinds(above) for kind, above in lexicon.kinds.items()}
        self.derived = self._derived()
        self.nameable = self.mask_of_kinds(list(_NAMEABLE))
        groups = lexicon.groups
        self._groups = [
            (VERB_BITS[name], mask_of(groups[name]), mask_of(groups.get(f"not {name}", groups[name]))) for name in GROUPS
        ]
        self._suffixes = _inverse(lexicon.suffixes, self.kind_bits)
        self._places = _inverse(lexicon.places, self.kind_bits)
        self._programs = _inverse(lexicon.programs, self.kind_bits)
        self._tables: dict[int, Table] = {}
        self.languages_of = lru_cache(8192)(self._languages_of)
        self.sense = lru_cache(8192)(self._sense)
        self.asked = lru_cache(4096)(self._asked)

    def mask_of_kinds(self, names: list[str]) -> int:
        """Return the bits of kinds."""
        return sum(self.kind_bits[name] for name in set(names))

    def _derived(self) -> tuple[tuple[int, int, int], ...]:
        """Return (action, kind, actions that the verb asks for beside this object)."""
        rows = []
        for key, actions in self.lexicon.derived.items():
            action, _, kind = key.partition(".")
            rows.append((VERB_BITS[action], self.kind_bits[kind], mask_of(actions)))
        return tuple(rows)

    def _asked(self, verbs: int, kinds: int) -> int:
        """Return the actions that verbs ask for beside objects of some kinds."""
        actions = self._expanded(verbs, 0)
        found = actions
        for action, kind, more in self.derived:
            if (actions | verbs) & action and kinds & kind:
                found |= more
        return found

    def denied(self, verbs: int, kinds: int) -> int:
        """Return the actions that negated verbs forbid beside objects of some kinds."""
        return self.asked(verbs, kinds) | self._expanded(verbs, 1)

    def _expanded(self, verbs: int, negated: int) -> int:
        for bit, *actions in self._groups:
            if verbs & bit:
                verbs = verbs & ~bit | actions[negated]
        return verbs

    def all_changes(self) -> int:
        """Return the actions that change anything."""
        return mask_of(ACTION_NAMES) & ~ACTION_BITS["read"]

    def specific(self, kinds: int) -> int:
        """Return kinds without those of which others are a case."""
        above = 0
        for bit, parents in self.parents.items():
            if kinds & bit:
                above |= parents
        return kinds & ~above

    def widened(self, kinds: int) -> int:
        """Return kinds with those that they are a case of."""
        for bit, parents in self.parents.items():
            if kinds & bit:
                kinds |= parents
                for above, grandparents in self.parents.items():
                    if parents & above:
                        kinds |= grandparents
        return kinds

    def means_of(self, asked: int, goals: int) -> dict[int, str]:
        """Return the actions that are ordinary means of actions and goals, with where: see the lexicon."""
        names = [*actions_of(asked), *[name for name, bit in self.goal_bits.items() if goals & bit]]
        found: dict[int, str] = {}
        for name in names:
            for means in self.lexicon.means[name]:
                action, _, within = means.partition("@")
                bit = ACTION_BITS[action]
                found[bit] = within if bit not in found else found[bit] and within
        return found

    def kinds_of_path(self, parts: tuple[str, ...]) -> int:
        """Return the kinds of a file by the suffix of its name and the folders that it is in."""
        kinds = 0
        for part in parts:
            kinds |= self._places.get(part.lower().lstrip("."), 0)
        suffix = parts[-1].rpartition(".")[2].lower() if parts and "." in parts[-1] else ""
        return kinds | self._suffixes.get(suffix, 0) | (self.kind_bits["file"] if suffix else self.kind_bits["folder"])

    def kinds_of_program(self, word: str) -> int:
        """Return the kinds of objects that a program works on."""
        return self._programs.get(word, 0)

    # -- words -------------------------------------------------------------------------------------------------

    def table(self, language: int) -> Table:
        """Return the entries of a language."""
        table = self._tables.get(language)
        if table is None:
            table = self._tables[language] = msgspec.json.decode(self.lexicon.tables[language], type=Table)
        return table

    def _languages_of(self, word: str) -> int:
        """Return the languages that know a word, as bits."""
        words, stems = self.lexicon.known, self.lexicon.known_stems
        found = words.get(word, 0)
        for length in range(FEWEST, min(len(word), _LONGEST_STEM) + 1):
            found |= stems.get(word[:length], 0)
        if not found and (bare := self._bare(word)):
            return self._languages_of(bare)
        return found

    def _bare(self, word: str) -> str:
        """Return a word without what its language writes at it: prefixes in Arabic and Hebrew, clitics; else nothing."""
        if len(word) >= _SHORTEST_WITH_CLITIC and word.isascii():
            for clitic in self.lexicon.clitics:
                if word.endswith(clitic) and word[: -len(clitic)] in self.lexicon.known:
                    return word[: -len(clitic)]
        if word and _SEMITIC[0] <= word[0] <= _SEMITIC[1]:
            for length in (1, 2):
                bare = word[length:]
                if len(bare) >= FEWEST and set(word[:length]) <= set(self.lexicon.prefixes) and bare in self.lexicon.known:
                    return bare
        return ""

    def _sense(self, word: str, active: int) -> Sense:
        """Return what a word means in the languages of a mask."""
        sense = Sense()
        languages = self.languages_of(word) & active
        if word not in self.lexicon.known and (bare := self._bare(word)):
            word = bare
        number = self.lexicon.compounds if active else ()
        for language in range(len(self.lexicon.languages)):
            if languages >> language & 1 or (language in number and active >> language & 1):
                self._read(sense, word, language)
        return sense.settle()

    def _read(self, sense: Sense, word: str, language: int) -> None:
        table = self.table(language)
        codes = [*table.words.get(word, ())]
        for length in range(FEWEST, min(len(word), _LONGEST_STEM) + 1):
            codes += table.stems.get(word[:length], ())
        sense.strict = sense.strict or (bool(codes) and language in self.strict)
        for code in codes:
            kind, item = unpacked(code)
            if kind == PHRASE:
                rest, meaning = table.phrases[item]
                sense.phrases.append((rest.split(), meaning))
            else:
                self.add(sense, kind, item)

    def add(self, sense: Sense, kind: int, item: int) -> None:
        """Add one meaning to a sense."""
        if kind == NUMBER:
            sense.number = self.lexicon.numbers[item]
        elif kind == MONTH:
            sense.month = item
        else:
            name = _FIELDS[kind]
            setattr(sense, name, getattr(sense, name) | 1 << item)

    def compound(self, word: str) -> tuple[str, str] | None:
        """Return the two parts of a compound whose second part is an object, or nothing."""
        if len(word) < _SHORTEST_COMPOUND or not self.lexicon.compounds:
            return None
        for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART):
            languages = self.lexicon.known.get(word[cut:], 0)
            if any(languages >> language & 1 for language in self.lexicon.compounds):
                mask = sum(1 << language for language in self.lexicon.compounds)
                if self.sense(word[cut:], mask).kinds:
                    return word[:cut], word[cut:]
        return None

    def pieces(self, run: str) -> Iterator[str]:
        """Yield the known words of a run of characters without blanks, and what stands between them."""
        at = unknown = 0
        while at < len(run):
            for length in range(min(LONGEST, len(run) - at), 0, -1):
                if run[at : at + length] in self.lexicon.known:
                    if unknown < at:
                        yield run[unknown:at]
                    yield run[at : at + length]
                    at = unknown = at + length
                    break
            else:
                at += 1
        if unknown < at:
            yield run[unknown:at]


_FIELDS = {
    VERB: "verbs",
    IMPERATIVE: "imperatives",
    NOUN: "nouns",
    THIRD: "thirds",
    GERUND: "gerunds",
    PARTICIPLE: "participles",
    REFUSED: "refused",
    GOAL: "goals",
    KIND: "kinds",
    SCOPE: "scope",
    MARK: "marks",
}


def mask_of(actions: list[str] | tuple[str, ...]) -> int:
    """Return the bits of actions."""
    return sum(ACTION_BITS[name] for name in set(actions))


def actions_of(mask: int) -> tuple[str, ...]:
    """Return the actions of a mask, in the order of `ACTIONS`."""
    return tuple([name for name, bit in ACTION_BITS.items() if mask & bit])


def packed(kind: int, item: int) -> int:
    """Return an entry as one number."""
    return item << 4 | kind


def unpacked(code: int) -> tuple[int, int]:
    """Return the kind of meaning and the item of an entry."""
    return code & 15, code >> 4


def _inverse(table: dict[str, list[str]], bits: dict[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, words in table.items():
        for word in words:
            found[word] = found.get(word, 0) | bits[kind]
    return found


@lru_cache(1)
def vocabulary() -> Vocabulary:
    """Return the shipped vocabulary, read when it is first asked for."""
    with open(DATA, "rb") as file:  # noqa: PTH123  # as above
        return Vocabulary(msgspec.json.decode(file.read(), type=Lexicon))
