"""What phrases of PowerShell tell that its single commands do not: what is fetched and run, what is switched off."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

    Reader = Callable[[Reading, str], None]

_RULES = "<powershell>"
"""The name under which the catalogue has the rules about phrases."""
_MAX_TEXT = 16 * 1024
_STATEMENT = re.compile(r"""(?:"(?:[^"`]|`.)*+"|'[^']*+'|[^;\r\n"'])+""")


def with_phrases(reader: Reader) -> Reader:
    """Return a reader of PowerShell that first adds what its phrases tell."""

    def read(reading: Reading, text: str) -> None:
        _phrases(reading, text[:_MAX_TEXT])
        reader(reading, text)

    return read


def _phrases(reading: Reading, text: str) -> None:
    whole = " ".join(text.split())
    statements = [" ".join(statement.split()) for statement in _STATEMENT.findall(text)]
    for rule in reading.catalogue.rules.of(_RULES, ""):
        reading.pay(len(whole))
        if rule.holds((), (whole,)):
            target = next((statement for statement in statements if rule.holds((), (statement,))), whole)
            reading.does(rule.harm, target, certainty=rule.certainty(target, (whole,)))
