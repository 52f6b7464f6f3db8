"""``safetydrift policy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs, Traces
from safetydrift.cli.output import console, emit_json, percent, remark, say, table

if TYPE_CHECKING:
    from safetydrift.guard.backtest import Backtest
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.states.space import StateSpace

WORDS = {
    "block": "stopped",
    "suggest": "redirected",
    "ask": "asked",
    "warn": "warned",
    "allow": "let through",
}
SHOWN_CHANGES = 8


@click.group
def policy() -> None:
    """Check a guard's policy, and try it on past runs before it is in force.

    \b
    Example:
      safetydrift policy check policy.toml
      safetydrift policy test policy.toml corpus
    """


@policy.command
@click.argument("file", type=click.Path(exists=True, dir_okay=False), metavar="FILE")
@click.option("--model", default="default", show_default=True, metavar="FILE", help="Model file.")
@options.as_json
def check(file: str, model: str, as_json: bool) -> None:
    """Check that a policy can be used, and say what is worth a second look.

    \b
    Example:
      safetydrift policy check policy.toml
    """
    from safetydrift.formats.model_file import load_model

    space = load_model(model).space
    found = _policy(file, space)
    remarks = list(_remarks(found))
    if as_json:
        emit_json({"name": found.name, "rules": _count(found), "remarks": remarks})
        return
    say(f"{file}: {found.name!r} can be used; {_count(found)} rules")
    for one in remarks:
        say(f"  {one}")


@policy.command
@click.argument("file", type=click.Path(exists=True, dir_okay=False), metavar="POLICY")
@options.paths
@click.option(
    "--current",
    type=click.Path(exists=True, dir_okay=False),
    metavar="OLD",
    help="The policy in force; the default one if not given.",
)
@click.option("--model", default="default", show_default=True, metavar="FILE", help="Model file.")
@options.config
@options.reading
@options.as_json
def test(
    file: str,
    paths: tuple[str, ...],
    current: str | None,
    model: str,
    config: str | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Try a policy on past runs: what it would have stopped, asked, warned of, and let through.

    Runs are told apart by the label of their source; what follows a violating call is not looked at. A run that is
    stopped would have gone on differently, which no record can show.

    \b
    Example:
      safetydrift policy test policy.toml traces/
      safetydrift policy test new.toml corpus --current policy.toml --json
    """
    from safetydrift.formats.model_file import load_model
    from safetydrift.formats.score_file import load_score
    from safetydrift.guard.backtest import Backtest
    from safetydrift.guard.default_policy import default_policy
    from safetydrift.monitor.foresight import monitor_for

    fitted = load_model(model)
    labeler = None
    if config is not None:
        from safetydrift.formats.config_file import load_config

        labeler = load_config(config).labeler(fitted.catalogue)
    monitor = monitor_for(fitted, None, labeler, score=load_score())
    before = default_policy() if current is None else _policy(current, fitted.space)
    backtest = Backtest(monitor, _policy(file, fitted.space), before)
    runs = Inputs(paths, fitted.space, monitor.labeler, reading)
    if runs.reader.has_traces:
        backtest.add_traces(Traces(paths, reading))
    else:
        remark(
            "labelled runs hold no texts, so nobody can say who asked for a call: rules about that never hold"
        )
        backtest.add(runs)
    if as_json:
        emit_json(backtest.as_dict())
    else:
        _show(backtest)


def _policy(path: str, space: StateSpace) -> GuardPolicy:
    from safetydrift.errors import PolicyFileError
    from safetydrift.guard.policy_file import load_policy

    found = load_policy(path)
    try:
        found.check(space)
    except ValueError as error:
        raise PolicyFileError(f"{path}: {error}") from error
    return found


def _count(found: GuardPolicy) -> int:
    return sum(map(len, (found.never, found.always_ask, found.always_allow, found.when)))


def _remarks(found: GuardPolicy) -> list[str]:
    authority = any(rule.by_authority for rule in (*found.never, *found.always_ask, *found.when))
    remarks = (
        []
        if authority
        else ['no rule asks who wanted a call; extends = "default" adds the shipped rules that do']
    )
    remarks += [
        f'{name} = "allow": what the guard cannot judge goes ahead' for name in found.opens_on_failure
    ]
    if found.shadow:
        remarks.append("shadow = true: decisions are recorded, and every call goes ahead")
    if found.always_allow:
        remarks.append(f"always_allow: {', '.join(found.always_allow)} go ahead whatever is predicted")
    for later, rule in enumerate(found.when):
        for earlier, other in enumerate(found.when[:later]):
            if other.covers(rule):
                remarks.append(
                    f"when {later + 1} is never reached: when {earlier + 1} holds whenever it does"
                )
                break
    return remarks


def _show(backtest: Backtest) -> None:
    found = backtest.as_dict()
    rows: list[list[Any]] = []
    for value, word in WORDS.items():
        row: list[Any] = [word]
        for group in ("violating", "not_violating"):
            part = found[group]
            row += [
                part["current"][value],
                part["outcomes"][value],
                _share(part["outcomes"][value], part["runs"]),
            ]
        rows.append(row)
    columns = ["", "violating: now", "new", "share", "not violating: now", "new", "share"]
    console.print(table("Runs by the strictest that would have been done", columns, rows))
    for group, name in (("violating", "violating"), ("not_violating", "not violating")):
        part = found[group]
        told = ", ".join([f"{rule}: {n}" for rule, n in part["rules"].items()]) or "none"
        say(f"{part['runs']} {name} runs: {part['questions']} questions; by rule: {told}")
        for change in part["changed"][:SHOWN_CHANGES]:
            say(f"  {change['runs']} runs: {WORDS[change['from']]} now, {WORDS[change['to']]} then")
    if found["left_out"]:
        say(f"{sum(found['left_out'].values())} runs were left out: their label says nothing usable")


def _share(count: int, runs: int) -> str:
    return percent(count / runs) if runs else "-"
