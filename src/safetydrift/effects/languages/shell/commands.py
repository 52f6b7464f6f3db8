"""What a shell command really does: the join over every program that it may run.

Each simple command is looked up in the catalogue's programs, its operands in the paths; wrappers (``sudo``,
``xargs``, ``sh -c``) are looked through. Nothing is executed, so the reading errs to the cautious side: every branch
counts as taken, every function as called, and a variable may hold whatever it was given on any of the ways.
"""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.scales import join
from safetydrift.effects.languages.shell.grammar import first_trouble, parse
from safetydrift.effects.languages.shell.judging import variable_set
from safetydrift.effects.languages.shell.outputs import MAX_OUTPUT
from safetydrift.effects.languages.shell.placeholders import filled_in
from safetydrift.effects.languages.shell.redirections import (
    REDIRECTIONS,
    Redirections,
    after_heredoc,
    reads_file,
)
from safetydrift.effects.languages.shell.values import (
    Carried,
    Computed,
    Fed,
    Function,
    Scope,
    file_key,
    joined,
    like,
)
from safetydrift.effects.reading import MAX_TEXT, UnreadableError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tree_sitter import Node

    from safetydrift.effects.reading import Reading

    Statement = Callable[["_Shell", Node, Fed | None], str | None]

_CMDLET = re.compile(r"\s*(?:\$\w+\s*=\s*)?\(?([A-Z][a-z]+)-([A-Z][A-Za-z]+)\b")
_SHOWN = 200
_PRICE = 8
_MAX_GIVEN = 32


def read_shell(reading: Reading, text: object) -> None:
    """Add what running a shell command would do.

    Parameters
    ----------
    text
        The text of the command, or its words where a tool takes an argument vector.

    Raises
    ------
    UnreadableError
        If it is neither, is too long, nests too deeply or is too tangled; what was found until then stays added.
    """
    shell = _Shell(reading, Scope())
    before = reading.exact, reading.code
    reading.exact, reading.code = True, False
    try:
        if isinstance(text, str) and _is_powershell(reading, text):
            reading.readers["powershell"](reading, text)
        elif isinstance(text, str):
            shell.top(text)
        else:
            shell.vector(text)
    except RecursionError:
        raise UnreadableError("a command that nests too deeply") from None
    finally:
        reading.exact, reading.code = before


def _is_powershell(reading: Reading, text: str) -> bool:
    """Return whether a text begins with a command of PowerShell, which no other shell has."""
    match = _CMDLET.match(text)
    return match is not None and bool(reading.catalogue.calls["powershell"].find(f"{match[1]}.{match[2]}"))


def read_cmd(reading: Reading, text: object) -> None:
    """Add what running a command line of Windows would do, read as far as it is like one of a shell.

    Raises
    ------
    UnreadableError
        As `read_shell`.
    """
    if not isinstance(text, str):
        raise UnreadableError("no text")
    read_shell(reading, text.replace("^", "").replace("\\", "\\\\"))


