"""What a message asks for, clause by clause: which acts on which objects, which it forbids, and which it only speaks about.

A verb asks for an act where it heads a clause, as verbs of requests do; not in a quotation, a question about the act, a
condition, somebody else's words, or the description of something to be made.
"""

from __future__ import annotations

from safetydrift.authority.reading import is_break, is_comma, is_question, read_message, tokens_of
from safetydrift.authority.text import words_in
from safetydrift.authority.values import without_suffix
from safetydrift.authority.vocabulary import ACTION_BITS, MARK_BITS, SCOPE_BITS, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.authority.reading import Message, Token

_M = MARK_BITS
_INTRODUCES = _M["polite"] | _M["infinitive"] | _M["negation"] | _M["instead"] | _M["contrast"] | _M["connect"] | _M["forget"]
_PARTS = _M["connect"] | _M["contrast"] | _M["except"]
_SAYS_NO = _M["negation"]
_NO_CONTENT = _M["function"]
_NO_NAME = sum(_M.values()) & ~_M["made"] & ~_M["task"] & ~_M["light"]
_PREPOSITION = _M["source"] | _M["about"] | _M["place"]
_TELLS = ACTION_BITS["send"]
_SPEAKS = ACTION_BITS["send"] | ACTION_BITS["publish"] | ACTION_BITS["edit"]
_READ = ACTION_BITS["read"]
_RUN = ACTION_BITS["run"]
_EDIT = ACTION_BITS["edit"]
_REACH, _FAR = 5, 1000
"""Words between a negation or a light verb and what it belongs to."""
MAX_WORDS = 512
"""Words and values of a clause that are kept."""


class Clause:
    """One act, or several on the same objects, that a message asks for, forbids or speaks about.

    Attributes
    ----------
    asked, refused, goals
        Actions that are asked for and forbidden, and goals, as bit masks.
    provisional
        Whether what is forbidden is forbidden for now.
    question, refers, excepted
        Whether it asks about the act alone; whether its object is that of the clause before; whether it is an exception
        from the clause before.
    scope, kinds
        Scopes and kinds of objects, as bit masks.
    words, parties, names
        Its words; those that may name whom the act is for; those that are not in the lexicon and so name something.
    keys, parts, places
        Keys of its values, and the words that these consist of; keys of paths that say where its objects are.
    person
        Whether it speaks of a person by a pronoun.
    tokens
        The tokens that it was made of.
    verbs
        Positions of its verbs among the tokens.
    """

    __slots__ = (
        "asked",
        "excepted",
        "goals",
        "keys",
        "kinds",
        "names",
        "parties",
        "parts",
        "person",
        "places",
        "provisional",
        "question",
        "refers",
        "refused",
        "scope",
        "tokens",
        "verbs",
        "words",
    )

    def __init__(self) -> None:
        self.asked = self.refused = self.goals = self.scope = self.kinds = 0
        self.provisional = self.question = self.refers = False
        self.words: dict[str, None] = {}
        self.parties: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self.keys: dict[str, None] = {}
        self.parts: dict[str, None] = {}
        self.places: dict[str, None] = {}
        self.excepted = self.person = False
        self.tokens: list[Token] = []
        self.verbs: list[int] = []

    def acts(self) -> bool:
        """Return whether anything is asked for or forbidden."""
        return bool(self.asked or self.refused or self.goals)


def clauses_of(message: Message) -> list[Clause]:
    """Return the clauses of a message in order, blocks as clauses without acts at the end."""
    found: list[Clause] = []
    reader = _Reader(message, found)
    for sentence in message.sentences:
        reader.sentence(sentence)
    for index, block in enumerate(message.blocks):
        if index not in reader.read_blocks:
            clause = Clause()
            _describe(clause, tokens_of(block))
            clause.kinds = clause.scope = 0  # what is pasted asks for nothing
            found.append(clause)
    return found


