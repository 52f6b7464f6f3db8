"""Scripts in the languages that agents use now and then: what running them would do, word by word.

Texts, comments, names and calls are told apart, and what a variable holds is followed; more of the grammar is not
known. Code that the reader loses its way in counts as code that is not read.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.dialects import DIALECTS
from safetydrift.effects.languages.code.grammar import Grammar
from safetydrift.effects.languages.code.judging import Judge
from safetydrift.effects.languages.code.program import Program
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

_FILTERS = frozenset(("awk",))
"""Languages of programs that, of themselves, only turn what they are fed into something else."""
_ROOTS = frozenset(("Kernel", "main", "_G", "base", "GLOBALS"))
_FILE = re.compile(r"[^\s'\"<>|;]{2,200}")
_SHAPES = ("/", "\\", ".")
_NETWORK = ("/inet/", "/inet4/", "/inet6/")
_WORD = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?", re.MULTILINE)


def read_script(language: str) -> Callable[[Reading, str], None]:
    """Return the reader of a language.

    It raises `UnreadableError` for text that is too long or too deeply nested to be followed.
    """

    def read(reading: Reading, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise UnreadableError(f"{language} code of more than {MAX_TEXT} characters")
        if language in _FILTERS:
            reading.act("looks", f"runs {language} over what it is fed")
        else:
            reading.act("computes", f"runs {language} code")
        read_words(reading, language, text)

    return read


def read_words(reading: Reading, language: str, text: str) -> None:
    """Add what a script does, without what running the language means at all.

    Raises
    ------
    UnreadableError
        If it nests too deeply to be followed.
    """
    program = Program(reading.catalogue.calls[language], _ROOTS)
    try:
        grammar = Grammar(program, text, DIALECTS[language])
        grammar.read()
        if language == "python":
            _imports(program, text)
        judge = Judge(reading, program)
        judge.everything()
    except RecursionError:
        raise UnreadableError(f"{language} code that nests too deeply") from None
    for constant in grammar.texts:
        _names(reading, constant)
    if grammar.lost:
        reading.act("runs", f"runs {language} code that is not closed")
        _any_word(judge, text)


def _names(reading: Reading, text: str) -> None:
    """Add what a text tells if it is the name of a file."""
    if text.startswith(_NETWORK):
        reading.act("connects", f"opens {text[:60]}")
    elif _FILE.fullmatch(text) and any(shape in text for shape in _SHAPES) and "://" not in text:
        reading.names(text)


def _any_word(judge: Judge, text: str) -> None:
    """Take every name in a text for one that is used, whatever stands around it."""
    calls = judge.program.calls
    for word in {match[0] for match in _WORD.finditer(text)}:
        name = word.replace("::", ".").replace("->", ".")
        for entry in calls.find(name):
            judge.entry(entry, name, None)


def _imports(program: Program, text: str) -> None:
    """Note what Python code imports that cannot be parsed."""
    from safetydrift.effects.languages.code.expressions import Reference  # noqa: PLC0415  # only this needs it

    for match in _IMPORT.finditer(text):
        program.imported.append(match[1])
        if match[2]:
            program.bind(match[2], Reference(match[1]))
