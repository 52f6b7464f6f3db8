"""What statements of SQL do: their words are cut, split at semicolons, and read statement by statement."""

from __future__ import annotations

from safetydrift.effects.languages.sql.clients import read_client
from safetydrift.effects.languages.sql.lexer import readings
from safetydrift.effects.languages.sql.statement import Statement
from safetydrift.effects.reading import MAX_TEXT, UnreadableError
from safetydrift.effects.tool_operations import told_by_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.languages.sql.lexer import Words
    from safetydrift.effects.reading import Reading

MAX_STATEMENTS = 400
"""More statements in one text are not read."""
_PRICE_OF_WORD = 7


def read_sql(reading: Reading, text: str) -> None:
    """Add what running statements would do, one after the other; a transaction counts as if it were committed.

    Raises
    ------
    UnreadableError
        If the text is too long, or has too many words or statements.
    """
    if len(text) > MAX_TEXT:
        raise UnreadableError(f"more than {MAX_TEXT} characters of SQL")
    text = read_client(reading, text)
    reading.beside += told_by_values(reading.catalogue, "sql", "", {"sql": text})
    seen: set[tuple[str, str]] = set()
    reading.pay(len(text) // 2)
    for words in readings(text):
        reading.pay(_PRICE_OF_WORD * len(words.keys))
        if not words.whole or words.keys.count("(") != words.keys.count(")"):
            reading.confidence = min(reading.confidence, reading.catalogue.confidence["hidden"])
        _read_statements(reading, words, seen)


def _read_statements(reading: Reading, words: Words, seen: set[tuple[str, str]]) -> None:
    start = count = 0
    for end in [*[place for place, key in enumerate(words.keys) if key == ";"], len(words.keys)]:
        if end > start:
            count += 1
            if count > MAX_STATEMENTS:
                raise UnreadableError(f"more than {MAX_STATEMENTS} statements")
            Statement(reading, words.keys[start:end], words.texts[start:end], seen).read()
        start = end + 1
