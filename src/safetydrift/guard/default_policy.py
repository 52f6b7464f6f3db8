"""The policy of a guard that is given none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.guard.policy import GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from safetydrift.states.space import StateSpace

ORDERED = {"provenance": "instructed", "reversibility": "irreversible"}
"""An act that cannot be undone, and whom or what it concerns stands only where a stranger gives orders."""


def default_policy(space: StateSpace) -> GuardPolicy:
    """Return what a guard does by default: asks near the model's threshold, and about acts on a stranger's orders.

    Parameters
    ----------
    space
        The model's state space; one without provenance leaves all to the threshold.
    """
    known = {dimension.name for dimension in space.dimensions}
    if not known.issuperset(ORDERED):
        return GuardPolicy()
    ordered = Rule(
        Intervention.ASK,
        name="a stranger's orders",
        kinds=KINDS,
        effects=ORDERED,
        reason="this cannot be undone, and what it concerns was said by nobody but a stranger who gives orders",
    )
    return GuardPolicy(always_ask=(ordered,))