class _Reader:
    """Reads sentences in order, remembering whether a payload is being dictated."""

    def __init__(self, message: Message, found: list[Clause]) -> None:
        self.message, self.found = message, found
        self.dictated = False
        self.read_blocks: set[int] = set()

    def sentence(self, tokens: list[Token]) -> None:
        """Add the clauses of a sentence."""
        if any(token.block >= 0 for token in tokens):
            self._block(tokens)
            return
        if self.dictated:
            for token in tokens:
                token.quoted = not token.sign
        question = _asks_only(tokens)
        ended = bool(tokens) and is_break(tokens[-1].sign)
        while tokens and tokens[-1].sign and tokens[-1].sign != ":":
            tokens = tokens[:-1]
        consent = any(token.marks & _M["consent"] for token in tokens)
        parts = list(_split(tokens))
        read = [self._part(part, joint, question, consent, parts) for part, joint in parts]
        for clause in _joined(read):
            self.found.append(clause)
        self.dictated = self.dictated and not ended

    def _part(
        self, part: list[Token], joint: Token | None, question: bool, consent: bool, parts: list[tuple[list[Token], Token | None]]
    ) -> tuple[Clause, Token | None]:
        if self.dictated:
            for token in part:
                token.quoted = not token.sign
        again = bool(joint is not None and joint.marks & _M["connect"] and len(parts) > 1)
        clause = _read(part, joint, question and not (again and _heads(part)), consent)
        if clause.asked & _SPEAKS and part and part[-1].sign == ":" and any(t.marks & _M["quoted"] for t in part):
            self.dictated = True
        return clause, joint

    def _block(self, tokens: list[Token]) -> None:
        """Read a pasted block as the object of a request that ends just before it, or leave it as what was said."""
        before = self.found[-1] if self.found else None
        if before is None or not before.tokens or before.tokens[-1].sign != ":" or not before.asked | before.goals:
            return
        for token in tokens:
            if token.block >= 0:
                self.read_blocks.add(token.block)
                inside = tokens_of(self.message.blocks[token.block])
                if before.asked & _RUN:
                    for each in inside:
                        before.asked |= each.sense.verbs
                _describe(before, inside)


def _asks_only(tokens: list[Token]) -> bool:
    """Return whether a sentence asks about something, rather than for it."""
    words = [token for token in tokens if not token.sign and not token.quoted]
    while words and words[0].marks & (_M["adverb"] | _M["connect"] | _M["assent"]) and not words[0].marks & _M["question"]:
        words = words[1:]
    if not words:
        return False
    if words[0].marks & (_M["question"] | _M["howto"]) and not words[0].marks & _M["polite"]:
        return True
    marked = any(is_question(token.sign) for token in tokens[-2:])
    return marked and not any(token.marks & _M["polite"] for token in words)


def _split(tokens: list[Token]) -> Iterator[tuple[list[Token], Token | None]]:
    """Yield the parts of a sentence between commas and conjunctions, each with the token that it begins after."""
    part: list[Token] = []
    joint: Token | None = None
    for at, token in enumerate(tokens):
        parts_here = is_comma(token.sign) if token.sign else token.marks & _PARTS and not token.quoted
        if not parts_here and not (token.marks & _M["instead"] and not token.quoted and _denies_next(tokens[at + 1 : at + 4])):
            part.append(token)
            continue
        if token.sign == ":":
            part.append(token)
        if part:
            yield part, joint
            part, joint = [], token
        elif joint is None or not joint.marks & (_M["except"] | _M["contrast"]):
            joint = token
    if part or joint is None:
        yield part, joint


def _denies_next(tokens: list[Token]) -> bool:
    """Return whether a verb follows soon, as in ``without deleting anything``."""
    return any(token.sense.gerunds or (not token.sense.strict and token.sense.verbs) for token in tokens)


def _heads(part: list[Token]) -> bool:
    """Return whether a part begins with a verb."""
    for token in part:
        if token.sign or token.marks & (_M["adverb"] | _M["polite"]):
            continue
        return bool(token.sense.imperatives | token.sense.verbs) and not token.quoted
    return False


def _joined(read: list[tuple[Clause, Token | None]]) -> list[Clause]:
    """Join parts without an act of their own to those that they belong to, and share what they have in common."""
    clauses: list[Clause] = []
    waiting: list[Clause] = []
    for clause, joint in read:
        last = clauses[-1] if clauses else None
        if last is not None and joint is not None and _continues(clause, joint, last):
            clauses.append(clause)
        elif clause.acts() or (clause.question and last is None):
            for early in waiting:
                _absorb(clause, early)
            waiting = []
            if last is not None and joint is not None and not (last.words or last.keys or last.kinds):
                _share(last, clause)
            clauses.append(clause)
        elif last is not None:
            _absorb(last, clause)
        else:
            waiting.append(clause)
    return clauses or _merged(waiting)


