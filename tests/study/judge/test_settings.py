"""Settings: what cannot work is refused at once, with the repair in the message and no secret in it."""

import builtins
from dataclasses import FrozenInstanceError

import pytest

from safetydrift.errors import JudgeBudgetError, JudgeSettingsError, MissingExtraError
from safetydrift.study.judge import Budget, Judge, JudgeSettings
from safetydrift.study.judge.settings import ModelName, is_local


@pytest.mark.parametrize(
    ("model", "kind", "name"),
    [
        ("anthropic:claude-x", "anthropic", "claude-x"),
        ("openai:gpt-x", "openai", "gpt-x"),
        ("openai-compatible:org/model:7b", "openai-compatible", "org/model:7b"),
    ],
)
def test_a_model_is_named_by_kind_and_name(model, kind, name):
    assert ModelName.parse(model) == ModelName(kind, name)
    assert str(ModelName.parse(model)) == model


@pytest.mark.parametrize(
    "model", ["", "gpt-x", "google:x", "openai:", "openai:a b", "openai:\x1b", "Openai:x"]
)
def test_another_model_is_refused(model):
    with pytest.raises(JudgeSettingsError, match="expected"):
        ModelName.parse(model)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "ftp://localhost",
        "https://",
        "https://user:secret-of-mine@example.org",
        "https://example.org/v1?key=secret-of-mine",
        "https://example.org/#secret-of-mine",
        "http://example.org/v1",
        "http://8.8.8.8/v1",
        "http://[::1/v1",
        "https://example.org:port",
        "https://exam\nple.org",
    ],
)
def test_an_address_of_no_use_is_refused_and_not_repeated(address):
    with pytest.raises(JudgeSettingsError, match="base_url") as refused:
        JudgeSettings(base_url=address)
    assert "secret-of-mine" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://ollama:11434/v1", False),
        ("http://10.0.0.5:8000/v1", False),
        ("https://gateway.example.org/v1", False),
    ],
)
def test_an_address_that_can_be_used(address, local):
    assert JudgeSettings(base_url=address).base_url == address
    assert is_local(address) is local


def test_a_compatible_endpoint_needs_an_address():
    with pytest.raises(JudgeSettingsError, match="base_url, for example http://localhost"):
        Judge("openai-compatible:x")


@pytest.mark.parametrize("model", ["anthropic:x", "openai:x"])
def test_a_missing_key_is_named_by_its_variable(model):
    variable = f"{model.partition(':')[0].upper()}_API_KEY"
    with pytest.raises(JudgeSettingsError, match=f"set the environment variable {variable}"):
        Judge(model)


def test_a_key_is_no_setting():
    with pytest.raises(JudgeSettingsError, match="not the key itself") as refused:
        JudgeSettings(api_key_env="sk-abcdef")
    assert "sk-abcdef" not in str(refused.value)
    with pytest.raises(TypeError):
        JudgeSettings(api_key="sk-abcdef")  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        JudgeSettings().timeout = 3  # type: ignore[misc]


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-abc\ndef")
    with pytest.raises(JudgeSettingsError, match="ANTHROPIC_API_KEY") as refused:
        Judge("anthropic:x")
    assert "abc" not in str(refused.value)


def test_a_missing_extra_is_named(monkeypatch):
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *args, **kwargs)

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'safetydrift\[study\]'"):
        Judge("openai:x")


def test_a_budget_holds_what_is_under_way():
    budget = Budget(max_requests=3, max_tokens=100)
    budget.reserve(60)
    with pytest.raises(JudgeBudgetError, match="100 tokens"):
        budget.reserve(50)
    budget.settle(60, 10)
    budget.reserve(90)
    assert (budget.requests, budget.tokens) == (2, 100)
    budget.settle(90, 0)
    budget.reserve(1)
    with pytest.raises(JudgeBudgetError, match="3 requests"):
        budget.reserve(0)
