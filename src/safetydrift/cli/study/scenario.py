"""``safetydrift study scenario``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import console, emit_json, say, table

if TYPE_CHECKING:
    from safetydrift.study.scenarios import Scenario

WIDEST = 160


@click.group
def scenario() -> None:
    """List, show, verify and begin scenarios: tasks with a sandbox, ways to drift, and a safe path.

    \b
    Example:
      safetydrift study scenario list
      safetydrift study scenario check --all
    """


@scenario.command(name="list")
@click.option("--category", default="", metavar="NAME", help="Only those of a category.")
@options.as_json
def list_(category: str, as_json: bool) -> None:
    """List the shipped scenarios.

    \b
    Example:
      safetydrift study scenario list --category code_debugging
    """
    from safetydrift.study.scenarios import load_scenarios

    found = load_scenarios(category)
    if not found:
        raise click.BadParameter(
            f"there is no scenario of the category {category!r}", param_hint="--category"
        )
    if as_json:
        emit_json([_summary(one) for one in found])
        return
    rows = [
        (one.id, one.difficulty, ", ".join(sorted({drift.kind for drift in one.drifts})), one.title)
        for one in found
    ]
    console.print(table(f"{len(found)} scenarios", ("id", "difficulty", "drifts to", "title"), rows, left=4))


@scenario.command
@click.argument("name", metavar="ID|FILE")
@options.as_json
def show(name: str, as_json: bool) -> None:
    """Show a scenario: the task, the world, the tools, and every documented way through it.

    \b
    Example:
      safetydrift study scenario show data_handling/churn-report
    """
    import msgspec

    from safetydrift.study.scenarios import load_scenario

    found = load_scenario(name)
    if as_json:
        emit_json(msgspec.to_builtins(found))
    else:
        say(_page(found))


@scenario.command
@click.argument("names", nargs=-1, metavar="[ID|FILE]...")
@click.option("--all", "everything", is_flag=True, help="Every shipped scenario.")
@options.as_json
def check(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Play every way a scenario documents, and compare with what it states.

    The safe path must complete the task without violation and within its stated risk; each drift opportunity must
    reach its kind. The exit code is 3 if anything is not as stated.

    \b
    Example:
      safetydrift study scenario check --all --json
    """
    from safetydrift.study.scenarios import load_scenario, load_scenarios, verify

    if bool(names) == everything:
        raise click.UsageError("name scenarios, or give --all")
    found = [verify(one) for one in (load_scenarios() if everything else map(load_scenario, names))]
    if as_json:
        emit_json(found)
    else:
        rows = [
            (
                one.id,
                "ok" if one.ok else "NOT AS STATED",
                f"{one.safe['risk']} of {one.safe['stated']}" if one.safe else "-",
                len(one.drifts),
            )
            for one in found
        ]
        title = f"{len(found)} scenarios checked"
        console.print(table(title, ("id", "", "safe path", "drifts"), rows, left=3))
        for one in found:
            for problem in one.problems:
                say(f"{one.id}: {problem}")
    if not all(one.ok for one in found):
        raise SystemExit(3)


@scenario.command
@options.as_json
def tools(as_json: bool) -> None:
    """List the tools a scenario can offer, with what they take.

    \b
    Example:
      safetydrift study scenario tools
    """
    from safetydrift.study.scenarios.tools import TOOLS

    if as_json:
        emit_json(
            [
                {"name": one.name, "description": one.description, "parameters": one.schema()}
                for one in TOOLS.values()
            ]
        )
        return
    rows = [
        (
            one.name,
            ", ".join(name if name in one.required else f"[{name}]" for name in one.parameters),
            one.description,
        )
        for one in TOOLS.values()
    ]
    console.print(table(f"{len(rows)} tools", ("tool", "arguments", ""), rows, left=3))


@scenario.command
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def new(path: Path) -> None:
    """Write a small scenario that passes its check, to be changed into one's own.

    \b
    Example:
      safetydrift study scenario new mine.toml
    """
    from importlib import resources

    if path.exists():
        raise click.BadParameter(f"{path} is there already", param_hint="PATH")
    text = (resources.files("safetydrift.study.scenarios") / "skeleton.toml").read_text("utf-8")
    path.write_text(text.replace("own/skeleton", f"own/{path.stem}"), "utf-8")
    say(f"wrote {path}; next: safetydrift study scenario check {path}")


def _summary(one: Scenario) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.title,
        "category": one.category,
        "difficulty": one.difficulty,
        "tools": one.tools,
        "safe_risk": one.safe.risk,
        "drifts": [{"name": drift.name, "kind": drift.kind} for drift in one.drifts],
    }


def _page(one: Scenario) -> str:
    lines = [f"{one.id}  ({one.difficulty})", one.title, "", one.task.strip(), ""]
    lines += [f"tools: {', '.join(one.tools)}", ""]
    lines += [f"  {item.sensitivity:12}{_name(item)}" for item, _ in one.items()]
    lines += ["", f"safe path (at most {one.safe.risk}): {one.safe.why}", *_script(one.safe.script)]
    for drift in one.drifts:
        lines += ["", f"drift to {drift.kind}, {drift.name}: {drift.why}", *_script(drift.script)]
    return "\n".join(lines)


def _name(item: Any) -> str:
    for key in ("path", "url", "id", "name"):
        if hasattr(item, key):
            return f"{type(item).__name__.lower()} {getattr(item, key)}"
    return ""


def _script(script: tuple[dict[str, Any], ...]) -> list[str]:
    from safetydrift.study.scenarios.tools import written

    return [
        f"  {step['call']} {written({k: v for k, v in step.items() if k != 'call'})}"[:WIDEST]
        for step in script
    ]
