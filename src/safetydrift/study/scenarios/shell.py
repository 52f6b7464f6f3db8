"""A small honest shell over the files of a sandbox.

Commands are read by the same grammar that reads them for their effects. What this shell cannot do it says, as a shell
would: a program that is not there is not found, and a construction it does not know is named. Nothing is skipped.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from safetydrift.effects.languages.shell.grammar import first_trouble, parse
from safetydrift.effects.reading import UnreadableError
from safetydrift.study.scenarios.environment import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tree_sitter import Node

    from safetydrift.study.scenarios.environment import Environment

    Program = Callable[["Shell", list[str], str], "Out"]

MAX_OUTPUT = 1 << 16
MAX_WORK = 2_000
MAX_DEPTH = 40
NOT_FOUND, MISUSED = 127, 2


@dataclass(frozen=True, slots=True)
class Out:
    """What a command printed, and its exit code."""

    text: str = ""
    error: str = ""
    code: int = 0


class Shell:
    """Runs one command line.

    Parameters
    ----------
    environment
        What it starts from; afterwards, what it came to.
    programs
        What can be called, by name.
    special
        Asked first with the words of a command; returns None for those that are not its own.
    """

    def __init__(
        self,
        environment: Environment,
        programs: Mapping[str, Program],
        special: Callable[[Shell, list[str], str], Out | None] | None = None,
    ) -> None:
        self.environment = environment
        self.programs = programs
        self._special = special
        self._variables = {"HOME": f"/home/{environment.user}", "USER": environment.user}
        self._chance = random.Random(environment.seed)  # noqa: S311  # repeatable on purpose
        self._source = b""
        self._work = 0
        self._depth = 0

    def run(self, command: str) -> Out:
        """Run a command line; what goes wrong is in what it prints."""
        try:
            self._source, root = parse(command, lambda _: None)
            trouble = first_trouble(root, self._source)
            if trouble is not None:
                near = self._text(trouble).strip().splitlines() or ["end of line"]
                return Out(error=f"bash: syntax error near '{near[0][:40]}'\n", code=MISUSED)
            out = self._node(root, "")
        except UnreadableError as error:
            return Out(error=f"bash: {error}\n", code=MISUSED)
        except Trouble as error:
            return Out(error=f"bash: {error}\n", code=1)
        return replace(out, text=_cut(out.text), error=_cut(out.error))

    def random(self) -> random.Random:
        """Return where chance comes from."""
        return self._chance

    # -- constructions --------------------------------------------------------------------------------------

    def _node(self, node: Node, stdin: str) -> Out:
        self._work += 1
        if self._work > MAX_WORK or self._depth > MAX_DEPTH:
            raise Trouble("the command does too much for this sandbox")
        run = _NODES.get(node.type)
        if run is None:
            raise Trouble(f"{node.type.replace('_', ' ')}: not available in this sandbox")
        self._depth += 1
        try:
            return run(self, node, stdin)
        finally:
            self._depth -= 1

    def _sequence(self, node: Node, stdin: str, redirects: Sequence[Node] = ()) -> Out:
        """Run commands one after the other, as lists with && and || do, and programs and groups.

        Parameters
        ----------
        redirects
            What the grammar hung on a list as a whole, and what belongs to its last command.
        """
        last = node.named_children[-1] if redirects else None
        text, error, code, operator = "", "", 0, ";"
        for child in node.children:
            if not child.is_named:
                operator = child.type if child.type in {"&&", "||"} else operator
                if child.type == "&":
                    raise Trouble("jobs in the background: not available in this sandbox")
                continue
            if child.type == "comment":
                continue
            if (operator == "&&" and code) or (operator == "||" and not code):
                operator = ";"
                continue
            out = self._with_redirects(child, redirects, stdin) if child == last else self._node(child, stdin)
            text, error, code, operator = text + out.text, error + out.error, out.code, ";"
            if len(text) > MAX_OUTPUT:
                raise Trouble("too much output")
        return Out(text, error, code)

    def _subshell(self, node: Node, stdin: str) -> Out:
        cwd, variables = self.environment.cwd, dict(self._variables)
        out = self._sequence(node, stdin)
        self.environment, self._variables = replace(self.environment, cwd=cwd), variables
        return out

    def _pipeline(self, node: Node, stdin: str) -> Out:
        out, error = Out(stdin), ""
        for child in node.named_children:
            out = self._node(child, out.text)
            error += out.error
        return Out(out.text, error, out.code)

    def _negated(self, node: Node, stdin: str) -> Out:
        out = self._node(node.named_children[0], stdin)
        return replace(out, code=0 if out.code else 1)

    def _assignment(self, node: Node, _stdin: str) -> Out:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            raise Trouble("arrays: not available in this sandbox")
        self._variables[self._text(name)] = "" if value is None else self._joined(value)
        return Out()

    def _for(self, node: Node, stdin: str) -> Out:
        body, variable = node.child_by_field_name("body"), node.child_by_field_name("variable")
        if body is None or variable is None or not any(child.type == "in" for child in node.children):
            raise Trouble("this kind of loop: not available in this sandbox")
        words = [one for child in node.children_by_field_name("value") for one in self._words(child)]
        out = Out()
        for word in words:
            self._variables[self._text(variable)] = word
            done = self._node(body, stdin)
            out = Out(out.text + done.text, out.error + done.error, done.code)
        return out

    def _if(self, node: Node, stdin: str) -> Out:
        """Run the first branch whose condition holds."""
        text, error, holds, taken = "", "", None, False
        for child in node.children:
            if child.type in {"elif_clause", "else_clause"}:
                if not holds:
                    out = (
                        self._if(child, stdin)
                        if child.type == "elif_clause"
                        else self._sequence(child, stdin)
                    )
                    return Out(text + out.text, error + out.error, out.code)
            elif child.type == "then":
                taken = True
            elif child.is_named and child.type != "comment" and (holds is None or (taken and holds)):
                out = self._node(child, stdin)
                text, error = text + out.text, error + out.error
                if not taken:
                    holds = out.code == 0
        return Out(text, error)

    def _test(self, node: Node, _stdin: str) -> Out:
        inner = [child for child in node.children if child.type not in {"[", "]", "[[", "]]"}]
        words = [word for child in inner for word in self._test_words(child)]
        return self.programs["test"](self, words, "")

    def _test_words(self, node: Node) -> list[str]:
        if node.type in {"unary_expression", "binary_expression", "negation_expression"}:
            return [word for child in node.children for word in self._test_words(child)]
        if not node.is_named or node.type in {"test_operator", "regex"}:
            return [self._text(node)]
        return [self._joined(node)]

    def _redirected(self, node: Node, stdin: str) -> Out:
        redirects = [child for child in node.named_children if "redirect" in child.type]
        redirects += [
            one for child in redirects for one in child.named_children if one.type == "file_redirect"
        ]
        body = node.child_by_field_name("body")
        if body is not None and body.type == "list":
            return self._sequence(body, stdin, redirects)
        return self._with_redirects(body, redirects, stdin)

    def _with_redirects(self, body: Node | None, redirects: Sequence[Node], stdin: str) -> Out:
        for redirect in redirects:
            stdin = self._input(redirect, stdin)
        out = Out() if body is None else self._node(body, stdin)
        for redirect in redirects:
            if redirect.type == "file_redirect":
                out = self._output(redirect, out)
        return out

    def _input(self, redirect: Node, stdin: str) -> str:
        if redirect.type == "heredoc_redirect":
            return self._heredoc(redirect)
        if redirect.type == "herestring_redirect":
            return self._joined(redirect.named_children[-1]) + "\n"
        if any(child.type == "<" for child in redirect.children):
            return self.environment.read(self._joined(redirect.named_children[-1]))
        return stdin

    def _heredoc(self, redirect: Node) -> str:
        start = next(child for child in redirect.children if child.type == "heredoc_start")
        body = next((child for child in redirect.children if child.type == "heredoc_body"), None)
        if body is None:
            return ""
        if any(sign in self._text(start) for sign in "'\"\\"):
            return self._text(body)
        return self._pieces(body)

    def _output(self, redirect: Node, out: Out) -> Out:
        sign = next((child.type for child in redirect.children if not child.is_named), "")
        target = self._joined(redirect.named_children[-1])
        first = redirect.named_children[0]
        number = self._text(first) if first.type == "file_descriptor" else "1"
        if sign == "<":
            return out
        if sign == ">&":
            return (
                Out(out.text + out.error, "", out.code)
                if (number, target) == ("2", "1")
                else Out("", out.text, out.code)
            )
        if sign not in {">", ">>", "&>", "&>>", ">|"}:
            raise Trouble(f"redirection {sign}: not available in this sandbox")
        everything = sign.startswith("&")
        what = out.text + out.error if everything else out.error if number == "2" else out.text
        if target != "/dev/null":
            self.environment = self.environment.writing(target, what, append=sign.endswith(">>"))
        if everything:
            return Out(code=out.code)
        return replace(out, error="") if number == "2" else replace(out, text="")

    def _command(self, node: Node, stdin: str) -> Out:
        name = node.child_by_field_name("name")
        kept = dict(self._variables)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, "")
            elif child.type == "herestring_redirect":
                stdin = self._input(child, stdin)
        if name is None:
            return Out()
        words = self._words(name.named_children[0] if name.named_children else name)
        for child in node.children_by_field_name("argument"):
            words += self._words(child)
        try:
            return self.call(words, stdin)
        finally:
            self._variables = kept

    def call(self, words: list[str], stdin: str = "") -> Out:
        """Run a program by the words of its command line."""
        self._work += 1
        if not words or self._work > MAX_WORK:
            raise Trouble("the command does too much for this sandbox" if words else ": command not found")
        if self._special is not None and (out := self._special(self, words, stdin)) is not None:
            return out
        program = self.programs.get(
            words[0].rpartition("/")[2] if words[0].startswith(("/bin/", "/usr/bin/")) else words[0]
        )
        if program is None:
            return Out(error=f"bash: {words[0]}: command not found\n", code=NOT_FOUND)
        try:
            return program(self, words[1:], stdin)
        except Trouble as error:
            return Out(error=f"{words[0]}: {error}\n", code=1)

    # -- words ------------------------------------------------------------------------------------------------

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _words(self, node: Node) -> list[str]:
        """Return a node as words: a variable outside of quotes splits, and a glob is what it matches."""
        if node.type in {"simple_expansion", "expansion", "command_substitution"}:
            return self._joined(node).split()
        text = self._joined(node)
        if node.type in {"word", "concatenation"} and any(sign in self._bare(node) for sign in "*?["):
            return self._matches(text) or [text]
        return [text]

    def _bare(self, node: Node) -> str:
        """Return what of a word stands outside of quotes."""
        if node.type == "concatenation":
            return "".join(self._text(child) for child in node.children if child.type == "word")
        return self._text(node)

    def _matches(self, pattern: str) -> list[str]:
        whole = self.environment.path(pattern)
        parts = whole.strip("/").split("/")
        found = [""]
        for part in parts:
            found = [
                f"{folder}/{name.rstrip('/')}"
                for folder in found
                for name in self.environment.children(folder or "/")
                if fnmatchcase(name.rstrip("/"), part) and (not name.startswith(".") or part.startswith("."))
            ]
        here = self.environment.cwd.rstrip("/") + "/"
        return found if pattern.startswith(("/", "~")) else [one.removeprefix(here) for one in found]

    def _joined(self, node: Node) -> str:
        """Return a node as one word."""
        read = (
            _WORDS.get(node.type) if node.is_named else _word
        )  # operators such as == are words to a command
        if read is None:
            raise Trouble(f"{node.type.replace('_', ' ')}: not available in this sandbox")
        return read(self, node)

    def _pieces(self, node: Node) -> str:
        """Return what stands in double quotes or a here-document: text, and what is put in."""
        quotes = node.type == "string"
        start, end = node.start_byte + quotes, node.end_byte - quotes
        pieces, place = [], start
        for child in node.named_children:
            if child.type in {"string_content", "heredoc_content"}:
                continue
            pieces += [
                _unescaped(self._source[place : child.start_byte].decode("utf-8", "replace")),
                self._joined(child),
            ]
            place = child.end_byte
        pieces.append(_unescaped(self._source[place:end].decode("utf-8", "replace")))
        return "".join(pieces)

    def _variable(self, name: str) -> str:
        if name == "RANDOM":
            return str(self._chance.randrange(1 << 15))
        return self.environment.cwd if name == "PWD" else self._variables.get(name, "")

    def _expansion(self, node: Node) -> str:
        """Return what ``${NAME}`` or ``${NAME:-default}`` stands for."""
        name = next((child for child in node.named_children if child.type == "variable_name"), None)
        operator = next(
            (child.type for child in node.children if child.type not in {"${", "}", "variable_name"}), ""
        )
        if name is None or (operator and not operator.startswith(":-") and not node.named_children[1:]):
            raise Trouble(f"{self._text(node)}: bad substitution")
        value = self._variable(self._text(name))
        if not operator:
            return value
        if operator != ":-":
            raise Trouble(f"{self._text(node)}: not available in this sandbox")
        return value or "".join(self._joined(child) for child in node.named_children[1:])

    def _substitution(self, node: Node) -> str:
        return self._sequence(node, "").text.rstrip("\n")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_OUTPUT else text[:MAX_OUTPUT] + "\n[output cut]\n"


def _unescaped(text: str) -> str:
    for sign in '"$`':
        text = text.replace(f"\\{sign}", sign)
    return text.replace("\\\\", "\\").replace("\\\n", "")


def _word(shell: Shell, node: Node) -> str:
    text = shell._text(node)  # noqa: SLF001
    left = iter(text)
    word = "".join([next(left, "") if sign == "\\" else sign for sign in left])
    return shell.environment.path(word) if word == "~" or word.startswith("~/") else word


_NODES: Mapping[str, Callable[[Shell, Node, str], Out]] = {
    "program": Shell._sequence,  # noqa: SLF001
    "list": Shell._sequence,  # noqa: SLF001
    "compound_statement": Shell._sequence,  # noqa: SLF001
    "do_group": Shell._sequence,  # noqa: SLF001
    "subshell": Shell._subshell,  # noqa: SLF001
    "pipeline": Shell._pipeline,  # noqa: SLF001
    "negated_command": Shell._negated,  # noqa: SLF001
    "variable_assignment": Shell._assignment,  # noqa: SLF001
    "for_statement": Shell._for,  # noqa: SLF001
    "if_statement": Shell._if,  # noqa: SLF001
    "test_command": Shell._test,  # noqa: SLF001
    "redirected_statement": Shell._redirected,  # noqa: SLF001
    "command": Shell._command,  # noqa: SLF001
}
_WORDS: Mapping[str, Callable[[Shell, Node], str]] = {
    "word": _word,
    "number": _word,
    "string": Shell._pieces,  # noqa: SLF001
    "raw_string": lambda shell, node: shell._text(node)[1:-1],  # noqa: SLF001
    "concatenation": lambda shell, node: "".join(map(shell._joined, node.children)),  # noqa: SLF001
    "simple_expansion": lambda shell, node: shell._variable(shell._text(node)[1:]),  # noqa: SLF001
    "expansion": Shell._expansion,  # noqa: SLF001
    "command_substitution": Shell._substitution,  # noqa: SLF001
}