def _merged(waiting: list[Clause]) -> list[Clause]:
    if waiting:
        for later in waiting[1:]:
            _absorb(waiting[0], later)
    return waiting[:1]


def _continues(clause: Clause, joint: Token, last: Clause) -> bool:
    """Return whether a part carries on the verb before it with the opposite sign: exceptions, and ``not to Bob``."""
    if joint.marks & _M["except"]:
        clause.refused, clause.asked = clause.refused | last.asked, clause.asked | last.refused
        clause.excepted = True
        return True
    denies = any(token.marks & _SAYS_NO and not token.quoted for token in clause.tokens[:2])
    if denies and not clause.acts() and last.asked:
        clause.refused = last.asked
        return True
    if joint.marks & _M["connect"] and last.refused and not last.asked and clause.asked and not clause.refused:
        polite = any(token.marks & (_M["polite"] | _M["adverb"]) for token in clause.tokens)
        if not polite:
            clause.refused, clause.asked = vocabulary().denied(clause.asked, clause.kinds), 0
    return False


def _share(empty: Clause, full: Clause) -> None:
    """Give a bare verb the objects of the verb that it stands beside: ``copy and delete the files``."""
    for name in ("words", "names", "keys", "parts", "places"):
        setattr(empty, name, dict(getattr(full, name)))
    empty.kinds, empty.scope = full.kinds, empty.scope | full.scope
    empty.asked = vocabulary().asked(empty.asked, full.kinds)
    empty.refused = vocabulary().denied(empty.refused, full.kinds) if empty.refused else 0


def _absorb(clause: Clause, part: Clause) -> None:
    if not clause.kinds:
        clause.asked = vocabulary().asked(clause.asked, part.kinds)
    clause.kinds |= part.kinds
    clause.scope |= part.scope
    for name in ("words", "parties", "names", "keys", "parts", "places"):
        getattr(clause, name).update(getattr(part, name))
    clause.refers, clause.person = clause.refers or part.refers, clause.person or part.person
    clause.tokens = clause.tokens + part.tokens


# -- one part of a sentence ------------------------------------------------------------------------------------


def _read(part: list[Token], joint: Token | None, question: bool, consent: bool) -> Clause:
    """Return a part of a sentence with its verbs."""
    clause = Clause()
    clause.tokens = part
    clause.question = question
    verbs = _Verbs(part, joint, consent)
    for at, token in enumerate(part):
        if not token.sign and not token.quoted:
            verbs.see(at, token)
    asked, refused = verbs.asked, verbs.refused
    if asked & _RUN:
        for token in part:
            asked |= token.sense.verbs if token.quoted else 0
    clause.verbs = verbs.places
    skip = set(verbs.places)
    _describe(clause, [token for at, token in enumerate(part) if at not in skip])
    _describe_verbs(clause, [token for at, token in enumerate(part) if at in skip])
    known = vocabulary()
    clause.goals = 0 if question else verbs.goals
    if asked & _EDIT and verbs.made:
        clause.goals |= known.goal_bits["implement"]
    direct = _direct_kinds(part, skip) or clause.kinds
    clause.asked = _READ if question else known.asked(asked, direct)
    clause.refused = known.denied(refused, direct) if refused else 0
    clause.provisional = bool(refused) and any(t.marks & _M["provisional"] or t.marks & _M["consent"] for t in part)
    for at, token in enumerate(part):
        if verbs.places and not token.quoted and (at > verbs.places[0] or not token.sense.strict):
            clause.refers = clause.refers or bool(token.marks & _M["refers"])
            clause.person = clause.person or bool(token.marks & _M["person"])
    return clause


