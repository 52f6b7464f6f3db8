"""What statements of SQL do.

Queries and changes of rows are parsed, in the first of a few dialects that takes them; the other statements, and what
no dialect takes, are read by their key words. So text that no parser follows is never taken for less than its words
say.
"""

from __future__ import annotations

from safetydrift.effects.languages.sql import grammar
from safetydrift.effects.languages.sql.clients import read_client
from safetydrift.effects.languages.sql.lexer import lexings
from safetydrift.effects.languages.sql.queries import read_tree
from safetydrift.effects.languages.sql.statement import Statement
from safetydrift.effects.languages.sql.statements import LEADING, QUIET, exported, scan
from safetydrift.effects.reading import MAX_TEXT, UnreadableError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.effects.languages.sql.lexer import Word
    from safetydrift.effects.reading import Reading

MAX_STATEMENTS = 400
"""More statements in one text are not read."""
_QUERIES = frozenset(
    ("SELECT", "WITH", "(", "VALUES", "TABLE", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE")
)
_BLOCK = frozenset(("BEGIN", "END", "START", "THEN", "ELSE", "LOOP"))
"""Words that may stand around statements."""
_AFTER_BLOCK = frozenset(
    (
        *(
            "TRANSACTION",
            "TRAN",
            "WORK",
            "READ",
            "ONLY",
            "WRITE",
            "ISOLATION",
            "LEVEL",
            "IMMEDIATE",
            "DEFERRED",
            ",",
        ),
        *(
            "EXCLUSIVE",
            "SERIALIZABLE",
            "REPEATABLE",
            "COMMITTED",
            "UNCOMMITTED",
            "SNAPSHOT",
            "ATOMIC",
            "IF",
            "LOOP",
        ),
    )
)
"""Words that may follow these."""


def read_sql(reading: Reading, text: str) -> None:
    """Add what running statements would do, one after the other; a transaction counts as if it were committed.

    Raises
    ------
    UnreadableError
        If the text is too long, or has too many statements.
    """
    if len(text) > MAX_TEXT:
        raise UnreadableError(f"more than {MAX_TEXT} characters of SQL")
    for source, words, whole in lexings(read_client(reading, text)):
        if not whole:
            reading.confidence = min(reading.confidence, reading.catalogue.confidence["hidden"])
        for count, part in enumerate(_split(words)):
            if count >= MAX_STATEMENTS:
                raise UnreadableError(f"more than {MAX_STATEMENTS} statements")
            _read_statement(reading, source, part)


def _split(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    start = 0
    for place, word in enumerate(words):
        if word.key == ";":
            if place > start:
                yield words[start:place]
            start = place + 1
    if start < len(words):
        yield words[start:]


def _read_statement(reading: Reading, text: str, words: Sequence[Word]) -> None:
    words = words[_opening(words) :]
    statement = Statement(reading, words)
    while words and (leading := LEADING.get(words[0].key)) is not None:
        within = leading(statement)
        if not 0 < within < len(words):
            return
        words = words[within:]
        statement = Statement(reading, words)
    if not words:
        reading.act("looks", "begins or ends a block or transaction")
    elif words[0].key in _QUERIES:
        _read_query(reading, text, words, statement)
    elif not scan(statement):
        _read_other(reading, words[0])


def _opening(words: Sequence[Word]) -> int:
    """Return how many words open or close a block or transaction before a statement."""
    start = 0
    while start < len(words) and words[start].key in _BLOCK:
        start += 1
        while start < len(words) and words[start].key in _AFTER_BLOCK:
            start += 1
    return start


def _read_other(reading: Reading, first: Word) -> None:
    if first.key in QUIET:
        reading.act("looks", f"{first.key} changes nothing that is kept")
    else:
        reading.unknown(f"no statement of SQL begins like this: {shown(first.text)}", "runs")


def _read_query(reading: Reading, text: str, words: Sequence[Word], statement: Statement) -> None:
    source = exported(statement, text) or text[words[0].start : words[-1].end]
    tree = grammar.tree(source, words)
    found = scan(statement, names=tree is None)
    if tree is not None:
        read_tree(reading, tree)
        return
    reading.confidence = min(reading.confidence, reading.catalogue.confidence["pattern"])
    if not found:
        reading.act("reads", "a query that cannot be parsed")
