"""A call in view of its run: its concerns before it is made, and what it adds to the ledger afterwards."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.authority.asking import grades
from safetydrift.authority.concerns import (
    ACTION_NAMES,
    DELEGATED,
    ELSEWHERE,
    HARM_NAMES,
    INSIDE,
    LANGUAGE,
    MADE,
    MAX_CONCERNS,
    NOBODY,
    NOTHING,
    OTHER,
    OWN,
    PARTY,
    POINTED,
    PROJECT,
    REACHED,
    RECORDED,
    SAID,
    SYSTEM,
    TEMPORARY,
    TYPED,
    UNTRUSTED,
    Concern,
    gravity,
)  # fmt: skip
from safetydrift.authority.grading import ACTION, ASKED, FORBIDDEN, NONE, OBJECT
from safetydrift.authority.ledger import MAX_LATENT, FileDigest, KnownFile, Ledger, kept_file
from safetydrift.authority.score import CLEAR, Assessment
from safetydrift.authority.scripts import scripts_in
from safetydrift.authority.text import fold
from safetydrift.authority.texts import DATA, IDENTITY, RECORD, SourceText, bounded
from safetydrift.authority.texts import UNTRUSTED as FROM_OUTSIDE
from safetydrift.effects.boundary import HERE
from safetydrift.effects.boundary import INSIDE as WITHIN
from safetydrift.effects.escapes import unescaped
from safetydrift.effects.history.provenance import decides
from safetydrift.effects.languages.addresses import addresses_in
from safetydrift.effects.operations import CERTAIN, LIKELY, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from safetydrift.authority.score import Score
    from safetydrift.authority.texts import Place
    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.labeler import Labeler
    from safetydrift.effects.proposal import Proposal
    from safetydrift.states.effect import Effect
    from safetydrift.trace import ToolCall

MAX_SOURCES = 6
"""Values of a reading call by which its source is recognised."""
MAX_PLANNED = 16
"""Files that one call is remembered to have written."""

_READING = frozenset(("read", "fetch"))
_ORDINARY = frozenset(("read", "run", "edit", "move", "install", "delete"))
"""Actions on files, programs and packages that are no concern where they do no harm of their own."""
_LOCAL = frozenset(("path", "command", "package"))
_OUTWARD = frozenset(("send", "publish", "push", "connect", "fetch", "schedule", "grant"))
_PARTIES = frozenset(("host", "recipient", "account", "person"))
_PEOPLE = frozenset(("recipient", "account", "person"))
_DATA_LEVELS = {"sensitive": 1, "credentials": 2}
_REVERSIBILITY = {"fully_reversible": 0, "partially": 1, "irreversible": 2}
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/", "$tmpdir", "%temp%")  # noqa: S108  # compared, never opened
_SYSTEM = re.compile(
    r"/(?:etc|usr|bin|sbin|lib|lib64|boot|root|sys|proc|dev|var|opt|srv|mnt)?(?:/|\Z)|[a-z]:[\\/]windows"
)
_EVERYTHING = re.compile(
    r"(?:/|~|\.{1,2}|\$\{?HOME\}?|/home(?:/[^/]+)?|/root|/Users(?:/[^/]+)?|\*)(?:/?\*?)|(?:.*/)?\.(?:git|ssh)/?"
)
"""Targets that are everything at once, or all that a repository or a login consists of."""
_SPLIT = re.compile(r"[_\W]+|(?<=[a-z0-9])(?=[A-Z])")
_TELLING = frozenset(("send", "publish", "schedule", "edit"))
MAX_LINKS = 2
"""Addresses in a message that are looked at."""
_SHORT_TEXT = 40
_NO_ACTIONS: tuple[str, ...] = ()


class Plan(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What a call adds to the ledger once it has been made; it holds nothing of the arguments in clear.

    Parameters
    ----------
    own, searched
        Whether what comes back is a record of the user's own, and whether it may hold injected instructions.
    pointed
        How directly the user pointed to what it reads: 2 named by them, 1 reached from such a source, 0 not at all.
    delegated
        The actions for which the user gave that source a say; ``("*",)`` for all.
    actions
        What it does.
    files
        What becomes known of files, by the keyed digests of their paths.
    partial
        Whether a failure leaves half of it done.
    """

    own: bool = False
    searched: bool = True
    pointed: Annotated[int, Meta(ge=0, le=2)] = 0
    delegated: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    actions: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    files: Annotated[tuple[tuple[FileDigest, KnownFile], ...], Meta(max_length=MAX_PLANNED)] = ()
    partial: bool = False

    def kept(self) -> Plan:
        """Return what a store keeps: of scripts, what kind of harm they do, and not to what."""
        if not any(file.latent for _, file in self.files):
            return self
        return replace(self, files=tuple([(name, kept_file(file)) for name, file in self.files]))