class _Verbs:
    """Walks through a part of a sentence and decides what each verb means there."""

    def __init__(self, part: list[Token], joint: Token | None, consent: bool) -> None:
        self.part, self.joint, self.consent = part, joint, consent
        self.asked = self.refused = self.goals = 0
        self.places: list[int] = []
        self.blocked = self.made = self.until = False
        self.told = False
        self.negated_at = -_FAR
        if joint is not None and joint.marks & _M["instead"]:
            self.negated_at = -1
        self.negates_all = any(t.marks & _M["negation_after"] and not t.quoted for t in part)
        self.forgets = any(t.marks & _M["forget"] and not t.quoted for t in part)

    def see(self, at: int, token: Token) -> None:
        """Take account of a word."""
        marks, sense = token.marks, token.sense
        if marks & _SAYS_NO and not self.forgets:
            self.negated_at = at
        if marks & (_M["condition"] | _M["howto"]) or (marks & _M["report"] and not self._is_verb(at, token)):
            self.blocked = self.blocked or not marks & _M["adverb"]
        self.until = self.until or bool(marks & _M["until"])
        if sense.refused and not self.forgets:
            self.refused |= sense.refused
            self.places.append(at)
            return
        verbs, goals = self._verbs(at, token)
        if verbs | goals:
            self._take(at, verbs, goals)
        elif marks & _M["made"]:
            self.made = True

    def _take(self, at: int, verbs: int, goals: int) -> None:
        self.places.append(at)
        near = 0 <= at - self.negated_at <= _REACH and not self.forgets
        if near or (self.negates_all and not self.forgets) or (self.consent and self.until):
            self.refused |= verbs
        elif not self.blocked:
            self.asked |= verbs
            self.goals |= goals
            self.told = self.told or bool(verbs & _TELLS)

    def _verbs(self, at: int, token: Token) -> tuple[int, int]:
        """Return the actions and goals that a word names as a verb at its place."""
        sense = token.sense
        found = sense.verbs if self._is_free(at, token) else 0
        goals = 0
        if sense.imperatives | sense.goals and self._is_verb(at, token):
            found |= sense.imperatives
            goals = sense.goals
        elif not sense.strict and self._is_free(at, token):
            goals = sense.goals
        denied = 0 <= at - self.negated_at <= _REACH
        late = self.consent and self.until
        if sense.gerunds and (denied or late or self._before(at).marks & _M["gerund"]):
            found |= sense.gerunds
        if sense.participles and (denied or self._before(at).marks & _M["be"]):
            found |= sense.participles
        if sense.thirds and self._starts(at):
            found |= sense.thirds
        if (denied or late) and not found:
            found |= sense.nouns | (sense.imperatives if late else 0)
        if sense.nouns and not found and self._is_object(at):
            found |= sense.nouns
        return found, goals

    def _before(self, at: int) -> Token:
        """Return the word before a place, adverbs left out; the word itself where there is none."""
        before = at - 1
        while before >= 0 and self.part[before].marks & _M["adverb"]:
            before -= 1
        return self.part[before] if before >= 0 else self.part[at]

    def _starts(self, at: int) -> bool:
        return self.joint is None and all(t.marks & _M["adverb"] or t.sign for t in self.part[:at])

    def _is_verb(self, at: int, token: Token) -> bool:
        """Return whether a word stands where the verb of a request stands: at the head of its clause."""
        after = self.part[at + 1] if at + 1 < len(self.part) else None
        sense = token.sense
        if sense.kinds | sense.nouns and after is not None and after.marks & _M["after_noun"]:
            return False
        before = at - 1
        while before >= 0 and self.part[before].marks & _M["adverb"] and not self.part[before].marks & _INTRODUCES:
            before -= 1
        if before < 0 or self.part[before].sign:
            listed = before < 0 and self.joint is not None and self.joint.marks & _M["connect"]
            return not (listed and sense.kinds and (after is None or bool(after.sign)))
        marks = self.part[before].marks
        if marks & _M["infinitive"]:
            return not (self.made or self.told)
        if marks & _M["refers"] and not sense.strict:
            return True
        return bool(marks & _INTRODUCES)

    def _is_free(self, at: int, token: Token) -> bool:
        """Return whether a form that is a verb in any place is one here."""
        if at == 0:
            return True
        before = self.part[at - 1]
        if before.marks & (_M["determiner"] | _M["subject"]) and not before.marks & _PARTS:
            return False
        wants = any(t.marks & (_M["polite"] | _M["want"]) for t in self.part[:at])
        return wants or not (before.marks & _M["relative"] or self.made)

    def _is_object(self, at: int) -> bool:
        """Return whether the noun of an act is what a light verb before it makes: ``make a payment``."""
        after = self.part[at + 1] if at + 1 < len(self.part) else None
        if after is not None and not after.sign and not after.value and not after.marks:
            return False
        strict = self.part[at].sense.strict
        if not strict and any(t.marks & _M["light"] for t in self.part[at + 1 :]):
            return True
        for token in self.part[max(0, at - _REACH) : at][::-1]:
            if token.marks & _M["light"]:
                return True
            if token.marks & _PREPOSITION and strict:
                return False
        return False


