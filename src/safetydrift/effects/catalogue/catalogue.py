"""The tool catalogue: reviewed data that says what tools, programs and files mean for safety.

A catalogue is plain data of a declared format (``effects/catalogues/default.toml`` is one), checked as a
whole when it is built. It only answers questions about names; `Labeler` decides in which order they are
asked.
"""

from __future__ import annotations

from safetydrift.effects.catalogue.acts import ACTS, KINDS, Act
from safetydrift.effects.catalogue.calls import calls_beneath, tables_of_calls
from safetydrift.effects.catalogue.content import Content, merged_content
from safetydrift.effects.catalogue.entries import (
    AnnotationEntry,
    MarkEntry,
    NotedEffect,
    PathEntry,
    PatternEntry,
    ProgramEntry,
    RolesEntry,
    ShellEntry,
    ToolEntry,
    canonical_path,
)
from safetydrift.effects.catalogue.languages import LANGUAGES
from safetydrift.effects.catalogue.names import NameWords
from safetydrift.effects.catalogue.path_index import PathIndex
from safetydrift.effects.catalogue.places import Deletions, HostsEntry, PlaceEntry, Places
from safetydrift.effects.catalogue.plain import Entry, copy_plain, table, texts
from safetydrift.effects.catalogue.rules import ProgramRule, ProgramRules, TransferRule
from safetydrift.effects.catalogue.scales import Scales
from safetydrift.effects.catalogue.statements import Statements
from safetydrift.effects.catalogue.tables import TableEntry, Tables
from safetydrift.effects.catalogue.telling import EditRule, EditRules, ValueRule
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from typing import Any, TypeVar

    Named = TypeVar("Named", ToolEntry, ProgramEntry)

    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.states.space import StateSpace

CATALOGUE_FORMAT = "safetydrift.catalogue/2"
CONFIDENCES = ("rule", "pattern", "annotation", "default", "hidden")
CONTEXT: dict[str, tuple[str, ...]] = {
    "untrusted": ("none", "read", "instructed"),
    "provenance": ("named", "own", "unknown", "foreign", "instructed"),
    "carried": (),
}
"""The dimensions that depend on what came before in a run, with the levels they have where these are fixed."""
MAX_NAME = 256
"""Tool names longer than this are not looked at."""
MAX_PATH = 4096
"""Words longer than this are not taken for a path."""
_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_PATH = 256