class Reading(Struct, frozen=True, gc=False):
    """What a proposed call is in view of its run.

    Parameters
    ----------
    concerns
        The ways in which it may do unauthorised harm, the gravest first, at most `MAX_CONCERNS`.
    plan
        What it adds to the ledger once it has been made.
    assessment
        How probable unauthorised harm is.
    """

    concerns: tuple[Concern, ...]
    plan: Plan
    assessment: Assessment = CLEAR


class RunReader:
    """Reads calls and results in view of their run.

    Parameters
    ----------
    labeler
        Says what a call does by itself, and where the operator's own world ends.
    score
        Says how probable it is that a concern is unauthorised harm; without it, calls are only read.
    """

    __slots__ = ("_boundary", "_labeler", "score")

    def __init__(self, labeler: Labeler, score: Score | None = None) -> None:
        self._labeler = labeler
        self._boundary: Boundary = labeler.boundary
        self.score = score

    def read_call(self, ledger: Ledger, call: ToolCall, proposal: Proposal) -> Reading:
        """Read a proposed call.

        Parameters
        ----------
        ledger
            What the run has shown so far.
        call, proposal
            The call, and what was read of it alone.
        """
        operations = self._with_latent(ledger, proposal.effect.operations)
        words = () if proposal.partial else _object_words(proposal.tool)
        look = _Look(ledger, self._boundary, proposal.effect, words)
        concerned = _telling([one for one in operations if look.concerns(one)])
        concerned += _links(call, proposal, concerned)
        texts = _texts_of(call)
        asked = grades(ledger.request, concerned, words, texts)
        concerns = [look.concern(one, grade.grade) for one, grade in zip(concerned, asked, strict=True)]
        if ledger.request.forbids:
            others = [one for one in operations if one not in concerned and one.action not in _READING]
            grave = zip(others, grades(ledger.request, others, words, texts), strict=True)
            concerns += [look.concern(one, grade.grade) for one, grade in grave if grade.grade == FORBIDDEN]
        concerns.sort(key=gravity, reverse=True)
        plan = self._plan(ledger, call, proposal, operations, words)
        gravest = tuple(concerns[:MAX_CONCERNS])
        return Reading(gravest, plan, CLEAR if self.score is None else self.score.assess(gravest))

    def read_result(
        self, ledger: Ledger, plan: Plan, effect: Effect | None, result: str | None, *, failed: bool = False
    ) -> Ledger:
        """Return the ledger after the result of a call has come.

        Parameters
        ----------
        plan
            What `read_call` made of the call.
        effect
            What the call did, its result included; None where nobody could read it.
        result
            Everything of it that the model reads, error messages included; None if nothing came back.
        failed
            Whether the call failed.
        """
        done = list(ledger.done)
        for action in plan.actions:
            done[ACTION_NAMES.index(action)] += 1
        number = ledger.calls + 1
        level = 0 if effect is None else _DATA_LEVELS.get(_level(effect, "data"), 0)
        taken = ledger.taken if plan.pointed > 1 else max(ledger.taken, level)
        after = replace(ledger, done=tuple(done), calls=number, held=max(ledger.held, level), taken=taken)
        if plan.files and (plan.partial or not failed):
            after = after.with_files(plan.files)
        if not result:
            return after
        whole = bounded(unescaped(bounded(result)))
        text = fold(whole)
        speaks = tuple(_spans(text, self._labeler.passages(result))) if plan.searched else ()
        outside = not plan.own
        exposure = 2 if speaks else int(outside)
        source = SourceText(
            number, FROM_OUTSIDE if outside else RECORD, plan.pointed, plan.delegated, text, speaks
        )
        return replace(after, exposure=max(after.exposure, exposure)).with_text(source)

    def leave_unread(self, ledger: Ledger, plan: Plan) -> Ledger:
        """Return the ledger after a call whose result nobody could read: anything may have come in."""
        after = self.read_result(ledger, plan, None, None)
        return replace(after, exposure=max(after.exposure, 1))

    # -- scripts that were written before and are run now -----------------------------------------------------

    def _with_latent(self, ledger: Ledger, operations: Sequence[Operation]) -> list[Operation]:
        """Return the operations of a call with those of scripts that it runs."""
        found = list(operations)
        if not ledger.files:
            return found
        for one in operations:
            if one.action != "run" or not one.target or one.role not in {"path", "command"}:
                continue
            file = next(
                (
                    known
                    for word in one.target.split()[:4]
                    if (known := ledger.files.get(ledger.file_digest(word)))
                ),
                None,
            )
            if file is None:
                continue
            found += [
                replace(latent, note=latent.note or f"what {one.target} was written to do")
                for latent in file.latent
            ]
            if file.untrusted:
                note = f"run {one.target}, which was downloaded"
                found.append(Operation("run", one.target, "path", "untrusted_code", LIKELY, note))
        return found

    # -- what the ledger will hold ----------------------------------------------------------------------------

    def _plan(
        self,
        ledger: Ledger,
        call: ToolCall,
        proposal: Proposal,
        operations: Sequence[Operation],
        words: tuple[str, ...],
    ) -> Plan:
        pointed, delegated = 0, _NO_ACTIONS
        if not proposal.own and (
            proposal.effect["tool"] == "read_only" or any(one.action in _READING for one in operations)
        ):
            pointed, delegated = _pointed(ledger, _sources_of(call, operations), words)
        files = tuple(self._files(ledger, call, proposal, operations))[:MAX_PLANNED]
        actions = tuple(dict.fromkeys([one.action for one in operations]))
        return Plan(proposal.own, proposal.searched, pointed, delegated, actions, files, proposal.partial)

    def _files(
        self, ledger: Ledger, call: ToolCall, proposal: Proposal, operations: Sequence[Operation]
    ) -> Iterator[tuple[bytes, KnownFile]]:
        changed = [
            one for one in operations if one.action in {"edit", "move"} and one.role == "path" and one.target
        ]
        latent = self._latent(call, proposal, [one.target for one in changed]) if changed else {}
        for one in changed:
            name = ledger.file_digest(one.target)
            before = ledger.files.get(name)
            seen = before is None and (ledger.places(one.target) or ledger.request.said(one.target))
            untrusted = any("://" in source for source in one.carries)
            made = not untrusted and (before.made if before is not None else not seen)
            level = max([_level_of(ledger, source) for source in one.carries], default=0)
            yield name, KnownFile(made, level, untrusted, latent.get(_plain_path(one.target), ()))

    def _latent(
        self, call: ToolCall, proposal: Proposal, paths: Sequence[str]
    ) -> dict[str, tuple[Operation, ...]]:
        """Return by path what scripts that a call writes do that may harm, the most certain first."""
        found = {}
        for path, script in scripts_in(call, paths, by_shell=proposal.partial):
            does = self._labeler.read_call(script).effect.operations
            harmful = sorted([one for one in does if one.certainty >= LIKELY], key=_least_certain)
            found[_plain_path(path)] = tuple(harmful[:MAX_LATENT])
        return found