# -- objects -----------------------------------------------------------------------------------------------------


def _direct_kinds(part: list[Token], verbs: set[int]) -> int:
    """Return the kinds of the objects that stand with the verb, before anything that a preposition introduces."""
    kinds = 0
    aside = False
    for at, token in enumerate(part):
        aside = bool(token.marks & _PREPOSITION and kinds) or (aside and not token.marks & _M["toward"])
        kinds |= token.sense.kinds if at not in verbs and not token.quoted and not aside else 0
    return kinds


def _describe(clause: Clause, tokens: list[Token]) -> None:
    """Add the objects that tokens name to a clause."""
    before = 0
    placed = False
    for token in tokens:
        if len(clause.words) + len(clause.keys) > MAX_WORDS:
            return
        if token.sign:
            continue
        if token.value is not None:
            is_place = placed and token.value.keys[0][:5] == "path:"
            (clause.places if is_place else clause.keys).update(dict.fromkeys(token.value.keys))
            if not token.sense.month and token.sense.number < 0:
                clause.parts.update(dict.fromkeys(words_of_value(token.value.text, token.value.keys[0])))
        else:
            _describe_word(clause, token, before)
        before = token.marks
        placed = bool(before & _PREPOSITION) or (placed and token.value is None)
    for token in tokens:
        for each in (token.value.text,) if token.value is not None else ():
            clause.scope |= scope_of_words(words_in(each))


def _describe_word(clause: Clause, token: Token, before: int) -> None:
    sense = token.sense
    if not token.quoted:
        clause.kinds |= sense.kinds
        clause.scope |= sense.scope
    if token.marks & _NO_CONTENT and not token.quoted:
        return
    clause.words[token.text] = None
    parts = None if sense.kinds or sense.strict else vocabulary().compound(token.text)
    if parts is not None:
        clause.words.update(dict.fromkeys(parts))
        clause.kinds |= kinds_of_word(parts[1])
    elif token.quoted or (token.named and sense.strict) or not (token.marks & _NO_NAME or sense.known()):
        clause.names[token.text] = None
        if not (token.owned or before & _M["about"]):
            clause.parties[token.text] = None


def _describe_verbs(clause: Clause, verbs: list[Token]) -> None:
    for token in verbs:
        clause.scope |= token.sense.scope
        if token.text:
            clause.words[token.text] = None


def words_of_value(text: str, key: str) -> list[str]:
    """Return the words by which a value may be known: of a path those of its last part, of a host without its ending."""
    shape, _, form = key.partition(":")
    if shape == "path":
        return list(words_in(without_suffix(form.rpartition("/")[2]) or form))
    if shape in {"host", "url", "mail"}:
        return [word for word in words_in(form) if word not in _COMMON_LABELS]
    return list(words_in(text))


_COMMON_LABELS = frozenset(("com", "org", "net", "www", "http", "https", "gmail", "outlook", "hotmail", "yahoo", "html", "index"))


def kinds_of_word(word: str) -> int:
    """Return the kinds of objects that a word stands for in any language."""
    known = vocabulary()
    return known.sense(word, -1).kinds | known.kinds_of_program(word)


def scope_of_words(words: Iterator[str]) -> int:
    """Return the scopes that a name's words stand for: ``prod`` in ``db-prod-1``."""
    known = vocabulary()
    scope = 0
    for word in words:
        scope |= known.sense(word, -1).scope
    return scope & _NAMED


_NAMED = SCOPE_BITS["force"] | SCOPE_BITS["bypass"] | SCOPE_BITS["production"] | SCOPE_BITS["admin"] | SCOPE_BITS["public"]


def understood(text: str) -> list[Clause]:
    """Return the clauses of a text."""
    return clauses_of(read_message(text))
