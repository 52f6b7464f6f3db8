"""A loose grammar for scripts: calls, texts put together and assignments, which languages write much alike.

It finds what a `Program` needs and passes over the rest. Every token is read once, whatever the text.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Choice,
    Constant,
    Expression,
    Index,
    Items,
    Joined,
    Name,
)
from safetydrift.effects.languages.code.tokens import (
    COMMAND,
    LINE,
    NAME,
    NUMBER,
    RAW,
    SIGN,
    TEXT,
    Lexer,
    Token,
)
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.languages.code.dialects import Dialect
    from safetydrift.effects.languages.code.program import Program

_MAX_DEPTH = 60
_FAR_BACK = 40
_END = Token(LINE, "", glued=False)
_CLOSING = frozenset((")", "]", "}"))
_BREAKS = frozenset((";", ",", ")", "]", "}"))
_WORDS = frozenset(
    (
        *(
            "if",
            "unless",
            "while",
            "until",
            "and",
            "or",
            "not",
            "then",
            "do",
            "end",
            "else",
            "elsif",
            "elif",
            "for",
        ),
        *("foreach", "in", "return", "case", "when", "BEGIN", "END", "print", "puts", "echo", "say", "yield"),
        *(
            "my",
            "our",
            "local",
            "var",
            "def",
            "function",
            "sub",
            "proc",
            "new",
            "let",
            "const",
            "begin",
            "rescue",
        ),
    )
)
_DEFINING = frozenset(("def", "function", "sub", "proc", "class", "fn"))
_SHORT = re.compile(r"\w+")


class Grammar:
    """Reads the tokens of a text into a program.

    Parameters
    ----------
    program
        What is found is noted here.
    text
        The script.
    dialect
        What is special about its language.
    nesting
        How many texts this one stands in.
    """

    __slots__ = ("_at", "_depth", "_dialect", "_nesting", "_tokens", "lost", "program", "texts")

    def __init__(self, program: Program, text: str, dialect: Dialect, nesting: int = 0) -> None:
        lexer = Lexer(text, dialect.syntax)
        self._tokens = list(lexer.tokens())
        self.lost = lexer.lost
        self.program = program
        self._dialect = dialect
        self._nesting = nesting
        self._at = self._depth = 0
        self.texts: list[str] = []

    def read(self) -> None:
        """Read everything.

        Raises
        ------
        UnreadableError
            If it nests too deeply.
        """
        while self._at < len(self._tokens):
            start = self._at
            self._expression()
            if self._at == start or self._peek().is_sign(*_CLOSING):
                self._at += 1

    # -- tokens -------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError("a script that nests too deeply")

    def in_statement(self, *names: str) -> bool:
        """Return whether one of these names stands earlier in the statement."""
        for at in range(self._at - 2, max(-1, self._at - _FAR_BACK), -1):
            token = self._tokens[at]
            if token.kind == NAME and token.text in names:
                return True
            if token.kind == LINE or token.is_sign(";", "{", "}"):
                break
        return False

    def next_name(self) -> str:
        """Return the name that comes next, empty if none does."""
        token = self._peek()
        return token.text if token.kind == NAME else ""

    # -- expressions --------------------------------------------------------------------------------------

    def _expression(self, *, inside: bool = False) -> Expression:
        """Read operands up to the end of a statement or argument; `inside` brackets, lines do not end it."""
        self._deeper()
        parts: list[Expression] = []
        joining = True
        while self._at < len(self._tokens):
            token = self._peek()
            if token.kind == LINE:
                if not inside and not self._goes_on():
                    break
                self._at += 1
            elif token.kind == SIGN and token.text in _BREAKS:
                break
            elif token.kind == SIGN and token.text not in {"(", "[", "{"}:
                joining = self._sign(parts, inside=inside) and joining
            else:
                parts.append(self._operand(parts))
        self._depth -= 1
        if len(parts) == 1:
            return parts[0]
        return (Joined(parts) if joining else Choice(parts)) if parts else OPAQUE

    def _goes_on(self) -> bool:
        """Return whether the next line goes on with a method of what stands before."""
        after = self._peek(1)
        return after.is_sign(".", "->", "&.", "?.") and self._dialect.separates(after.text)

    def _sign(self, parts: list[Expression], *, inside: bool) -> bool:
        """Read a sign between operands; return whether it joins texts."""
        sign = self._next().text
        dialect = self._dialect
        if sign in dialect.assigning:
            self._assign(parts, self._expression(inside=inside))
            return True
        if sign in dialect.growing:
            grown = self._expression(inside=inside)
            if parts and isinstance(parts[-1], Name):
                self.program.grow(parts[-1].name, grown)
            return True
        if dialect.pipe is not None:
            dialect.pipe(self, sign, parts)
        return sign in dialect.joining or not parts

    def _assign(self, parts: list[Expression], value: Expression) -> None:
        if parts and isinstance(parts[-1], Name):
            self.program.bind(parts[-1].name, value)
        elif parts and isinstance(parts[-1], Attribute):
            self.program.bind("." + parts[-1].name, value)
        parts[:] = [value]

    def operand(self) -> Expression:
        """Read one operand."""
        return self._operand([])

    def _operand(self, before: list[Expression]) -> Expression:
        self._deeper()
        token = self._next()
        base: Expression
        if token.kind in {TEXT, RAW, COMMAND}:
            base = self._text(token)
        elif token.kind == NUMBER:
            base = Constant(int(token.text) if token.text.isdecimal() and len(token.text) < 10 else 0.5)  # noqa: PLR2004
        elif token.kind == NAME:
            base = self._named(token, starts=not before)
        elif token.is_sign("("):
            items = self._listed()
            base = items[0] if len(items) == 1 else Items(items)
        elif token.is_sign("["):
            base = Items(self._listed())
        elif token.is_sign("{"):
            base = self._block()
        else:
            base = OPAQUE
        base = self._suffixes(base)
        self._depth -= 1
        return base

    def _listed(self) -> list[Expression]:
        """Read what stands between brackets, separated by commas."""
        items: list[Expression] = []
        while self._at < len(self._tokens):
            token = self._peek()
            if token.is_sign(*_CLOSING):
                self._at += 1
                break
            if token.is_sign(",", ";") or token.kind == LINE:
                self._at += 1
                continue
            items.append(self._expression(inside=True))
        return items

    def _block(self) -> Expression:
        """Read statements up to the closing brace; a table of keys and values is read like them."""
        while self._at < len(self._tokens):
            token = self._peek()
            if token.is_sign(*_CLOSING):
                self._at += 1
                break
            if token.is_sign(",", ";") or token.kind == LINE:
                self._at += 1
                continue
            self._expression()
        return OPAQUE

    # -- names and calls ----------------------------------------------------------------------------------

    def _named(self, token: Token, *, starts: bool) -> Expression:
        name = token.text
        if name in _DEFINING and self._peek().kind == NAME:
            self._at += 1
            return OPAQUE
        if name.lower().startswith("$env:"):
            return self._item(Name("$env"), [Constant(name[5:])])
        if name in _WORDS and not self.program.calls.find(name):
            return OPAQUE
        expression: Expression = Name(self._dialect.plain(name))
        while self._separated():
            self._at += 1
            expression = Attribute(expression, self._dialect.plain(self._next().text))
        return self._called(expression, starts=starts)

    def _separated(self) -> bool:
        """Return whether a name goes on after a sign like a dot."""
        sign, after = self._peek(), self._peek(1)
        if sign.kind != SIGN or after.kind != NAME or not self._dialect.separates(sign.text):
            return False
        return sign.text in {"->", "::", "&.", "?."} or (sign.glued and after.glued)

    def _called(self, expression: Expression, *, starts: bool) -> Expression:
        """Return the call of a name if it is one: with brackets, or without where the language allows it."""
        token = self._peek()
        if token.is_sign("(") and (token.glued or self._dialect.loose_brackets):
            self._at += 1
            return self._call(expression, self._listed())
        if self._takes_words(expression, starts=starts):
            return self._call(
                expression, self.command_words() if self._dialect.command_like else self.arguments()
            )
        indexed = token.is_sign("[", "{" if self._dialect.braces_index else "[")
        if not (indexed and token.glued):
            self.program.mention(expression)
        return expression

    def _takes_words(self, expression: Expression, *, starts: bool) -> bool:
        """Return whether arguments follow without brackets."""
        if not self._dialect.bare or not self._is_known(expression):
            return False
        token = self._peek()
        if self._dialect.command_like:
            return starts or isinstance(expression, Name)
        if token.kind == SIGN:
            return (
                token.text in {"[", "{", "<<", "", "-", "\\", "&", ":", "*", "@", "$", "%"}
                and not token.glued
            )
        return token.kind != LINE and token.text not in {"if", "unless", "do", "and", "or", "while", "for"}

    def _is_known(self, expression: Expression) -> bool:
        full = full_name(expression)
        if not full:
            return False
        calls = self.program.calls
        last = full.rpartition(".")[2]
        return bool(calls.find(full)) or (last != full and calls.method(last) is not None)

    def call(self, expression: Expression, arguments: list[Expression]) -> Expression:
        """Note a call."""
        return self._call(expression, arguments)

    def _call(self, expression: Expression, arguments: list[Expression]) -> Expression:
        keywords: dict[str, Expression] = {}
        plain: list[Expression] = []
        for argument in arguments:
            if isinstance(argument, Keyword):
                keywords[argument.name] = argument.value
            else:
                plain.append(argument)
        return self.program.call(self._dialect.adapt(self.program, Call(expression, plain, keywords)))

    def arguments(self) -> list[Expression]:
        """Read arguments without brackets, up to the end of the statement."""
        items: list[Expression] = []
        while self._at < len(self._tokens):
            token = self._peek()
            if token.is_sign(","):
                self._at += 1
                while self._peek().kind == LINE and self._at < len(self._tokens):
                    self._at += 1
                continue
            if token.kind == LINE or token.is_sign(";", *_CLOSING):
                break
            start = self._at
            items.append(self._expression())
            if self._at == start:
                break
        return items

    def command_words(self) -> list[Expression]:
        """Read the words of a command up to its end, as shells have them: bare words are texts."""
        items: list[Expression] = []
        while self._at < len(self._tokens):
            token = self._peek()
            if token.kind == LINE or token.is_sign(";", "|", "||", "&&", *_CLOSING):
                break
            if self._dialect.switches and token.is_sign("-") and self._peek(1).kind == NAME:
                self._at += 1
                items.append(self._switch())
            elif _is_bare(token):
                items.append(self._bare_word())
            else:
                items.append(self._operand([]))
        return [item for item in items if item is not OPAQUE]

    def _switch(self) -> Expression:
        """Read ``-Name value`` as an argument by name."""
        name = self._next().text.lower()
        after = self._peek()
        if after.kind == LINE or after.is_sign(";", "|", "-", *_CLOSING):
            return Constant("-" + name)
        if after.kind in {NAME, NUMBER} and not after.text.startswith("$"):
            return Keyword(name, self._bare_word())
        return Keyword(name, self._operand([]))

    def _bare_word(self) -> Expression:
        """Read tokens that nothing separates as one text."""
        parts: list[Expression] = [self._piece(self._next())]
        while (
            self._peek().glued
            and self._peek().kind != LINE
            and not self._peek().is_sign(";", "|", ",", *_CLOSING)
        ):
            parts.append(self._piece(self._next()))
        if self._peek().is_sign(","):
            self._at += 1
        return Joined(parts)

    def _piece(self, token: Token) -> Expression:
        if token.kind in {TEXT, RAW, COMMAND}:
            return self._text(token)
        return (
            Name(token.text) if token.text.startswith("$") and len(token.text) > 1 else Constant(token.text)
        )

    def _suffixes(self, base: Expression) -> Expression:
        """Read what follows an operand directly: parts, items and calls."""
        while True:
            token = self._peek()
            if token.is_sign("[") and token.glued:
                self._at += 1
                base = self._item(base, self._listed())
            elif token.is_sign("{") and token.glued and self._dialect.braces_index and isinstance(base, Name):
                self._at += 1
                base = self._item(base, self._keys())
            elif self._separated():
                self._at += 1
                base = self._called(Attribute(base, self._dialect.plain(self._next().text)), starts=False)
            elif token.is_sign("(") and token.glued and isinstance(base, Call | Index):
                self._at += 1
                base = self._call(base, self._listed())
            else:
                return base

    def _keys(self) -> list[Expression]:
        """Read the key of a table between braces, where a bare name is a text."""
        if self._peek().kind == NAME and self._peek(1).is_sign("}") and not self._peek().text.startswith("$"):
            name = self._next().text
            self._at += 1
            return [Constant(name)]
        return self._listed()

    def _item(self, base: Expression, keys: list[Expression]) -> Expression:
        index = Index(base, keys[0] if len(keys) == 1 else OPAQUE)
        self.program.mention(index)
        return index

    # -- texts --------------------------------------------------------------------------------------------

    def _text(self, token: Token) -> Expression:
        value = Constant(token.text) if token.kind == RAW else self._filled(token.text)
        if token.kind == COMMAND:
            return self._call(Name("qx"), [value])
        self.texts.append(token.text)
        return value

    def _filled(self, text: str) -> Expression:
        """Return a text with its variables filled in; code within it is read as well."""
        pattern = self._dialect.filling
        if pattern is None:
            return Constant(text)
        parts: list[Expression] = []
        at = 0
        for match in pattern.finditer(text):
            parts.append(Constant(text[at : match.start()]))
            inner = match[0].lstrip("#").strip("${}@()")
            if _SHORT.fullmatch(inner):
                parts.append(Name(self._dialect.variable(inner)))
            else:
                self._within(inner)
                parts.append(OPAQUE)
            at = match.end()
        return Joined([*parts, Constant(text[at:])]) if parts else Constant(text)

    def _within(self, text: str) -> None:
        if self._nesting < 4:  # noqa: PLR2004  # texts in code in texts in code
            inner = Grammar(self.program, text, self._dialect, self._nesting + 1)
            inner.read()
            self.texts += inner.texts


def _is_bare(token: Token) -> bool:
    """Return whether a token starts a word that is taken as it stands."""
    if token.kind == SIGN:
        return token.text not in {"(", "[", "{", "@", "$"}
    return token.kind in {NAME, NUMBER} and not token.text.startswith("$")


class Keyword(Expression):
    """An argument by name."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Expression) -> None:
        self.values = None
        self.name, self.value = name, value


def full_name(expression: Expression) -> str:
    """Return the dotted name that an expression is, with a star where it starts with something else."""
    parts: list[str] = []
    while isinstance(expression, Attribute):
        parts.append(expression.name)
        expression = expression.base
    parts.append(expression.name if isinstance(expression, Name) else "*")
    return ".".join(reversed(parts)) if len(parts) < 20 else ""  # noqa: PLR2004
