"""Shell text as simple commands: words, redirections, and who is piped into whom.

This is no shell. It finds every command that a POSIX shell or bash might run, also inside substitutions,
functions and control structures, and expands nothing. What it cannot follow it refuses, so that the caller
can be cautious.
"""

from __future__ import annotations

import re

from safetydrift.effects.shell_words import UnreadableError, WordScanner

MAX_TEXT = 64 * 1024
"""Longer commands are not read."""
_BUDGET = 4 * MAX_TEXT

_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)(?!\()|(&>>|&>)")
_DESCRIPTOR = re.compile(r"\d*-?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]\s]*\])?\+?=")
_CONTROL = re.compile(r"\|\||&&|;;&|;;|;&|\|&|[;&|\n]")
_SKIPPED = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "coproc", "esac")
)
_DECLARING = frozenset(("export", "local", "declare", "typeset", "readonly"))


class Command:
    """A simple command.

    Attributes
    ----------
    words
        The program and its arguments, without assignments, keywords and redirections.
    writes, reads
        Targets of ``>`` and sources of ``<``.
    bodies
        Here-documents and here-strings fed to it.
    piped
        The command whose output it reads, if any.
    """

    __slots__ = ("bodies", "piped", "reads", "words", "writes")

    def __init__(self, piped: Command | None = None) -> None:
        self.words: list[str] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.bodies: list[str] = []
        self.piped = piped


class Script:
    """What was found in one shell text and in the texts nested in it.

    Attributes
    ----------
    commands
        Every simple command, in the order met.
    functions
        Names of the functions it defines.
    variables, values
        Names of the variables it sets, and the values it gives them, as written.
    budget
        How many more characters may be read.
    """

    __slots__ = ("budget", "commands", "functions", "values", "variables")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.functions: set[str] = set()
        self.variables: set[str] = set()
        self.values: list[str] = []
        self.budget = _BUDGET

    def read(self, text: str) -> list[Command]:
        """Add the commands of a text and return them.

        Raises
        ------
        UnreadableError
            If the text is not balanced, is too long, or nests too deeply.
        """
        start = len(self.commands)
        _Scanner(text, self, 0).script("")
        return self.commands[start:]


