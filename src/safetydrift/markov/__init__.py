"""Absorbing Markov chains on integer states: from counts to chains, to where and when they end.

The way through the package is one line long: sequences are counted (`count_transitions`), counts become a
chain (`maximum_likelihood`, `shrunk`, `dirichlet`), and a chain is asked where it ends (`absorption`) and
what happens within the next few steps (`horizon_table`), and how sure that is (`beta_interval`). Where the last
moves matter as well, contexts are counted (`ContextCounts`) and become rows of a chain (`ContextRows`). Nothing here
knows what a state means.
"""

from safetydrift.markov.absorption import Absorption, AbsorptionBatch, absorption, absorption_batch
from safetydrift.markov.chain import UNSEEN, AbsorbingChain
from safetydrift.markov.contexts import ContextCounts, held_out_concentrations, log_loss
from safetydrift.markov.counts import TransitionCounts, count_flat, count_groups, count_transitions
from safetydrift.markov.estimation import (
    Interval,
    dirichlet,
    maximum_likelihood,
    row_intervals,
    shrunk,
    wilson_interval,
)
from safetydrift.markov.hierarchy import fit_concentration, nested_mean, posterior_mean
from safetydrift.markov.horizon import (
    HorizonQuantiles,
    HorizonTable,
    bootstrap_horizons,
    horizon_batch,
    horizon_table,
)
from safetydrift.markov.memory import ContextRows
from safetydrift.markov.spread import absorption_variance, beta_interval, horizon_variance
from safetydrift.markov.structure import communicating_classes, reachability, require_absorbing, trapped

__all__ = [
    "UNSEEN",
    "AbsorbingChain",
    "Absorption",
    "AbsorptionBatch",
    "ContextCounts",
    "ContextRows",
    "HorizonQuantiles",
    "HorizonTable",
    "Interval",
    "TransitionCounts",
    "absorption",
    "absorption_batch",
    "absorption_variance",
    "beta_interval",
    "bootstrap_horizons",
    "communicating_classes",
    "count_flat",
    "count_groups",
    "count_transitions",
    "dirichlet",
    "fit_concentration",
    "held_out_concentrations",
    "horizon_batch",
    "horizon_table",
    "horizon_variance",
    "log_loss",
    "maximum_likelihood",
    "nested_mean",
    "posterior_mean",
    "reachability",
    "require_absorbing",
    "row_intervals",
    "shrunk",
    "trapped",
    "wilson_interval",
]
