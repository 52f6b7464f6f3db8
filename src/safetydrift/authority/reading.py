"""A message as sentences of words with their meanings; values, quotations and pasted blocks told apart."""

from __future__ import annotations

import re
from copy import copy

import msgspec

from safetydrift.authority.text import COMBINING, bounded, fold, names
from safetydrift.authority.values import Found, date_keys, plain, values_in
from safetydrift.authority.vocabulary import Sense, mark, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TOKENS = 16_384
"""Words and signs of a message that are read; of more, the first and the last."""
_VALUE_OPEN, _VALUE_CLOSE, _QUOTE_OPEN, _QUOTE_CLOSE, _BLOCK, _CAPITAL = (
    "\ue000\ue001\ue002\ue003\ue004\ue005"
)
_PRIVATE = re.compile("[\ue000-\ue005]")
_BLOCKS = re.compile(
    r"(?:^|\n)[ \t]*(?:```|~~~).*?(?:\n[ \t]*(?:```|~~~)|\Z)|```.{0,20000}?```"  # code
    r"|(?:(?:^|\n)>[^\n]*)+"  # quoted lines
    r"|(?:^|\n)[ \t>]*(?:-{3,} ?(?:original|forwarded|ursprüngliche|weitergeleitete)[^\n]*"
    r"|on [^\n]{4,120} wrote:\s*\n|am [^\n]{4,120} schrieb[^\n]{0,80}:\s*\n|le [^\n]{4,120} a écrit ?:\s*\n).*"  # mail
    r"|(?:(?:^|\n)(?:from|von|de): [^\n]*\n(?:(?:sent|date|to|cc|subject|betreff|an|objet)[^\n]*\n){1,6}).*"
    r"|(?:(?:^|\n)[ \t]*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|traceback \(|file \"|at [\w.$]{1,80}\("
    r"|(?:error|warn|warning|info|debug)\b[:\] ]|\$ |>>> |[\w.]{1,60}(?:error|exception):)[^\n]*)+",  # logs, errors
    re.DOTALL | re.IGNORECASE,
)
_FENCE = re.compile(r"(?:^|\n)[ \t]*(?:```|~~~)")
_QUOTES = re.compile(r"[`\"“„«「『'‘]")
_INLINE = re.compile(
    r"`[^`\n]{1,2000}`|\"[^\"]{1,2000}\"|“[^”]{1,2000}”|„[^“”]{1,2000}[“”]|«[^»]{1,2000}»|「[^」]{1,2000}」|『[^』]{1,2000}』"
    r"|(?<![^\s(\[:,])['‘][^'‘’\n]{1,300}['’](?![\w])"
)
_SOFT_BREAK = re.compile(r"(?<![\n.:;!?])\n(?=[a-zß-ÿα-ωа-яё])")
_NAME = re.compile(r"(?<=[a-z0-9,;:')] )(?=[A-Z][a-zà-ÿ])")
"""Where a word begins that has a capital letter within a sentence."""
_TIGHT = re.compile(r"(?<=[a-z])\.(?=[A-Z][a-z])")
"""A full stop without a blank behind it."""
_ABBREVIATED = re.compile(r"\b(dr|mrs?|ms|prof|st|nr|sra?|mme|vs|e\.g|i\.e|z\.b|p\.ej)\.(?= )", re.IGNORECASE)
_LETTERS = rf"(?:[^\W_]|[{COMBINING}])+"
_TOKEN = re.compile(
    rf"\ue000(\d+)\ue001|(\ue005?{_LETTERS}(?:'{_LETTERS})?)|"
    r"[.](?=[\s\ue002-\ue004)]|\Z)|[!?;,:\n()\ue002-\ue004&…。؟।،؛、۔]| - "
)
_ENDS, _COMMAS, _ASKING = frozenset(".!?\n…。؟।۔;؛"), frozenset((*",:()،、", " - ")), frozenset("?؟")
_WIDE = ("\u3040", "\u9fff")
"""Scripts that are written without blanks, Han and Kana, lie between these."""
_AND = "\u0648\u05d5"
"""What Arabic and Hebrew write before a word for "and"."""
_BETWEEN, _JOINTS = names("and und et y e en och i ve"), names("und en ed och e y")
"""Words between the words of a number, and what holds its parts together within one."""
_FUNCTION, _GENERIC, _CONNECT = mark("function"), mark("generic"), mark("connect")
_GAP, _SPELLED, _ARTICLE = 12, 5, 1
"""Words that a phrase may hold in its gap; digits that spell out a number; the number that many languages use as an
article."""
_SHARE, _FOREIGN, _SAMPLE = 0.5, 3, 600
"""Another language is heard as well from this share of the first one's words, or this many words of its own, among
so many."""


