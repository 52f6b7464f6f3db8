"""Scripts that a call writes into files: what they are written in, and their text.

Whoever may not do something at once can write it down and run it later. So a script is read when it is written, and
what it does is remembered until it is run.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CODE = 32 * 1024
"""Characters of a call in which scripts are looked for."""
MAX_SCRIPTS = 4
"""Scripts of one call that are read."""

_HEREDOC = re.compile(
    r"(?:cat|tee)\b[^\n<>|;]{0,200}?(?:>>?[ \t]*(?P<before>[^\s<>|;&]+)[ \t]*)?"
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[ \t]*"
    r"(?:>>?[ \t]*(?P<after>[^\s<>|;&]+))?[^\n]{0,200}\n(?P<code>.*?)\n[ \t]*(?P=end)\b",
    re.DOTALL,
)
_TEE = re.compile(r"tee\s+(?:-a\s+)?([^\s<>|;&-][^\s<>|;&]*)")
_WRITERS = frozenset(("echo", "printf"))
_TOOLS = {
    **dict.fromkeys(("sh", "bash", "zsh", "command"), "bash"),
    **dict.fromkeys(("ps1", "psm1"), "PowerShell"),
    "py": "python",
}


def scripts_in(call: ToolCall, paths: Sequence[str], *, by_shell: bool) -> Iterator[tuple[str, ToolCall]]:
    """Yield the scripts that a call writes, each with its path and as the call that running it at once would be.

    Parameters
    ----------
    paths
        The files that the call writes, as far as it was read.
    by_shell
        Whether the call is a command line, in which a text stands beside the file that it goes to.
    """
    args = call.args
    if not paths or not isinstance(args, dict):
        return
    texts = [value for value in args.values() if isinstance(value, str) and len(value) <= MAX_CODE]
    if by_shell:
        written = [(path, code) for text in texts for path, code in _written_by_shell(text)]
    else:
        written = [(paths[0], max(texts, key=len, default=""))]
    for path, code in written[:MAX_SCRIPTS]:
        tool = _tool_of(path, code)
        if tool and code.strip() != path:
            yield path, ToolCall(tool, {"code" if tool == "python" else "command": code})


def _tool_of(path: str, code: str) -> str:
    """Return the name of the tool that would run a script; empty for what is none."""
    if code.startswith("#!"):
        return "python" if "python" in code[:80] else "bash"
    name = path.rpartition("/")[2]
    return _TOOLS.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def _written_by_shell(text: str) -> Iterator[tuple[str, str]]:
    for match in _HEREDOC.finditer(text) if "<<" in text else ():
        path = match["before"] or match["after"]
        if path is None and (tee := _TEE.search(match[0].partition("<<")[0])) is not None:
            path = tee[1]
        if path:
            yield path, match["code"]
    if ">" in text and ("echo" in text or "printf" in text):
        yield from _echoed(text)


def _echoed(text: str) -> Iterator[tuple[str, str]]:
    try:
        words = list(shlex.shlex(text, posix=True, punctuation_chars=True))
    except ValueError:
        return
    at = 0
    while at < len(words):
        if words[at] in _WRITERS:
            end = at + 1
            while end < len(words) and not set(words[end]) <= set("();<>|&"):
                end += 1
            if end + 1 < len(words) and words[end] in {">", ">>"}:
                code = " ".join([word for word in words[at + 1 : end] if word not in {"-e", "-n", "-en"}])
                yield words[end + 1], code.replace("\\n", "\n")
            at = end
        at += 1
