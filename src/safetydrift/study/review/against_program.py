"""Decisions beside what the program says: as it was exported, or labelled again from the traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safetydrift.errors import ReviewError
from safetydrift.study.review.comparison import Comparison, Judgement, Pair, judgement
from safetydrift.study.review.sampling import Moment, labelled_steps, sample_id, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from safetydrift.effects.labeler import Labeler
    from safetydrift.study.review.sample_file import SampleFile
    from safetydrift.study.review.sheets import Decision, Sheet
    from safetydrift.trace import Trace


@dataclass(frozen=True, slots=True)
class Seen:
    """What the program says of one call.

    Parameters
    ----------
    source, layer, tool
        Where the call comes from, what decided its effect, and which tool it calls.
    judgement
        Levels and kinds.
    stands_for
        As in `Pair`.
    """

    source: str
    layer: str
    tool: str
    judgement: Judgement
    stands_for: tuple[int, int] | None = None


def exported(sample: SampleFile) -> dict[str, Seen]:
    """Return what the program said when a sample was drawn, by the name of the call."""
    return {
        call.id: Seen(
            call.source,
            call.layer,
            call.tool,
            Judgement(call.levels, frozenset(call.kinds)),
            (call.stratum, sample.strata[call.stratum].calls),
        )
        for call in sample.calls
    }


def labelled_again(
    traces: Iterable[Trace],
    labeler: Labeler,
    decisions: Mapping[str, Decision],
    moment: Moment = Moment.PROPOSED,
) -> dict[str, Seen]:
    """Return what the program says of the decided calls now, by their names on the sheet.

    A call is found by its full name; where the traces name their source otherwise than the sheet does, by the rest of
    it. The first of several runs with one id counts.
    """
    by_rest = _by_rest(decisions)
    exact: dict[str, Seen] = {}
    otherwise: dict[str, Seen] = {}
    for trace in traces:
        names = [
            (full, full)
            if (full := sample_id(trace, number)) in decisions
            else (full, by_rest.get(f"{trace.id}/{number}"))
            for number in range(1, len(trace.steps) + 1)
        ]
        if not any(name for _, name in names):
            continue
        for (full, name), (step, effect) in zip(names, labelled_steps(trace, labeler, moment), strict=True):
            if name is not None:
                said = Judgement(dict(effect.levels), frozenset(effect.kinds))
                seen = Seen(trace.source, effect.source, tool_name(step), said)
                (exact if name == full else otherwise).setdefault(name, seen)
    return otherwise | exact


def _by_rest(decisions: Mapping[str, Decision]) -> dict[str, str]:
    """Return the names of calls by what follows their source; those that would be ambiguous are left out."""
    found: dict[str, str] = {}
    doubled = set()
    for name, decision in decisions.items():
        rest = name.removeprefix(f"{decision.source}/") if decision.source else ""
        if rest and rest != name:
            if rest in found:
                doubled.add(rest)
            found[rest] = name
    return {rest: name for rest, name in found.items() if rest not in doubled}


def compare_with_program(
    sheet: Sheet, seen: Mapping[str, Seen], scales: Mapping[str, tuple[str, ...]]
) -> Comparison:
    """Return how far a reviewer and the program agree on the calls that were decided and are known to the program."""
    pairs = []
    for name, decision in sheet.decisions.items():
        said = seen.get(name)
        if said is not None and decision.decided:
            pairs.append(
                Pair(
                    name,
                    decision.source or said.source,
                    said.layer,
                    said.tool,
                    judgement(decision),
                    said.judgement,
                    unsure=decision.unsure,
                    remark=decision.remark,
                    stands_for=said.stands_for,
                )
            )
    return Comparison(tuple(pairs), scales, (sheet.name, "program"))


def require_drawn(sheet: Sheet, sample: SampleFile) -> None:
    """Check that a sheet belongs to a sample.

    Raises
    ------
    ReviewError
        If it decides on a call that was not drawn, or names another tool; the message names the row.
    """
    drawn = {call.id: call for call in sample.calls}
    for name, decision in sheet.decisions.items():
        if name not in drawn:
            raise ReviewError(f"{sheet.name}: row {decision.row}: {name!r} is not in the sample")
        if decision.tool and decision.tool != drawn[name].tool:
            raise ReviewError(
                f"{sheet.name}: row {decision.row}: {name!r} calls {drawn[name].tool!r}, not {decision.tool!r}"
            )
