"""A coverage-guided fuzzer for one reader of effects: ``python fuzz_effects.py TARGET [options of libFuzzer]``.

Whatever a text is, a reader gives an effect or raises `UnreadableError`; anything else, and too much time or memory
for one input, is a finding, which libFuzzer keeps in a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

with atheris.instrument_imports(include=["safetydrift"]):
    from safetydrift.effects import Labeler
    from safetydrift.effects.history import History
    from safetydrift.effects.languages import READERS
    from safetydrift.effects.languages.addresses import addresses_in, split_address
    from safetydrift.effects.reading import Reading, UnreadableError
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.trace import Step, ToolCall

    for language in ("shell", "sql", "python", "javascript", "http", "perl"):
        READERS[language]  # imported here, so that it is instrumented

if TYPE_CHECKING:
    from collections.abc import Callable

    Target = Callable[[atheris.FuzzedDataProvider], None]

LABELER = Labeler(load_catalogue())
SCRIPTS = ("perl", "ruby", "php", "lua", "awk", "r", "tcl", "groovy", "powershell")
TOOLS = (
    "bash", "run_sql", "http_request", "browser", "Read", "send_email", "send_money", "str_replace_editor",
    "create_calendar_event", "get_balance", "mcp__known__zap", "frobnicate",
)  # fmt: skip
NAMES = (
    "command", "code", "query", "url", "headers", "body", "method", "path", "to", "recipients", "amount", "password",
)  # fmt: skip


def _text(data: atheris.FuzzedDataProvider) -> str:
    """Return what is left of an input as text; a first byte says whether it may hold lone surrogates."""
    if data.ConsumeBool():
        return str(data.ConsumeUnicode(data.remaining_bytes()))
    return str(data.ConsumeBytes(data.remaining_bytes()), "utf-8", "replace")


def _in(language: str, text: str) -> None:
    reading = Reading(LABELER.catalogue, LABELER.boundary, READERS)
    try:
        READERS[language](reading, text)
    except UnreadableError as problem:
        reading.unreadable(str(problem))
    assert reading.effect().reasons


def _read(language: str) -> Target:
    return lambda data: _in(language, _text(data))


def _script(data: atheris.FuzzedDataProvider) -> None:
    language = SCRIPTS[data.ConsumeIntInRange(0, len(SCRIPTS) - 1)]
    _in(language, _text(data))


def _http(data: atheris.FuzzedDataProvider) -> None:
    args = _args(data, ("url", "headers", "body", "method", "params"))
    assert LABELER.propose(ToolCall("http_request", args)).reasons
    rest = _text(data)
    split_address(rest)
    addresses_in(rest)


def _content(data: atheris.FuzzedDataProvider) -> None:
    text = _text(data)
    findings = LABELER._scanner.scan(text)
    assert all(0 <= item.start < item.end <= len(text) for item in findings.items)
    assert len("".join(LABELER._instructions.passages(text))) <= len(text)


def _run(data: atheris.FuzzedDataProvider) -> None:
    """Let a whole run go through the labeler, every step in view of those before."""
    history = History().hears(data.ConsumeUnicode(data.ConsumeIntInRange(0, 60)))
    for _ in range(data.ConsumeIntInRange(1, 4)):
        tool = TOOLS[data.ConsumeIntInRange(0, len(TOOLS) - 1)]
        call = ToolCall(tool, _args(data, NAMES))
        proposed = LABELER.propose(call, history)
        step = Step(call, data.ConsumeUnicode(data.ConsumeIntInRange(0, 400)))
        effect, later = LABELER.read_step(step, history)
        history = later or history
        assert proposed.reasons
        assert effect.reasons


def _args(data: atheris.FuzzedDataProvider, names: tuple[str, ...]) -> dict[str, object]:
    args: dict[str, object] = {}
    for _ in range(data.ConsumeIntInRange(0, 4)):
        name = names[data.ConsumeIntInRange(0, len(names) - 1)]
        args[name] = _value(data, 3)
    return args


def _value(data: atheris.FuzzedDataProvider, depth: int) -> object:
    kind = data.ConsumeIntInRange(0, 9)
    if kind == 0:
        return data.ConsumeFloat()
    if kind == 1:
        return data.ConsumeInt(9)
    if kind in {2, 3} and depth:
        inner = [_value(data, depth - 1) for _ in range(data.ConsumeIntInRange(0, 3))]
        return inner if kind == 2 else {data.ConsumeUnicode(8): value for value in inner}
    return data.ConsumeUnicode(data.ConsumeIntInRange(0, 200))


TARGETS: dict[str, Target] = {
    "shell": _read("shell"),
    "sql": _read("sql"),
    "python": _read("python"),
    "javascript": _read("javascript"),
    "scripts": _script,
    "http": _http,
    "content": _content,
    "run": _run,
}


def main() -> None:
    """Fuzz the target that the first argument names, starting with its seeds."""
    name = sys.argv.pop(1)
    target = TARGETS[name]

    def one_input(data: bytes) -> None:
        target(atheris.FuzzedDataProvider(data))

    with TemporaryDirectory() as found:
        seeds = Path(__file__).parent / "seeds" / name
        atheris.Setup([*sys.argv, found, str(seeds)], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