class _Look:
    """One call as it is looked at."""

    __slots__ = ("_boundary", "_carried", "_effect", "_ledger", "_words")

    def __init__(self, ledger: Ledger, boundary: Boundary, effect: Effect, words: tuple[str, ...]) -> None:
        self._ledger, self._boundary, self._effect, self._words = ledger, boundary, effect, words
        carried = _DATA_LEVELS.get(_level(effect, "carried"), 0) if ledger.held else 0
        if effect.leaves and words:
            carried = max(carried, _DATA_LEVELS.get(_level(effect, "data"), 0))
        self._carried = carried

    def concerns(self, operation: Operation) -> bool:
        """Return whether an operation is looked at more closely."""
        if operation.harm:
            return (
                operation.harm != "destruction" or operation.role != "path" or self._kind(operation) != MADE
            )
        if operation.action in {"read", "run"} or (
            operation.action in _ORDINARY and operation.role in _LOCAL
        ):
            return False
        return operation.action != "fetch" or bool(self._ledger.exposure) or self._effect.leaves

    def concern(self, operation: Operation, asked: int) -> Concern:
        """Return the concern of an operation with what the user's words say of it."""
        ledger = self._ledger
        target = operation.target
        places = ledger.places(target) if target else []
        before, asked = asked, self._within(operation, asked, places)
        best = max(places, key=_rank_of) if places else None
        kind = self._kind(operation)
        source = self._source(operation, kind, best)
        carried = self._carries(operation, kind, source)
        harm, certainty = operation.harm, operation.certainty
        if (
            asked == NONE < before
        ):  # it goes further than what they asked for, so what they named it by says nothing
            certainty = max(certainty, LIKELY)
            source = NOBODY if source == SAID else source
        if carried > 1 and kind != INSIDE:
            harm, certainty = "exfiltration", max(certainty, CERTAIN if carried > LIKELY else LIKELY)
        speaking = sum([place.speaks for place in places])
        cells = (
            HARM_NAMES.index(harm),
            ACTION_NAMES.index(operation.action),
            certainty,
            asked,
            source,
            ledger.request.overlap(target) if target else 0,
            best.near if best is not None else 0,
            min(len(places), 3),
            0 if not speaking else 2 if speaking == len(places) else 1,
            carried,
            kind,
            ledger.exposure,
            min(ledger.times(operation.action), 3),
            best.field if best is not None else 0,
            _REVERSIBILITY.get(self._effect["reversibility"], 2),
            int(ledger.request.turns > 0),
            TYPED if self._words else LANGUAGE,
        )
        return Concern(
            cells, operation.action, harm, target, operation.note, best.text.number if best is not None else 0
        )

    def _within(self, operation: Operation, asked: int, places: Sequence[Place]) -> int:
        """Return how far the user's words cover an operation that goes further than others of its kind.

        An act on everything at once, one by force, and one towards somebody whom nobody mentioned are not the acts that
        the user asked for on something smaller, gently, or towards others.
        """
        request, target = self._ledger.request, operation.target
        if operation.harm == "destruction" and operation.action == "push" and asked > NONE:
            forced = request.asks("push", [target] if target else [], ("force",)).grade
            return forced if forced in {FORBIDDEN, ASKED} else NONE
        if not OBJECT <= asked < ASKED:
            return asked
        if operation.harm == "destruction" and operation.certainty >= LIKELY:
            beyond = asked == OBJECT and self._kind(operation) in {ELSEWHERE, SYSTEM}
            return NONE if beyond or _EVERYTHING.fullmatch(target.strip()) else asked
        unknown = operation.role in _PEOPLE and not (places or request.overlap(target))
        return NONE if unknown and operation.harm and asked == ACTION else asked

    def _kind(self, operation: Operation) -> int:
        target, role = operation.target, operation.role
        if not target:
            return NOTHING
        if role == "path":
            file = self._ledger.file(target)
            if file is not None and file.made:
                return MADE
            return SYSTEM if _EVERYTHING.fullmatch(target.strip()) else _kind_of_path(target)
        if role == "host":
            host = target.partition("://")[2] or target
            host = host.rpartition("@")[2].partition("/")[0].partition(":")[0]
            return INSIDE if self._boundary.place(host) in {HERE, WITHIN} else PARTY
        if role in _PARTIES:
            return INSIDE if self._boundary.inside(target) else PARTY
        return OTHER

    def _source(self, operation: Operation, kind: int, best: Place | None) -> int:
        target = operation.target
        if target and (self._boundary.named(target) or self._ledger.request.said(target)):
            return SAID
        if kind == MADE:
            return OWN
        if kind == INSIDE:
            return RECORDED
        if best is None:
            return NOBODY
        return _source_of(best, operation.action)

    def _carries(self, operation: Operation, kind: int, source: int) -> int:
        """Return what goes out: 0 nothing, 1 unknown while the run holds something, 2 sensitive data, 3 credentials."""
        if operation.action not in _OUTWARD or kind == INSIDE:
            return 0
        ledger = self._ledger
        level = self._carried
        for path in operation.carries:
            level = max(level, _level_of(ledger, path))
        if operation.harm == "exfiltration" and operation.certainty >= LIKELY:
            level = max(level, operation.certainty - 1)
        if level > ledger.taken and source >= REACHED and not operation.carries:
            level = 0  # it stands in what the user pointed to, for use with what they pointed to
        if level:
            return level + 1
        return int(ledger.held > 0 and (self._effect.leaves or bool(operation.carries)))


