"""Additions to the catalogue that reviewers have asked for, by disagreeing with one voice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safetydrift.effects.catalogue import CATALOGUE_FORMAT
from safetydrift.study.review.sampling import UNSHOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.study.review.comparison import Comparison, Pair

_QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Correction:
    """What reviewers want a tool's effect to be.

    Parameters
    ----------
    tool
        The tool's exact name.
    levels
        The whole effect.
    changed
        By dimension: what the program said, and how many calls every reviewer corrected.
    reviewed
        Calls of the tool that were reviewed.
    """

    tool: str
    levels: dict[str, str]
    changed: dict[str, tuple[str, int]]
    reviewed: int

    @property
    def note(self) -> str:
        """Why, in words."""
        parts = [
            f"{name} is {self.levels[name]} and not {before} ({count} of {self.reviewed} reviewed calls)"
            for name, (before, count) in self.changed.items()
        ]
        return f"reviewers disagreed with the program with one voice: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Corrections:
    """What a catalogue would have to say for the program to agree with its reviewers.

    Parameters
    ----------
    tools
        In alphabetical order.
    by_hand
        Tools that reviewers corrected with one voice but whose effect depends on what they are called with: one
        fixed effect would lose that, so their entries are for people to change. With the reason.
    """

    tools: tuple[Correction, ...]
    by_hand: dict[str, str]


def corrections(comparisons: Iterable[Comparison], catalogue: Catalogue, *, at_least: int = 3) -> Corrections:
    """Find tools on which reviewers contradict the program, always in the same way.

    A dimension of a tool is corrected if the program gives it one level in all reviewed calls, every decision of every
    reviewer gives it one other level, and so many calls were decided. Its other dimensions stay as the program has
    them.

    Parameters
    ----------
    comparisons
        Reviewers against the program.
    catalogue
        The one that the program used.
    at_least
        How many calls have to be decided.
    """
    by_tool: defaultdict[str, list[Pair]] = defaultdict(list)
    for comparison in comparisons:
        for pair in comparison.pairs:
            by_tool[pair.tool].append(pair)
    tools, by_hand = [], {}
    for tool, pairs in sorted(by_tool.items()):
        found = {
            name: change for name in catalogue.scales.required if (change := _change(name, pairs, at_least))
        }
        if not found:
            continue
        levels = _constant(catalogue.scales.required, pairs)
        reason = _why_by_hand(tool, levels, catalogue)
        if reason or levels is None:
            by_hand[tool] = reason
            continue
        levels |= {name: after for name, (_, after, _) in found.items()}
        changed = {name: (before, count) for name, (before, _, count) in found.items()}
        tools.append(Correction(tool, levels, changed, len({pair.id for pair in pairs})))
    return Corrections(tuple(tools), by_hand)


def _change(dimension: str, pairs: Sequence[Pair], at_least: int) -> tuple[str, str, int] | None:
    """Return what the program and the reviewers say, and of how many calls, if they differ throughout."""
    decided = [pair for pair in pairs if dimension in pair.first.levels and dimension in pair.second.levels]
    wanted = {pair.first.levels[dimension] for pair in decided}
    said = {pair.second.levels[dimension] for pair in decided}
    calls = len({pair.id for pair in decided})
    if len(wanted) != 1 or len(said) != 1 or wanted == said or calls < at_least:
        return None
    return said.pop(), wanted.pop(), calls


def _constant(dimensions: Iterable[str], pairs: Sequence[Pair]) -> dict[str, str] | None:
    """Return the effect that the program gives all these calls; None if it gives them several."""
    effects = {tuple(pair.second.levels.get(name, "") for name in dimensions) for pair in pairs}
    return dict(zip(dimensions, *effects, strict=True)) if len(effects) == 1 else None


def _why_by_hand(tool: str, levels: Mapping[str, str] | None, catalogue: Catalogue) -> str:
    entry = catalogue.tools.get(tool)
    if entry is not None and not entry.plain:
        return "its entry in the catalogue looks at the arguments"
    if levels is None:
        return "the program gave its calls several effects"
    if not tool or tool.startswith(UNSHOWN) or not tool.isprintable():
        return "its name cannot stand in a catalogue"
    return ""


def render_additions(found: Corrections, reviewed: int) -> str:
    """Return corrections as a catalogue file of additions.

    Parameters
    ----------
    reviewed
        Number of calls that were reviewed, which its version names.
    """
    lines = [
        "# Exact names whose effect was corrected by review; read each before you use the file.",
        f"format = {_text(CATALOGUE_FORMAT)}",
        'name = "review"',
        f"version = {_text(f'{reviewed} calls')}",
    ]
    for correction in found.tools:
        effect = ", ".join(f"{_key(name)} = {_text(level)}" for name, level in correction.levels.items())
        lines += [
            "",
            "[[tools]]",
            f"names = [{_text(correction.tool)}]",
            f"effect = {{ {effect} }}",
            f"note = {_text(correction.note)}",
        ]
    for tool, reason in found.by_hand.items():
        lines += ["", f"# {_comment(tool)}: corrected with one voice too, but left to you: {reason}."]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Write a basic string of TOML."""
    return f'"{"".join([_QUOTED.get(char, char) for char in value])}"'


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else _text(name)


def _comment(text: str) -> str:
    return "".join([char if char.isprintable() else "?" for char in text])
