"""One request to one model. Everything that knows of providers, keys and HTTP is here, and imported when used."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from safetydrift.errors import JudgeError, JudgeSettingsError, MissingExtraError
from safetydrift.study.judge.settings import ANTHROPIC, COMPATIBLE, KEY_VARIABLES, JudgeSettings, ModelName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import httpx2
    from pydantic_ai.messages import ModelResponse

TOOL = "report_effect"
MAX_REPLY = 64 * 1024
"""Characters of a reply that is looked at."""
_NO_KEY = "none"
_PLAIN_HEADERS = (
    "accept",
    "authorization",
    "connection",
    "content-",
    "host",
    "user-agent",
    "transfer-encoding",
)
_CODE = re.compile(r"[a-z_]{1,40}")
_REQUEST_TIMEOUT, _TOO_EARLY, _CONFLICT = 408, 425, 409


class PassingError(Exception):
    """A request that failed for a reason that may pass.

    Attributes
    ----------
    retry_after
        Seconds the endpoint asked to wait, None where it did not.
    charged
        Whether the request may have been worked on, so that it may cost something.
    """

    def __init__(self, reason: str, retry_after: float | None = None, *, charged: bool = False) -> None:
        self.retry_after, self.charged = retry_after, charged
        super().__init__(reason)


class HopelessError(JudgeError):
    """The endpoint knows neither the key nor the model, so that no other call would fare better."""


class Endpoint:
    """A model that can be asked.

    Parameters
    ----------
    model
        Which.
    settings
        How.
    instructions, schema
        What it is told before any question, and the form of its answer as JSON Schema.

    Raises
    ------
    MissingExtraError
        If the packages of the extra are not installed.
    JudgeSettingsError
        If the key is missing, or the address.
    """

    def __init__(
        self, model: ModelName, settings: JudgeSettings, instructions: str, schema: dict[str, Any]
    ) -> None:
        self._model, self._settings, self._instructions = model, settings, instructions
        self._address, self._key = model.address(settings), _key(model, settings)
        try:
            self._form = _request_form(settings, schema)
        except ImportError as error:
            raise MissingExtraError("pydantic-ai-slim", "study", "asking a model") from error

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Callable[[str, float], Awaitable[tuple[str, int, int]]]]:
        """Connect, and give a function that sends one message: text and seconds at most; reply and tokens in and out.

        The reply is the JSON text that the model wrote, empty if it wrote none; tokens are zero where the endpoint
        does not say. The function raises `PassingError` if trying again may help, and `JudgeError` if it will not; no
        message holds anything of the request or of the reply.
        """
        import httpx2  # noqa: PLC0415  # of the extra
        from pydantic_ai.direct import model_request  # noqa: PLC0415
        from pydantic_ai.messages import ModelRequest  # noqa: PLC0415

        bounds = self._settings.concurrency
        limits = httpx2.Limits(max_connections=bounds, max_keepalive_connections=bounds)
        # No redirect is followed: calls and keys go where they were sent, and nowhere else.
        client = httpx2.AsyncClient(timeout=self._settings.timeout, limits=limits, follow_redirects=False)
        form, parameters = self._form

        async def ask(text: str, at_most: float) -> tuple[str, int, int]:
            request = ModelRequest.user_text_prompt(text, instructions=self._instructions)
            seconds = min(self._settings.timeout, at_most)
            try:
                async with asyncio.timeout(seconds):
                    response = await model_request(
                        model,
                        [request],
                        model_settings=form,
                        model_request_parameters=parameters,
                        instrument=False,
                    )
            except TimeoutError:
                raise PassingError(f"no answer within {seconds:.3g} seconds", charged=True) from None
            except Exception as error:  # noqa: BLE001  # a provider's error may quote the request or the key
                raise _explained(error) from None
            usage = response.usage
            return _text(response), max(usage.input_tokens or 0, 0), max(usage.output_tokens or 0, 0)

        async with client:
            model = self._connect(client)
            yield ask

    def _connect(self, http: httpx2.AsyncClient) -> Any:
        """Return the model; nothing but the key is taken from the environment."""
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  # of the extra
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

        where: Any = {"api_key": self._key, "base_url": self._address, "http_client": http}
        if self._model.kind == ANTHROPIC:
            return AnthropicModel(self._model.name, provider=AnthropicProvider(**where))
        if self._model.kind == COMPATIBLE:
            http.event_hooks["request"].append(_tell_no_account)
        return OpenAIChatModel(self._model.name, provider=OpenAIProvider(**where))


def _key(model: ModelName, settings: JudgeSettings) -> str:
    variable = settings.api_key_env or KEY_VARIABLES[model.kind]
    if not variable:
        return _NO_KEY
    key = os.environ.get(variable, "").strip()
    if not key:
        raise JudgeSettingsError(f"model {str(model)!r} needs a key: set the environment variable {variable}")
    if not key.isascii() or not key.isprintable():
        raise JudgeSettingsError(
            f"the key in the environment variable {variable} holds characters no key has"
        )
    return key


async def _tell_no_account(request: httpx2.Request) -> None:
    """Take out headers the client adds from variables that are meant for OpenAI, such as the organisation."""
    for name in list(request.headers):
        if not name.lower().startswith(_PLAIN_HEADERS):
            del request.headers[name]


def _request_form(settings: JudgeSettings, schema: dict[str, Any]) -> tuple[Any, Any]:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415  # of the extra
    from pydantic_ai.settings import ModelSettings  # noqa: PLC0415
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415

    tool = ToolDefinition(
        name=TOOL, parameters_json_schema=schema, description="Report what was asked for.", kind="output"
    )
    form = ModelSettings(max_tokens=settings.max_tokens, timeout=settings.timeout, max_retries=0)
    if settings.temperature is not None:
        form["temperature"] = settings.temperature
    return form, ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _text(response: ModelResponse) -> str:
    """Return the JSON of a reply: what the tool was called with, or else the text, for models without tools."""
    from pydantic_ai.messages import TextPart, ToolCallPart  # noqa: PLC0415  # of the extra

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if calls:
        only = len(calls) == 1 and calls[0].tool_name == TOOL
        return calls[0].args_as_json_str()[: MAX_REPLY + 1] if only else ""
    text = "".join([part.content for part in response.parts if isinstance(part, TextPart)])[: MAX_REPLY + 1]
    return text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()


def _explained(error: Exception) -> PassingError | JudgeError:
    """Return our own error for one of a provider: what happened, in words that hold nothing of what was sent."""
    from pydantic_ai import exceptions as known  # noqa: PLC0415  # of the extra

    status = getattr(error, "status_code", None)
    what = f"the endpoint answered {status}" if isinstance(status, int) else type(error).__name__
    code = getattr(error, "provider_error_code", None) or getattr(error, "provider_error_type", None)
    if isinstance(code, str) and _CODE.fullmatch(code):
        what += f" ({code})"
    passing = (
        known.ModelRateLimitError,
        known.ModelUnavailableError,
        known.ModelServerError,
        known.ModelConnectionError,
    )
    if isinstance(error, passing) or status in {_REQUEST_TIMEOUT, _TOO_EARLY, _CONFLICT}:
        read = getattr(error, "phase", None) == "read"
        return PassingError(what, getattr(error, "retry_after", None), charged=read)
    final = (
        known.ModelHTTPError,
        known.ModelRequestRejectedError,
        known.ModelQuotaExceededError,
        known.UserError,
    )
    if not isinstance(error, final):  # whatever reading a strange reply may raise
        return PassingError(f"the endpoint's reply is not of its protocol ({what})", charged=True)
    hopeless = isinstance(error, known.ModelAuthenticationError | known.ModelNotFoundError)
    return (HopelessError if hopeless else JudgeError)(f"the model cannot be asked: {what}")
