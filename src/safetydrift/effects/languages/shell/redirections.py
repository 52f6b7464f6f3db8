"""Redirections: what feeds a command, and where its output goes."""

from __future__ import annotations

from safetydrift.effects.languages.shell.grammar import is_lost_sign
from safetydrift.effects.languages.shell.operands import DEVICES, add_written, endpoint, named_by_glob
from safetydrift.effects.languages.shell.programs import Programs
from safetydrift.effects.languages.shell.values import Fed, file_key, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node

_EMPTYING = frozenset((">", ">|"))
REDIRECTIONS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
"""The types of their nodes."""


class Redirections(Programs):
    """Reads redirections; a device of the network, read or written, is a connection."""

    def lost(self, node: Node) -> str:
        """Return the sign that the grammar left over of a redirection, empty if the node is something else."""
        return self.written(node) if is_lost_sign(node, self.source) else ""

    def redirect(self, node: Node, fed: Fed | None, *, here: bool) -> tuple[Fed | None, bool]:
        """Add a redirection; return what the command is fed from now on, and whether its output goes elsewhere."""
        if node.type == "heredoc_redirect":
            return self._heredoc(node) or fed, False
        if node.type == "herestring_redirect":
            words = [child for child in node.children if child.is_named]
            return Fed(self._here(words[-1])) if words else fed, False
        if not reads_file(node):
            self.written_to(node, None)
            return fed, True
        for target in self._targets(node):
            if here:
                fed = Fed(target)
            elif target == "/dev/null":
                fed = Fed("")
            elif target not in self.reading.catalogue.shell.discard:
                fed = self._read_from(target)
        return fed, False

    def _here(self, node: Node) -> str:
        return joined([self.text(node), "\n"])

    def _read_from(self, path: str) -> Fed:
        if path.startswith(DEVICES):
            add_written(self.reading, path)
            return Fed(None)
        key, place = file_key(path), self.reading.located(path)
        sources = (place, *self.reading.made_of(place))
        if key in self.scope.files:
            return Fed(self.scope.files[key], sources=sources)
        self.reading.reads(path)
        named_by_glob(self.reading, path)
        return Fed(None, sources=sources)

    def written_to(self, node: Node, printed: str | None) -> str | None:
        """Add where output goes; return what is left of it for a pipe."""
        first = node.children[0]
        sign = first.type if first.type != "file_descriptor" else node.children[1].type
        errors = first.type == "file_descriptor" and self.written(first) != "1"
        for target in self._targets(node):
            if target == "-" or (sign in {">&", "<&"} and target.rstrip("-").isdigit()):
                self._connected(self.scope.connections.get(target, ""))
                continue
            add_written(self.reading, target)
            if target.startswith(DEVICES):
                self._connected(endpoint(target))
                self.scope.connections[self.written(first)] = endpoint(target)
            key = file_key(target)
            if not errors:
                if printed is not None and not printed.strip() and sign in _EMPTYING and self.is_kept(target):
                    self.reading.empties(target)
                before = self.scope.files.get(key)
                adds = sign in {">>", "&>>"} and before is not None and printed is not None
                self.scope.files[key] = joined([before or "", printed or ""]) if adds else printed
                printed = ""
        return printed

    def _connected(self, address: str) -> None:
        """Add that the output of what was read before goes over a connection."""
        if address and self.given:
            outside, self.reading.taken = self.reading.taken, list(self.given)
            self.reading.hands(address.partition(":")[0], address)
            self.reading.taken = outside

    def is_kept(self, path: str) -> bool:
        """Return whether a file may hold something that this very text has not written."""
        return file_key(path) not in self.scope.files and path not in self.reading.catalogue.shell.discard

    def _targets(self, node: Node) -> list[str]:
        return [
            self.text(child)
            for child in node.children
            if child.is_named and child.type not in {"ERROR", "file_descriptor"}
        ]

    def _heredoc(self, node: Node) -> Fed | None:
        start = body = None
        for child in node.children:
            if child.type == "heredoc_start":
                start = self.written(child)
            elif child.type == "heredoc_body":
                body = child
        if body is None or start is None:
            return Fed("")
        text = self.body(body, quoted=any(sign in start for sign in "'\"\\"))
        if node.children[0].type == "<<-":
            text = joined([type(text)("\n".join(line.lstrip("\t") for line in text.split("\n")))])
        return Fed(text)


def reads_file(node: Node) -> bool:
    """Return whether a redirection is for reading."""
    signs = [child.type for child in node.children if not child.is_named]
    return bool(signs) and signs[0] in {"<", "<&"}


def after_heredoc(node: Node) -> list[Node]:
    """Return the commands that stand on the line behind the start of a here-document."""
    if node.type != "heredoc_redirect":
        return []
    return [
        child
        for child in node.children
        if child.is_named
        and child.type
        not in {"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect", "file_descriptor", "ERROR"}
    ]
