"""Code in the languages of scripts, by the syntax trees of compiled grammars.

What does not parse as a whole is read as far as its parts can be told, and counts as code that is not read here. A
language without a grammar is not read at all: its code may do anything.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.judging import Judge
from safetydrift.effects.languages.code.program import Program
from safetydrift.effects.languages.trees import syntax_tree
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tree_sitter import Node

    from safetydrift.effects.languages.code.syntax import Grammar
    from safetydrift.effects.reading import Reading

MAX_CODE = 32 * 1024
"""Longer texts are not read."""
_START = 10
"""So often a grammar may report progress before it has got anywhere."""
_ROOTS = {
    "javascript": frozenset(("window", "globalThis", "self", "global", "top", "parent", "frames")),
    "python": frozenset(("builtins", "__builtins__", "__main__")),
}
_OTHER_ROOTS = frozenset(("Kernel", "main", "_G", "base", "GLOBALS"))
_FILE = re.compile(r"[^\s'\"<>|;]{2,200}")
_SHAPES = ("/", "\\", ".")
_NAME = re.compile(r"[A-Za-z_$][\w\-]{0,60}+(?:(?:\.|::|->)[A-Za-z_]\w{0,60}+){0,8}+(?=[ \t]?(\()?)")
_MAX_NAMES = 1000


def read_script(language: str) -> Callable[[Reading, str], None]:
    """Return the reader of a language.

    It raises `UnreadableError` for text that is too long or too deeply nested to be followed.
    """

    def read(reading: Reading, text: str) -> None:
        reading.act("computes", f"runs {language} code")
        read_tree(reading, language, text)

    return read


def read_tree(reading: Reading, language: str, text: str) -> None:
    """Add what a script does, without what running the language means at all.

    Raises
    ------
    UnreadableError
        If it nests too deeply, or is too much, to be followed.
    """
    from safetydrift.effects.languages.code.grammars import GRAMMARS  # noqa: PLC0415  # few processes need it

    if len(text) > MAX_CODE:
        raise UnreadableError(f"{language} code of more than {MAX_CODE} characters")
    grammar, kind = GRAMMARS[language]
    if language == "php" and "<?" not in text:
        text = f"<?php {text}"
    source = text.encode("utf-8", "replace")
    program = Program(reading.catalogue.calls[language], _ROOTS.get(language, _OTHER_ROOTS), pay=reading.pay)
    judge = Judge(reading, program)
    if grammar.avoided.search(text):
        reading.hides(f"runs {language} code of a form that is not read here")
        _take_every_name(judge, text)
        return
    root, sound = _parsed(reading, grammar, source)
    if root is None:
        _take_every_name(judge, text)
        source = source[:sound]
        root, _ = _parsed(reading, grammar, source)
    if root is None or root.has_error or sound < len(source):
        reading.act("runs", f"runs code that does not parse as {language}")
    tree = kind(program, grammar, source)
    try:
        if root is not None:
            tree.read(root)
        judge.everything()
    except RecursionError:
        raise UnreadableError(f"{language} code that nests too deeply") from None
    name_files(reading, tree.texts)


def _parsed(reading: Reading, grammar: Grammar, source: bytes) -> tuple[Node | None, int]:
    """Return the root of the syntax tree, and up to which place the text is sound.

    There is no root if the grammar finds its way in the text too slowly. Steps are counted, and nothing is timed: the
    answer is always the same.
    """
    steps = in_trouble = sound = 0
    price, least, most_in_trouble = grammar.pace
    allowed = reading.budget // price

    def exhausted(place: int, trouble: bool) -> bool:
        nonlocal steps, in_trouble, sound
        steps += 1
        in_trouble += trouble
        sound = sound if in_trouble else place
        return steps > min(allowed, _START + place // least) or in_trouble > most_in_trouble

    try:
        root = syntax_tree(grammar.package, source, exhausted)
    except ImportError as error:
        raise UnreadableError(f"its grammar is missing: {error}") from error
    finally:
        reading.pay(min(steps, allowed) * price)
    return root, len(source) if root is not None else sound


def name_files(reading: Reading, texts: Iterable[str]) -> None:
    """Add what texts tell that are names of files."""
    for text in dict.fromkeys(texts):
        if _FILE.fullmatch(text) and any(shape in text for shape in _SHAPES) and "://" not in text:
            reading.pay(8)
            reading.names(text)


def _take_every_name(judge: Judge, text: str) -> None:
    """Take every name in a text for one that is used; one before a bracket for a function of any library."""
    calls = judge.program.calls
    names = dict.fromkeys((match[0], match[1]) for match in _NAME.finditer(text))
    if len(names) > _MAX_NAMES:
        raise UnreadableError("code of very many names that does not parse")
    for word, bracket in names:
        name = word.replace("::", ".").replace("->", ".")
        for entry in calls.find(name) or (calls.ending(name.rpartition(".")[2]) if bracket else ()):
            if entry.folds != "module":
                judge.entry(entry, name, None)


def unread(language: str) -> Callable[[Reading, str], None]:
    """Return the reader of a language without a grammar: its code may do anything, but what it names counts."""

    def read(reading: Reading, text: str) -> None:
        reading.hides(f"runs {language} code, which is not read here")
        name_files(reading, re.findall(r"[\w.~\\/\-]{2,200}", text[:MAX_TEXT])[:_MAX_NAMES])

    return read