class _Shell(Redirections):
    """Walks over the statements of a text."""

    def top(self, text: str) -> None:
        """Read a whole text, and then the functions in it that nobody called."""
        for example in filled_in(text, self.reading.catalogue.programs):
            self._text(example)
        self.scope.arguments = None
        for function in list(self.scope.functions.values()):
            if not function.called:
                self._body(function, None)

    def vector(self, words: object) -> None:
        """Read an argument vector."""
        given = [word for word in words if isinstance(word, str)] if isinstance(words, list | tuple) else []
        if not given or len(given) < len(words) or sum(map(len, given)) > MAX_TEXT:  # type: ignore[arg-type]
            raise UnreadableError("neither a text nor a list of words of a reasonable length")
        self.run(given, None)

    def shell_text(self, text: str) -> None:
        """Read shell text within this text, in the same scope."""
        self.reading.enter(len(text))
        self._text(text)
        self.reading.depth -= 1

    def call(self, function: Function, arguments: list[str], fed: Fed | None) -> None:
        """Read the body of a function with its arguments; one that calls itself is not followed again."""
        function.called = True
        if function.open:
            if fed is not None and fed.words and self.scope.functions.get(fed.words[0]) is function:
                self.reading.bombs("a function starts itself twice over, until the host has no room left")
            return
        if self.reading.taken:
            self.scope.sources["@"] = tuple(self.reading.taken)
        self.reading.pay(function.body.end_byte - function.body.start_byte)
        before, self.scope.arguments = self.scope.arguments, tuple(arguments)
        self._body(function, fed)
        self.scope.arguments = before

    def _body(self, function: Function, fed: Fed | None) -> None:
        before, self.source = self.source, function.source
        function.open = True
        self.scope.branches += 1
        self._statement(function.body, fed)
        self.scope.branches -= 1
        function.open = False
        self.source = before

    def _text(self, text: str) -> str | None:
        source, root = parse(text, self.reading.pay)
        before, self.source = self.source, source
        if root.has_error:
            trouble = first_trouble(root, source)
            if trouble is not None:
                self.reading.unknown(f"{shown(self.written(trouble))} is not understood", "hides")
        printed = self._all(root.children, None)
        self.source = before
        return printed

    def substituted(self, node: Node) -> str:
        """Read the commands of a substitution; return its output, `Computed` where that is not known."""
        reading = self.reading
        reading.pay(4 * _PRICE)
        outside, reading.ranks = reading.ranks, reading.catalogue.scales.lowest
        given, self.given = self.given, []
        directory = reading.directory
        self.enter()
        self.scope.branches += 1
        try:
            printed = self._all(node.children, None)
            carries = self._carries()
        finally:
            self.scope.branches -= 1
            self.depth -= 1
            reading.ranks = join(outside, reading.ranks)
            reading.taken += self.given
            self.given, reading.directory = given, directory
        written = self.written(node)[:_SHOWN]
        if node.type == "process_substitution":
            if printed is None or written.startswith("<"):
                self.scope.files[file_key(written)] = printed
            return Carried(written) if carries else Computed(written)
        if printed is not None:
            return like(printed.rstrip("\n"), (printed,))
        return Carried(written) if carries else Computed(written)

    def _carries(self) -> bool:
        """Return whether what was read since brings along content."""
        catalogue = self.reading.catalogue
        names = catalogue.scales.names
        place = names.index("data") if "data" in names else 0
        return self.reading.ranks[place] >= catalogue.acts["reads"].ranks[place]

    # -- statements ---------------------------------------------------------------------------------------

    def _statement(self, node: Node, fed: Fed | None) -> str | None:
        """Read a statement; return what it prints, None where that is not known."""
        read = _STATEMENTS.get(node.type)
        if read is not None:
            return read(self, node, fed)
        if not node.is_named:
            return ""
        if node.type == "comment":
            return ""
        self._within(node)
        return None

    def _all(self, nodes: Iterable[Node], fed: Fed | None) -> str | None:
        printed: list[str] = []
        whole = True
        for child in nodes:
            if not child.is_named:
                continue
            text = self._statement(child, fed)
            if text is None or sum(map(len, printed)) > MAX_OUTPUT:
                whole = False
            elif text:
                printed.append(text)
        if whole:
            return joined(printed)
        self.part = joined(printed) if printed else ""
        return None

    def _list(self, node: Node, fed: Fed | None) -> str | None:
        """Read ``a && b || c``, which nests to the left as deep as it is long."""
        rest: list[Node] = []
        while node.type == "list":
            rest += reversed(node.children[1:])
            node = node.children[0]
        return self._all([node, *reversed(rest)], fed)

    def _group(self, node: Node, fed: Fed | None) -> str | None:
        self.enter()
        printed = self._all(node.children, fed)
        self.depth -= 1
        return printed

    def _branch(self, node: Node, fed: Fed | None) -> str | None:
        self.scope.branches += 1
        self._group(node, fed)
        self.scope.branches -= 1
        return None

    def _subshell(self, node: Node, fed: Fed | None) -> str | None:
        directory = self.reading.directory
        printed = self._group(node, fed)
        self.reading.directory = directory
        return printed

    def _pipeline(self, node: Node, fed: Fed | None) -> str | None:
        self.enter()
        printed: str | None = ""
        given: list[str] = self.given
        for child in node.children:
            if child.is_named:
                self.part, self.given = "", []
                printed = self._statement(child, fed)
                fed = Fed(printed, self._last_words(child), self.part, tuple(self.given))
        self.given = (given + self.given)[:_MAX_GIVEN]
        self.depth -= 1
        return printed

    def _last_words(self, node: Node) -> tuple[str, ...]:
        """Return the words of a simple command as they are written, for what it feeds."""
        while node.type in {"redirected_statement", "negated_command"} and node.named_child_count:
            node = node.named_children[0]
        if node.type != "command":
            return ()
        return tuple([self.written(child).strip("\"'") for child in node.named_children[:64]])

    def _for(self, node: Node, fed: Fed | None) -> str | None:
        self.enter()
        self.reading.pay(_PRICE * node.child_count)
        name, values = "", list[str]()
        for child in node.children:
            if child.type == "variable_name" and not name:
                name = self.written(child)
            elif child.type in {"do_group", "compound_statement"}:
                self.scope.assign(name, tuple(values) or (Carried(f"${name}"),))
                self._branch(child, fed)
            elif child.type == "ERROR":
                self._trouble(child)
            elif child.is_named and child.type != "comment":
                values += [self._item(word) for word in self.fields(child)]
        self.depth -= 1
        return None

    def _item(self, word: str) -> str:
        """Return an item of a loop; what a pattern finds is not known, but its name is content."""
        return Carried(word) if isinstance(word, Computed) else word

    def _case(self, node: Node, fed: Fed | None) -> str | None:
        self.scope.branches += 1
        self.enter()
        for child in node.children:
            if child.type == "case_item":
                patterns = True
                for part in child.children:
                    if part.type == ")":
                        patterns = False
                    elif patterns:
                        self._within(part)
                    elif part.is_named:
                        self._statement(part, fed)
            elif child.is_named:
                self._within(child)
        self.depth -= 1
        self.scope.branches -= 1
        return None

    def _function(self, node: Node, fed: Fed | None) -> str | None:  # noqa: ARG002
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[self.written(name)] = Function(self.source, body)
        return ""

    def _within(self, node: Node) -> None:
        """Read the commands nested in a node of another kind: a test, arithmetic."""
        if node.type in {"command_substitution", "process_substitution"}:
            self.substituted(node)
            return
        if node.type in {"simple_expansion", "expansion"}:
            self.alternatives(node)
            return
        self.enter()
        for child in node.children:
            if child.type == "ERROR":
                self._trouble(child)
            elif child.child_count:
                self._within(child)
        self.depth -= 1

    def _trouble(self, node: Node, fed: Fed | None = None) -> str | None:
        """Read what can be recognised where the text is no shell grammar; `_text` takes the rest for the worst."""
        self.enter()
        self.reading.pay(4 * _PRICE * (1 + node.child_count))
        for child in node.children:
            if child.is_named:
                self._recognised(child, fed)
        self.depth -= 1
        return None

    def _recognised(self, node: Node, fed: Fed | None) -> None:
        if node.type in _STATEMENTS:
            self._statement(node, fed)
        elif node.type in {"command_name", "word", "string", "raw_string", "concatenation", "number"}:
            words = self.fields(
                node.children[0] if node.type == "command_name" and node.child_count else node
            )
            for word in words:
                self.reading.names(word)
        else:
            self._within(node)

    # -- assignments --------------------------------------------------------------------------------------

    def _assignment(self, node: Node, fed: Fed | None) -> str | None:  # noqa: ARG002
        self._assign(node)
        return ""

    def _assign(self, node: Node) -> str:
        """Give a variable its value; return the assignment as a word."""
        name, sign, values = "", "=", tuple[str, ...]()
        taken = len(self.reading.taken)
        for child in node.children:
            kind = child.type
            if not name and kind in {"variable_name", "subscript"}:
                name, bracket, _ = self.written(child).partition("[")
                sign = bracket or sign
            elif kind == "+=" and sign == "=":
                sign = kind
            elif kind == "array":
                values = tuple([word for part in child.named_children for word in self.fields(part)])
                sign = "[" if sign == "+=" else sign
            elif kind == "ERROR":
                self._trouble(child)
            elif child.is_named:
                values = self.alternatives(child)
        values = values or ("",)
        if sign == "+=":
            values = tuple(
                joined([old, new]) for old in self.scope.variables.get(name, ("",)) for new in values
            )
        self.scope.assign(name, values, adds=sign == "[")
        if len(self.reading.taken) > taken:
            self.scope.sources[name] = tuple(self.reading.taken[taken:])
            del self.reading.taken[taken:]
        if name.isupper():
            self._environment(name, values)
        return joined([name, "=", *values[:1]])

    def _environment(self, name: str, values: tuple[str, ...]) -> None:
        """Add what it does that a variable has a value which programs go by."""
        if name in self.reading.catalogue.shell.running and values != ("",):
            self.shell_text(joined(values, " "))
        variable_set(self.reading, name, values[0])

    def _declaration(self, node: Node, fed: Fed | None) -> str | None:
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                words.append(self._assign(child))
            elif child.type == "ERROR":
                self._trouble(child)
            elif child.type != "comment":
                words += self.fields(child)
        return self.run(words, fed)

    # -- commands -----------------------------------------------------------------------------------------

    def _command(self, node: Node, fed: Fed | None) -> str | None:
        """Read a command, and note what it takes in and what it makes of that."""
        reading = self.reading
        outside, before = reading.taken, reading.fed
        reading.fed = fed.sources if fed is not None else ()
        reading.taken = list(reading.fed)
        made = len(reading.made)
        printed = self._simple(node, fed)
        taken, reading.taken, reading.fed = reading.taken, outside, before
        for path in reading.made[made:]:
            reading.comes_from(path, tuple([source for source in taken if source != path]))
        if printed is None or taken:
            self.given = (self.given + taken)[:_MAX_GIVEN]
        return printed

    def _simple(self, node: Node, fed: Fed | None) -> str | None:
        words: list[str] = []
        choice: tuple[str, ...] = ()
        here = silent = False
        self.reading.pay(_PRICE * node.child_count)
        for child in node.children:
            kind = child.type
            if kind == "command_name":
                name = child.children[0] if child.child_count else child
                choice, words = self.choice(name), self.fields(name)
            elif kind == "variable_assignment":
                self._assign(child)
            elif kind in REDIRECTIONS:
                fed, elsewhere = self.redirect(child, fed, here=here)
                silent = silent or elsewhere
            elif kind == "ERROR":
                here = self.lost(child) == "<<"
                self._trouble(child, fed)
            elif kind not in {"comment", "$"}:
                words += self._sourced(child)
        self.end = node.end_byte
        printed = self._runs(words, choice, fed)
        return "" if silent else printed

    def _sourced(self, node: Node) -> list[str]:
        """Return the words of a node, and note what they come from."""
        taken = self.reading.taken
        before = len(taken)
        words = self.fields(node)
        if len(taken) > before:
            sources = tuple(taken[before:])
            self.scope.carried.update(dict.fromkeys(words[:_MAX_GIVEN], sources))
        return words

    def _runs(self, words: list[str], choice: tuple[str, ...], fed: Fed | None) -> str | None:
        """Run a command, whose program may be one of several."""
        if not words:
            return ""
        if not choice:
            return self.run(words, fed)
        for program in choice:
            self.run([*program.split(), *words[len(choice) :]] or [program], fed)
        return None

    def _redirected(self, node: Node, fed: Fed | None) -> str | None:
        """Read a statement with redirections: first what feeds it, then itself, then where its output goes."""
        outputs: list[Node] = []
        bodies: list[Node] = []
        after: list[Node] = []
        here = False
        for child in node.children:
            kind = child.type
            if kind == "ERROR":
                here = self.lost(child) == "<<"
                self._trouble(child, fed)
            elif kind == "file_redirect" and not reads_file(child):
                outputs.append(child)
            elif kind in REDIRECTIONS:
                fed = self.redirect(child, fed, here=here)[0]
                here = False
                after += after_heredoc(child)
                outputs += [part for part in child.children if part.type == "file_redirect"]
            else:
                bodies.append(child)
        given, self.given = self.given, []
        printed = self._all(bodies, fed)
        made = len(self.reading.made)
        for child in outputs:
            printed = self.written_to(child, printed)
        for path in self.reading.made[made:]:
            self.reading.comes_from(path, tuple(self.given))
        self.given = given + self.given
        return self._go_on(after, printed)

    def _go_on(self, after: list[Node], printed: str | None) -> str | None:
        """Read what stands on the line behind a here-document: the rest of a pipeline or of a list."""
        for child in after:
            if child.type == "pipeline":
                fed: Fed | None = Fed(printed)
                for part in child.children:
                    if part.is_named:
                        printed = self._statement(part, fed)
                        fed = Fed(printed)
            elif child.is_named:
                self._statement(child, None)
                printed = None
        return printed

    def _lone(self, node: Node, fed: Fed | None) -> str | None:
        """Read a redirection without a command: ``$(< file)``."""
        self.redirect(node, fed, here=False)
        return None