class Catalogue:
    """What tools, programs and files mean, by name.

    Built by `from_definition`, which checks everything; unchangeable afterwards, compared by its content.

    Parameters
    ----------
    definition
        Plain data.
    shared
        Whether somebody else holds the definition and may change it; it is copied then.

    Attributes
    ----------
    name, version
        What the catalogue is called, and which edition it is.
    scales
        The dimensions it speaks of, with their ordered levels.
    acts
        What each of the `ACTS` means.
    leaks
        The kind of violation by the level of the data that leaves.
    metadata
        What asking a cloud's metadata address gives away.
    confidence
        How often a reviewer agrees, by how an effect was found: ``rule``, ``pattern``, ``annotation``, ``default``,
        and ``hidden`` for what keeps its meaning from us.
    default
        The cautious effect of a tool nobody knows.
    failed
        What a failed call is known not to have done.
    tools, programs
        Entries by exact name.
    nameless
        The entry of a program nobody knows.
    patterns, annotations, paths
        Entries in the order they are tried.
    calls
        What library functions do, by language.
    inside
        What replaces the effect of a call whose every recipient is inside the organisation.
    places, rules, hosts
        What it is to touch files, to run programs and to reach hosts of certain names, if nobody asked for it.
    values, edits
        What values of arguments tell whatever the tool, and what it is to change files in certain ways.
    roles
        What arguments are for, by their names.
    marks
        What gives away a passage that speaks to the agent.
    shell
        What the shell itself does.
    tables
        What the names of tables and columns tell.
    statements
        What statements of SQL do.
    content
        What texts may hold.
    """

    __slots__ = (
        "_definition",
        "_found_paths",
        "_identity",
        "_index",
        "_verbs",
        "acts",
        "annotations",
        "calls",
        "confidence",
        "content",
        "default",
        "edits",
        "failed",
        "hosts",
        "inside",
        "leaks",
        "marks",
        "metadata",
        "name",
        "nameless",
        "paths",
        "patterns",
        "places",
        "programs",
        "roles",
        "rules",
        "scales",
        "shell",
        "statements",
        "tables",
        "tools",
        "values",
        "version",
    )

    def __init__(self, definition: Mapping[str, Any], *, shared: bool = True) -> None:
        given = table(definition, "catalogue")
        self._definition: dict[str, Any] = copy_plain(given) if shared else given
        self._identity = ""
        whole = Entry(self._definition, "catalogue")
        if whole.required("format") != CATALOGUE_FORMAT:
            raise CatalogueError(f"expected format = {CATALOGUE_FORMAT!r}, got {whole.get('format')!r}")
        self.name = whole.text("name", required=True)
        self.version = whole.text("version", required=True)
        self.scales = _scales(_levels(whole, "scales"), _levels(whole, "context"))
        scales = self.scales
        self.default: Ranks = scales.read(whole.required("default"), "default")
        self.failed: Ranks = scales.read(whole.required("failed"), "failed", whole=False)
        self.acts = _acts(whole, scales)
        self.leaks = _leaks(whole, scales)
        self.inside: Ranks = scales.read(whole.required("inside"), "inside", whole=False)
        self.metadata = NotedEffect(whole.part("metadata"), scales)
        self.confidence = _confidence(whole)
        self.shell = ShellEntry(whole.part("shell"))
        self.tools = _by_name([ToolEntry(part, scales, LANGUAGES) for part in _parts(whole, "tools")], "tool")
        self.programs = _by_name(
            [ProgramEntry(part, scales, LANGUAGES) for part in _parts(whole, "programs")], "program"
        )
        cautious = {name: whole.required("default")[name] for name in scales.required}
        self.nameless = ProgramEntry(
            Entry({"names": ["?"], "effect": cautious}, "default"), scales, LANGUAGES
        )
        self.patterns = tuple([PatternEntry(part, scales, LANGUAGES) for part in _parts(whole, "patterns")])
        self._verbs = frozenset().union(*[entry.verbs for entry in self.patterns])
        self.annotations = tuple([AnnotationEntry(part, scales) for part in _parts(whole, "annotations")])
        self.paths = tuple([PathEntry(part, scales) for part in _parts(whole, "paths")])
        self._index = PathIndex(self.paths)
        self._found_paths: dict[tuple[str, bool], PathEntry | None] = {}
        self.places = Places(
            [PlaceEntry(part) for part in _parts(whole, "places")],
            Deletions(_optional(whole, "deletions")),
        )
        self.rules = ProgramRules(
            [ProgramRule(part) for part in _parts(whole, "operations")],
            [TransferRule(part) for part in _parts(whole, "transfers")],
        )
        self.values = tuple([ValueRule(part) for part in _parts(whole, "values")])
        self.edits = EditRules([EditRule(part) for part in _parts(whole, "edits")])
        self.hosts = HostsEntry(_optional(whole, "hosts"))
        self.roles = RolesEntry(whole.part("roles"))
        self.marks = tuple([MarkEntry(part) for part in _parts(whole, "instructions")])
        self.tables = Tables([TableEntry(part, scales) for part in _parts(whole, "tables")])
        self.calls = tables_of_calls(_parts(whole, "calls"), scales, LANGUAGES)
        self.statements = Statements(whole.part("sql") if "sql" in self._definition else None)
        self.content = Content(whole.part("content") if "content" in self._definition else None, scales)
        whole.done()

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Catalogue:
        """Build a catalogue from plain data; the inverse of `definition`.

        Raises
        ------
        CatalogueError
            If the data is not a well-formed catalogue; the message names the entry.
        """
        return cls(definition)

    def definition(self) -> dict[str, Any]:
        """Return the catalogue as plain data: what a catalogue file holds."""
        copy: dict[str, Any] = copy_plain(self._definition)
        return copy

    @property
    def identity(self) -> str:
        """A digest of the whole catalogue; notes and sources count, since they were reviewed too."""
        if not self._identity:
            import json  # noqa: PLC0415  # only saving and comparing ask for it
            from hashlib import sha256  # noqa: PLC0415

            text = json.dumps(self._definition, sort_keys=True)
            self._identity = sha256(text.encode()).hexdigest()[:16]
        return self._identity

    def extended(self, additions: Mapping[str, Any]) -> Catalogue:
        """Return this catalogue with the entries of another definition on top.

        Names in the additions replace the same exact names here; their patterns and paths are tried first.
        Sections that they leave out stay as they
        are here; the scales cannot be changed.

        Raises
        ------
        CatalogueError
            If the additions are not well formed, or have other scales.
        """
        base = self.definition()
        entries = (
            *("tools", "programs", "patterns", "paths", "tables", "calls", "instructions"),
            *("places", "operations", "transfers", "values", "edits"),
        )
        for key in ("scales", "context"):
            if additions.get(key, base[key]) != base[key]:
                raise CatalogueError(
                    f"{additions.get('name')!r} has other {key} than {self.name!r}; leave them out"
                )
        alone = Catalogue({key: part for key, part in base.items() if key not in entries} | dict(additions))
        upper = alone.definition()
        kept = {
            "tools": _without(base.get("tools", []), alone.tools),
            "programs": _without(base.get("programs", []), alone.programs),
            "patterns": base.get("patterns", []),
            "paths": base.get("paths", []),
            "tables": base.get("tables", []),
            "instructions": base.get("instructions", []),
            "places": base.get("places", []),
            "operations": base.get("operations", []),
            "transfers": base.get("transfers", []),
            "values": base.get("values", []),
            "edits": base.get("edits", []),
            "calls": calls_beneath(base.get("calls", []), upper.get("calls", [])),
        }
        merged = {key: [*upper.get(key, []), *kept[key]] for key in entries}
        section = merged_content(base.get("content", {}), additions.get("content", {}))
        label = {part: f"{base[part]}+{upper[part]}" for part in ("name", "version")}
        return Catalogue(upper | merged | label | {"content": section})

    # -- questions ----------------------------------------------------------------------------------------

    def pattern(self, name: str) -> PatternEntry | None:
        """Return the first pattern that holds of a tool's name."""
        if len(name) > MAX_NAME:
            return None
        told = NameWords(name)
        verbs = told.verbs(self._verbs)
        return next((entry for entry in self.patterns if entry.holds(name, told, verbs)), None)

    def path(self, path: str, *, changed: bool = False) -> PathEntry | None:
        """Return the first path entry that a path matches.

        Parameters
        ----------
        changed
            Look only at entries for which it matters that such a file is changed.
        """
        if len(path) > _MAX_REMEMBERED_PATH:
            return self._find_path(path, changed=changed) if len(path) <= MAX_PATH else None
        key = (path, changed)
        if key not in self._found_paths:
            if len(self._found_paths) >= _MAX_REMEMBERED:
                self._found_paths.clear()
            self._found_paths[key] = self._find_path(path, changed=changed)
        return self._found_paths[key]

    def _find_path(self, path: str, *, changed: bool) -> PathEntry | None:
        canonical = canonical_path(path)
        for entry in self.paths if "://" in path else self._index.candidates(canonical):
            if (entry.changed or not changed) and (canonical in entry.match or path in entry.addresses):
                return entry
        return None

    def require_cover(self, space: StateSpace) -> None:
        """Check that effects of this catalogue mean something in every dimension of a state space.

        Raises
        ------
        CatalogueError
            If the space has a dimension that the scales lack, or the levels of one differ.
        """
        for dimension in space.dimensions:
            if dimension.name not in self.scales.names:
                raise CatalogueError(
                    f"catalogue {self.name!r} has no scale for {dimension.name!r}, a dimension of space "
                    f"{space.name!r}; it has: {', '.join(self.scales.names)}"
                )
            mine = self.scales.levels(dimension.name)
            if mine != dimension.levels:
                raise CatalogueError(
                    f"catalogue {self.name!r} and space {space.name!r} differ in the levels of "
                    f"{dimension.name!r}: {', '.join(mine)} against {', '.join(dimension.levels)}"
                )

    # -- manners ------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._definition == other._definition

    def __hash__(self) -> int:
        return hash(self.identity)

    def __reduce__(self) -> tuple[Any, ...]:
        return Catalogue, (self.definition(),)

    def __repr__(self) -> str:
        return (
            f"<Catalogue {self.name!r} {self.version}: {len(self.tools)} tools, "
            f"{len(self.patterns)} patterns, {len(self.programs)} programs>"
        )


