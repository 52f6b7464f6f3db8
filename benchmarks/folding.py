"""Folding effects into states, for 200,000 runs of ten steps in the published space.

Three ways to the same states: a plain loop that looks up the next state in a list of rows, `states.trajectory.fold`
run by run, and one numpy look-up per step that moves all runs at once. The numpy way takes and gives arrays of
small integers, the others tuples; turning one into the other is timed on its own, since runs that arrive as
Python objects would have to pay for it. The library folds run by run and has no numpy way: that one stands here
for what could be had. Reading runs and labelling them is not part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from _timing import interleaved, options, report

from safetydrift.formats import load_space
from safetydrift.states.trajectory import fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetydrift.states.space import StateSpace

TITLE = "Folding effects into states"
STEPS = 10


def side_by_side(following: NDArray[np.uint8], effects: NDArray[np.uint8], start: int) -> NDArray[np.uint8]:
    """Return the states of all runs, shape (n_steps + 1, n_runs), from effects of shape (n_steps, n_runs)."""
    width = following.shape[1]
    flat = following.ravel()
    states = np.empty((len(effects) + 1, effects.shape[1]), dtype=np.uint8)
    states[0] = start
    for step, effect in enumerate(effects):
        np.take(flat, states[step].astype(np.uint16) * width + effect, out=states[step + 1])
    return states


def loop(space: StateSpace, runs: list[tuple[int, ...]]) -> list[list[int]]:
    rows = [space.successors(state) for state in range(space.n_states)]
    folded = []
    for effects in runs:
        state = space.start
        states = [state]
        for effect in effects:
            state = rows[state][effect]
            states.append(state)
        folded.append(states)
    return folded


def main() -> None:
    n_runs = 100_000 if options(TITLE).quick else 200_000
    space = load_space("paper")
    following = np.array([space.successors(state) for state in range(space.n_states)], dtype=np.uint8)
    effects = np.random.default_rng(0).integers(0, space.n_states, (STEPS, n_runs), dtype=np.uint8)
    runs = list(map(tuple, effects.T.tolist()))

    def ours() -> list[tuple[int, ...]]:
        return [fold(space, effects) for effects in runs]

    def gathered() -> NDArray[np.uint8]:
        return side_by_side(following, effects, space.start)

    if not np.array_equal(gathered().T, ours()) or not np.array_equal(loop(space, runs), ours()):
        raise SystemExit("the ways of folding disagree")
    names = ("loop over rows", "states.trajectory.fold", "numpy, all runs side by side")
    timings = interleaved(dict(zip(names, (lambda: loop(space, runs), ours, gathered), strict=True)))
    conversion = "tuples to an array and states back to tuples"
    timings |= interleaved(
        {conversion: lambda: (np.array(runs, dtype=np.uint8), list(map(tuple, gathered().T.tolist())))}
    )
    looped, folded, numpy = (timings[name].median for name in names)
    million = n_runs * STEPS / 1e6
    ratios = {
        "loop / fold": (looped / folded, ">= 25"),
        "loop / numpy side by side, not in the library": (looped / numpy, "none"),
        "fold / numpy side by side": (folded / numpy, "none"),
        "fold / (numpy and both conversions)": (folded / (timings[conversion].median), "none"),
        "fold, million steps per second": (million / folded, "none"),
        "numpy side by side, million steps per second": (million / numpy, "none"),
    }
    report(f"{TITLE}, {n_runs:,} runs of {STEPS} steps", timings, ratios)


if __name__ == "__main__":
    main()