class Token(msgspec.Struct):
    """A word, a value or a sign of a message.

    `text` is folded; `named` says that it has a capital letter within a sentence, `owned` that it is an English
    genitive; `block` is the index of the pasted block that stands here, or -1; `languages` those of the message, as
    bits.
    """

    text: str
    sense: Sense
    value: Found | None = None
    sign: str = ""
    marks: int = 0
    quoted: bool = False
    named: bool = False
    owned: bool = False
    block: int = -1
    languages: int = -1


class Message(msgspec.Struct):
    """A message that was read: its sentences, all its values, and the blocks of code, logs or mail pasted into it."""

    sentences: list[list[Token]]
    values: list[Found]
    blocks: list[str]


NOTHING = Sense()


def read_message(text: str) -> Message:
    """Return a message as sentences; beyond `safetydrift.authority.text.MAX_TEXT` its beginning and its end."""
    text = _PRIVATE.sub(" ", bounded(text).replace("\r\n", "\n"))
    blocks: list[str] = []

    def apart(match: re.Match[str]) -> str:
        blocks.append(match[0])
        return f"\n{_BLOCK}\n"

    text = _BLOCKS.sub(apart, _closed(text))
    text = _ABBREVIATED.sub(r"\1", text)
    values = values_in(text)
    marked = _NAME.sub(_CAPITAL, _TIGHT.sub(". ", _masked(text, values)))
    if _QUOTES.search(marked):
        marked = _INLINE.sub(lambda match: f" {_QUOTE_OPEN} {match[0][1:-1]} {_QUOTE_CLOSE} ", marked)
    tokens = _tokens(_SOFT_BREAK.sub(" ", marked), values)
    for block in blocks:
        values += values_in(block)
    return Message(list(_sentences(tokens)), values, blocks)