def _scales(levels: dict[str, tuple[str, ...]], context: dict[str, tuple[str, ...]]) -> Scales:
    """Return the scales; those that the program itself speaks of have to be there, with the levels it knows."""
    for name in ("data", "tool"):
        if name not in levels:
            raise CatalogueError(f"scales: lacks {name!r}")
    if set(context) != set(CONTEXT) or not set(context) - set(levels) == set(CONTEXT):
        raise CatalogueError(f"context: needs exactly: {', '.join(CONTEXT)}")
    for name, known in CONTEXT.items():
        if known and context[name] != known:
            raise CatalogueError(f"context.{name}: its levels are {', '.join(known)}")
    if context["carried"][1:] != levels["data"][len(levels["data"]) - len(context["carried"]) + 1 :]:
        raise CatalogueError("context.carried: after the lowest, its levels are the highest ones of data")
    return Scales(levels, context)


def _levels(whole: Entry, key: str) -> dict[str, tuple[str, ...]]:
    levels = {name: texts(part, f"{key}.{name}") for name, part in table(whole.required(key), key).items()}
    if not levels:
        raise CatalogueError(f"{key}: needs one or more dimensions")
    for name, scale in levels.items():
        if len(scale) < 2 or len(set(scale)) != len(scale):  # noqa: PLR2004
            raise CatalogueError(f"{key}.{name}: needs two or more distinct levels, got {list(scale)}")
    return levels


