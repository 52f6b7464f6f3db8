"""What a message asks for, clause by clause: which acts on which objects, and which it forbids or only mentions.

A verb asks for an act where it heads a clause, as verbs of requests do; not in a quotation, a question about the
act, a condition, somebody else's words, or the description of something to be made.
"""

from __future__ import annotations

import msgspec

from safetydrift.authority.objects import Objects, direct_kinds
from safetydrift.authority.reading import Token, asks, ends_line, is_comma, tokens_of
from safetydrift.authority.verbs import Verbs
from safetydrift.authority.vocabulary import GROUPS, VERB_BITS, actions, mark, scope, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.authority.reading import Message

_ADVERB, _CONNECT, _POLITE, _QUESTION = mark("adverb"), mark("connect"), mark("polite"), mark("question")
_EXCEPT, _NEGATION, _INSTEAD, _CONSENT = mark("except"), mark("negation"), mark("instead"), mark("consent")
_PERSON, _REFERS, _QUOTED, _TOWARD = mark("person"), mark("refers"), mark("quoted"), mark("toward")
_PARTS = mark("connect", "contrast", "except")
_SETS_ASIDE = mark("except", "contrast")
_OPENS = mark("adverb", "connect", "assent")
_ASKS = mark("question", "howto")
_FOR_NOW = mark("provisional", "consent")
_ONLY = scope("only")
_BROAD = sum(VERB_BITS[name] for name in GROUPS)
_REPEAT = mark("repeat")
_READ, _RUN, _EDIT, _AUTOMATE, _SPEAKS = (
    actions("read"),
    actions("run"),
    actions("edit"),
    actions("automate"),
    actions("send", "publish", "edit"),
)


class Clause(Objects):
    """One act, or several on the same objects, that a message asks for, forbids or speaks about.

    `provisional` says that what is forbidden is forbidden for now, `question` that the clause asks about the act alone,
    `refers` and `person` that it refers back to an object or a person, `excepted` that it is an exception from the
    clause before, `directed` that what it forbids is forbidden towards those that it names alone, `broad` that it
    forbids with a verb of many meanings, so that an exception asks for nothing. `verbs` are positions among `tokens`.
    """

    asked: int = 0
    refused: int = 0
    goals: int = 0
    provisional: bool = False
    question: bool = False
    refers: bool = False
    person: bool = False
    excepted: bool = False
    directed: bool = False
    broad: bool = False
    tokens: list[Token] = msgspec.field(default_factory=list)
    verbs: list[int] = msgspec.field(default_factory=list)

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
            clause.describe(tokens_of(block))
            clause.kinds = clause.scope = 0  # what is pasted asks for nothing
            found.append(clause)
    return found


class _Reader:
    """Reads sentences in order, remembering whether a payload is being dictated."""

    def __init__(self, message: Message, found: list[Clause]) -> None:
        self.message, self.found = message, found
        self.dictated = self.late = False
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
        ended = bool(tokens) and ends_line(tokens[-1])
        while tokens and tokens[-1].sign and tokens[-1].sign != ":":
            tokens = tokens[:-1]
        consent = any(token.marks & _CONSENT for token in tokens)
        self.late = consent and any(token.sense.scope & _ONLY for token in tokens)
        self.found += _joined(
            [(self._part(part, joint, question, consent), joint) for part, joint in _split(tokens)]
        )
        self.dictated = self.dictated and not ended

    def _part(self, part: list[Token], joint: Token | None, question: bool, consent: bool) -> Clause:
        if self.dictated:
            for token in part:
                token.quoted = not token.sign
        again = joint is not None and bool(joint.marks & _CONNECT) and _heads(part)
        late = self.late and (joint is None or bool(joint.marks & _CONNECT))
        verbs = Verbs(part, joint, consent=consent, late=late)
        self.late = verbs.late
        clause = _read(part, verbs, question and not again)
        if (
            clause.asked & _SPEAKS
            and part
            and part[-1].sign == ":"
            and any(token.marks & _QUOTED for token in part)
        ):
            self.dictated = True
        return clause

    def _block(self, tokens: list[Token]) -> None:
        """Read a pasted block as the object of a request that ends just before it, or leave it as what was said."""
        before = self.found[-1] if self.found else None
        if (
            before is None
            or not before.tokens
            or before.tokens[-1].sign != ":"
            or not before.asked | before.goals
        ):
            return
        for token in tokens:
            if token.block >= 0:
                self.read_blocks.add(token.block)
                inside = tokens_of(self.message.blocks[token.block])
                if before.asked & _RUN:
                    for each in inside:
                        before.asked |= each.sense.verbs
                before.describe(inside)


def _asks_only(tokens: list[Token]) -> bool:
    """Return whether a sentence asks about something, rather than for it."""
    words = [token for token in tokens if not token.sign and not token.quoted]
    while words and words[0].marks & _OPENS and not words[0].marks & _QUESTION:
        words = words[1:]
    if not words:
        return False
    if words[0].marks & _ASKS and not words[0].marks & _POLITE:
        return True
    marked = any(map(asks, tokens[-2:]))
    return marked and not any(token.marks & _POLITE for token in words)


