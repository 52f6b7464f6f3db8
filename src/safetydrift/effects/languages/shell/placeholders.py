"""Placeholders of command collections: ``#{name}``, ``{{path/to/file}}``, ``{{[-a|--all]}}``, ``{{start|stop}}``.

To a shell the first is a comment and a bar in the others a pipe, so that a command read as it stands would lose its
end. A placeholder with bars is only taken for one where a shell could run nothing of it: anything else is read as it
stands.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

_MAX_CHOICES = 4
# Quoted text is passed over: to other languages the same signs mean something.
_PLACEHOLDER = re.compile(
    r"'[^']*'?|\"(?:\\.|[^\"\\])*\"?"
    r"|(?<![^\s=;|&(@:/{])#\{([\w.\-]{1,64})\}"
    r"|\{\{((?:[^{}\"'`$\\;&<>()#\n]|\{\}){1,256})\}\}(?!/)",
    re.DOTALL,
)
_WITHIN = re.compile(r"\[([^\[\]|]{0,64})\|[^\[\]]{1,128}\]")


def filled_in(text: str, programs: Container[str] = ()) -> tuple[str, ...]:
    """Return the texts that an example stands for: the text itself if it has no placeholders.

    Synonyms (``{{[-a|--all]}}``) are filled in once, real choices (``{{start|stop}}``) one after the other, at most
    four of them.

    Parameters
    ----------
    programs
        Names of programs: what a shell would run if it were asked to is no choice of words.

    >>> filled_in("find #{folder} -name {{*.log}} {{[-d|--delete]}} -printf '#{x}'")
    ("find folder -name *.log -d -printf '#{x}'",)
    >>> filled_in("service x {{start|stop}}")
    ('service x start', 'service x stop')
    """
    if "#{" not in text and "{{" not in text:
        return (text,)
    choices, chosen = 1, 0

    def fill(match: re.Match[str]) -> str:
        nonlocal choices
        if match[1]:
            return match[1]
        inner = match[2] or ""
        parts = inner.split("|")
        if not inner or not _inert(parts, programs):
            return match[0]
        if inner.startswith("[") and inner.endswith("]"):
            first = parts[0][1:]
            return first if first.startswith("-") else parts[-1][:-1]
        if "[" in inner:
            return _WITHIN.sub(r"\1", inner)
        choices = max(choices, min(len(parts), _MAX_CHOICES))
        return parts[min(chosen, len(parts) - 1)]

    texts = [_PLACEHOLDER.sub(fill, text)]
    while len(texts) < choices:
        chosen = len(texts)
        texts.append(_PLACEHOLDER.sub(fill, text))
    return tuple(texts)


def _inert(parts: list[str], programs: Container[str]) -> bool:
    """Return whether a shell that took the bars between parts for pipes would find no program behind any of them."""
    for place, part in enumerate(parts[1:], 1):
        words = part.split()
        # To a shell the braces belong to the last word, so that one alone names no program there is.
        ends = place == len(parts) - 1 and len(words) == 1 and not part[-1:].isspace()
        if not words or (not ends and not words[0].startswith("-") and _may_run(words[0], programs)):
            return False
    return True


def _may_run(word: str, programs: Container[str]) -> bool:
    return "/" in word or word in programs
