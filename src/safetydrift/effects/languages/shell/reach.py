"""Which hosts the words of a command name, and what reaching them means."""

from __future__ import annotations

import re

from safetydrift.effects.boundary import HERE, METADATA, OUTSIDE
from safetydrift.effects.languages.addresses import addresses_in, host_of
from safetydrift.effects.languages.shell.values import Carried, Computed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.effects.catalogue.entries import ProgramEntry
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.reading import Reading

    Host = tuple[str, str]

_REMOTE = re.compile(r"(?:[\w.\-]+@)?[\w.\-]+:(?!//).*", re.DOTALL)
_PORT = re.compile(r"(?:[\w.\-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}(?:/.*)?", re.DOTALL)
_DETOURS = (
    "--resolve",
    "--connect-to",
    "--proxy",
    "--preproxy",
    "--socks",
    "-x",
    "--unix-socket",
    "--abstract-unix",
)
_LOCAL = ("/", "./", "../", "~", "@")


class Reach:
    """What one command does to the network: the effect that its entry says, for the hosts that its words name."""

    __slots__ = ("hosts", "kinds", "leaves", "ranks", "raw", "reason")

    def __init__(
        self,
        ranks: Ranks,
        reason: str,
        kinds: Iterable[str],
        hosts: Sequence[Host],
        *,
        leaves: bool,
        raw: bool,
    ) -> None:
        self.ranks, self.reason, self.kinds, self.hosts = ranks, reason, tuple(kinds), hosts
        self.leaves, self.raw = leaves, raw

    def add_to(self, reading: Reading) -> None:
        """Add the effect: the entry's own if a host is or may be outside, else what reaching inside means."""
        places = {reading.boundary.place(host) if host else OUTSIDE for host, _ in self.hosts}
        if places and OUTSIDE not in places and not self.raw:
            self._inside(reading)
            return
        reading.add(self.ranks, self.reason, kinds=self.kinds, external=True, leaves=self.leaves)
        for host, word in self.hosts:
            if isinstance(word, Carried):
                reading.tells(host, word)
            elif host and reading.boundary.place(host) == METADATA:
                reading.asks(host, word)
            elif self.leaves:
                reading.destinations.append(word)

    def _inside(self, reading: Reading) -> None:
        reading.add(reading.catalogue.scales.lowest, self.reason, kinds=self.kinds)
        for host, word in self.hosts:
            (reading.tells if self.leaves else reading.asks)(host, word)
        if "destructive_action" in self.kinds:
            reading.reaches("deletes", self.reason)
        elif not self.leaves and changes(reading, self.ranks):
            reading.reaches("writes", f"{self.reason} and keeps it")


def reaches(reading: Reading, ranks: Ranks) -> bool:
    """Return whether an effect goes over the network."""
    return _at_least(reading, ranks, "tool", "connects")


def changes(reading: Reading, ranks: Ranks) -> bool:
    """Return whether an effect changes anything."""
    return _at_least(reading, ranks, "reversibility", "writes")


def ends(reading: Reading, ranks: Ranks) -> bool:
    """Return whether an effect cannot be taken back."""
    return _at_least(reading, ranks, "reversibility", "sends")


def _at_least(reading: Reading, ranks: Ranks, dimension: str, act: str) -> bool:
    names = reading.catalogue.scales.names
    if dimension not in names:
        return False
    place = names.index(dimension)
    return ranks[place] >= reading.catalogue.acts[act].ranks[place]


def hosts_in(entry: ProgramEntry, words: Sequence[str], start: int) -> list[Host]:
    """Return the hosts that a network program is given, each with its word; an empty host cannot be told.

    Nothing where the words cannot tell the host: whoever asks then takes it for one outside.
    """
    if not entry.hosts or any(word.startswith(_DETOURS) for word in words[1:]):
        return []
    end = start + entry.skip if entry.evaluates else len(words)
    found: list[Host] = []
    value = False
    for at, word in enumerate(words[1:end], 1):
        operand = at >= start and not value and (not word.startswith("-") or len(word) < 2)  # noqa: PLR2004
        value = word in entry.valued and not value
        host = _host(word, operand=operand, sure=entry.hosts != "words")
        if host is not None:
            found.append((host, word))
    return found


def _host(word: str, *, operand: bool, sure: bool) -> str | None:
    """Return the host of a word, empty if it cannot be told, None if it names none."""
    if "://" in word:
        return host_of(word.partition("=")[2] if word.startswith("-") else word)
    if not operand or word.isdigit():
        return None
    if isinstance(word, Computed):
        return host_of(word) if isinstance(word, Carried) or not word.startswith("$") else ""
    if sure or _REMOTE.fullmatch(word):
        return host_of(word)
    return None if word.startswith(_LOCAL) else host_of(word)


def addresses_of(words: Iterable[str]) -> list[Host]:
    """Return the hosts that words of a program nobody knows seem to name."""
    found = []
    for word in words:
        if _PORT.fullmatch(word):
            found.append((host_of(word), word))
        elif "." in word or "@" in word or "://" in word:
            found += [(host_of(address), address) for address in addresses_in(word)]
    return found


def all_here(reading: Reading, hosts: Iterable[Host]) -> bool:
    """Return whether all hosts are this very host."""
    return all(reading.boundary.place(host) == HERE for host, _ in hosts)
