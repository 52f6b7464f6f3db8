"""A message as sentences of words with their meanings: values, quoted text and pasted blocks told apart from requests."""

from __future__ import annotations

import re

from safetydrift.authority.text import COMBINING, bounded, fold
from safetydrift.authority.values import Found, date_keys, plain, values_in
from safetydrift.authority.vocabulary import MARK_BITS, Sense, unpacked, vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TOKENS = 16_384
"""Words and signs of a message that are read; of more, the first and the last."""
_VALUE_OPEN, _VALUE_CLOSE, _QUOTE_OPEN, _QUOTE_CLOSE, _BLOCK, _CAPITAL = "\ue000\ue001\ue002\ue003\ue004\ue005"
_PRIVATE = re.compile("[\ue000-\ue005]")
_BLOCKS = re.compile(
    r"(?:^|\n)[ \t]*(?:```|~~~).*?(?:\n[ \t]*(?:```|~~~)|\Z)"  # fenced code
    r"|```.{0,20000}?```"
    r"|(?:(?:^|\n)>[^\n]*)+"  # quoted lines
    r"|(?:^|\n)[ \t>]*(?:-{3,} ?(?:original|forwarded|ursprüngliche|weitergeleitete)[^\n]*|on [^\n]{4,120} wrote:\s*\n"
    r"|am [^\n]{4,120} schrieb[^\n]{0,80}:\s*\n|le [^\n]{4,120} a écrit ?:\s*\n).*"
    r"|(?:(?:^|\n)(?:from|von|de|from name): [^\n]*\n(?:(?:sent|date|to|cc|subject|betreff|an|objet)[^\n]*\n){1,6}).*"
    r"|(?:(?:^|\n)[ \t]*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|traceback \(|file \"|at [\w.$]{1,80}\(|(?:error|warn|warning|info|debug)\b"
    r"[:\] ]|\$ |>>> |[\w.]{1,60}(?:error|exception):)[^\n]*)+",  # logs and traces of errors
    re.DOTALL | re.IGNORECASE,
)
_INLINE = re.compile(
    r"`[^`\n]{1,2000}`|\"[^\"]{1,2000}\"|“[^”]{1,2000}”|„[^“”]{1,2000}[“”]|«[^»]{1,2000}»|「[^」]{1,2000}」|『[^』]{1,2000}』"
    r"|(?<![^\s(\[:,])['‘][^'‘’\n]{1,300}['’](?![\w])"
)
_SOFT_BREAK = re.compile(r"(?<![\n.:;!?])\n(?=[^\W\d_A-ZА-ЯÀ-ÞΑ-Ω\u0590-\U0001ffff])")
_NAME = re.compile(r"(?<=[a-z0-9,;:')] )(?=[A-Z][a-zà-ÿ])")
"""Where a word begins that has a capital letter within a sentence."""
_TIGHT = re.compile(r"(?<=[a-z])\.(?=[A-Z][a-z])")
"""A full stop without a blank behind it."""
_LETTERS = rf"(?:[^\W_]|[{COMBINING}])+"
_TOKEN = re.compile(
    rf"\ue000(\d+)\ue001|(\ue005?{_LETTERS}(?:'{_LETTERS})?)|[.](?=[\s\ue002-\ue004)]|\Z)|[!?;,:\n()\ue002-\ue004&…。؟।،؛、۔]| - "
)
_ENDS = frozenset(".!?\n…。؟।۔;؛")
_COMMAS = frozenset((",", ":", "(", ")", " - ", "،", "、"))
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_AND = "\u0648\u05d5"
"""What Arabic and Hebrew write before a word for "and"."""
_ASKING = frozenset("?؟")
_GAP = 7
_SHARE = 0.5
"""Of the most frequent language's words, that another must have to be heard as well."""
_FOREIGN = 3
"""Words that only another language has, from which on it is heard as well."""
_SAMPLE = 600


class Token:
    """A word, a value or a sign of a message.

    Attributes
    ----------
    text
        Folded.
    sense, marks
        What it means in the languages of the message; nothing for a value.
    value
        The value that it is.
    quoted
        Whether it stands in quotation marks or code.
    owned
        Whether it has an English genitive: ``Bob's``.
    named
        Whether it has a capital letter within a sentence.
    sign
        The sign that it is; empty for words and values.
    block
        The index of the pasted block that stands here, or -1.
    languages
        The languages of the message, as bits.
    """

    __slots__ = ("block", "languages", "marks", "named", "owned", "quoted", "sense", "sign", "text", "value")

    def __init__(self, text: str, sense: Sense, value: Found | None = None, sign: str = "") -> None:
        self.text, self.sense, self.value, self.sign = text, sense, value, sign
        self.marks = sense.marks
        self.quoted = self.owned = self.named = False
        self.block = self.languages = -1


