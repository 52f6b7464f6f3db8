"""One request to one model. Everything that knows of providers, keys and HTTP is here, and imported when used."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from safetydrift.errors import JudgeError, JudgeSettingsError, MissingExtraError
from safetydrift.judge.answer import MAX_REPLY
from safetydrift.judge.prompt import TOOL, TOOL_DESCRIPTION
from safetydrift.judge.settings import ANTHROPIC, COMPATIBLE, KEY_VARIABLES

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from safetydrift.judge.prompt import Prompt
    from safetydrift.judge.settings import JudgeSettings, ModelName

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


class Told(Struct, frozen=True, gc=False):
    """What came back.

    Attributes
    ----------
    text
        The answer, as the JSON text that the model wrote; empty if it wrote none.
    tokens
        Tokens used: in, out. Zero where the endpoint does not say.
    """

    text: str
    tokens: tuple[int, int]


class Endpoint:
    """A model that can be asked. To be used, and closed, on one event loop.

    Raises
    ------
    MissingExtraError
        If the packages of the extra are not installed.
    JudgeSettingsError
        If the key is missing, or the address.
    """

    def __init__(self, model: ModelName, settings: JudgeSettings, prompt: Prompt) -> None:
        address, key = model.address(settings), _key(model, settings)
        try:
            self._http, self._model = _connect(model, address, key, settings)
            self._settings, self._parameters = _request_form(settings, prompt)
        except ImportError as error:
            raise MissingExtraError("pydantic-ai-slim", "judge", "asking a model") from error
        self._timeout = settings.timeout
        self._instructions = prompt.instructions

    async def ask(self, text: str, at_most: float) -> Told:
        """Send one message and return the reply to it.

        Parameters
        ----------
        at_most
            Seconds it may take, if that is less than the timeout of the settings.

        Raises
        ------
        PassingError
            If trying again may help.
        JudgeError
            If it will not. No message holds anything of the request or of the reply.
        """
        from pydantic_ai.direct import model_request  # noqa: PLC0415  # of the extra
        from pydantic_ai.messages import ModelRequest  # noqa: PLC0415

        request = ModelRequest.user_text_prompt(text, instructions=self._instructions)
        seconds = min(self._timeout, at_most)
        try:
            async with asyncio.timeout(seconds):
                response = await model_request(
                    self._model,
                    [request],
                    model_settings=self._settings,
                    model_request_parameters=self._parameters,
                    instrument=False,
                )
        except TimeoutError:
            raise PassingError(f"no answer within {seconds:.3g} seconds", charged=True) from None
        except Exception as error:  # noqa: BLE001  # a provider's error may quote the request or the key
            raise _explained(error) from None
        usage = response.usage
        return Told(_text(response), (max(usage.input_tokens or 0, 0), max(usage.output_tokens or 0, 0)))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


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


def _connect(
    model: ModelName, address: str, key: str, settings: JudgeSettings
) -> tuple[httpx2.AsyncClient, Model[Any]]:
    """Return the connections and the model; nothing but the key is taken from the environment."""
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  # of the extra
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    http = _http_client(settings)
    if model.kind == ANTHROPIC:
        return http, AnthropicModel(
            model.name, provider=AnthropicProvider(api_key=key, base_url=address, http_client=http)
        )
    if model.kind == COMPATIBLE:
        http.event_hooks["request"].append(_tell_no_account)
    provider = OpenAIProvider(base_url=address, api_key=key, http_client=http)
    return http, OpenAIChatModel(model.name, provider=provider)


async def _tell_no_account(request: httpx2.Request) -> None:
    """Take out headers the client adds from variables that are meant for OpenAI, such as the organisation."""
    for name in list(request.headers):
        if not name.lower().startswith(_PLAIN_HEADERS):
            del request.headers[name]


def _http_client(settings: JudgeSettings) -> httpx2.AsyncClient:
    """Return a client that follows no redirect: calls and keys go where they were sent, and nowhere else."""
    import httpx2  # noqa: PLC0415  # of the extra

    limits = httpx2.Limits(
        max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency
    )
    return httpx2.AsyncClient(timeout=settings.timeout, limits=limits, follow_redirects=False)


def _request_form(settings: JudgeSettings, prompt: Prompt) -> tuple[ModelSettings, ModelRequestParameters]:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415  # of the extra
    from pydantic_ai.settings import ModelSettings  # noqa: PLC0415
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415

    tool = ToolDefinition(
        name=TOOL, parameters_json_schema=prompt.schema, description=TOOL_DESCRIPTION, kind="output"
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
