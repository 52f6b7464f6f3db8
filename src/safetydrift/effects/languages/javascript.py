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
MAX_MISTAKES = 100
"""Texts with more are not parsed."""
_PIECE = 1000
_CUT = 4
"""So many mistakes of a piece are not counted: it was cut off anywhere."""
_DEEP = 150
"""A mistake that stands deeper than this is one too many."""
_STEPS, _CHARACTERS_PER_STEP = 10, 40
"""How often the grammar may report progress up to a place; in usual code, once in more than so many characters."""


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

    It searches for the least wrong reading of what is no JavaScript. Where there are many mistakes in what stays open,
    one step at the end of the text may then take minutes, and cannot be stopped. So longer texts are parsed in pieces
    first, to see how many mistakes there are. Steps and mistakes are counted, and nothing is timed: the answer is
    always the same.
    """
    if len(source) > _PIECE and _mistakes(source) > MAX_MISTAKES:
        return None
    return _tree(source)


def _mistakes(source: bytes) -> int:
    """Return how many mistakes the pieces of a text hold, counted to a little beyond `MAX_MISTAKES`."""
    found = 0
    for start in range(0, len(source), _PIECE):
        root = _tree(source[start : start + _PIECE])
        if root is None or found > MAX_MISTAKES:
            return MAX_MISTAKES + 1
        found += max(0, _mistakes_in(root) - _CUT)
    return found


def _mistakes_in(root: Node) -> int:
    found = 0
    left = [(root, 0)]
    while left and found <= MAX_MISTAKES + _CUT:
        node, depth = left.pop()
        if depth > _DEEP:
            return MAX_MISTAKES + _CUT + 1
        found += node.is_error or node.is_missing
        if node.has_error:
            left += [(child, depth + 1) for child in node.children]
    return found


def _tree(source: bytes) -> Node | None:
    steps = 0

    def exhausted(place: int, _trouble: bool) -> bool:
        nonlocal steps
        steps += 1
        return steps > _STEPS + place // _CHARACTERS_PER_STEP

    return syntax_tree("tree_sitter_javascript", source, exhausted)
