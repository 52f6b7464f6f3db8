"""The options by which a verb says which model is the judge, and what asking it may cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.study.judge.settings import JudgeSettings


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model, and how it is asked."""

    model: str
    settings: JudgeSettings


_OPTIONS = (
    click.option(
        "--model",
        required=True,
        metavar="KIND:NAME",
        help="anthropic:NAME, openai:NAME, or openai-compatible:NAME with --base-url.",
    ),
    click.option("--base-url", default="", metavar="URL", help="Where the model is asked."),
    click.option(
        "--api-key-env", default="", metavar="VARIABLE", help="The environment variable that holds the key."
    ),
    click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True),
    click.option(
        "--timeout", type=click.FloatRange(0.1, 3600.0), default=30.0, show_default=True, help="Seconds."
    ),
    click.option(
        "--max-requests",
        type=click.IntRange(min=1),
        default=10_000,
        show_default=True,
        help="Requests to send at most.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        default=20_000_000,
        show_default=True,
        help="Tokens to use at most, in and out.",
    ),
    click.option(
        "--redact/--no-redact",
        default=None,
        help="Take secrets out of what is sent; by default unless the model runs on this host.",
    ),
)


def endpoint(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, and as ``endpoint`` what they add up to."""

    @wraps(command)
    def gathering(
        *args: Any,
        model: str,
        base_url: str,
        api_key_env: str,
        timeout: float,
        concurrency: int,
        max_requests: int,
        max_tokens: int,
        redact: bool | None,
        **rest: Any,
    ) -> Any:
        from safetydrift.study.judge.settings import JudgeSettings

        settings = JudgeSettings(
            base_url=base_url,
            api_key_env=api_key_env,
            timeout=timeout,
            deadline=4 * timeout,
            concurrency=concurrency,
            max_requests=max_requests,
            max_total_tokens=max_tokens,
            redact=redact,
        )
        return command(*args, endpoint=Endpoint(model, settings), **rest)

    decorated: Callable[..., Any] = gathering
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