def _closed(text: str) -> str:
    """Return a text in which a fence that nothing closes ends at the next blank line."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    if len(fences) % 2 == 0:
        return text
    end = text.find("\n\n", fences[-1])
    return f"{text[:end]}\n```{text[end:]}" if end >= 0 else text


def tokens_of(text: str) -> list[Token]:
    """Return the words and values of a text as tokens, without regard to quotation marks."""
    values = values_in(text)
    return [token for token in _tokens(_masked(text, values), values) if not token.sign]


def ends_line(token: Token) -> bool:
    """Return whether a sign ends a line."""
    return token.sign == "\n"


def is_comma(token: Token) -> bool:
    """Return whether a sign parts a sentence."""
    return token.sign in _COMMAS


def asks(token: Token) -> bool:
    """Return whether a sign ends a question."""
    return token.sign in _ASKING


def _masked(text: str, values: list[Found]) -> str:
    """Return a text in which values are signs of their own."""
    pieces, at = [], 0
    for index, value in enumerate(values):
        pieces += [text[at : value.start], f" {_VALUE_OPEN}{index}{_VALUE_CLOSE} "]
        at = value.end
    return "".join([*pieces, text[at:]])


def _sentences(tokens: list[Token]) -> Iterator[list[Token]]:
    sentence: list[Token] = []
    for token in tokens:
        sentence.append(token)
        if token.sign in _ENDS and token.sign:
            if len(sentence) > 1 or token.sign == "\n":
                yield sentence
            sentence = []
    if sentence:
        yield sentence


# -- words and signs -------------------------------------------------------------------------------------------


def _tokens(marked: str, values: list[Found]) -> list[Token]:
    found: list[tuple[str, Found | None, bool]] = []
    for match in _TOKEN.finditer(fold(marked)):
        if match[2] is not None:
            found += [(word, None, True) for word in _words(match[2])]
        elif match[1] is not None and int(match[1]) < len(values):
            found.append((match[0], values[int(match[1])], False))
        else:
            found.append((match[0], None, False))
    if len(found) > MAX_TOKENS:
        found = found[: MAX_TOKENS // 2] + found[-MAX_TOKENS // 2 :]
    active = _active_languages([word.lstrip(_CAPITAL) for word, _, is_word in found[:_SAMPLE] if is_word])
    tokens, quoted, block = [], False, 0
    for word, value, is_word in found:
        if is_word:
            token = _word_token(word, active)
            token.quoted = quoted
        elif value is not None:
            token = Token(word, NOTHING, value, quoted=quoted)
        else:
            token = Token(word, NOTHING, sign=word, marks=_CONNECT if word == "&" else 0)
            quoted = word == _QUOTE_OPEN or (quoted and word != _QUOTE_CLOSE)
            if word == _BLOCK:
                token.block, block = block, block + 1
        tokens.append(token)
    _phrases(tokens)
    _numbers(tokens)
    return tokens


def _words(word: str) -> list[str]:
    """Return the words that a run of letters is: apostrophes and scripts without blanks may hold several."""
    known = vocabulary()
    if word[0] == _CAPITAL:
        first, *more = _words(word[1:])
        return [_CAPITAL + first, *more]
    if "'" in word and not known.languages_of(word):
        before, _, after = word.partition("'")
        return [before + "'s"] if after == "s" else [before, after]
    if word[0] in _AND and word not in known.lexicon.known and known.languages_of(word[1:]):
        return [word[0], word[1:]]
    wide = not word.isascii() and any(_WIDE[0] <= sign <= _WIDE[1] for sign in word)
    return list(known.pieces(word)) if wide else [word]


def _word_token(word: str, active: int) -> Token:
    named = word[0] == _CAPITAL
    word = word[1:] if named else word
    owned = word.endswith("'s")
    word = word[:-2] if owned else word
    sense = vocabulary().sense(word, active)
    if named and sense.strict and not sense.marks & _FUNCTION:  # a name, not a verb
        sense = copy(sense)
        sense.verbs = sense.imperatives = sense.thirds = sense.gerunds = sense.participles = sense.goals = 0
        sense.settle()
    return Token(word, sense, marks=sense.marks, named=named, owned=owned, languages=active)


def _active_languages(words: list[str]) -> int:
    """Return the languages of a message as bits: those that know most of its words, and command words."""
    languages = vocabulary().lexicon.languages
    every = 1 << len(languages) - 1
    masks = [mask for word in words if (mask := vocabulary().languages_of(word) & ~every)]
    counts = [0] * (len(languages) - 1)
    for mask in masks:
        while mask:
            counts[(mask & -mask).bit_length() - 1] += 1
            mask &= mask - 1  # noqa: PLW2901  # bit by bit
    most = max(counts)
    if not most:
        return every | 1 << languages.index("en")
    first = counts.index(most)
    apart = [mask for mask in masks if not mask >> first & 1]
    chosen = every
    for language, count in enumerate(counts):
        own = sum([mask >> language & 1 for mask in apart])
        if count in {most, *range(max(1, int(_SHARE * most) + (most > 1)), most)} or own >= _FOREIGN:
            chosen |= 1 << language
    return chosen


# -- phrases, numbers and dates --------------------------------------------------------------------------------


def _phrases(tokens: list[Token]) -> None:
    """Give the first word of a phrase what the phrase means, and take from its words what they mean alone."""
    for at, token in enumerate(tokens[:-1]):
        if not token.sense.phrases:
            continue
        after = tokens[at + 1].text
        matched = [
            (end, "..." in rest, code)
            for rest, code in token.sense.phrases
            if (rest[0] == after or rest[0][-1] in ".*") and (end := _end_of(rest, tokens, at))
        ]
        if matched:
            _settle(tokens, at, matched)


def _settle(tokens: list[Token], at: int, matched: list[tuple[int, bool, int]]) -> None:
    first = tokens[at]
    longest = max((end for end, has_gap, _ in matched if not has_gap), default=0)
    sense = Sense(strict=first.sense.strict) if longest else copy(first.sense)
    for end, has_gap, code in matched:
        if end == longest or has_gap:
            vocabulary().add(sense, code)
            tokens[end - 1].marks |= _GENERIC
    for token in tokens[at : longest or at + 1]:
        sense.scope |= token.sense.scope
    first.sense, first.marks = sense.settle(), sense.marks
    for token in tokens[at + 1 : longest]:
        token.sense = Sense(kinds=0 if sense.kinds else token.sense.kinds)
        token.marks = sense.marks | _GENERIC


def _end_of(rest: list[str], tokens: list[Token], at: int) -> int:
    """Return where a phrase ends that begins at a token; 0 if it does not stand there."""
    at, gap = at + 1, 0
    for word in rest:
        if word == "...":
            gap = _GAP
            continue
        stem = word[:-1] if word[-1] == "*" else ""
        for step in range(at, at + gap + 1):
            if step >= len(tokens) or (tokens[step].sign and tokens[step].sign in _ENDS):
                return 0
            if tokens[step].text == word or (stem and tokens[step].text.startswith(stem)):
                at, gap = step + 1, 0
                break
        else:
            return 0
    return at


def _numbers(tokens: list[Token]) -> None:
    """Make values of numbers in words and of days with the names of their months."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        end = at + 1
        if token.sense.month and not token.quoted:
            _date_around(tokens, at)
        elif token.sense.number >= 0 and token.value is None:
            values = _morphemes(token)
            while end < len(tokens) and (tokens[end].sense.number >= 0 or tokens[end].text in _BETWEEN):
                values += _morphemes(tokens[end])
                end += 1
            keys = _number_keys(values)
            if keys and (end > at + 1 or max(values) > _ARTICLE):
                token.value = Found(0, 0, " ".join(each.text for each in tokens[at:end]), keys)
                _set_aside(tokens[at + 1 : end])
        at = end