class Message:
    """A message that was read.

    Attributes
    ----------
    sentences
        Tokens by sentence; the last token of each is the sign that ends it, where there is one.
    values
        All values, those in blocks included.
    blocks
        Pasted blocks: code, logs, quoted mail.
    """

    __slots__ = ("blocks", "sentences", "values")

    def __init__(self, sentences: list[list[Token]], values: list[Found], blocks: list[str]) -> None:
        self.sentences, self.values, self.blocks = sentences, values, blocks


NOTHING = Sense()


def read_message(text: str) -> Message:
    """Return a message as sentences; beyond `safetydrift.authority.text.MAX_TEXT` its beginning and its end."""
    text = _PRIVATE.sub(" ", bounded(text).replace("\r\n", "\n"))
    blocks: list[str] = []

    def apart(match: re.Match[str]) -> str:
        blocks.append(match[0])
        return f"\n{_BLOCK}\n"

    text = _BLOCKS.sub(apart, text)
    values = values_in(text)
    tokens = _tokens(_SOFT_BREAK.sub(" ", _marked(text, values)), values, len(blocks))
    for block in blocks:
        values += values_in(block)
    return Message(list(_sentences(tokens)), values, blocks)


def tokens_of(text: str) -> list[Token]:
    """Return the words and values of a text as tokens, without regard to quotation marks."""
    values = values_in(text)
    return [token for token in _tokens(_masked(text, values), values, 0) if not token.sign]


def _marked(text: str, values: list[Found]) -> str:
    """Return a text with values and quotation marks as signs of their own."""
    text = _NAME.sub(_CAPITAL, _TIGHT.sub(". ", _masked(text, values)))
    if _QUOTE_SIGNS.search(text):
        return _INLINE.sub(lambda match: f" {_QUOTE_OPEN} {match[0][1:-1]} {_QUOTE_CLOSE} ", text)
    return text


_QUOTE_SIGNS = re.compile(r"[`\"“„«「『'‘]")


def _masked(text: str, values: list[Found]) -> str:
    pieces, at = [], 0
    for index, value in enumerate(values):
        pieces += [text[at : value.start], f" {_VALUE_OPEN}{index}{_VALUE_CLOSE} "]
        at = value.end
    pieces.append(text[at:])
    return "".join(pieces)


