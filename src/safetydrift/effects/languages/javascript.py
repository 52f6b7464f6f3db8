"""JavaScript (and, mostly, TypeScript): what running it would do, by its syntax tree."""

from __future__ import annotations

from safetydrift.effects.languages.code.judging import Judge
from safetydrift.effects.languages.code.program import Program
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Language, Tree

    from safetydrift.effects.reading import Reading

ROOTS = frozenset(("window", "globalThis", "self", "global", "top", "parent", "frames"))
MAX_CODE = 32 * 1024
"""Longer texts are not read: the grammar takes its time over texts that are full of mistakes."""
_STEPS, _CHARACTERS_PER_STEP = 400, 10
"""How often the grammar may report progress: a few times as often as it does over usual code."""
_CHUNK = 1 << 16
_LANGUAGES: list[Language] = []


def read_javascript(reading: Reading, text: str) -> None:
    """Add what running JavaScript would do.

    What is no JavaScript is read as far as its parts can be told, and counts as code that is not read here.

    Raises
    ------
    UnreadableError
        If it is too long or too deeply nested to be followed.
    """
    if len(text) > MAX_CODE:
        raise UnreadableError(f"JavaScript of more than {MAX_CODE} characters")
    from safetydrift.effects.languages.code.javascript_tree import read_tree  # noqa: PLC0415  # few processes need it

    reading.act("computes", "runs JavaScript")
    tree = _parsed(text.encode("utf-8", "replace"))
    if tree is None or tree.root_node.has_error:
        reading.act("runs", "runs code that does not parse as JavaScript")
    if tree is None:
        from safetydrift.effects.languages.scripts import read_words  # noqa: PLC0415  # few texts need it

        read_words(reading, "javascript", text)
        return
    program = Program(reading.catalogue.calls["javascript"], ROOTS)
    try:
        read_tree(program, tree.root_node)
        Judge(reading, program).everything()
    except RecursionError:
        raise UnreadableError("JavaScript that nests too deeply") from None


def _parsed(text: bytes) -> Tree | None:
    """Return the syntax tree; None if the grammar finds its way in the text too slowly.

    It searches for the least wrong reading of what is no JavaScript, in a time that may grow with the square of the
    length. So it may only take so many steps, which are counted and not timed: the answer is always the same.
    """
    # The grammar is compiled code, which a process that meets no JavaScript need not load.
    from tree_sitter import Language, Parser  # noqa: PLC0415

    if not _LANGUAGES:
        from tree_sitter_javascript import language  # noqa: PLC0415

        _LANGUAGES.append(Language(language()))
    left = [_STEPS + len(text) // _CHARACTERS_PER_STEP]

    def exhausted(*_progress: object) -> bool:
        left[0] -= 1
        return left[0] < 0

    def from_here(start: int, _point: object) -> bytes:
        return text[start : start + _CHUNK]

    try:
        tree: Tree = Parser(_LANGUAGES[0]).parse(from_here, progress_callback=exhausted)
    except ValueError:
        return None
    return tree
