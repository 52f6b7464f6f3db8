"""The analyses of the SafetyDrift paper on any labelled runs, each with the published figures beside its own.

`run_analyses` runs any of `ANALYSES`; what comes of each is an `Analysis`, a table that says on what it rests.
"""

from safetydrift.study.analyses.analysis import Analysis, Cell
from safetydrift.study.analyses.registry import ANALYSES, run_analyses
from safetydrift.study.analyses.study import DEFAULT_SEED, Study

__all__ = ["ANALYSES", "DEFAULT_SEED", "Analysis", "Cell", "Study", "run_analyses"]
