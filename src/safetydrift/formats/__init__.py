"""Doors to the outside: trace formats, labelled runs, model files, space files and catalogues.

The library reads and writes files here; apart from it only the report and the command line write any.
"""

from __future__ import annotations

from safetydrift._lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.formats.model_file import load_model, save_model
    from safetydrift.formats.native import write_traces
    from safetydrift.formats.reading import TraceReader, read_traces
    from safetydrift.formats.report import FormatSummary, ReadReport
    from safetydrift.formats.space_file import load_space, shipped_spaces
    from safetydrift.formats.trajectories import TrajectoryReader

__all__ = [
    "FormatSummary",
    "ReadReport",
    "TraceReader",
    "TrajectoryReader",
    "load_catalogue",
    "load_model",
    "load_space",
    "read_traces",
    "save_model",
    "shipped_spaces",
    "write_traces",
]

# Beside an agent only a model file is read; the trace readers and their parser must not be paid for there.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "FormatSummary": "safetydrift.formats.report",
        "ReadReport": "safetydrift.formats.report",
        "TraceReader": "safetydrift.formats.reading",
        "TrajectoryReader": "safetydrift.formats.trajectories",
        "load_catalogue": "safetydrift.formats.catalogue_file",
        "load_model": "safetydrift.formats.model_file",
        "load_space": "safetydrift.formats.space_file",
        "read_traces": "safetydrift.formats.reading",
        "save_model": "safetydrift.formats.model_file",
        "shipped_spaces": "safetydrift.formats.space_file",
        "write_traces": "safetydrift.formats.native",
    },
)