def _tokens(marked: str, values: list[Found], blocks: int) -> list[Token]:
    words: list[tuple[str, Found | bool | None]] = []
    for match in _TOKEN.finditer(fold(marked)):
        if match[1] is not None:
            index = int(match[1])
            words.append((match[0], values[index] if index < len(values) else True))
        elif match[2] is not None:
            words += [(word, None) for word in _words(match[0])]
        else:
            words.append((match[0], True))
    if len(words) > MAX_TOKENS:
        words = words[: MAX_TOKENS // 2] + words[-MAX_TOKENS // 2 :]
    active = active_languages([word for word, value in words[:_SAMPLE] if value is None])
    tokens = _with_senses(words, active, blocks)
    _phrases(tokens)
    _numbers(tokens)
    return tokens


def _words(word: str) -> list[str]:
    """Return the words that a run of letters is: apostrophes and scripts without blanks may hold several."""
    if word[0] == _CAPITAL:
        return [_CAPITAL + part if index == 0 else part for index, part in enumerate(_words(word[1:]))]
    if "'" in word and not vocabulary().languages_of(word):
        before, _, after = word.partition("'")
        return [before + "'s"] if after == "s" else [before, after]
    if word[0] in _AND and not vocabulary().lexicon.known.get(word) and vocabulary().languages_of(word[1:]):
        return [word[0], word[1:]]
    return list(vocabulary().pieces(word)) if _WIDE.search(word) else [word]


def active_languages(words: list[str]) -> int:
    """Return the languages in which a message is read, as bits: those that know most of its words, and command words."""
    known = vocabulary()
    masks = [mask for word in words if (mask := known.languages_of(word.lstrip(_CAPITAL)))]
    every = 1 << len(known.lexicon.languages) - 1
    counts = [0] * (len(known.lexicon.languages) - 1)
    for mask in masks:
        mask &= ~every  # noqa: PLW2901  # command words are in every language
        while mask:
            counts[(mask & -mask).bit_length() - 1] += 1
            mask &= mask - 1  # noqa: PLW2901  # as above
    most = max(counts)
    if not most:
        return every | 1 << known.lexicon.languages.index("en")
    first = counts.index(most)
    apart = [0] * len(counts)
    for mask in masks:
        if not mask >> first & 1:
            for language in range(len(counts)):
                apart[language] += mask >> language & 1
    chosen = [
        1 << language
        for language, count in enumerate(counts)
        if count >= max(1, _SHARE * most + (most > 1)) or count == most or apart[language] >= _FOREIGN
    ]
    return every | sum(chosen)


def _with_senses(words: list[tuple[str, Found | bool | None]], active: int, blocks: int) -> list[Token]:
    known = vocabulary()
    tokens, quoted, block = [], False, 0
    for word, value in words:
        if value is None:
            token = _word_token(word, active)
        elif isinstance(value, Found):
            token = Token(word, NOTHING, value)
        else:
            token = Token(word, NOTHING, sign=word)
            if word == _QUOTE_OPEN or word == _QUOTE_CLOSE:  # noqa: PLR1714  # a set of two is slower
                quoted = word == _QUOTE_OPEN
            if word == _BLOCK and block < blocks:
                token.block, block = block, block + 1
            if word == "&":
                token.marks = MARK_BITS["connect"]
        token.quoted = quoted and not token.sign
        tokens.append(token)
    return tokens


def _word_token(word: str, active: int) -> Token:
    bare = word.lstrip(_CAPITAL)
    plain_word = bare.removesuffix("'s")
    sense = vocabulary().sense(plain_word, active)
    named = bare != word and sense.strict and not sense.marks & _FUNCTION
    token = Token(plain_word, _as_name(sense) if named else sense)
    token.owned, token.named, token.languages = plain_word != bare, bare != word, active
    return token


def _as_name(sense: Sense) -> Sense:
    """Return what a word means that a capital letter makes a name: no verb."""
    copy = _copy(sense)
    copy.verbs = copy.imperatives = copy.thirds = copy.gerunds = copy.participles = copy.goals = 0
    return copy.settle()


def _phrases(tokens: list[Token]) -> None:
    """Give the first word of a phrase what the phrase means, and take from its words what they mean alone."""
    known = vocabulary()
    for at, token in enumerate(tokens):
        if not token.sense.phrases:
            continue
        phrases = token.sense.phrases
        matched = [(end, rest, meaning) for rest, meaning in phrases if (end := _end_of(rest, tokens, at))]
        if not matched:
            continue
        longest = max((end for end, rest, _ in matched if "..." not in rest), default=0)
        sense = _copy(Sense() if longest else token.sense)
        sense.strict = token.sense.strict
        for end, rest, meaning in matched:
            if end == longest or "..." in rest:
                known.add(sense, *unpacked(meaning))
                tokens[end - 1].marks |= _ABSORBED
        _settle(tokens, at, longest or at + 1, sense.settle())


def _settle(tokens: list[Token], at: int, end: int, sense: Sense) -> None:
    for token in tokens[at:end]:
        sense.scope |= token.sense.scope
    tokens[at].sense, tokens[at].marks = sense, sense.marks
    for later in tokens[at + 1 : end]:
        kinds = later.sense.kinds
        later.sense = Sense()
        later.sense.kinds = kinds if not sense.kinds else 0
        later.marks = sense.marks | _ABSORBED


_ABSORBED = MARK_BITS["generic"]


def _copy(sense: Sense) -> Sense:
    copy = Sense()
    for name in Sense.__slots__:
        setattr(copy, name, getattr(sense, name))
    return copy


def _end_of(rest: list[str], tokens: list[Token], at: int) -> int:
    """Return where a phrase ends that begins at a token; 0 if it does not stand there."""
    at += 1
    gap = 0
    for word in rest:
        if word == "...":
            gap = _GAP
            continue
        for step in range(gap + 1):
            if at + step >= len(tokens) or tokens[at + step].sign in _ENDS:
                return 0
            if _fits(word, tokens[at + step].text):
                at += step + 1
                break
        else:
            return 0
        gap = 0
    return at


def _fits(word: str, text: str) -> bool:
    return text.startswith(word[:-1]) if word[-1] == "*" else text == word


def _numbers(tokens: list[Token]) -> None:
    """Make values of numbers in words and of days with the names of their months."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.sense.month and not token.quoted:
            _date_around(tokens, at)
        elif token.sense.number >= 0 and token.value is None:
            end, values = at, []
            while end < len(tokens) and (tokens[end].sense.number >= 0 or tokens[end].text in _BETWEEN):
                values += morphemes(tokens[end])
                end += 1
            if (keys := _spoken(values)) and not (end == at + 1 and max(values) <= _ARTICLE):
                token.value = Found(0, 0, " ".join(each.text for each in tokens[at:end]), keys)
                _set_aside(tokens[at + 1 : end])
            at = max(end, at + 1) - 1
        at += 1


def _set_aside(tokens: list[Token]) -> None:
    """Take from words that are part of a value what they mean alone."""
    for token in tokens:
        token.sense, token.marks, token.value = NOTHING, _FUNCTION, None


_FUNCTION = MARK_BITS["function"]
_BETWEEN = frozenset(("and", "und", "et", "y", "e", "en", "och", "i", "ve"))


def morphemes(token: Token) -> list[float]:
    """Return the numbers that a word is made of: ``zwolfhundert`` is 12 and 100; nothing if something else is in it."""
    if token.sense.number < 0:
        return []
    known = vocabulary()
    values: list[float] = []
    rest = token.text
    while rest:
        for length in range(len(rest), 0, -1):
            number = known.sense(rest[:length], token.languages).number if rest[:length] in known.lexicon.known else -1
            if number >= 0:
                values.append(number)
                rest = rest[length:]
                break
        else:
            joint = next((joint for joint in _JOINTS if rest.startswith(joint) and values), "")
            if not joint:
                return [token.sense.number] if not values else []
            rest = rest[len(joint) :]
    return values


_JOINTS = ("und", "en", "ed", "och", "e", "y")


def _spoken(values: list[float]) -> tuple[str, ...]:
    """Return the keys of a number in words: an amount, and the digits that it spells out."""
    if not values:
        return ()
    if len(values) >= _SPELLED and max(values) < 10:  # noqa: PLR2004
        digits = "".join(str(int(value)) for value in values)
        return (f"account:{digits}", f"id:{digits}", f"phone:{digits[-9:]}")
    total = group = 0.0
    for value in values:
        if value >= 1000:  # noqa: PLR2004
            total, group = total + max(group, 1) * value, 0
        elif value == 100:  # noqa: PLR2004
            group = max(group, 1) * value
        else:
            group += value
    return (f"amount:{plain(total + group)}",)


_SPELLED = 5
_ARTICLE = 1
"""A number that many languages use as an article."""


def _date_around(tokens: list[Token], at: int) -> None:
    """Make a value of a month with a day beside it, and a year if there is one."""
    day = year = 0
    parts = []
    for token in (*tokens[max(0, at - 2) : at], *tokens[at + 1 : at + 4]):
        number = _digits(token)
        parts += [token] if number else []
        if 0 < number <= 31 and not day:  # noqa: PLR2004
            day = number
        elif 1900 <= number < 2200:  # noqa: PLR2004
            year = number
    if day:
        tokens[at].value = Found(0, 0, tokens[at].text, date_keys(year, tokens[at].sense.month, day))
        _set_aside(parts)


def _digits(token: Token) -> int:
    text = token.value.text if token.value is not None else token.text
    match = re.match(r"(\d{1,4})(?:st|nd|rd|th|er|\.|º|ª|o|e|日|일)?$", text)
    return int(match[1]) if match else 0


def _sentences(tokens: list[Token]) -> Iterator[list[Token]]:
    sentence: list[Token] = []
    for token in tokens:
        sentence.append(token)
        if token.sign and token.sign in _ENDS:
            if len(sentence) > 1 or token.sign == "\n":
                yield sentence
            sentence = []
    if sentence:
        yield sentence


def is_question(sign: str) -> bool:
    """Return whether a sign ends a question."""
    return sign in _ASKING


def is_comma(sign: str) -> bool:
    """Return whether a sign parts a sentence."""
    return sign in _COMMAS


def is_break(sign: str) -> bool:
    """Return whether a sign ends a line."""
    return sign == "\n"
