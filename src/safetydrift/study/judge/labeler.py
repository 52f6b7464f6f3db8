"""A labeler that asks a judge where no rule decides, and keeps the cautious default where the judge fails."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from safetydrift.effects.catalogue import Catalogue
from safetydrift.effects.catalogue.scales import join, overlay
from safetydrift.effects.labeler import Labeler
from safetydrift.errors import JudgeSettingsError, UnknownAnswerError

if TYPE_CHECKING:
    from safetydrift.effects.boundary import Boundary
    from safetydrift.states.effect import Effect
    from safetydrift.trace import ToolCall


class Assessor(Protocol):
    """What a judge has to offer: `Judge` and `RecordedJudge` do."""

    def assess(self, call: ToolCall) -> Effect | None:
        """Return what the call does, None where that is not known."""
        ...


class JudgedLabeler(Labeler):
    """A labeler with a judge behind it.

    Parameters
    ----------
    labeler
        Whose catalogue and boundary decide first.
    judge
        Asked about the call alone, where they leave it to the default.
    below
        Ask also where their confidence is below this.
    trust
        An answer of less confidence than this may raise an effect, but not lower it.

    Attributes
    ----------
    tally
        How many calls that were left to the judge were ``answered``, were ``unsure`` (of those answered: too unsure to
        lower anything), are ``unknown`` to a file of recorded answers, or ``failed``.
    last_failure
        Why the judge failed the last time, empty if it never did.

    Notes
    -----
    An answer may lower the cautious default, never what the rules found about the same call: its pattern, a part of
    its text that was read, a hint that raises. That floor is found by a labeler on a catalogue in which the unknown
    counts for nothing. What arguments and results hold, and what the run has shown so far, is looked at afterwards
    as ever.
    """

    __slots__ = ("_floor", "below", "judge", "last_failure", "tally", "trust")

    def __init__(self, labeler: Labeler, judge: Assessor, *, below: float = 0.0, trust: float = 0.5) -> None:
        for name, value in {"below": below, "trust": trust}.items():
            if not 0 <= value <= 1:
                raise JudgeSettingsError(f"{name}: expected a number from 0 to 1, got {value!r}")
        super().__init__(labeler.catalogue, labeler.boundary)
        self.judge = judge
        self.below, self.trust = below, trust
        self.tally: Counter[str] = Counter()
        self.last_failure = ""
        self._floor: Labeler | None = None

    def _alone(self, call: ToolCall) -> Effect:
        """Return what a call does by itself; the judge may have been asked."""
        found = super()._alone(call)
        if found.source != "default" and found.confidence >= self.below:
            return found
        return self._judged(call, found) or found

    def _judged(self, call: ToolCall, found: Effect) -> Effect | None:
        """Return what was found with the judge's answer in it, None where it gives none; never raises."""
        try:
            answer = self.judge.assess(call)
            joined = None if answer is None else self._joined(found, self._least(call), answer)
        except UnknownAnswerError:
            answer = joined = None
        except Exception as error:  # noqa: BLE001  # a labeler raises for no input, so its judge must not either
            self.tally["failed"] += 1
            self.last_failure = f"{type(error).__name__}: {error}"
            return None
        self.tally["unknown" if answer is None else "answered"] += 1
        self.tally["unsure"] += answer is not None and answer.confidence < self.trust
        return joined

    def _least(self, call: ToolCall) -> Effect:
        """Return what the rules found of a call, as if the default said nothing."""
        if self._floor is None:
            self._floor = Labeler(_without_default(self.catalogue), self.boundary)
        return self._floor._alone(call)  # noqa: SLF001

    def _joined(self, found: Effect, floor: Effect, answer: Effect) -> Effect:
        """Return what was found with the judge's levels in place of the default's, and not below the floor."""
        if answer.confidence < self.trust:
            floor = found
        scales = self.catalogue.scales
        told = scales.read(dict(answer.levels), "answer", whole=False)
        ranks = join(overlay(scales.ranks(found), told), scales.ranks(floor))
        kinds = {*answer.kinds, *floor.kinds}
        reaches = scales.level(ranks, "tool") == scales.levels("tool")[-1]
        changes = scales.level(ranks, "reversibility") != scales.levels("reversibility")[0]
        leaves = found.leaves and reaches and changes
        leak = self.catalogue.leaks.get(scales.level(ranks, "data"))
        if leaves and leak is not None:
            kinds.add(leak)
        return replace(
            found,
            levels=scales.pairs(ranks),
            source=answer.source,
            reasons=(*answer.reasons, *found.reasons),
            kinds=tuple(sorted(kinds)),
            external=answer.external or (floor.external and reaches),
            leaves=leaves,
            confidence=answer.confidence,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.catalogue, self.boundary, self.judge, self.below, self.trust)

    def __repr__(self) -> str:
        return f"<JudgedLabeler on {self.catalogue!r}, then {self.judge!r}>"


def judged(labeler: Labeler, judge: Assessor, *, below: float = 0.0, trust: float = 0.5) -> JudgedLabeler:
    """Return a labeler that asks a judge where it would be left to its cautious default; see `JudgedLabeler`."""
    return JudgedLabeler(labeler, judge, below=below, trust=trust)


def _rebuilt(
    catalogue: Catalogue, boundary: Boundary, judge: Assessor, below: float, trust: float
) -> JudgedLabeler:
    return JudgedLabeler(Labeler(catalogue, boundary), judge, below=below, trust=trust)


def _without_default(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue with a default, and an act of the unknown, that count for nothing."""
    definition, scales = catalogue.definition(), catalogue.scales
    nothing = {name: scales.levels(name)[0] for name in scales.required}
    acts = {**definition["acts"], "unknown": {"effect": nothing}}
    return Catalogue.from_definition({**definition, "default": nothing, "acts": acts})
