"""Drawings of results: each function takes a result and returns a figure, and nothing else changes.

Figures are made without pyplot, so no backend is chosen and no global setting survives a call; save one with
``figure.savefig("matrix.svg")``. Colours are those of Okabe and Ito, and no meaning hangs on colour alone.

Names of categories, states and tools come from files of others. They are drawn as plain text: never as formulas,
never over several lines.
"""

from __future__ import annotations

from safetydrift.errors import MissingExtraError

try:
    import matplotlib as _  # noqa: F401, ICN001
except ImportError as error:
    raise MissingExtraError("matplotlib", "report", "the report") from error

from safetydrift.evaluation.figures.canvas import (
    LEGIBLE_CURVES,
    LONGEST_NAME,
    category_label,
    ceiling_of,
    plain_text,
    spread_apart,
    state_names,
)
from safetydrift.evaluation.figures.chains import horizon_figure, horizon_grid_figure, matrix_figure
from safetydrift.evaluation.figures.drift import drift_figure
from safetydrift.evaluation.figures.predictions import (
    MOST_CURVES,
    fan_figure,
    panel_figure,
    recall_figure,
    reliability_figure,
    warning_figure,
)
from safetydrift.evaluation.figures.runs import category_figure, lead_time_figure, replay_figure
from safetydrift.evaluation.figures.study import ablation_figure, learning_figure, threshold_figure

__all__ = [
    "LEGIBLE_CURVES",
    "LONGEST_NAME",
    "MOST_CURVES",
    "ablation_figure",
    "category_figure",
    "category_label",
    "ceiling_of",
    "drift_figure",
    "fan_figure",
    "horizon_figure",
    "horizon_grid_figure",
    "lead_time_figure",
    "learning_figure",
    "matrix_figure",
    "panel_figure",
    "plain_text",
    "recall_figure",
    "reliability_figure",
    "replay_figure",
    "spread_apart",
    "state_names",
    "threshold_figure",
    "warning_figure",
]
