"""SafetyDrift watches an agent's trajectory and knows how likely a violation is within the next few steps.

The names below are the quick start; each is imported when it is first used, so that a hook pays only for what it
needs. The packages, from the bottom up:

- ``trace``: what was recorded
- ``states``: the vocabulary of safety, and the fold of effects into states
- ``effects``: what a tool call really does
- ``markov``: the mathematics of absorbing chains
- ``monitor``: the chain turned into verdicts
- ``formats``: files of every kind
- ``evaluation``: how we know
- ``scenarios``: tasks in a sandbox, with ways to drift
- ``cli``: the command line
"""

from __future__ import annotations

from safetydrift._lazy import lazy_names
from safetydrift._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.labeler import Labeler
    from safetydrift.effects.labeling import label_trace
    from safetydrift.errors import SafetyDriftError
    from safetydrift.evaluation.replay import replay
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.formats.model_file import load_model, save_model
    from safetydrift.formats.reading import read_traces
    from safetydrift.formats.space_file import load_space
    from safetydrift.monitor.fitting import fit_model
    from safetydrift.monitor.foresight import monitor_for
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.policy import Policy
    from safetydrift.monitor.settings import FitSettings
    from safetydrift.trace import Step, ToolCall, Trace

__all__ = [
    "FitSettings",
    "Labeler",
    "LookupMonitor",
    "Policy",
    "SafetyDriftError",
    "Step",
    "ToolCall",
    "Trace",
    "__version__",
    "fit_model",
    "label_trace",
    "load_catalogue",
    "load_model",
    "load_space",
    "monitor_for",
    "read_traces",
    "replay",
    "save_model",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "FitSettings": "safetydrift.monitor.settings",
        "Labeler": "safetydrift.effects.labeler",
        "LookupMonitor": "safetydrift.monitor.lookup",
        "Policy": "safetydrift.monitor.policy",
        "SafetyDriftError": "safetydrift.errors",
        "Step": "safetydrift.trace",
        "ToolCall": "safetydrift.trace",
        "Trace": "safetydrift.trace",
        "fit_model": "safetydrift.monitor.fitting",
        "label_trace": "safetydrift.effects.labeling",
        "load_catalogue": "safetydrift.formats.catalogue_file",
        "load_model": "safetydrift.formats.model_file",
        "load_space": "safetydrift.formats.space_file",
        "monitor_for": "safetydrift.monitor.foresight",
        "read_traces": "safetydrift.formats.reading",
        "replay": "safetydrift.evaluation.replay",
        "save_model": "safetydrift.formats.model_file",
    },
)
