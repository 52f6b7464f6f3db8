"""Counting 10 million (category, from, to) into 8 x 60 x 60.

The same transitions, as 100-step runs of narrow integers in memory, are counted by the loop over cells that
research code tends to have (100 thousand transitions, scaled), by ``np.add.at`` and by `count_groups`. Files
are not part of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from _timing import measure, report

from safetydrift.markov import count_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetydrift.markov import TransitionCounts

N_TRANSITIONS, N_CATEGORIES, N_STATES, STEPS, SAMPLE = 10_000_000, 8, 60, 100, 100_000


def main() -> None:
    rng = np.random.default_rng(0)
    n_runs = N_TRANSITIONS // STEPS
    runs = rng.integers(0, N_STATES, (n_runs, STEPS + 1), dtype=np.uint8)
    categories = rng.integers(0, N_CATEGORIES, n_runs, dtype=np.uint8)
    states, offsets = runs.ravel(), np.arange(0, runs.size + 1, STEPS + 1)
    triples = (np.repeat(categories, STEPS), runs[:, :-1].ravel(), runs[:, 1:].ravel())
    sample = [column[:SAMPLE].tolist() for column in triples]
    shape = (N_CATEGORIES, N_STATES, N_STATES)

    def cell_by_cell() -> None:
        counts = np.zeros(shape, dtype=np.int64)
        for category, source, target in zip(*sample, strict=True):
            counts[category, source, target] += 1

    def add_at() -> NDArray[np.int64]:
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts, triples, 1)
        return counts

    def ours() -> tuple[TransitionCounts, ...]:
        return count_groups(states, offsets, categories, N_STATES, N_CATEGORIES)

    if not np.array_equal(add_at(), [counts.matrix for counts in ours()]):
        raise SystemExit("the two ways of counting disagree")
    loop = f"loop over cells ({SAMPLE:,} x {N_TRANSITIONS // SAMPLE})"
    timings = {
        loop: measure(cell_by_cell).scaled(N_TRANSITIONS / SAMPLE),
        "np.add.at": measure(add_at, 5),
        "count_groups": measure(ours),
    }
    best = timings["count_groups"].median
    ratios = {
        "loop / count_groups": (timings[loop].median / best, ">= 60"),
        "np.add.at / count_groups": (timings["np.add.at"].median / best, "none"),
    }
    report("Counting 10 M transitions of 8 categories and 60 states", timings, ratios)


if __name__ == "__main__":
    main()
