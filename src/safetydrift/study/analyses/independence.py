"""Tests of a chain's order: whether a state further back still matters, once the nearer ones are known.

Take a *context* b (the last k levels), the level a before it, and the level j that follows. Under order k, j is
independent of a given b, and the counts n(a, b, j) form one contingency table per b. With expected counts
``e = n(a, b, .) n(., b, j) / n(., b, .)`` the statistics are

    G² = 2 sum n log(n / e)        X² = sum (n - e)² / e

and their degrees of freedom the sum over b of ``(rows seen - 1) (columns seen - 1)``. What cannot follow b cannot
follow it after any a, so structural zeros are empty columns and cost no degrees of freedom.

Where expected counts are small the chi-squared limit is a poor guide: their share stands beside it.

Literature
----------
T. W. Anderson and L. A. Goodman, "Statistical inference about Markov chains", Annals of Mathematical Statistics 28
(1957), section 4. P. Billingsley, "Statistical methods in Markov chains", ibid. 32 (1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.study.analyses.foresight import dense

if TYPE_CHECKING:
    from safetydrift.markov._arrays import FloatArray, IntArray

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
    """

    observations: int
    g_squared: float
    chi_squared: float
    degrees: int
    p_value: float
    small: float


def independence(context: IntArray, before: IntArray, after: IntArray) -> Independence:
    """Test whether what follows a context is independent of what came before it.

    Parameters
    ----------
    context, before, after : (m,) arrays
        Any integers.
    """
    from scipy.stats import chi2  # noqa: PLC0415  # of the extra

    tables = _tables(context, before, after)
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    degrees = int((((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)).sum())
    expected = rows[:, :, None] * columns[:, None, :] / np.maximum(rows.sum(axis=1), 1)[:, None, None]
    possible = expected > 0
    within = _information(tables).sum()
    margins = _information(rows.sum(axis=1)).sum() - _information(rows).sum() - _information(columns).sum()
    g_squared = max(2.0 * float(within + margins), 0.0)
    return Independence(
        observations=len(context),
        g_squared=g_squared,
        chi_squared=float(((tables - expected)[possible] ** 2 / expected[possible]).sum()),
        degrees=degrees,
        p_value=float(chi2.sf(g_squared, degrees)) if degrees else float("nan"),
        small=float((expected[possible] < SMALL).mean()) if possible.any() else float("nan"),
    )


def _tables(context: IntArray, before: IntArray, after: IntArray) -> IntArray:
    """Count (context, before, after); shape (contexts, values before, values after)."""
    if not len(context):
        return np.zeros((0, 1, 1), dtype=np.int64)
    parts = dense(context), dense(before), dense(after)
    shape = tuple(int(part.max()) + 1 for part in parts)
    return np.bincount(np.ravel_multi_index(parts, shape), minlength=int(np.prod(shape))).reshape(shape)


def _information(counts: IntArray) -> FloatArray:
    """Return n log n of counts, 0 for n = 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)))
