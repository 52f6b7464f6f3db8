"""Whether the guard's own files can be read, and a guard on them refuses."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.errors import SafetyDriftError
from safetydrift.formats.config_file import load_config
from safetydrift.formats.model_file import load_model
from safetydrift.guard import Guard, GuardPolicy, Rule
from safetydrift.guard.decision_log import DecisionLog, verify
from safetydrift.guard.policy_file import load_policy
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.integrations.doctor.findings import Finding
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safetydrift.integrations.claude_code import Options
    from safetydrift.monitor.model import Model

PROBE = "safetydrift_doctor_probe"
"""A tool that nobody has."""
MAX_STORE = 1 << 30
"""Bytes of a store that is still copied to be checked."""


def check_guard(options: Options, folder: Path) -> Iterator[Finding]:
    """Check the files that a guard is told of.

    Parameters
    ----------
    options
        The files, and the folder of the state.
    folder
        A folder of the doctor's own.
    """
    try:
        model = load_model(options.model)
    except (SafetyDriftError, OSError) as error:
        yield _failed(
            "the model can be read", error, "give --model a file that `safetydrift fit` wrote, or none"
        )
        return
    yield Finding("guard", "the model can be read", "ok", f"{options.model}: {model.space.name}")
    policy: GuardPolicy | None = None
    try:
        if options.policy:
            policy = load_policy(options.policy)
            policy.check(model.space)
        yield Finding("guard", "the policy can be used", "ok", options.policy or "the default one")
    except (SafetyDriftError, OSError, ValueError) as error:
        yield _failed("the policy can be used", error, "`safetydrift policy check FILE` says what is wrong")
    if options.config:
        yield _tried(
            "the configuration can be read",
            lambda: _config(options.config),
            "correct the file (docs/how-to/configuration.md)",
        )
    if policy is not None:
        yield from _openings(policy)
    yield from check_state(Path(options.state), folder)
    yield _tried(
        "a probe is refused",
        lambda: _refused(model, policy, folder),
        "please report this as a bug: a guard that does not refuse protects nobody",
    )


def check_state(state: Path, folder: Path) -> Iterator[Finding]:
    """Check the store and the log in a folder, on copies."""
    if not state.exists():
        yield Finding("guard", "the state can be kept", "ok", f"{state} will be made by the first call")
        return
    if not state.is_dir() or not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "guard",
            "the state can be kept",
            "failed",
            f"{state} is not a folder that you may read and write",
            f"make it one (chmod u+rwx {state}), or give --state another one",
        )
        return
    if state.stat().st_mode & 0o022:
        yield Finding(
            "guard",
            "the state is yours alone",
            "failed",
            f"others may write to {state}",
            f"chmod 700 {state}",
        )
    store, log = state / "sessions.sqlite", state / "decisions.jsonl"
    yield _tried(
        "the store can be used",
        lambda: _store(store, folder),
        f"stop the guards, move {store} away, and begin new sessions",
    )
    yield _tried(
        "the decision log holds",
        lambda: _log(log),
        f"keep {log} as evidence under another name; the next decision begins a new log",
    )


def _openings(policy: GuardPolicy) -> Iterator[Finding]:
    if policy.opens_on_failure:
        yield Finding(
            "guard",
            "what fails is refused",
            "remark",
            f"the policy lets calls through that it could not judge: {', '.join(policy.opens_on_failure)}",
            'say "block" there unless you mean it',
        )
    if policy.shadow:
        yield Finding(
            "guard",
            "the policy is in force",
            "remark",
            "shadow = true: everything is recorded, and nothing refused",
            "set shadow = false to be protected",
        )


def _refused(model: Model, policy: GuardPolicy | None, folder: Path) -> str:
    """Have a probe refused by a rule, and another one because its state is lost."""
    never = Rule(Intervention.BLOCK, tools=(PROBE,), reason="this is a probe")
    block = Intervention.BLOCK
    probing = replace(
        policy or GuardPolicy(),
        never=(never,),
        shadow=False,
        always_allow=(),
        on_error=block,
        on_timeout=block,
        on_lost_state=block,
    )
    path = folder / "probe.jsonl"
    store = SQLiteStore(folder / "probe.sqlite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # openings are told of by themselves
        guard = Guard(model, probing, store, log=DecisionLog(path, buffer=1))
    with guard:
        guard.session("probe")
        ruled = guard.propose("probe", ToolCall(PROBE), "1")
        lost = guard.propose("never opened", ToolCall(PROBE), "1")
    if not (ruled.refused and ruled.rule.startswith("never") and not ruled.error):
        raise SafetyDriftError(
            f"a rule says never, and the decision was: {ruled} ({ruled.error or ruled.rule})"
        )
    if not lost.refused:
        raise SafetyDriftError(f"the state was lost, and the decision was: {lost}")
    found = verify(path)
    if not found.holds or found.records < 3:  # noqa: PLR2004  # the begin and both decisions
        raise SafetyDriftError("the decisions were not recorded")
    return "by a rule, and again where the state is lost; both are in a log whose chain holds"


def _config(path: str) -> str:
    load_config(path)
    return path


def _store(path: Path, folder: Path) -> str:
    if not path.exists():
        return f"{path} will be made by the first call"
    _may_write(path)
    if path.stat().st_size > MAX_STORE:
        return f"{path} is too large to be copied, and was not looked into"
    copy = folder / "copy.sqlite"
    for end in ("", "-wal"):
        if (part := path.with_name(path.name + end)).exists():
            shutil.copyfile(part, copy.with_name(copy.name + end))
    store = SQLiteStore(copy)
    try:
        number = len(store.keys())
    finally:
        store.close()
    connection = sqlite3.connect(copy)
    try:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise SafetyDriftError(f"{path}: {error}") from error
    finally:
        connection.close()
    if said != "ok":
        raise SafetyDriftError(f"{path}: damaged: {said}")
    return f"{path}: {number} sessions"


def _log(path: Path) -> str:
    if not path.exists():
        return f"{path} will be made by the first call"
    _may_write(path)
    found = verify(path)
    if not found.holds:
        line, problem = found.problems[0]
        raise SafetyDriftError(f"{path}: line {line} {problem}")
    torn = "; its last line is torn, and the next writer seals it" if found.torn else ""
    return f"{path}: {found.records} records{torn}"


def _may_write(path: Path) -> None:
    if not os.access(path, os.R_OK | os.W_OK):
        raise SafetyDriftError(f"{path}: you may not read and write it")


def _tried(check: str, action: Callable[[], str], repair: str) -> Finding:
    try:
        return Finding("guard", check, "ok", action())
    except (SafetyDriftError, OSError, ValueError) as error:
        return _failed(check, error, repair)


def _failed(check: str, error: BaseException, repair: str) -> Finding:
    return Finding("guard", check, "failed", str(error), repair)
