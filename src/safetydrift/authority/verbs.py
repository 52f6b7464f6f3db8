"""The verbs of one part of a sentence: which ask for an act, and which are denied, reported or merely named."""

from __future__ import annotations

from safetydrift.authority.vocabulary import actions, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.authority.reading import Token

_ADVERB, _CONNECT, _NEGATION, _DENIAL = (
    mark("adverb"),
    mark("connect"),
    mark("negation"),
    mark("negation_after"),
)
_INFINITIVE, _INSTEAD, _FORGET, _RELATIVE = (
    mark("infinitive"),
    mark("instead"),
    mark("forget"),
    mark("relative"),
)
_REFERS, _LIGHT, _REPORT, _MADE = mark("refers"), mark("light"), mark("report"), mark("made")
_UNTIL, _GERUND, _BE, _AFTER_NOUN = mark("until"), mark("gerund"), mark("be"), mark("after_noun")
_CAUSES, _TOWARD, _WANTS = mark("causes"), mark("toward"), mark("want")
_INTRODUCES = mark("polite", "infinitive", "negation", "instead", "contrast", "connect", "forget", "assent")
"""What a verb at the head of a request may stand behind."""
_PARTS = mark("connect", "contrast", "except")
_NO_VERB_AFTER = mark("determiner", "subject")
_PREPOSITION = mark("source", "about", "place")
_WISH = mark("polite", "want")
_BLOCKS = mark("condition", "howto", "report")
_NOTED = _NEGATION | _BLOCKS | _UNTIL | _MADE
_TELLS = actions("send")
_REACH, _FAR = 5, 1000
"""Words between a negation or a light verb and what it belongs to; more than any part of a sentence has."""


