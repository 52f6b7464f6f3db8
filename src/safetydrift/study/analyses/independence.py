"""Tests of a chain's order: whether a state further back still matters, once the nearer ones are known.

Take a *context* b (the last k levels), the level a before it, and the level j that follows. Under order k, j is
independent of a given b, and the counts n(a, b, j) form one contingency table per b. With expected counts
``e = n(a, b, .) n(., b, j) / n(., b, .)`` the statistics are

    G² = 2 sum n log(n / e)        X² = sum (n - e)² / e

and their degrees of freedom the sum over b of ``(rows seen - 1) (columns seen - 1)``. What cannot follow b cannot
follow it after any a, so structural zeros are empty columns and cost no degrees of freedom.

Where expected counts are small the chi-squared limit is a poor guide. The Monte Carlo p-value draws tables of the same
margins instead.

Literature
----------
T. W. Anderson and L. A. Goodman, "Statistical inference about Markov chains", Annals of Mathematical Statistics 28
(1957), section 4. P. Billingsley, "Statistical methods in Markov chains", ibid. 32 (1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, lgamma, log
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.study.analyses.foresight import dense

if TYPE_CHECKING:
    from safetydrift.markov._arrays import FloatArray, IntArray

DRAWS = 199
"""Tables drawn for a Monte Carlo p-value; the smallest one possible is 1 / 200."""

SMALL = 5.0
"""An expected count below this is called small."""


@dataclass(frozen=True, slots=True)
class Independence:
    """The result of a test of conditional independence.

    Parameters
    ----------
    observations
        Counted in all tables.
    g_squared, chi_squared
        The likelihood-ratio statistic and Pearson's.
    degrees
        Their degrees of freedom.
    p_value
        Of ``g_squared``, by the chi-squared limit; 0 stands for what no double can hold.
    small
        Share of the expected counts that are below 5.
    p_drawn
        Of ``g_squared``, among drawn tables of the same margins; nan where none were drawn.
    """

    observations: int
    g_squared: float
    chi_squared: float
    degrees: int
    p_value: float
    small: float
    p_drawn: float


def independence(
    context: IntArray,
    before: IntArray,
    after: IntArray,
    generator: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> Independence:
    """Test whether what follows a context is independent of what came before it.

    Parameters
    ----------
    context, before, after : (m,) arrays
        Any integers.
    generator
        Draws the tables of the Monte Carlo p-value; without it there is none.
    draws
        How many tables.
    """
    tables = _tables(context, before, after)
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    degrees = int((((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)).sum())
    expected = rows[:, :, None] * columns[:, None, :] / np.maximum(rows.sum(axis=1), 1)[:, None, None]
    possible = expected > 0
    difference = tables - expected
    observed = float(_g_squared(tables[None], rows, columns)[0])
    drawn = float("nan")
    if generator is not None and degrees:
        informative = ((rows > 0).sum(axis=1) > 1) & ((columns > 0).sum(axis=1) > 1)
        rows, columns = rows[informative], columns[informative]
        others = _g_squared(draw_tables(rows, columns, draws, generator), rows, columns)
        drawn = (1 + int((others >= observed * (1 - 1e-12)).sum())) / (1 + draws)
    return Independence(
        observations=len(context),
        g_squared=observed,
        chi_squared=float((difference[possible] ** 2 / expected[possible]).sum()),
        degrees=degrees,
        p_value=chi_squared_tail(observed, degrees) if degrees else float("nan"),
        small=float((expected[possible] < SMALL).mean()) if possible.any() else float("nan"),
        p_drawn=drawn,
    )


def _tables(context: IntArray, before: IntArray, after: IntArray) -> IntArray:
    """Count (context, before, after); shape (contexts, values before, values after)."""
    if not len(context):
        return np.zeros((0, 1, 1), dtype=np.int64)
    parts = dense(context), dense(before), dense(after)
    shape = tuple(int(part.max()) + 1 for part in parts)
    return np.bincount(np.ravel_multi_index(parts, shape), minlength=int(np.prod(shape))).reshape(shape)


def _g_squared(tables: IntArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return G² of stacks of tables, shape (k, contexts, rows, columns), that share their margins; shape (k,)."""
    within = _information(tables).sum(axis=(1, 2, 3))
    margins = _information(rows.sum(axis=1)).sum() - _information(rows).sum() - _information(columns).sum()
    return np.asarray(np.maximum(2.0 * (within + margins), 0.0))


def _information(counts: IntArray) -> FloatArray:
    """Return n log n of counts, 0 for n = 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)))


def draw_tables(rows: IntArray, columns: IntArray, draws: int, generator: np.random.Generator) -> IntArray:
    """Draw contingency tables with given margins, as independence of rows and columns has them.

    Entry by entry, each from the hypergeometric distribution it has given the entries before it.

    Parameters
    ----------
    rows : (contexts, r) array
        Sums of the rows of each table.
    columns : (contexts, c) array
        Sums of its columns.
    draws
        Tables to draw for each context.

    Returns
    -------
    (draws, contexts, r, c) array
    """
    shape = (draws, *rows.shape, columns.shape[1])
    tables = np.zeros(shape, dtype=np.int64)
    open_columns = np.broadcast_to(columns, (draws, *columns.shape)).copy()
    for row in range(rows.shape[1]):
        to_place = np.broadcast_to(rows[:, row], (draws, len(rows))).copy()
        elsewhere = open_columns.sum(axis=2)
        for column in range(columns.shape[1]):
            here = open_columns[:, :, column]
            elsewhere = elsewhere - here
            placed = generator.hypergeometric(here, elsewhere, to_place)
            tables[:, :, row, column] = placed
            to_place = to_place - placed
        open_columns -= tables[:, :, row]
    return tables


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """Return the probability that a chi-squared variable is at least this large.

    The regularised upper incomplete gamma function Q(k/2, x/2): by its power series below the mean, by Lentz's
    continued fraction above it.

    Parameters
    ----------
    statistic
        0 or more.
    degrees
        Degrees of freedom, 1 or more.

    Examples
    --------
    >>> round(chi_squared_tail(3.841, 1), 4), round(chi_squared_tail(18.307, 10), 4)
    (0.05, 0.05)
    """
    shape, x = degrees / 2.0, statistic / 2.0
    if x <= 0.0:
        return 1.0
    if x == inf:
        return 0.0
    scale = exp(max(shape * log(x) - x - lgamma(shape), -745.0))
    if x < shape + 1.0:
        return max(0.0, 1.0 - scale * _series(shape, x))
    return scale * _fraction(shape, x) if scale > 5e-324 else 0.0  # noqa: PLR2004  # the smallest double


def _series(shape: float, x: float) -> float:
    term = total = 1.0 / shape
    step = shape
    while term > total * 1e-17:
        step += 1.0
        term *= x / step
        total += term
    return total


def _fraction(shape: float, x: float) -> float:
    tiny = 1e-300
    b = x + 1.0 - shape
    c, d = 1.0 / tiny, 1.0 / b
    value = d
    for n in range(1, 10_000):
        a = -n * (n - shape)
        b += 2.0
        d = 1.0 / _apart(a * d + b, tiny)
        c = _apart(b + a / c, tiny)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:  # noqa: PLR2004  # the last digit of a double
            break
    return value


def _apart(value: float, tiny: float) -> float:
    """Keep a denominator from zero."""
    return value if abs(value) > tiny else tiny
