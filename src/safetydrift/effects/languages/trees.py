"""Syntax trees by compiled grammars: the only place where one is asked for, and where its traps are kept away from.

- A parser is used once: one that was stopped half-way would go on with the old text.
- Sources are handed over piece by piece, because only then can a parser be stopped. Its binding keeps every piece for
  ever, so all pieces are handed over in the same few buffers. What stands at a node is cut from the source, never
  asked of the node, whose answer would come from such a buffer.
- A grammar may look ahead to the end of the text from every place in it. How often it reads a piece tells how much
  it reads, so that it can be stopped.
"""

from __future__ import annotations

from safetydrift.effects.languages.compiled import parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

MAX_READ = 200
"""So many times a grammar may read a text, on the average of its pieces."""
_PIECE = 4096
_BUFFERS: list[bytearray] = []
"""Those that no parser is reading from; there are as many in all as parsers ever worked at the same time."""


def syntax_tree(package: str, source: bytes, stops: Callable[[int, bool], bool]) -> Node | None:
    """Return the root of the syntax tree of a source; None if the parser was stopped.

    Parameters
    ----------
    package
        The package of the grammar.
    source
        The text in UTF-8; the places of nodes count its bytes.
    stops
        Asked after every hundred steps or so, with the place and whether the text is in error so far, whether that
        was enough.
    """
    left = MAX_READ * (1 + len(source) // _PIECE)
    try:
        buffer = _BUFFERS.pop()
    except IndexError:
        buffer = bytearray()

    def piece(start: int, _place: object) -> bytearray:
        nonlocal left
        left -= 1
        # Without a text there is nothing more to read, until `enough` is asked.
        buffer[:] = source[start : start + _PIECE] if left >= 0 else b""
        return buffer

    def enough(place: int, trouble: bool) -> bool:
        return left < 0 or stops(place, trouble)

    try:
        root = parser(package).parse(piece, progress_callback=enough).root_node
    except ValueError:
        return None
    finally:
        _BUFFERS.append(buffer)
    return root if left >= 0 else None