class _Scanner(WordScanner):
    """One pass over one text; what it finds goes into the script."""

    __slots__ = ("cases", "command", "feed", "found", "pattern", "pending")

    def __init__(self, text: str, found: Script, depth: int) -> None:
        super().__init__(text, depth)
        if len(text) > MAX_TEXT:
            raise UnreadableError(f"it is longer than the {MAX_TEXT} characters that are read")
        self.found = found
        self.pay(len(text))
        self.command = Command()
        # What the commands of a group read when a pipe leads into the group as a whole.
        self.feed: Command | None = None
        self.cases = 0
        self.pattern = False
        self.pending: list[tuple[str, bool, bool, Command]] = []

    def pay(self, characters: int) -> None:
        """Account for characters to be read."""
        self.found.budget -= characters
        if self.found.budget < 0:
            raise UnreadableError("too much of it has to be read again and again")

    def commands(self, closer: str) -> None:
        """Read nested commands from here through the closing character."""
        self.enter()
        outer = self.command, self.feed, self.cases, self.pattern
        self.feed = self.command.piped
        self.command, self.cases, self.pattern = Command(self.feed), 0, False
        self.script(closer)
        self.command, self.feed, self.cases, self.pattern = outer
        self.depth -= 1

    def inner(self, text: str) -> None:
        """Read commands from another text."""
        self.enter()
        _Scanner(text, self.found, self.depth).script("")
        self.depth -= 1

    def script(self, closer: str) -> None:
        """Read commands through the closing character, or to the end of the text if there is none."""
        while True:
            self.skip_blanks()
            char = self.text[self.at : self.at + 1]
            if not char:
                if closer:
                    raise UnreadableError(f"{closer!r} is missing")
                break
            if char == "#":
                self.skip_comment()
            elif self.pattern:
                self._case_pattern()
            elif char == closer:
                self.at += 1
                break
            elif not self._redirection() and not self._control():
                self._parenthesis(char) if char in "()" else self._next_word()
        self._end_command()

    # -- between commands ---------------------------------------------------------------------------------

    def _end_command(self, piped: Command | None = None) -> None:
        command = self.command
        if command.words or command.writes or command.reads or command.bodies:
            self.found.commands.append(command)
        self.command = Command(piped or self.feed)

    def _control(self) -> bool:
        match = _CONTROL.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        sign = match[0]
        self._end_command(self.command if sign in {"|", "|&"} else None)
        if sign == "\n":
            self._heredocs()
        elif sign in {";;", ";&", ";;&"}:
            self.pattern = self.cases > 0
        return True

    def _parenthesis(self, char: str) -> None:
        if char == ")":
            raise UnreadableError("a ')' closes nothing")
        words = self.command.words
        if self.text.startswith("((", self.at) and not words:
            start, self.at = self.at, self.at + 2
            if self.arithmetic():
                return
            self.back_to(start)
        self.at += 1
        if words:
            self._function_head(words)
        else:
            self.commands(")")

    def _function_head(self, words: list[str]) -> None:
        self.skip_blanks()
        if len(words) > 1 or self.text[self.at : self.at + 1] != ")":
            raise UnreadableError(f"a '(' after {words[-1][:40]!r}")
        self.at += 1
        self.found.functions.add(words.pop())

    # -- within a command ---------------------------------------------------------------------------------

    def _next_word(self) -> None:
        start = self.at
        word = self.word()
        if self.at == start:
            raise UnreadableError(f"an unexpected {self.text[start]!r}")
        words = self.command.words
        assignment = _ASSIGNMENT.match(self.text, start)
        if assignment and assignment.end() <= self.at and (not words or words[0] in _DECLARING):
            self._assignment(assignment[1], word)
        elif words or not self._keyword(self.text[start : self.at]):
            words.append(word)

    def _keyword(self, word: str) -> bool:
        """Read a keyword, with the words after it that are no commands; False if it is none."""
        if word in _SKIPPED:
            self.feed = self.command.piped
            self.cases -= word == "esac" and self.cases > 0
        elif word in {"for", "select"}:
            self._loop_head()
        elif word == "case":
            self._read_words(1)
            self._read_words(1)
            self.cases += 1
            self.pattern = True
        elif word == "function":
            self.found.functions.update(self._read_words(1))
        elif word == "[[":
            self._test()
        else:
            return False
        return True

    def _assignment(self, name: str, word: str) -> None:
        self.found.variables.add(name)
        if word.endswith("=") and self.text.startswith("(", self.at):
            self.at += 1
            self.found.values += self._read_words(None, closer=")")
        else:
            self.found.values.append(type(word)(word.partition("=")[2]))

    def _loop_head(self) -> None:
        self.skip_blanks()
        if self.text.startswith("((", self.at):
            self.at += 2
            if not self.arithmetic():
                raise UnreadableError("'))' is missing")
            return
        head = self._read_words(None)
        self.found.variables.update(head[:1])
        self.found.values += head[2:]

    def _read_words(self, count: int | None, *, closer: str = "") -> list[str]:
        """Read words that are no commands: so many, or through a closer, or to the end of the line."""
        found: list[str] = []
        while count is None or len(found) < count:
            self.skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char == "#":
                self.skip_comment()
                continue
            if char == "\n" and (closer or count):
                self.at += 1
                continue
            start, word = self.at, self.word()
            if self.at == start:
                break
            found.append(word)
        if closer:
            if not self.text.startswith(closer, self.at):
                raise UnreadableError(f"{closer!r} is missing")
            self.at += 1
        return found

    def _case_pattern(self) -> None:
        """Skip the pattern of a case through its parenthesis, or end the case."""
        char = self.text[self.at]
        if char in "(|)\n":
            self.at += 1
            self.pattern = char != ")"
            return
        start = self.at
        if self.word() == "esac":
            self.pattern = False
            self.cases -= 1
        elif self.at == start:
            raise UnreadableError("a case without a pattern")

    def _test(self) -> None:
        """Skip a ``[[ ... ]]``, in which operators compare."""
        while True:
            self.skip_blanks()
            start = self.at
            if self.word() == "]]":
                return
            if self.at == start:
                if self.at >= len(self.text):
                    raise UnreadableError("']]' is missing")
                self.at += 1

    # -- redirections -------------------------------------------------------------------------------------

    def _redirection(self) -> bool:
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        sign = match[1] or match[2]
        self.skip_blanks()
        start = self.at
        target = self.word()
        if self.at == start:
            raise UnreadableError(f"{sign!r} has no target")
        if sign in {"<<", "<<-"}:
            quoted = any(mark in self.text[start : self.at] for mark in "'\"\\")
            self.pending.append((target, quoted, sign == "<<-", self.command))
        elif sign == "<<<":
            self.command.bodies.append(target)
        elif not (sign in {"<&", ">&"} and _DESCRIPTOR.fullmatch(target)):
            (self.command.reads if sign in {"<", "<&"} else self.command.writes).append(target)
        return True

    def _heredocs(self) -> None:
        """Take the bodies of the here-documents that were announced on the line before."""
        pending, self.pending = self.pending, []
        for delimiter, quoted, tabs, command in pending:
            body = "\n".join(self._body(delimiter, "\t" if tabs else ""))
            command.bodies.append(body)
            if not quoted and ("$" in body or "`" in body):
                _Scanner(body, self.found, self.depth).heredoc()

    def _body(self, delimiter: str, ignored: str) -> list[str]:
        lines = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end].lstrip(ignored) if ignored else self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if line == delimiter:
                break
            lines.append(line)
        return lines
