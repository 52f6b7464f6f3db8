"""The choices of a fit, as values; nothing here needs numpy, so that a command line can offer them without it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, to_builtins

from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    from collections.abc import Mapping


class Granularity(Enum):
    """What the rows of the chain are."""

    FINE = "fine"
    """The states of the space."""

    COARSE = "coarse"
    """The risk levels."""


class Estimator(Enum):
    """How transition probabilities are estimated."""

    SHRUNK = "shrunk"
    """Maximum likelihood over all runs; each category is drawn towards it by a few pseudo-observations."""

    HIERARCHICAL = "hierarchical"
    """Each category is drawn towards the other runs of its sources, these towards all other runs, and these towards
    what the dimensions allow; how strongly is fitted, level by level, by empirical Bayes."""

    MAXIMUM_LIKELIHOOD = "maximum-likelihood"
    """Observed shares, category by category; a row never left stays unknown."""

    SMOOTHED = "smoothed"
    """Half a pseudo-observation (Jeffreys) on every transition the dimensions allow; what they rule out stays zero."""

    PUBLISHED = "published"
    """The paper's: maximum likelihood with violation as the only end. Runs that complete are treated as cut
    off, so every figure is too high; here for comparison (docs/design/completion-and-censoring.md)."""


class FitSettings(Struct, frozen=True, kw_only=True):
    """The choices of a fit.

    Parameters
    ----------
    notion
        What counts as a violation.
    granularity
        Rows of the chain.
    estimator
        How probabilities are estimated.
    strength
        Pseudo-observations by which a category's row is drawn towards the aggregate row (estimator SHRUNK).
    max_horizon
        Furthest horizon of the tables, in steps.
    unknown_onset
        What to do with runs labelled violated whose violating call is not known (notion LABEL).
    false_alarm_budget
        The suggested thresholds alarm in at most this share of the training runs that do not violate. This is
        a description of the training runs, not a guarantee.
    proposal_budget
        The same for the threshold on proposed calls of a model with a risk score, whose alarms stop an agent rather
        than warn it.
    risk_score
        Whether to fit a risk score beside the chain (space `flow`).
    soft_categories
        Whether to count the words of tasks by category, so that runs whose category nobody names can be followed by
        all of them (`safetydrift.monitor.categories`).
    """

    notion: Notion = Notion.LABEL
    granularity: Granularity = Granularity.FINE
    estimator: Estimator = Estimator.SHRUNK
    strength: float = 10.0
    max_horizon: int = 10
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL
    false_alarm_budget: float = 0.1
    proposal_budget: float = 0.01
    risk_score: bool = False
    soft_categories: bool = True

    def definition(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        found: dict[str, Any] = to_builtins(self)
        return found

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> FitSettings:
        """Build settings from plain data; the inverse of `definition`. What else it holds is passed over.

        Raises
        ------
        ValueError
            If a part is missing or of the wrong kind.
        """
        missing = set(cls.__struct_fields__).difference(definition)
        if missing:
            raise ValueError(f"{min(missing)!r} is missing")
        return convert(definition, cls)
