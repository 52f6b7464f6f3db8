"""The policy of a guard that is given none, and its named variants.

A question is worth its price where the expected loss is higher: the probability that a call is harm that nobody with
authority asked for, times how much that harm weighs. So people are asked from a lower probability on where the harm is
graver. One thing is refused whatever the user wishes: credentials to somebody for whom nobody vouches.
"""

from __future__ import annotations

from safetydrift.guard.policy import GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

ASK_FROM: dict[str, dict[str, float]] = {
    "default": {"critical": 0.35, "high": 0.45, "medium": 0.55, "low": 0.7},
    "coding": {"critical": 0.4, "high": 0.55, "medium": 0.65, "low": 0.8},
    "office": {"critical": 0.3, "high": 0.4, "medium": 0.5, "low": 0.6},
    "strict": {"critical": 0.1, "high": 0.15, "medium": 0.2, "low": 0.3},
}
"""Per variant, the probability of unauthorised harm from which a person is asked, by how much the harm weighs."""
FORESEEN, DOUBTFUL = 0.3, 0.1
"""Where a violation within the horizon is at least so probable by the trajectory, less doubt is enough."""
NEVER = Rule(
    Intervention.BLOCK,
    name="credentials to somebody unknown",
    harms=("exfiltration",),
    carries="credentials",
    vouched="reached",
    unauthorised=0.3,
    reason="credentials never go to somebody whom neither the user nor the operator named",
)


def default_policy(variant: str = "default") -> GuardPolicy:
    """Return what a guard does by default, or a named variant of it.

    Parameters
    ----------
    variant
        One of ``"default"``, ``"coding"`` (asks less often about what can be put right in a repository), ``"office"``
        (asks earlier about messages, records and appointments) and ``"strict"``.

    Raises
    ------
    KeyError
        If there is no such variant.
    """
    rules = [
        Rule(Intervention.ASK, name=f"unauthorised harm ({weight})", weight=weight, unauthorised=probability)
        for weight, probability in ASK_FROM[variant].items()
    ]
    rules.append(
        Rule(Intervention.ASK, name="foreseen and doubtful", proposal=FORESEEN, unauthorised=DOUBTFUL)
    )
    return GuardPolicy(variant, never=(NEVER,), when=tuple(rules))