def _set_aside(tokens: list[Token]) -> None:
    """Take from words that are part of a value what they mean alone."""
    for token in tokens:
        token.sense, token.marks, token.value = NOTHING, _FUNCTION, None


def _morphemes(token: Token) -> list[float]:
    """Return the numbers that a word is made of, and nothing else: ``zwolfhundert`` is 12 and 100."""
    known = vocabulary()
    values: list[float] = []
    rest = token.text if token.sense.number >= 0 else ""
    while rest:
        for length in range(len(rest), 0, -1):
            piece = rest[:length]
            number = known.sense(piece, token.languages).number if piece in known.lexicon.known else -1
            if number >= 0:
                values.append(number)
                break
        else:
            length = len(next((joint for joint in _JOINTS if values and rest.startswith(joint)), ""))
            if not length:
                return []
        rest = rest[length:]
    return values


def _number_keys(values: list[float]) -> tuple[str, ...]:
    """Return the keys of a number in words: an amount, or the digits that it spells out."""
    if not values:
        return ()
    if len(values) >= _SPELLED and max(values) < 10:  # noqa: PLR2004
        digits = "".join(str(int(value)) for value in values)
        return (f"account:{digits}", f"id:{digits}", f"amount:{digits}", f"phone:{digits[-9:]}")
    total = group = 0.0
    for value in values:
        if value >= 1000:  # noqa: PLR2004
            total, group = total + max(group, 1) * value, 0
        else:
            group = max(group, 1) * value if value == 100 else group + value  # noqa: PLR2004
    return (f"amount:{plain(total + group)}",)


def _date_around(tokens: list[Token], at: int) -> None:
    """Make a value of a month with a day beside it, and a year if there is one."""
    day = year = 0
    parts = []
    for token in (*tokens[max(0, at - 2) : at], *tokens[at + 1 : at + 4]):
        text = token.value.text if token.value is not None else token.text
        match = re.match(r"(\d{1,4})(?:st|nd|rd|th|er|\.|º|ª|o|e|日|일)?$", text)
        number = int(match[1]) if match else 0
        parts += [token] if number else []
        day = number if 0 < number <= 31 and not day else day  # noqa: PLR2004
        year = number if 1900 <= number < 2200 else year  # noqa: PLR2004
    if day:
        tokens[at].value = Found(0, 0, tokens[at].text, date_keys(year, tokens[at].sense.month, day))
        _set_aside(parts)
