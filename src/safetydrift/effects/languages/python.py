"""Python code: what running it would do, by its syntax tree; cells of notebooks with their own commands too."""

from __future__ import annotations

import ast
import warnings
from threading import Lock

from safetydrift.effects.languages.code.judging import Judge
from safetydrift.effects.languages.code.notebook import cell_program, without_commands
from safetydrift.effects.languages.code.program import Program
from safetydrift.effects.languages.code.python_tree import read_tree
from safetydrift.effects.languages.edits import edited
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.reading import Reading

ROOTS = frozenset(("builtins", "__builtins__", "__main__"))
USUAL_NAMES = {
    "np": "numpy",
    "pd": "pandas",
    "pl": "polars",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "tf": "tensorflow",
    "ET": "xml.etree.ElementTree",
    "Path": "pathlib.Path",
}
"""What names of libraries usually stand for; a cell of a notebook may have imported them earlier."""
_PARSING = Lock()


def read_python(reading: Reading, text: str) -> None:
    """Add what running Python code, or a cell of a notebook, would do.

    Code that is no Python of this day (Python 2, cut off, mixed up) is read word by word and counts as code that is
    not read here.

    Raises
    ------
    UnreadableError
        If it is too long or too deeply nested to be followed.
    """
    if len(text) > MAX_TEXT:
        raise UnreadableError(f"Python code of more than {MAX_TEXT} characters")
    path = edited(text)
    if path is not None and parsed(text) is None:
        reading.reaches("reads", "edits a file, and runs nothing")
        reading.writes(path or "the file that is open")
        return
    reading.act("computes", "runs Python code")
    if text.lstrip().startswith("%%"):
        text = cell_program(reading, text)
    tree = parsed(text)
    if tree is None:
        text, commands = without_commands(reading, text)
        tree = parsed(text) if commands else None
    if tree is None:
        _read_words(reading, text)
        return
    program = Program(reading.catalogue.calls["python"], ROOTS, USUAL_NAMES)
    try:
        read_tree(program, tree)
        Judge(reading, program).everything()
    except RecursionError:
        raise UnreadableError("Python code that nests too deeply") from None


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of Python code, None if it is none."""
    try:
        # What the parser warns of (an odd escape) is no concern of ours; filters belong to the whole process.
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read_words(reading: Reading, text: str) -> None:
    """Add what the words tell of code that cannot be parsed."""
    from safetydrift.effects.languages.scripts import read_words  # noqa: PLC0415  # few texts need it

    reading.act("runs", "runs code that does not parse as Python")
    read_words(reading, "python", text)
