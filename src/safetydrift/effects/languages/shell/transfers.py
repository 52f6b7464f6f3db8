"""What goes out with a command: the files and texts that its words hand over, and where to."""

from __future__ import annotations

import re
from itertools import pairwise

from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.shell.values import Carried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.effects.catalogue.rules import TransferRule
    from safetydrift.effects.languages.shell.reach import Host
    from safetydrift.effects.reading import Reading

    Sources = Mapping[str, tuple[str, ...]]

_REMOTE = re.compile(r"(?:[\w.\-]+@)?\[?[\w.\-]{2,}\]?:(?!\\).*|[a-z0-9+]{2,}://.*", re.DOTALL)
_ALIAS = re.compile(r"[\w\-]+/")
_ATTACHED = re.compile(r"(?:^|[=;])[@<]([^;]+)")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_LETTER = 2
_LONG = 4096


def hand_over(
    reading: Reading, rule: TransferRule, words: Sequence[str], operands: Sequence[str], carried: Sources
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
    for path in _handed(rule, words):
        reading.reads(path)
    if rule.copied == "sent":
        for path in operands:
            _given(reading, path)
    if rule.copied != "copied" or len(operands) < 2:  # noqa: PLR2004
        return None
    if rule.within:
        for path in operands:
            if not _REMOTE.fullmatch(path):
                reading.note("move", reading.located(path), "path")
        return []
    return _copied(reading, rule, operands)


def _copied(reading: Reading, rule: TransferRule, operands: Sequence[str]) -> list[Host]:
    """Add that all operands but the last go where the last one is."""
    *given, where = operands
    if _REMOTE.fullmatch(where) or (rule.aliases and _ALIAS.match(where)):
        for path in given:
            _given(reading, path)
        return [(host_of(where), where)]
    for source in given:
        if _REMOTE.fullmatch(source):
            reading.fetches(host_of(source), source)
        else:
            reading.reads(source)
    reading.writes(where)
    return []


def _given(reading: Reading, path: str) -> None:
    if _REMOTE.fullmatch(path):
        reading.taken.append(path)
    else:
        reading.reads(path)


def secrets_in(reading: Reading, rule: TransferRule | None, words: Sequence[str]) -> None:
    """Add the variables of the environment among the words whose names are those of secrets."""
    for at, word in enumerate(words):
        if isinstance(word, Carried) and (rule is None or at not in _slots(rule, words)):
            for name in _VARIABLE.findall(word[:_LONG]):
                if reading.catalogue.path(name) is not None:
                    reading.taken.append(f"${name}")


def _handed(rule: TransferRule, words: Sequence[str]) -> Iterable[str]:
    """Yield the files whose content options hand over."""
    for at, word in enumerate(words[1:], 1):
        option, equals, value = word.partition("=")
        if word[:1] != "-" and not equals:
            continue
        following = words[at + 1] if at + 1 < len(words) else ""
        if option in rule.inputs:
            path = (value if equals else following).removeprefix("@")
            if path not in {"", "-"}:
                yield path
        elif option in rule.attached:
            yield from _files_in(value if equals else following)
        elif word[:_LETTER] in rule.attached and word[1:2] != "-":
            yield from _files_in(word[_LETTER:] or following)


def _files_in(value: str) -> Iterable[str]:
    """Yield the files that a value names behind ``@`` or ``<``."""
    return [path for path in _ATTACHED.findall(value) if path != "-"]


def _leave_out(reading: Reading, rule: TransferRule, words: Sequence[str], carried: Sources) -> None:
    """Leave out what only says who asks, and what the command is fed but does not pass on."""
    sources = [source for at in _slots(rule, words) for source in carried.get(words[at], ())]
    if rule.feeds and reading.fed:
        pairs = [f"{one} {two}" for one, two in pairwise(words)]
        if not rule.feeds.any_of([*words, *pairs]):
            sources += reading.fed
    for source in sources:
        if source in reading.taken:
            reading.taken.remove(source)


def _slots(rule: TransferRule, words: Sequence[str]) -> set[int]:
    """Return the places of words that are values of options which only say who asks."""
    if not rule.slots:
        return set()
    found = {at + 1 for at, word in enumerate(words[:-1]) if word in rule.slots}
    return found | {
        at for at, word in enumerate(words) if word.partition("=")[0] in rule.slots and "=" in word
    }
