"""What each dimension of the state contributes: take it away and try again (figure 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.evaluation.document import Table
from safetydrift.study.analyses.chains import Places
from safetydrift.study.analyses.study import HELD_OUT_NOTE
from safetydrift.study.analyses.trial import try_out
from safetydrift.study.published import ABLATION

if TYPE_CHECKING:
    from safetydrift.evaluation.document import Cell
    from safetydrift.study.analyses.study import Study

NOTHING, EVERYTHING = "none", "all of them"


def ablation(study: Study) -> dict[str, Table]:
    """Return ``ablation``: foresight without one dimension after another, and without all of them."""
    names = [dimension.name for dimension in study.space.dimensions]
    without = {NOTHING: frozenset[str](), **{name: frozenset([name]) for name in names}}
    without[EVERYTHING] = frozenset(names)
    parts = study.held_out()
    rows: list[tuple[Cell, ...]] = []
    for name, gone in without.items():
        places = Places.fine(study, gone)
        found = try_out(study, places, parts)
        rows.append(
            (
                name,
                places.n_rows - 1,
                found.next_level.total,
                found.next_level.accuracy,
                found.next_level.log_loss,
                found.own_level.accuracy,
                found.ranking.auroc,
                found.ranking.within_category,
                ABLATION.get(name),
            )
        )
    title = "Ablation: the state without one of its dimensions"
    note = (
        f"{study.note} {HELD_OUT_NOTE} Chain on states, a dimension put to its lowest level. The next level is "
        "foretold from the state, over all categories; `accuracy` and `log loss` (nats) ask for the risk level as "
        "the whole space has it, `accuracy, own levels` as what is left of the space has it: the fewer levels "
        "remain, the easier that is. AUROC is of a violation within 5 steps by the chain of the category; without "
        "any dimension it is what the category alone is worth. Which of the two accuracies the paper prints it "
        "does not say."
    )
    columns = (
        "taken away",
        "states",
        "steps",
        "accuracy",
        "log loss",
        "accuracy, own levels",
        "AUROC within 5",
        "AUROC within 5, mean over categories",
        "published accuracy",
    )
    return {"ablation": Table(title, note, columns, tuple(rows))}