_STATEMENTS: dict[str, Statement] = {
    "program": _Shell._group,  # noqa: SLF001  # the table is part of the class
    "command": _Shell._command,  # noqa: SLF001
    "pipeline": _Shell._pipeline,  # noqa: SLF001
    "list": _Shell._list,  # noqa: SLF001
    "redirected_statement": _Shell._redirected,  # noqa: SLF001
    "file_redirect": _Shell._lone,  # noqa: SLF001
    "herestring_redirect": _Shell._lone,  # noqa: SLF001
    "subshell": _Shell._subshell,  # noqa: SLF001
    "compound_statement": _Shell._group,  # noqa: SLF001
    "negated_command": _Shell._group,  # noqa: SLF001
    "if_statement": _Shell._branch,  # noqa: SLF001
    "elif_clause": _Shell._branch,  # noqa: SLF001
    "else_clause": _Shell._branch,  # noqa: SLF001
    "while_statement": _Shell._branch,  # noqa: SLF001
    "do_group": _Shell._branch,  # noqa: SLF001
    "c_style_for_statement": _Shell._branch,  # noqa: SLF001
    "for_statement": _Shell._for,  # noqa: SLF001
    "case_statement": _Shell._case,  # noqa: SLF001
    "function_definition": _Shell._function,  # noqa: SLF001
    "variable_assignment": _Shell._assignment,  # noqa: SLF001
    "variable_assignments": _Shell._group,  # noqa: SLF001
    "declaration_command": _Shell._declaration,  # noqa: SLF001
    "unset_command": _Shell._declaration,  # noqa: SLF001
    "ERROR": _Shell._trouble,  # noqa: SLF001
}
