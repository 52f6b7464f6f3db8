"""What programs share: their options, their inputs, and patterns that cannot take long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.shell import Out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.study.scenarios.shell import Shell

_MAX_PATTERN = 200
MAX_LINE = 400
_REPEATS = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")
_REPEATED_GROUP = re.compile(r"\)(?:[*+?]|\{)")
_MAX_REPEATS = 2


def options(
    args: Iterable[str], flags: str = "", valued: str = ""
) -> tuple[set[str], dict[str, str], list[str]]:
    """Return the flags, the options with a value and the operands of a command line.

    Raises
    ------
    Trouble
        If an option is not among those the program has here.
    """
    found: set[str] = set()
    values: dict[str, str] = {}
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += words
        elif len(word) < 2 or not word.startswith("-") or word.startswith("--"):  # noqa: PLR2004
            if word.startswith("--"):
                raise Trouble(f"unrecognized option '{word}' in this sandbox")
            rest.append(word)
        else:
            _cluster(word[1:], words, (flags, valued), (found, values))
    return found, values, rest


def _cluster(
    letters: str, words: Iterator[str], known: tuple[str, str], told: tuple[set[str], dict[str, str]]
) -> None:
    """Read the letters behind one dash: flags, and at most one option with a value."""
    (flags, valued), (found, values) = known, told
    for place, letter in enumerate(letters):
        if letter in valued:
            value = letters[place + 1 :] or next(words, "")
            values[letter] = f"{values[letter]}\n{value}" if letter in values else value
            return
        if letter.isdigit() and "n" in valued:
            values["n"] = letters[place:]
            return
        if letter not in flags:
            raise Trouble(f"invalid option -- '{letter}' in this sandbox")
        found.add(letter)


def inputs(shell: Shell, names: list[str], stdin: str) -> list[tuple[str, str]]:
    """Return name and text of every file that is named; what comes in, if none is."""
    return [(name, stdin if name == "-" else shell.environment.read(name)) for name in names] or [("", stdin)]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends."""
    return text.splitlines()


def out(lines: Iterable[str], code: int = 0) -> Out:
    """Return lines as what a program printed."""
    text = "".join(f"{line}\n" for line in lines)
    return Out(text, code=code)


def pattern(text: str, *, ignore_case: bool = False, fixed: bool = False) -> re.Pattern[str]:
    """Return a regular expression that cannot take long on a line of the sandbox.

    Raises
    ------
    Trouble
        If it is none, or repeats so much that it could.
    """
    if fixed:
        text = re.escape(text)
    elif (
        len(text) > _MAX_PATTERN or _REPEATED_GROUP.search(text) or len(_REPEATS.findall(text)) > _MAX_REPEATS
    ):
        raise Trouble("the pattern is too costly for this sandbox; use a simpler one or -F")
    for name, letters in (("digit", "0-9"), ("alpha", "A-Za-z"), ("space", r"\s"), ("alnum", "A-Za-z0-9")):
        text = text.replace(f"[:{name}:]", letters)
    try:
        return re.compile(text.replace(r"\|", "|"), re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise Trouble(f"invalid pattern: {error}") from error
