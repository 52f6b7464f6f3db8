"""The grammar: shell text as a syntax tree, within a bounded amount of work.

The tree comes from ``tree_sitter_bash``. On hostile text its work grows with the square of the length, so it is
stopped when it has done too much; the amount depends on the text alone, never on the clock.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.trees import syntax_tree
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

MAX_WORK = 100_000
"""The grammar's work on one text; ordinary scripts of 5,000 characters need half of it at most."""
_CONTINUED = re.compile(r"(?<=[^\s\\])\\\n(?=[^\s\\])")
_LOST_SIGNS = frozenset((b"<", b">", b"<<"))
_SIGNS = str.maketrans("", "", "()[]{}<>|&;$`\0")
_ROUND = 100
# The grammar looks characters up in tables of the C library: beyond ASCII it may read past their end, which can end the
# process, and it takes for letters and blanks what the locale says. To a shell they are nothing but parts of words, so
# that is what it is shown: as many bytes that can be nothing else.
_AS_WORDS = bytes(range(128)) + b"\x7f" * 128
_SIGNS_COUNT = 3
_PLAIN_COUNTS = 32
_TROUBLE_COUNTS = 2

# What the grammar lacks or agents get wrong although every reader understands it, with what it means.
_REPAIRS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"&amp;"), "&"),
    (re.compile(r"\$\(\("), "$( ("),
    (re.compile(r"&lt;"), "<"),
    (re.compile(r"&gt;"), ">"),
    (re.compile(r"&quot;"), '"'),
    (re.compile(r"(?<![\w$\"'])\{(?=[^\s{},;]{1,256},)"), '""{'),
    (re.compile(r"(?<=[0-9\s])<>"), ">"),
    (re.compile(r"\\\\;"), r"\\;"),
    (re.compile(r"(<<-?[ \t]{0,4}(['\"]?)\w{1,64}\2)[ \t]+([^\n|;&<>()]{1,256})(?=[|\n])"), r"\3 \1 "),
)


def parse(text: str, pay: Callable[[int], None]) -> tuple[bytes, Node]:
    """Return a text as the tree's bytes, and the root of its tree.

    Text that does not parse is tried once more with common slips repaired; the tree of what still does not parse has
    nodes of the type ``ERROR``.

    Parameters
    ----------
    pay
        Takes the work done; it may refuse to go on.

    Raises
    ------
    UnreadableError
        If the text is too long, or the grammar would need too much work for it.
    """
    if len(text) > MAX_TEXT:
        raise UnreadableError(f"a command of more than {MAX_TEXT} characters")
    if "\\\n" in text:
        # A continued line ends a word for the grammar, but not for a shell.
        text = _CONTINUED.sub("", text)
    source, root = _parse(text, pay)
    if root.has_error:
        repaired = text
        for pattern, meaning in _REPAIRS:
            repaired = pattern.sub(meaning, repaired)
        if repaired != text:
            again, better = _parse(repaired, pay)
            if not better.has_error:
                return again, better
    return source, root


def _parse(text: str, pay: Callable[[int], None]) -> tuple[bytes, Node]:
    source = text.replace("\0", "").encode("utf-8", "replace")
    work = price = 0

    # The grammar calls it after every 100 steps.
    def spent(_: int, trouble: bool) -> bool:
        nonlocal work, price
        if not work:
            # A step costs up to the length of the text, and the more so the more signs there are to try.
            signs = len(text) - len(text.translate(_SIGNS))
            price = min(len(text), max(_SIGNS_COUNT * signs, len(text) // _PLAIN_COUNTS))
        work += _ROUND + price * (_TROUBLE_COUNTS if trouble else 1)
        return work > MAX_WORK

    root = syntax_tree("tree_sitter_bash", source.translate(_AS_WORDS), spent)
    if root is None:
        raise UnreadableError("the command is too tangled to be parsed")
    if work:
        pay(work)
    return source, root


def first_trouble(root: Node, source: bytes) -> Node | None:
    """Return the first node that the grammar made up or could not place; what `is_lost_sign` tells is none."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_missing or (node.type == "ERROR" and not is_lost_sign(node, source)):
            return node
        if node.has_error:
            stack.extend(reversed(node.children))
    return None


def is_lost_sign(node: Node, source: bytes) -> bool:
    """Return whether a node is what the grammar leaves over of ``<>`` and of ``<<<`` behind another redirection."""
    if node.type != "ERROR" or source[node.start_byte : node.end_byte] not in _LOST_SIGNS:
        return False
    after = node.next_sibling
    return after is not None and (after.type in {"file_redirect", ">", "<"})
