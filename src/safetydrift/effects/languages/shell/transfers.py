"""What goes out with a command: the files and texts that its words hand over, and where to."""

from __future__ import annotations

import re
from itertools import pairwise

from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.shell.values import Carried
from safetydrift.effects.operations import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.effects.catalogue.rules import TransferRule
    from safetydrift.effects.languages.shell.reach import Host
    from safetydrift.effects.reading import Reading

_REMOTE = re.compile(r"(?:[\w.\-]+@)?\[?[\w.\-]{2,}\]?:(?!\\).*|[a-z0-9+]{2,}://.*", re.DOTALL)
_ALIAS = re.compile(r"[\w\-]+/")
_ATTACHED = re.compile(r"(?:^|[=;])[@<]([^;]+)|^([\w./~\-]+)$")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


def hand_over(
    reading: Reading, rule: TransferRule, words: Sequence[str], operands: Sequence[str], carried: Mapping[str, tuple[str, ...]]
) -> list[Host] | None:
    """Add the files that a command hands over; return where operands say that they go, None if they do not say it.

    Parameters
    ----------
    operands
        Those behind the subcommand.
    carried
        What words of the command come from.
    """
    _leave_out(reading, rule, words, carried)
    if rule.feeds and reading.fed and not rule.feeds.any_of(_with_pairs(words)):
        for source in reading.fed:
            if source in reading.taken:
                reading.taken.remove(source)
    for path in _handed(rule, words):
        reading.reads(path)
    if rule.copied == "sent":
        for path in operands:
            if not _REMOTE.fullmatch(path):
                reading.reads(path)
    if rule.copied != "copied" or len(operands) < 2:  # noqa: PLR2004
        return None
    if rule.within:
        for path in operands:
            if not _REMOTE.fullmatch(path):
                reading.operations.add(Operation("move", reading.located(path), "path"))
        return []
    *given, where = operands
    if not _REMOTE.fullmatch(where) and not (rule.aliases and _ALIAS.match(where)):
        for source in given:
            if _REMOTE.fullmatch(source):
                reading.fetches(host_of(source), source)
            else:
                reading.reads(source)
        reading.writes(where)
        return []
    for path in given:
        if _REMOTE.fullmatch(path):
            reading.taken.append(path)
        else:
            reading.reads(path)
    return [(host_of(where), where)]


def _with_pairs(words: Sequence[str]) -> list[str]:
    return [*words, *[f"{one} {two}" for one, two in pairwise(words)]]


def secrets_in(reading: Reading, rule: TransferRule | None, words: Sequence[str]) -> None:
    """Add the variables of the environment among the words whose names are those of secrets."""
    slots = _slots(rule, words) if rule is not None else set[int]()
    for at, word in enumerate(words):
        if isinstance(word, Carried) and at not in slots:
            for name in _VARIABLE.findall(word[:_LONG]):
                if reading.catalogue.path(name) is not None:
                    reading.taken.append(f"${name}")


_LONG = 4096


def _handed(rule: TransferRule, words: Sequence[str]) -> Iterable[str]:
    """Yield the files whose content options hand over."""
    for at, word in enumerate(words[1:], 1):
        if word[:1] != "-" and "=" not in word:
            continue
        option, equals, value = word.partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        if option in rule.inputs:
            path = value if equals else following
            if path not in {"", "-"}:
                yield path
        elif option in rule.attached or word[:2] in rule.attached:
            glued = word[2:] if word[:2] in rule.attached and len(word) > 2 and word[1] != "-" else ""  # noqa: PLR2004
            yield from _files_in(glued or (value if equals else following))


def _files_in(value: str) -> Iterable[str]:
    for match in _ATTACHED.finditer(value):
        if match[1] and match[1] != "-":
            yield match[1]


def _leave_out(
    reading: Reading, rule: TransferRule, words: Sequence[str], carried: Mapping[str, tuple[str, ...]]
) -> None:
    """Leave out what only says who asks."""
    slots = _slots(rule, words)
    for at in slots:
        for source in carried.get(words[at], ()):
            if source in reading.taken:
                reading.taken.remove(source)


def _slots(rule: TransferRule, words: Sequence[str]) -> set[int]:
    """Return the places of words that are values of options which only say who asks."""
    if not rule.slots:
        return set()
    found = {at + 1 for at, word in enumerate(words[:-1]) if word in rule.slots}
    return found | {at for at, word in enumerate(words) if word.partition("=")[0] in rule.slots and "=" in word}