class Verbs:
    """Walks through a part of a sentence and decides what each verb means there.

    Parameters
    ----------
    part
        The words.
    joint
        What the part begins behind: a comma, a conjunction, or nothing.
    consent
        Whether the sentence speaks of the user's consent.
    late
        Whether what it asks for is to wait for that consent.

    Attributes
    ----------
    asked, refused, goals
        Actions that are asked for and denied, and goals, as bit masks.
    places
        Positions of the verbs.
    made
        Whether something is to be made, of which the rest may tell what it does.
    late
        Whether what follows is to wait for the user's consent.
    """

    def __init__(self, part: list[Token], joint: Token | None, *, consent: bool, late: bool = False) -> None:
        self.part, self.joint, self._consent, self.late = part, joint, consent, late
        self.asked = self.refused = self.goals = 0
        self.places: list[int] = []
        self.made = self._blocked = self._told = False
        self._negated_at = -1 if joint is not None and joint.marks & _INSTEAD else -_FAR
        marks = 0
        for token in part:
            if not token.quoted:
                marks |= token.marks
        self._forgets, self._denials = bool(marks & _FORGET), bool(marks & _DENIAL)
        for at, token in enumerate(part):
            if (token.sense.acts or token.marks & _NOTED) and not token.quoted:
                self._see(at, token)

    def _see(self, at: int, token: Token) -> None:
        marks, sense = token.marks, token.sense
        if marks & _NEGATION and not self._forgets:
            self._negated_at = at
        if marks & _BLOCKS and not marks & _ADVERB and not (marks & _REPORT and self._is_verb(at, token)):
            self._blocked = True
        self.late = self.late or (self._consent and bool(marks & _UNTIL))
        if sense.refused and not self._forgets and not self._before(at).marks & (_NEGATION | _TOWARD):
            self.refused |= sense.refused
            self.places.append(at)
            return
        verbs, goals, nouns = self._meant(at, token) if sense.acts else (0, 0, 0)
        if verbs | goals:
            self.places.append(at)
        if verbs | goals | nouns:
            self._take(at, verbs | nouns, goals)
        if marks & _MADE and not verbs | goals:
            self.made = True

    def _take(self, at: int, verbs: int, goals: int) -> None:
        if self._is_denied(at) or self.late:
            self.refused |= verbs
        elif not self._blocked:
            self.asked |= verbs
            self.goals |= goals
            self._told = self._told or bool(verbs & _TELLS)

    def _is_denied(self, at: int) -> bool:
        """Return whether a negation stands shortly before a verb, or one that comes behind verbs after it."""
        if self._forgets:
            return False
        if 0 <= at - self._negated_at <= _REACH:
            return True
        if self._denials:
            for token in self.part[at + 1 :]:
                if token.marks & _DENIAL and not token.quoted:
                    return True
                if token.marks & (_RELATIVE | _NEGATION):
                    return False
        return False

    def _meant(self, at: int, token: Token) -> tuple[int, int, int]:
        """Return the actions and goals that a word names as a verb at its place, and the actions as a noun."""
        sense = token.sense
        found = goals = 0
        if sense.verbs | (0 if sense.strict else sense.goals) and self._is_free(at):
            found, goals = sense.verbs, 0 if sense.strict else sense.goals
        if sense.imperatives | sense.goals and self._is_verb(at, token):
            found |= sense.imperatives
            goals |= sense.goals
        denied = 0 <= at - self._negated_at <= _REACH
        if sense.gerunds and (denied or self.late or self._before(at).marks & _GERUND):
            found |= sense.gerunds
        if sense.participles and (denied or self._before(at).marks & _BE or self._is_caused(at)):
            found |= sense.participles
        if sense.thirds and self._starts(at):
            found |= sense.thirds
        if self.late:
            found |= sense.imperatives
        nouns = (
            0 if found or not sense.nouns or not (denied or self.late or self._is_object(at)) else sense.nouns
        )
        return found, goals, nouns

    def _is_caused(self, at: int) -> bool:
        """Return whether a participle is what somebody is to have done, as in ``have the file sent``."""
        for before in range(max(0, at - _REACH), at - 1):
            token = self.part[before]
            if token.marks & _CAUSES and not token.quoted:
                return bool(token.marks & _WANTS) or self._is_verb(before, token)
        return False

    def _before(self, at: int) -> Token:
        """Return the word before a place, adverbs left out; the word itself where there is none."""
        before = at - 1
        while before >= 0 and self.part[before].marks & _ADVERB:
            before -= 1
        return self.part[before] if before >= 0 else self.part[at]

    def _starts(self, at: int) -> bool:
        return self.joint is None and all(token.marks & _ADVERB or token.sign for token in self.part[:at])

    def _is_verb(self, at: int, token: Token) -> bool:
        """Return whether a word stands where the verb of a request stands: at the head of its clause."""
        after = self.part[at + 1] if at + 1 < len(self.part) else None
        sense = token.sense
        if sense.kinds | sense.nouns and after is not None and after.marks & _AFTER_NOUN:
            return False
        before = at - 1
        while before >= 0 and self.part[before].marks & _ADVERB and not self.part[before].marks & _INTRODUCES:
            before -= 1
        if before < 0 or self.part[before].sign:
            listed = before < 0 and self.joint is not None and self.joint.marks & _CONNECT
            return not (listed and sense.kinds and (after is None or bool(after.sign)))
        marks = self.part[before].marks
        if marks & _INFINITIVE:
            return not (self.made or self._told)
        return bool(marks & _INTRODUCES or (marks & _REFERS and not sense.strict))

    def _is_free(self, at: int) -> bool:
        """Return whether a form that is a verb in any place is one here."""
        if (
            at + 1 < len(self.part)
            and self.part[at + 1].marks & _AFTER_NOUN
            and not self.part[at].sense.strict
        ):
            return False
        if at == 0:
            return True
        before = self.part[at - 1].marks
        if before & _NO_VERB_AFTER and not before & _PARTS:
            return False
        if before & _RELATIVE or self.made:
            return any(token.marks & _WISH for token in self.part[:at])
        return True

    def _is_object(self, at: int) -> bool:
        """Return whether the noun of an act is what a light verb makes: ``make a payment``."""
        after = self.part[at + 1] if at + 1 < len(self.part) else None
        if (
            after is not None
            and not after.sign
            and after.value is None
            and (after.sense.kinds or not after.marks)
        ):
            return False
        strict = self.part[at].sense.strict
        if not strict and any(token.marks & _LIGHT for token in self.part[at + 1 :]):
            return True
        for token in self.part[max(0, at - _REACH) : at][::-1]:
            if token.marks & _LIGHT:
                return True
            if token.marks & _PREPOSITION and strict:
                return False
        return False
