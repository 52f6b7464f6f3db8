"""The reviewed data that grafts are made of: acts, look-alikes, values and frames (``safetydrift/corpus/grafts``).

An act is something harmful that a call can do, with the calls that do it, the words with which a user asks for exactly
that, words that ask for something close to it, and texts in a tool's result that bring it about. A look-alike is
harmless whatever was said, or asked for by the words it carries.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from safetydrift.effects.operations import ACTIONS, HARMS

GRAFTS_VERSION = 1
MAX_FILE_BYTES = 1 << 20
SHELL_CHANNELS = frozenset({"linux", "macos", "windows"})
"""Channels whose forms are command lines; those of every other channel are tool calls."""

Form = list[str]


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One act, or one look-alike.

    Parameters
    ----------
    id
        ``channel/name``; unique within its harm.
    forms
        Ways to do it, each of one or more lines: command lines, ``python: ...``, or tool calls in Python's notation.
        A line that begins with ``=> `` is what came back for the one before it. The last call is the act.
    harm
        One of `HARMS`; of a look-alike, what a hasty reader would take it for.
    action
        One of `ACTIONS`; empty for look-alikes.
    decides
        The placeholders whose values decide whom or what the act reaches.
    asks
        The user asks for exactly this act on this target. A look-alike with asks is only done when asked.
    near
        The user asks for another act, or for this one on another target.
    inject
        Texts in a tool's result that bring the act about.
    doc, say, text
        A document that names what decides, words of the user that point to it, and what stands in it.
    """

    id: str
    forms: list[str | Form]
    harm: str = ""
    action: str = ""
    decides: list[str] = []
    asks: list[str] = []
    near: list[str] = []
    inject: list[str] = []
    doc: str = ""
    say: list[str] = []
    text: str = ""

    @property
    def channel(self) -> str:
        """Where it is done: a shell of an operating system, or a kind of tool."""
        return self.id.partition("/")[0]

    @property
    def is_shell(self) -> bool:
        """Whether its forms are command lines."""
        return self.channel in SHELL_CHANNELS

    @property
    def is_look_alike(self) -> bool:
        """Whether it is harmless: nothing brings it about but the task itself."""
        return not self.inject

    @property
    def goal(self) -> str:
        """``harm/channel/name``, or ``look-alike/channel/name``: what a split may hold out, as a whole or by part."""
        return f"{'look-alike' if self.is_look_alike else self.harm}/{self.id}"

    def lines(self) -> list[Form]:
        """Return the forms, each as a list of lines."""
        return [[form] if isinstance(form, str) else form for form in self.forms]


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What asks and passages are put into; ``frames.toml`` says what each list is."""

    version: int
    in_task: list[str]
    follow_up: list[str]
    operator: list[str]
    delegate: list[str]
    document: list[str]
    instruction: list[str]
    carrier: list[str]
    encoded: list[str]
    reading: dict[str, list[str]]
    servers: dict[str, list[str]]


class Grafts(msgspec.Struct, frozen=True):
    """Everything that grafts are made of: acts by harm, look-alikes, values by placeholder, and frames."""

    acts: dict[str, list[Act]]
    look_alikes: list[Act]
    values: dict[str, list[str]]
    frames: Frames


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    harm: str = ""
    act: list[Act] = []
    look_alike: list[Act] = []
    values: dict[str, list[str]] = {}


_T = TypeVar("_T", _File, Frames)


def load_grafts(folder: Path | None = None) -> Grafts:
    """Read the data of a folder; the shipped one by default.

    Raises
    ------
    ValueError
        If a file is too large, malformed, of another version, or names a harm or an action that there is none of; the
        message names the file.

    Examples
    --------
    >>> grafts = load_grafts()
    >>> sum(len(acts) for acts in grafts.acts.values()) >= 350, len(grafts.look_alikes) >= 120
    (True, True)
    """
    folder = Path(str(resources.files("safetydrift") / "corpus" / "grafts")) if folder is None else folder
    frames = _converted(folder / "frames.toml", Frames)
    acts: dict[str, list[Act]] = {harm: [] for harm in HARMS}
    look_alikes: list[Act] = []
    values: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.toml")):
        if path.name == "frames.toml":
            continue
        file = _converted(path, _File)
        values |= file.values
        look_alikes += [_checked(act, path) for act in file.look_alike]
        for act in file.act:
            harmful = msgspec.structs.replace(act, harm=file.harm)
            acts[_checked(harmful, path).harm].append(harmful)
    return Grafts(acts, look_alikes, values, frames)


def _converted(path: Path, kind: type[_T]) -> _T:
    data = path.read_bytes()
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(
            f"{path.name}: a file of grafts has at most {MAX_FILE_BYTES} bytes, this has {len(data)}"
        )
    try:
        definition: Any = tomllib.loads(data.decode())
        file = msgspec.convert(definition, kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    if file.version != GRAFTS_VERSION:
        raise ValueError(f"{path.name}: version {file.version} is not supported, only {GRAFTS_VERSION}")
    return file


def _checked(act: Act, path: Path) -> Act:
    if act.harm not in HARMS:
        raise ValueError(f"{path.name}: {act.id}: there is no harm {act.harm!r}")
    if act.action not in ACTIONS and not (act.is_look_alike and not act.action):
        raise ValueError(f"{path.name}: {act.id}: there is no action {act.action!r}")
    return act
