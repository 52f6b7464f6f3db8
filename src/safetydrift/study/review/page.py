"""The review page: one HTML file on which a person judges calls with a few keys, without a network.

What the traces say is the work of others. It reaches the page as data that is only ever shown as text, and the page's
own security policy allows no script and no style but its own, and no connection at all.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import MissingExtraError
from safetydrift.study.review.sheets import NO_KINDS, column

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError as error:
    raise MissingExtraError("jinja2", "report", "the review page") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from safetydrift.study.review.excerpt import Excerpt
    from safetydrift.study.review.sampling import DrawnCall

_TEMPLATES = resources.files("safetydrift.evaluation") / "templates"


def render_page(
    calls: Iterable[DrawnCall],
    excerpts: Mapping[str, Excerpt],
    scales: Mapping[str, tuple[str, ...]],
    *,
    include_effects: bool = False,
) -> str:
    """Return the page as text; the same calls give the same text.

    Parameters
    ----------
    scales
        Levels by dimension, lowest first.
    include_effects
        Whether to show what the program says; a reviewer who knows it tends to agree.
    """
    dimensions = [{"name": name, "column": column(name), "levels": levels} for name, levels in scales.items()]
    shown = [_plain(call, excerpts[call.id], scales, include_effects=include_effects) for call in calls]
    content = {"dimensions": dimensions, "kinds": KINDS, "noKinds": NO_KINDS, "calls": shown}
    data = _embedded(content | {"key": sha256(_embedded(content).encode()).hexdigest()[:16]})
    style, script = (_TEMPLATES.joinpath(f"review_page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    pages = Environment(
        loader=PackageLoader("safetydrift.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return pages.get_template("review_page.html.jinja").render(
        version=__version__,
        style=style,
        style_source=_source(style),
        script=script,
        script_source=_source(script),
        data=data,
        count=len(shown),
        blind=not include_effects,
    )


def _plain(
    call: DrawnCall, texts: Excerpt, scales: Mapping[str, object], *, include_effects: bool
) -> dict[str, object]:
    plain: dict[str, object] = {
        "id": call.id,
        "source": call.source,
        "tool": call.tool,
        "task": texts.task,
        "arguments": texts.arguments,
        "result": texts.result,
    }
    if include_effects:
        levels = dict(call.effect.levels)
        plain["program"] = {name: levels[name] for name in scales if name in levels}
    return plain


def _embedded(value: object) -> str:
    """Return JSON that can stand between the tags of a script: no sign in it can end or open one."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _source(text: str) -> str:
    """Return the name by which a security policy allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
