"""Where one run stands: a small immutable value that the caller keeps."""

from __future__ import annotations

from safetydrift.value import Value, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.history import History
    from safetydrift.monitor.covariates import Covariates, Pipeline


class TrajectoryState(Value):
    """The state of one run between two calls.

    Parameters
    ----------
    category
        The category whose tables are used; unknown ones stand for the aggregate.
    state
        Index of the safety state.
    steps
        Calls made so far.
    since
        Per dimension, the step that last raised its level (0: never raised).
    violated
        Whether the rules have been violated; only ever set for models that go by the rules, and never unset.
    history
        What the run has shown so far; None for models whose states do not depend on it.
    past, pipeline
        What a hazard looks at beside the state, and which model acts; None for models without a hazard.
    """

    __slots__ = ("category", "history", "past", "pipeline", "since", "state", "steps", "violated")
    category: str
    state: int
    steps: int
    since: tuple[int, ...]
    violated: bool
    history: History | None
    past: Covariates | None
    pipeline: Pipeline | None

    def __init__(  # noqa: PLR0917  # one is made at every step, and keywords cost
        self,
        category: str,
        state: int,
        steps: int,
        since: tuple[int, ...],
        violated: bool = False,
        history: History | None = None,
        past: Covariates | None = None,
        pipeline: Pipeline | None = None,
    ) -> None:
        # One is made at every step; naming the fields one by one takes half the time of `_fill`.
        set_field(self, "category", category)
        set_field(self, "state", state)
        set_field(self, "steps", steps)
        set_field(self, "since", since)
        set_field(self, "violated", violated)
        set_field(self, "history", history)
        set_field(self, "past", past)
        set_field(self, "pipeline", pipeline)
