"""What is special about each scripting language, as far as `Grammar` has to know."""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.expressions import Call, Constant, Expression, Joined, Name
from safetydrift.effects.languages.code.tokens import Syntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.languages.code.grammar import Grammar
    from safetydrift.effects.languages.code.program import Program

    Pipe = Callable[[Grammar, str, list[Expression]], None]
    Adapt = Callable[[Program, Call], Call]

_PIPED_OPENERS = frozenset(("open", "IO.popen", "pipe", "file"))


class Dialect:
    """One language.

    Parameters
    ----------
    syntax
        Its tokens.
    separators
        Signs between the parts of a name.
    joining, growing, assigning
        Signs that put texts together, put one to the end of a variable, and assign.
    filling
        What is filled into a text with variables; None where nothing is.
    sigil
        What stands before the name of a variable.
    bare
        Whether calls need no brackets.
    command_like
        Whether statements are commands with words, as in a shell.
    switches
        Whether ``-Name value`` is an argument by name.
    braces_index
        Whether ``name{key}`` is an item of a table.
    pipe
        What the signs ``|``, ``<`` and ``>`` mean, where they mean more than usual.
    adapt
        Turns calls that mean several things into one that the catalogue knows.
    """

    __slots__ = (
        "_separators",
        "adapt",
        "assigning",
        "bare",
        "braces_index",
        "command_like",
        "filling",
        "growing",
        "joining",
        "loose_brackets",
        "pipe",
        "sigil",
        "switches",
        "syntax",
    )

    def __init__(
        self,
        syntax: Syntax,
        separators: str = ".",
        *,
        joining: str = "+",
        growing: str = "+=",
        assigning: str = "=",
        filling: str = "",
        sigil: str = "",
        bare: bool = False,
        command_like: bool = False,
        switches: bool = False,
        braces_index: bool = False,
        pipe: Pipe | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        self.syntax = syntax
        self._separators = frozenset(separators.split())
        self.joining, self.growing = frozenset(joining.split()), frozenset(growing.split())
        self.assigning = frozenset(assigning.split())
        self.filling = re.compile(filling) if filling else None
        self.sigil = sigil
        self.bare, self.command_like, self.braces_index = bare or command_like, command_like, braces_index
        self.loose_brackets = not command_like
        self.switches = switches
        self.pipe = pipe
        self.adapt: Adapt = adapt or _as_is

    def separates(self, sign: str) -> bool:
        """Return whether a sign stands between the parts of a name."""
        return sign in self._separators

    def variable(self, name: str) -> str:
        """Return how a variable that is filled into a text is written in code."""
        return self.sigil + name

    def plain(self, name: str) -> str:
        """Return a name as the catalogue writes it: without brackets around it."""
        return (
            name.strip("[]").removeprefix("System.")
            if name.startswith("[")
            else name.lstrip("\\").replace("::", ".")
        )


def _as_is(_program: Program, call: Call) -> Call:
    return call


def _piped(_program: Program, call: Call) -> Call:
    """Make a command of a file that is opened with a pipe (``open(F, "cmd |")``), and a mode of what stands for it."""
    if not isinstance(call.callee, Name) or call.callee.name not in _PIPED_OPENERS:
        return call
    given = list(call.arguments)
    at = next((n for n, argument in enumerate(given) if isinstance(argument, Constant | Joined)), len(given))
    if at == len(given):
        return call
    first = _start(given[at])
    mode = first[: len(first) - len(first.lstrip("+<>|- \t"))].strip()
    if "|" in mode or first.rstrip().endswith("|"):
        rest = given[at + 1 :] if first.strip() in {"|-", "-|"} else [_without(given[at], mode)]
        return Call(Name("qx"), rest)
    if (
        mode
        and isinstance(given[at], Constant)
        and first.strip(":<>+ \t") in {"", "utf8", "raw", "encoding(UTF-8)"}
    ):
        return Call(Name("open"), [*given[at + 1 : at + 2], Constant(mode)])
    if mode:
        return Call(Name("open"), [_without(given[at], mode), Constant(mode)])
    return Call(call.callee, given[at:], call.keywords)


def _start(expression: Expression) -> str:
    """Return the constant text that an expression starts with."""
    while isinstance(expression, Joined) and expression.parts:
        first, *rest = expression.parts
        expression = rest[0] if rest and not _start(first) else first
    value = expression.values[0] if isinstance(expression, Constant) and expression.values else ""
    return value if isinstance(value, str) else ""


def _without(expression: Expression, mode: str) -> Expression:
    """Return a text without the signs of the mode at its ends."""
    if isinstance(expression, Joined) and expression.parts:
        parts = list(expression.parts)
        parts[0] = _without(parts[0], mode)
        parts[-1] = _without(parts[-1], mode)
        return Joined(parts)
    text = _start(expression)
    return Constant(text.strip().strip("|").removeprefix(mode).strip()) if text else expression


def _tcl(program: Program, call: Call) -> Call:
    """Tell ``file delete``, ``set name value`` and ``$env(NAME)`` apart."""
    if not isinstance(call.callee, Name):
        return call
    name, given = call.callee.name, list(call.arguments)
    if name == "set" and len(given) > 1:
        program.bind("$" + _start(given[0]), given[1])
    elif name.startswith("$"):
        return Call(call.callee, [Constant(item.name) if isinstance(item, Name) else item for item in given])
    elif name in {"file", "exec", "http"} and given and name == "file":
        return Call(Name(f"file.{_start(given[0])}"), given[1:])
    elif name == "open" and given:
        start = _start(given[0])
        if start.startswith("|"):
            return Call(Name("qx"), [_without(given[0], "|")])
    return call


def _awk(grammar: Grammar, sign: str, parts: list[Expression]) -> None:
    """Read where output goes and where input comes from."""
    getline = grammar.next_name() == "getline"
    if sign in {"|", "|&"} and getline:
        grammar.call(Name("getline|"), parts[-1:])
    elif sign in {"|", "|&"} or (sign in {">", ">>"} and grammar.in_statement("print", "printf")):
        grammar.call(Name("print|" if "|" in sign else "print>"), [grammar.operand()])
    elif sign == "<" and grammar.in_statement("getline"):
        grammar.call(Name("getline<"), [grammar.operand()])


def _powershell(grammar: Grammar, sign: str, parts: list[Expression]) -> None:
    """Hand what stands before a pipe to the command after it, if that has no arguments of its own."""
    if sign == "|" and parts and grammar.next_name():
        call = grammar.operand()
        if isinstance(call, Call) and not call.arguments:
            call.arguments = parts[-1:]
        parts.append(call)
    elif sign == ">" and parts:
        grammar.call(Name("Out-File"), [grammar.operand()])


_C_COMMENT = r"//[^\n]*"
_C_BLOCK = ("/*", "*/")
_PATH_VARIABLE = r"\$\{?[A-Za-z_]\w*\}?"

DIALECTS: dict[str, Dialect] = {
    "perl": Dialect(
        Syntax(
            r"\#[^\n]*|^=\w[^\0]*?^=cut",
            r"[$@%&]?\#?[A-Za-z_]\w*(?:::\w+)*|\$[_0!&@/\\,;]",
            quoting="perl",
            heredocs=True,
            patterns=True,
            commands=True,
        ),
        "-> ::",
        joining=".",
        growing=".=",
        filling=_PATH_VARIABLE,
        sigil="$",
        bare=True,
        braces_index=True,
        adapt=_piped,
    ),
    "ruby": Dialect(
        Syntax(
            r"\#[^\n]*",
            r"[@$]{0,2}[A-Za-z_]\w*[?!]?",
            quoting="ruby",
            heredocs=True,
            patterns=True,
            commands=True,
        ),
        ". :: &.",
        joining="+ <<",
        growing="+= <<",
        filling=r"#\{[^{}]*\}",
        bare=True,
        adapt=_piped,
    ),
    "php": Dialect(
        Syntax(
            rf"\#[^\n]*|{_C_COMMENT}",
            r"\$?[A-Za-z_]\w*|\\[A-Za-z_]\w*|<\?(?:php|=)?|\?>",
            block=_C_BLOCK,
            heredocs=True,
            commands=True,
        ),
        "-> :: \\ ?.",
        joining=".",
        growing=".=",
        filling=r"\{?\$\{?[A-Za-z_]\w*\}?",
        sigil="$",
        bare=True,
    ),
    "lua": Dialect(
        Syntax(r"--[^\n]*", block=("--[[", "]]"), long=(("[[", "]]"), ("[=[", "]=]"))),
        ". :",
        joining="..",
        growing="",
        bare=True,
    ),
    "awk": Dialect(Syntax(r"\#[^\n]*", r"[A-Za-z_]\w*", raw="", patterns=True), "", joining="", pipe=_awk),
    "r": Dialect(
        Syntax(r"\#[^\n]*", r"[A-Za-z.][\w.]*", raw="", text="\"'"),
        ":: $ :::",
        joining="",
        growing="",
        assigning="<- =",
    ),
    "tcl": Dialect(
        Syntax(r"(?:(?<=\n)|(?<=;))[ \t]*\#[^\n]*", r"\$?[A-Za-z_][\w:]*", raw=""),
        "",
        joining="",
        growing="",
        assigning="",
        filling=r"\$\{?\w+\}?|\[[^\[\]]*\]",
        sigil="$",
        command_like=True,
        adapt=_tcl,
    ),
    "groovy": Dialect(
        Syntax(_C_COMMENT, r"\$?[A-Za-z_]\w*", block=_C_BLOCK, long=(("'''", "'''"), ('"""', '"""'))),
        ". ?.",
        filling=r"\$\{[^{}]*\}|\$[A-Za-z_]\w*",
        bare=True,
    ),
    "powershell": Dialect(
        Syntax(
            r"\#[^\n]*",
            r"\[[A-Za-z][\w.]*\](?=::)|\$[A-Za-z_][\w:]*|[A-Za-z_]\w*(?:-[A-Za-z]\w*)*",
            block=("<#", "#>"),
            long=(("@'", "'@"), ('@"', '"@')),
        ),
        ". ::",
        filling=r"\$\([^()]*\)|\$\{?[A-Za-z_]\w*\}?",
        sigil="$",
        command_like=True,
        switches=True,
        pipe=_powershell,
    ),
    "python": Dialect(
        Syntax(r"\#[^\n]*", long=(('"""', '"""'), ("'''", "'''")), raw="", text="\"'"), ".", bare=True
    ),
    "javascript": Dialect(
        Syntax(_C_COMMENT, r"[A-Za-z_$][\w$]*", block=_C_BLOCK, raw="", text="\"'`"), ". ?."
    ),
}