def _acts(whole: Entry, scales: Scales) -> dict[str, Act]:
    given = table(whole.required("acts"), "acts")
    for name in (*given, *ACTS):
        if name not in ACTS or name not in given:
            raise CatalogueError(f"acts: {'lacks' if name in ACTS else 'there is no'} {name!r}")
    return {name: Act(name, Entry(table(part, name), f"acts.{name}"), scales) for name, part in given.items()}


def _leaks(whole: Entry, scales: Scales) -> dict[str, str]:
    given = table(whole.required("leaks"), "leaks")
    for level, kind in given.items():
        if level not in scales.levels("data") or kind not in KINDS:
            raise CatalogueError(f"leaks: {level!r} = {kind!r} is no level of data with a kind of violation")
    return given


def _confidence(whole: Entry) -> dict[str, float]:
    given = table(whole.required("confidence"), "confidence")
    if set(given) != set(CONFIDENCES):
        raise CatalogueError(f"confidence: needs exactly: {', '.join(CONFIDENCES)}")
    for name, value in given.items():
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise CatalogueError(f"confidence.{name}: expected a number from 0 to 1, got {value!r}")
    return {name: float(value) for name, value in given.items()}


def _parts(whole: Entry, key: str) -> list[Entry]:
    parts = whole.parts(key)
    for position, part in enumerate(parts, 1):
        part.where = f"{key}[{position}]"
    return parts


def _optional(whole: Entry, key: str) -> Entry:
    """Return a section that a catalogue may leave out."""
    return whole.part(key) if whole.get(key) is not None else Entry({}, key)


def _by_name(entries: Iterable[Named], kind: str) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for entry in entries:
        for name in entry.names:
            if name in found:
                raise CatalogueError(
                    f"{kind} {name!r} is listed twice, under {found[name].names[0]!r} and {entry.names[0]!r}"
                )
            found[name] = entry
    return found


def _without(parts: list[dict[str, Any]], taken: Container[str]) -> list[dict[str, Any]]:
    """Return the entries without the exact names that are taken; an entry left without names is dropped."""
    kept = []
    for part in parts:
        names = [name for name in part["names"] if name not in taken]
        if names:
            kept.append(part | {"names": names})
    return kept