def _split(tokens: list[Token]) -> Iterator[tuple[list[Token], Token | None]]:
    """Yield the parts of a sentence between commas and conjunctions, each with the token that it begins after."""
    part: list[Token] = []
    joint: Token | None = None
    for at, token in enumerate(tokens):
        parts_here = is_comma(token) if token.sign else token.marks & _PARTS and not token.quoted
        if not parts_here and not (
            token.marks & _INSTEAD and not token.quoted and _denies_next(tokens[at + 1 : at + 4])
        ):
            part.append(token)
            continue
        if token.sign == ":":
            part.append(token)
        if part:
            yield part, joint
            part, joint = [], token
        elif joint is None or not joint.marks & _SETS_ASIDE or token.marks & _INSTEAD:
            joint = token
    if part or joint is None:
        yield part, joint


def _denies_next(tokens: list[Token]) -> bool:
    """Return whether a verb follows soon, as in ``without deleting anything``."""
    return any(token.sense.gerunds or (not token.sense.strict and token.sense.verbs) for token in tokens)


def _heads(part: list[Token]) -> bool:
    """Return whether a part begins with a verb."""
    for token in part:
        if token.sign or token.marks & (_ADVERB | _POLITE):
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
    if joint.marks & _EXCEPT:
        clause.refused, clause.excepted = clause.refused | last.asked, True
        clause.asked |= 0 if last.broad else last.refused
        return True
    denies = any(token.marks & _NEGATION and not token.quoted for token in clause.tokens[:2])
    if denies and not clause.acts() and last.asked:
        clause.refused, clause.directed = last.asked, bool(clause.parties or clause.keys)
        return True
    if joint.marks & _CONNECT and last.refused and not last.asked and clause.asked and not clause.refused:
        polite = any(token.marks & (_POLITE | _ADVERB) for token in clause.tokens)
        if not polite:
            clause.refused, clause.asked = vocabulary().denied(clause.asked, clause.kinds), 0
    return False


def _share(empty: Clause, full: Clause) -> None:
    """Give a bare verb the objects of the verb that it stands beside: ``copy and delete the files``."""
    parties = dict(empty.parties)
    empty.add(full)
    empty.parties = parties
    empty.asked = vocabulary().asked(empty.asked, full.kinds)
    empty.refused = vocabulary().denied(empty.refused, full.kinds) if empty.refused else 0


def _absorb(clause: Clause, part: Clause) -> None:
    announced = bool(clause.tokens) and clause.tokens[-1].sign == ":"
    if clause.asked & _RUN and announced and any(token.quoted for token in part.tokens[:2]):
        clause.asked |= _commanded(clause, part.tokens)
    if not clause.kinds:
        clause.asked = vocabulary().asked(clause.asked, part.kinds)
    clause.add(part)
    clause.refers, clause.person = clause.refers or part.refers, clause.person or part.person
    clause.tokens = clause.tokens + part.tokens


# -- one part of a sentence ------------------------------------------------------------------------------------


def _read(part: list[Token], verbs: Verbs, question: bool) -> Clause:
    """Return a part of a sentence with its verbs."""
    known = vocabulary()
    clause = Clause()
    clause.tokens, clause.question = part, question
    asked = verbs.asked
    if asked & _RUN:
        asked |= _commanded(clause, part)
    clause.verbs = verbs.places
    clause.describe(part, verbs.places)
    direct = direct_kinds(part, verbs.places) or clause.kinds
    if question:
        clause.asked = _READ
    else:
        clause.asked, clause.goals = known.asked(asked, direct), verbs.goals
        if clause.asked & ~_READ and any(_repeats(part, at) for at in range(len(part))):
            clause.asked |= _AUTOMATE
        if asked & _EDIT and verbs.made:
            clause.goals |= known.goal_bits["implement"]
    if verbs.refused:
        clause.refused = known.denied(verbs.refused, direct)
        clause.directed, clause.broad = _is_directed(part), bool(verbs.refused & _BROAD)
        clause.provisional = any(token.marks & _FOR_NOW for token in part)
    if verbs.places:
        _refer(clause)
    return clause


def _repeats(part: list[Token], at: int) -> bool:
    """Return whether a word says that an act is to be done again and again, and not just which object is meant."""
    if not part[at].marks & _REPEAT or part[at].quoted:
        return False
    after = part[at + 1] if at + 1 < len(part) else None
    return after is None or (
        not after.sense.kinds and bool(after.sign or after.marks or after.sense.acts or after.value)
    )


def _commanded(clause: Clause, tokens: list[Token]) -> int:
    """Return the acts of a quoted command line that is to be run, and give a clause its scope."""
    found = 0
    for token in tokens:
        if token.quoted:
            found |= token.sense.verbs
            clause.scope |= token.sense.scope
    return found


def _is_directed(part: list[Token]) -> bool:
    """Return whether a part says to whom, as in ``not to Alice``."""
    for at, token in enumerate(part):
        if token.marks & _TOWARD and not token.quoted:
            return any(
                each.value is not None or (not each.sign and not each.marks and not each.sense.known())
                for each in part[at + 1 : at + 3]
            )
    return False


def _refer(clause: Clause) -> None:
    """Note the pronouns of a clause; where verbs come first, those behind the verb."""
    first = clause.verbs[0]
    for at, token in enumerate(clause.tokens):
        if token.marks & (_REFERS | _PERSON) and not token.quoted and (at > first or not token.sense.strict):
            clause.refers = clause.refers or bool(token.marks & _REFERS)
            clause.person = clause.person or bool(token.marks & _PERSON)
