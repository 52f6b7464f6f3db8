"""Horizon tables, absorption and the bootstrap on chains of 60 states.

The published style, one matrix inverse and one matrix power per horizon, is timed on 10 chains and scaled up.
The bootstrap stands beside the gamma draws it cannot do without. It takes them in a thread of its own while
it normalises and follows five horizons, so with a second core the ratio shows only what that does not hide.
Matrices have the support of the published space, where two dimensions never fall. One BLAS thread.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from _timing import Timing, measure, report

from safetydrift.markov import (
    TransitionCounts,
    absorption,
    absorption_batch,
    bootstrap_horizons,
    horizon_batch,
    horizon_table,
    shrunk,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetydrift.markov import AbsorptionBatch

N_CHAINS, N_STATES, HORIZONS, SAMPLE = 1_000, 60, 100, 10
DRAWS, SHORT = 10_000, 5
VIOLATED = {"violated": range(54, N_STATES)}


def support() -> NDArray[np.bool_]:
    data, tool = np.divmod(np.arange(N_STATES) // 3, 4)
    allowed = (data >= data[:, None]) & (tool >= tool[:, None])
    allowed[54:] = np.eye(N_STATES, dtype=bool)[54:]
    return allowed


def published_style(matrices: NDArray[np.float64]) -> list[Any]:
    """Return absorption by the fundamental matrix and a power of the matrix for each horizon."""
    answers = []
    for matrix in matrices:
        moves, exits = matrix[:54, :54], matrix[:54, 54:]
        fundamental = np.linalg.inv(np.eye(54) - moves)
        ends = (fundamental @ exits, fundamental.sum(axis=1))
        powers = [
            np.linalg.matrix_power(matrix, horizon)[:, 54:].sum(axis=1) for horizon in range(1, HORIZONS + 1)
        ]
        answers.append((ends, np.array(powers)))
    return answers


def chains_benchmark(rng: np.random.Generator) -> tuple[dict[str, Timing], dict[str, tuple[float, str]]]:
    weights = rng.random((N_CHAINS, N_STATES, N_STATES)) * support()
    matrices = weights / weights.sum(axis=2, keepdims=True)

    def ours() -> tuple[AbsorptionBatch, NDArray[np.float64]]:
        return absorption_batch(matrices, VIOLATED), horizon_batch(matrices, VIOLATED, HORIZONS)

    ends, tables = ours()
    for chain, (theirs, powers) in enumerate(published_style(matrices[:2])):
        if not np.allclose(tables[chain, 0, 1:], powers, rtol=0, atol=1e-13):
            raise SystemExit("the two ways to the horizon table disagree")
        if not np.allclose(ends.expected_steps[chain, :54], theirs[1], rtol=1e-12, atol=0):
            raise SystemExit("the two ways to the expected steps disagree")
    published = f"inverse and matrix powers ({SAMPLE} chains x {N_CHAINS // SAMPLE})"
    timings = {
        published: measure(lambda: published_style(matrices[:SAMPLE])).scaled(N_CHAINS / SAMPLE),
        "absorption_batch + horizon_batch": measure(ours),
        "of which absorption_batch": measure(lambda: absorption_batch(matrices, VIOLATED)),
        "absorption_batch, all by elimination": measure(
            lambda: absorption_batch(matrices, VIOLATED, tolerance=0.0), 3
        ),
    }
    ratio = timings[published].median / timings["absorption_batch + horizon_batch"].median
    return timings, {"published style / ours, 1,000 chains": (ratio, ">= 45")}


def one_category_benchmark(
    counts: TransitionCounts,
) -> tuple[dict[str, Timing], dict[str, tuple[float, str]]]:
    towards = support() / support().sum(axis=1, keepdims=True)

    def ready() -> object:
        chain = shrunk(counts, VIOLATED, towards=towards, strength=10.0)
        return absorption(chain), horizon_table(chain, 10)

    timing = measure(ready, 101)
    name = "one category: estimate, absorption, 10 horizons"
    return {name: timing}, {"one category, ms": (1e3 * timing.median, "< 1")}


def bootstrap_benchmark(
    counts: TransitionCounts, rng: np.random.Generator
) -> tuple[dict[str, Timing], dict[str, tuple[float, str]]]:
    shapes = counts.matrix[:54][counts.matrix[:54] > 0].astype(float)

    def draws_alone() -> None:
        for _ in range(DRAWS // 32):
            rng.standard_gamma(shapes, size=(32, len(shapes)))

    def ours() -> object:
        return bootstrap_horizons(counts, VIOLATED, DRAWS, SHORT, rng)

    timings = {
        f"gamma draws alone ({len(shapes):,} cells)": measure(draws_alone, 5),
        f"bootstrap, {DRAWS:,} draws, {SHORT} horizons": measure(ours, 5),
    }
    alone, whole = (timing.median for timing in timings.values())
    return timings, {"bootstrap / its gamma draws": (whole / alone, "<= 1.25")}


def main() -> None:
    rng = np.random.default_rng(0)
    counts = TransitionCounts(np.where(support(), rng.integers(1, 30, (N_STATES, N_STATES)), 0))
    timings: dict[str, Timing] = {}
    ratios: dict[str, tuple[float, str]] = {}
    for some_timings, some_ratios in (
        chains_benchmark(rng),
        one_category_benchmark(counts),
        bootstrap_benchmark(counts, rng),
    ):
        timings |= some_timings
        ratios |= some_ratios
    report("Horizons, absorption and bootstrap, 60 states", timings, ratios)


if __name__ == "__main__":
    main()
