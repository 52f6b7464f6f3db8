"""Policy files: what a guard does, in TOML or JSON, checked as a whole before anything of it is in force."""

from __future__ import annotations

import json
import os
from time import monotonic
from typing import TYPE_CHECKING

from safetydrift.effects.catalogue.plain import Entry, table
from safetydrift.errors import PolicyFileError
from safetydrift.guard.default_policy import ASK_FROM, default_policy
from safetydrift.guard.policy import GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any

POLICY_FORMAT = "safetydrift.policy/1"
MAX_POLICY_BYTES = 1 << 20
LOOK_AGAIN = 1.0
"""Seconds after which a watched file is looked at again."""


def load_policy(path: str | PathLike[str]) -> GuardPolicy:
    """Read a policy; a name that ends in ``.json`` is read as JSON, every other one as TOML.

    Raises
    ------
    PolicyFileError
        If the file cannot be read, is no policy, or says something that nobody reads; the message names the place.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:  # noqa: PTH123  # pathlib is not cheap to import
            data = file.read(MAX_POLICY_BYTES + 1)
        if len(data) > MAX_POLICY_BYTES:
            raise PolicyFileError(f"a policy has at most {MAX_POLICY_BYTES} bytes")
        return read_policy(_parsed(data, as_json=str(name).endswith(".json")))
    except OSError as error:
        raise PolicyFileError(f"{name}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name}: {error}") from error


def read_policy(definition: Any) -> GuardPolicy:
    """Build a policy from plain data.

    Raises
    ------
    ValueError
        If a part is missing, of the wrong kind, or unknown.
    """
    whole = Entry(table(definition, "policy"), "policy")
    if whole.required("format") != POLICY_FORMAT:
        raise PolicyFileError(f"expected format = {POLICY_FORMAT!r}, got {whole.get('format')!r}")
    outcomes = {
        name: _intervention(found, f"policy: {name}")
        for name in ("on_error", "on_timeout", "on_lost_state", "on_unanswered", "otherwise", "unseen")
        if (found := whole.get(name)) is not None
    }
    numbers = {
        name: _number(found, f"policy: {name}")
        for name in ("timeout", "ask_timeout", "approval_lasts", "ask_odds")
        if (found := whole.get(name)) is not None
    }
    severities = whole.get("severity")
    base = _base(whole.text("extends"))
    policy = GuardPolicy(
        whole.text("name") or "unnamed",
        never=(*_rules(whole, "never", Intervention.BLOCK), *base.never),
        always_ask=_rules(whole, "always_ask", Intervention.ASK),
        always_allow=_exact(whole.texts("always_allow")),
        when=(*_rules(whole, "when", None), *base.when),
        severities={} if severities is None else table(severities, "policy: severity"),
        shadow=whole.flag("shadow"),
        **outcomes,  # type: ignore[arg-type]  # each under its own name
        **numbers,  # type: ignore[arg-type]  # as above
    )
    whole.done()
    return policy


class WatchedPolicy:
    """A policy that follows its file; what is wrong with a new version leaves the old one in force.

    Parameters
    ----------
    path
        The file. It is read at once.
    every
        Seconds between looks at it.
    on_problem
        Told, once each time, why a new version is not used.

    Attributes
    ----------
    problem
        Why the file as it is now is not in force; empty while it is.

    Raises
    ------
    PolicyFileError
        If there is no usable policy to begin with.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        every: float = LOOK_AGAIN,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.problem = ""
        self._every, self._on_problem = every, on_problem
        self._seen = self._stamp()
        self._policy = load_policy(self.path)
        self._next = monotonic() + every

    def current(self, usable: Callable[[GuardPolicy], None]) -> GuardPolicy:
        """Return the policy in force, the file's newest usable version.

        Parameters
        ----------
        usable
            Raises ValueError for a policy that cannot be used.
        """
        now = monotonic()
        if now < self._next:
            return self._policy
        self._next = now + self._every
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._reload(usable)
        return self._policy

    def _reload(self, usable: Callable[[GuardPolicy], None]) -> None:
        try:
            fresh = load_policy(self.path)
            usable(fresh)
        except ValueError as error:
            self.problem = f"the changed policy is not used, the one before stays in force: {error}"
            if self._on_problem is not None:
                self._on_problem(self.problem)
            return
        self._policy, self.problem = fresh, ""

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self.path)  # noqa: PTH116  # pathlib is not cheap to import
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _parsed(data: bytes, *, as_json: bool) -> Any:
    if as_json:
        return json.loads(data)
    import tomllib  # noqa: PLC0415  # a policy in JSON does without

    return tomllib.loads(data.decode())


def _base(name: str) -> GuardPolicy:
    """Return the shipped policy whose rules follow those of a file; none if it names none."""
    if not name:
        return GuardPolicy()
    if name not in ASK_FROM:
        raise PolicyFileError(
            f"policy: extends: there is no shipped policy {name!r}; there are {', '.join(ASK_FROM)}"
        )
    return default_policy(name)


def _rules(whole: Entry, section: str, then: Intervention | None) -> tuple[Rule, ...]:
    return tuple([_rule(part, then) for part in whole.parts(section)])


def _rule(part: Entry, then: Intervention | None) -> Rule:
    effects = part.get("effects")
    levels = {} if effects is None else table(effects, f"{part.where}: effects")
    for name, level in levels.items():
        if not isinstance(level, str):
            raise PolicyFileError(f"{part.where}: effects: {name}: expected a level, got {level!r}")
    done = then or _intervention(part.required("then"), f"{part.where}: then")
    conditions = {
        "tools": part.texts("tools"),
        "categories": part.texts("categories"),
        "kinds": part.texts("kinds"),
        "severity": part.text("severity"),
        "effects": levels,
        "risk": part.text("risk"),
        "proposal": _threshold(part, "proposal"),
        "current": _threshold(part, "current"),
        "unauthorised": _threshold(part, "unauthorised"),
        "harms": part.texts("harms"),
        "weight": part.text("weight"),
        "carries": part.text("carries"),
        "vouched": part.text("vouched"),
    }
    if then is not None and not any(value or value == 0.0 for value in conditions.values()):
        raise PolicyFileError(
            f"{part.where}: a rule without a condition holds for every call; write tools = ['*']"
        )
    try:
        rule = Rule(done, name=part.text("name"), reason=part.text("reason"), **conditions)  # type: ignore[arg-type]
    except ValueError as error:
        raise PolicyFileError(f"{part.where}: {error}") from error
    part.done()
    return rule


def _threshold(part: Entry, key: str) -> float | None:
    found = part.get(key)
    return None if found is None else _number(found, f"{part.where}: {key}")


def _number(value: Any, where: str) -> float:
    if type(value) not in {int, float}:
        raise PolicyFileError(f"{where}: expected a number, got {value!r}")
    return float(value)


def _intervention(value: Any, where: str) -> Intervention:
    known = [one.value for one in Intervention]
    if value not in known:
        raise PolicyFileError(f"{where}: expected one of {', '.join(known)}, got {value!r}")
    return Intervention(value)


def _exact(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if any(sign in name for sign in "*?["):
            raise PolicyFileError(
                f"policy: always_allow: {name!r} is a pattern; only exact names are let through"
            )
    return names