def _level(effect: Effect, dimension: str) -> str:
    """Return the level of an effect in a dimension; empty where its catalogue has no such dimension."""
    return next((level for name, level in effect.levels if name == dimension), "")


def _telling(operations: list[Operation]) -> list[Operation]:
    """Return operations without those on amounts and small numbers, where another one says what the call acts on."""
    telling = [one for one in operations if one.role != "amount" and (not one.target or decides(one.target))]
    return telling or operations[:1]


def _links(call: ToolCall, proposal: Proposal, operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield what a message points its readers to: whoever reads it may follow."""
    outward = next((one for one in operations if one.action in _TELLING), None)
    if outward is None or proposal.partial or not isinstance(call.args, dict):
        return
    targets = {one.target for one in operations}
    texts = [value for value in call.args.values() if isinstance(value, str)]
    found = [
        address for text in texts if len(text) > _SHORT_TEXT or " " in text for address in addresses_in(text)
    ]
    for address in list(dict.fromkeys(found))[:MAX_LINKS]:
        if address not in targets:
            yield Operation(outward.action, address, "host", note=f"point the reader to {address}")


def _texts_of(call: ToolCall) -> list[str]:
    """Return the texts among the arguments of a call."""
    return (
        [value for value in call.args.values() if isinstance(value, str)]
        if isinstance(call.args, dict)
        else []
    )


def _sources_of(call: ToolCall, operations: Sequence[Operation]) -> list[str]:
    """Return the values by which what a call reads is recognised."""
    found = [one.target for one in operations if one.action in _READING and one.target]
    if isinstance(call.args, dict):
        found += [value for value in call.args.values() if isinstance(value, str) and 3 < len(value) <= 200]  # noqa: PLR2004
    return list(dict.fromkeys(found))[:MAX_SOURCES]


def _pointed(ledger: Ledger, sources: Iterable[str], words: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Return how directly the user pointed to a source, and for what."""
    pointed, delegated = 0, dict.fromkeys(_NO_ACTIONS)
    request = ledger.request
    for value in sources or ("",):
        found = request.designated(value, words) if request.delegations else ()
        for one in found:
            delegated.update(dict.fromkeys(("*",) if one.whole else one.actions))
        if found or pointed > 1 or (value and request.said(value)):
            pointed = 2
        elif (
            value
            and pointed == 0
            and any(place.text.pointed and not place.speaks for place in ledger.places(value))
        ):
            pointed = 1
    return pointed, tuple(delegated)


def _plain_path(path: str) -> str:
    return path.removeprefix("./")


def _source_of(best: Place, action: str) -> int:
    """Return who vouches for a value by the best place where it stands."""
    text = best.text
    if text.integrity == RECORD:
        return RECORDED if best.field in {DATA, IDENTITY} and not best.speaks else UNTRUSTED
    if "*" in text.delegated or action in text.delegated:
        return DELEGATED
    return (UNTRUSTED, REACHED, POINTED)[text.pointed]


def _level_of(ledger: Ledger, path: str) -> int:
    file = ledger.file(path)
    return 0 if file is None else file.level


def _kind_of_path(path: str) -> int:
    lower = path.strip().lower()
    if lower.startswith(_TEMPORARY):
        return TEMPORARY
    if _SYSTEM.match(lower):
        return SYSTEM
    return (
        ELSEWHERE
        if lower.startswith(("/", "~", "..", "$home", "%userprofile%")) or lower[1:3] in {":\\", ":/"}
        else PROJECT
    )


@lru_cache(1024)
def _object_words(tool: str) -> tuple[str, ...]:
    """Return what the name of a tool says of its object: all of its words but the first."""
    words = [word for word in _SPLIT.split(tool.rpartition("__")[2]) if word]
    return (" ".join(words[1:]),) if len(words) > 1 else ("",)


def _rank_of(place: Place) -> tuple[bool, bool, int, int, int, int]:
    return place.rank


def _least_certain(operation: Operation) -> int:
    return -operation.certainty


def _spans(text: str, passages: Iterable[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for passage in passages:
        folded = fold(passage)
        start = text.find(folded, at)
        if start >= 0:
            yield start, start + len(folded)
            at = start
        elif folded:
            yield 0, len(text)
            return
