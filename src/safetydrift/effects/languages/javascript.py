"""JavaScript (and, mostly, TypeScript): what running it would do, by its syntax tree."""

from __future__ import annotations

from safetydrift.effects.languages.code.judging import Judge
from safetydrift.effects.languages.code.program import Program
from safetydrift.effects.languages.trees import syntax_tree
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node

    from safetydrift.effects.reading import Reading

ROOTS = frozenset(("window", "globalThis", "self", "global", "top", "parent", "frames"))
MAX_CODE = 32 * 1024
"""Longer texts are not read: the grammar takes its time over texts that are full of mistakes."""
_STEPS, _CHARACTERS_PER_STEP = 400, 10
"""How often the grammar may report progress: a few times as often as it does over usual code."""


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
    source = text.encode("utf-8", "replace")
    root = _parsed(source)
    if root is None or root.has_error:
        reading.act("runs", "runs code that does not parse as JavaScript")
    if root is None:
        from safetydrift.effects.languages.scripts import read_words  # noqa: PLC0415  # few texts need it

        read_words(reading, "javascript", text)
        return
    program = Program(reading.catalogue.calls["javascript"], ROOTS)
    try:
        read_tree(program, root, source)
        Judge(reading, program).everything()
    except RecursionError:
        raise UnreadableError("JavaScript that nests too deeply") from None


def _parsed(source: bytes) -> Node | None:
    """Return the root of the syntax tree; None if the grammar finds its way in the text too slowly.

    It searches for the least wrong reading of what is no JavaScript, in a time that may grow with the square of the
    length. So it may only take so many steps, which are counted and not timed: the answer is always the same.
    """
    left = _STEPS + len(source) // _CHARACTERS_PER_STEP

    def exhausted(*_progress: object) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return syntax_tree("tree_sitter_javascript", source, exhausted)
