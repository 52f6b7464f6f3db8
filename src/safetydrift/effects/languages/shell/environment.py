"""What code sees of the variables that the shell around it has set: ``URL=.. python -c '.. os.environ["URL"] ..'``."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LOOKS = re.compile(r"getenv|environ|\bENV\b|\benv\b")
_LOOKED_UP = re.compile(
    r"(?P<quote>\"?)\$(?:ENV\{[\"']?(?P<perl>\w{1,64})[\"']?\}|(?:::)?env\((?P<tcl>\w{1,64})\))(?P=quote)"
    r"|\bprocess\.env\.(?P<node>\w{1,64})"
    r"|(?<![\w.\-:])[\w.\-:]{0,64}(?:getenv|environ\.get|ENV\.fetch)\(\s{0,8}[\"'](?P<call>\w{1,64})[\"']\s{0,8}\)"
    r"|(?<![\w.$])[\w.$]{1,64}\[[\"'](?P<item>\w{1,64})[\"']\](?!\s{0,8}=(?!=))"
)
_PLAIN = re.compile(r"[^\"'\\$`\n]{0,1024}")


def with_environment(code: str, variables: Mapping[str, tuple[str, ...]]) -> str:
    """Return code with texts in place of the variables of the shell that it looks up.

    Only what is known to the letter is put in; a variable that may hold one of several values stays as it is.

    >>> with_environment('open(os.environ["F"])', {"F": ("/etc/hosts",)})
    'open("/etc/hosts")'
    """
    if not variables or _LOOKS.search(code) is None:
        return code

    def known(match: re.Match[str]) -> str:
        values = variables.get(
            match["perl"] or match["tcl"] or match["node"] or match["call"] or match["item"], ()
        )
        if len(values) != 1 or type(values[0]) is not str or not _PLAIN.fullmatch(values[0]):
            return match[0]
        return f'"{values[0]}"'

    return _LOOKED_UP.sub(known, code)
