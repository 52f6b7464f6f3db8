"""Where one run stands: a small immutable value that the caller keeps."""

from __future__ import annotations

from safetydrift.errors import SnapshotError
from safetydrift.value import Value, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from safetydrift.effects.history import History
    from safetydrift.monitor.categories import Belief
    from safetydrift.monitor.covariates import Covariates
    from safetydrift.monitor.pipelines import Pipeline
    from safetydrift.states.space import StateSpace


_WITHOUT_BELIEF = 8


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
    belief
        What there is to tell the run's category by; None where the category is known, or the model has no soft ones.
    """

    __slots__ = ("belief", "category", "history", "past", "pipeline", "since", "state", "steps", "violated")
    category: str
    state: int
    steps: int
    since: tuple[int, ...]
    violated: bool
    history: History | None
    past: Covariates | None
    pipeline: Pipeline | None
    belief: Belief | None

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
        belief: Belief | None = None,
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
        set_field(self, "belief", belief)

    def snapshot(self) -> list[Any]:
        """Return the state as plain data that JSON can hold."""
        return [
            self.category,
            self.state,
            self.steps,
            list(self.since),
            self.violated,
            None if self.history is None else self.history.snapshot(),
            None if self.past is None else self.past.snapshot(),
            None if self.pipeline is None else list(self.pipeline),
            None if self.belief is None else _of_belief(self.belief),
        ]

    @classmethod
    def restore(cls, parts: Any, space: StateSpace) -> TrajectoryState:
        """Return a state from what `snapshot` gave; a monitor of the same model judges the two alike.

        Parameters
        ----------
        space
            The state space of that model.

        Raises
        ------
        SnapshotError
            If it is no such data, or no state of that space.
        """
        try:
            # A state kept by an older version says nothing about its category.
            parts = [*parts, None] if len(parts) == _WITHOUT_BELIEF else parts
            category, state, steps, since, violated, history, past, pipeline, belief = parts
        except (TypeError, ValueError) as error:
            raise SnapshotError("not the state of a run") from error
        numbers = [state, steps, *_list(since)]
        if (
            not isinstance(category, str)
            or type(violated) is not bool
            or any(type(number) is not int or number < 0 for number in numbers)
            or state >= space.n_states
            or len(since) != len(space.dimensions)
        ):
            raise SnapshotError("not the state of a run in this state space")
        return cls(
            category, state, steps, tuple(since), violated,
            None if history is None else _history(history),
            None if past is None else _past(past, space),
            None if pipeline is None else _pipeline(pipeline),
            None if belief is None else _belief(belief, space),
        )  # fmt: skip


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SnapshotError("not the state of a run")
    return value


def _history(parts: Any) -> History:
    from safetydrift.effects.history import History  # noqa: PLC0415  # states of some models have none

    return History.restore(parts)


def _past(parts: Any, space: StateSpace) -> Covariates:
    from safetydrift.monitor.covariates import Covariates  # noqa: PLC0415  # as above

    return Covariates.restore(parts, space)


def _pipeline(parts: Any) -> Pipeline:
    if any(type(part) is not int or part < 0 for part in _list(parts)):
        raise SnapshotError("not the pipeline of a run")
    return tuple(parts)


def _of_belief(belief: Belief) -> list[Any]:
    from safetydrift.monitor.categories import snapshot  # noqa: PLC0415  # as above

    return snapshot(belief)


def _belief(parts: Any, space: StateSpace) -> Belief:
    from safetydrift.monitor.categories import restore  # noqa: PLC0415  # as above

    return restore(parts, space)
