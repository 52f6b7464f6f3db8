"""The code that PowerShell is given on its command line: its parameters may be cut short, and may hold it in base64."""

from __future__ import annotations

from binascii import Error, a2b_base64

from safetydrift.effects.languages.shell.values import Carried, Computed, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUED = (
    "executionpolicy", "ep", "windowstyle", "version", "psconsolefile", "inputformat", "outputformat", "of",
    "configurationname", "workingdirectory", "wd", "settingsfile", "custompipename", "encodedarguments", "ea",
)  # fmt: skip
_DASHES = "-/\u2013\u2014"
_MAX_ENCODED = 64 * 1024


def powershell_code(words: Sequence[str]) -> tuple[str, bool] | None:
    """Return the code on a command line of PowerShell, and whether it stood there in base64.

    None if there is none: a file is run, or what comes over standard input.
    """
    at = 1
    while at < len(words):
        name = words[at][1:].lower() if words[at][:1] in _DASHES else None
        if name is None:
            # Only the one that comes with Windows takes code where no parameter is named.
            newer = words[0].rpartition("/")[2].lower().startswith("pwsh")
            return None if newer else (joined(words[at:], " "), False)
        following = words[at + 1 :]
        if _is(name, "command"):
            return (joined(following, " "), False) if following and following[0] != "-" else None
        if (name == "ec" or _is(name, "encodedcommand")) and following:
            return _decoded(following[0]), True
        if not name or _is(name, "file"):
            return None
        at += 2 if any(parameter.startswith(name) for parameter in _VALUED) else 1
    return None


def _is(name: str, parameter: str) -> bool:
    return bool(name) and parameter.startswith(name)


def _decoded(word: str) -> str:
    """Return code that stands in base64, of UTF-16; what cannot be decoded is only known when it runs."""
    if not isinstance(word, Computed) and len(word) <= _MAX_ENCODED:
        try:
            return a2b_base64(word + "=" * (-len(word) % 4)).decode("utf-16-le")
        except (Error, ValueError):
            pass
    return Carried(f"$({word[:40]})")
