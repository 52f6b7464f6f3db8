"""What the user has asked for: their own words, and how far these cover an act.

`Request` hears the task and the follow-up messages and answers three questions: did the user write this value
(`said`), do their words ask for this act on this object (`asks`), and to which sources did they point for it
(`designated`).
"""

from __future__ import annotations

from safetydrift._lazy import lazy_names

_HOMES = {
    "ACTION": "grading",
    "ASKED": "grading",
    "Asked": "grading",
    "Delegation": "kept",
    "FORBIDDEN": "grading",
    "GOAL": "grading",
    "GRADES": "grading",
    "NONE": "grading",
    "OBJECT": "grading",
    "Request": "request",
    "SHAPES": "values",
    "canonical": "values",
    "fold": "text",
    "registered_domain": "values",
    "shape_of": "values",
}
__getattr__, __dir__ = lazy_names(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()})
