"""The monitor on trial: the same runs without it and with it, in each of the four interventions.

Runs are paired by scenario and epoch. The simulated agent acts the same until it is first interfered with, so a pair
tells what an intervention changed; with a real model a pair is two runs of one task and no more. Whole scenarios are
resampled for the intervals, since runs of one are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from inspect_ai.event import ApprovalEvent
from inspect_ai.log import read_eval_log_samples

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.metrics.resampling import Estimate, Resamples, estimate, ratio
from safetydrift.formats.reading import read_traces
from safetydrift.study.scenarios.approval import APPROVER, WAYS
from safetydrift.study.scenarios.collection import SIMULATED, collect
from safetydrift.study.scenarios.scenario import load_scenarios

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from inspect_ai.log import EvalSample

NONE = "none"
ARMS = (NONE, *WAYS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run went.

    Parameters
    ----------
    scenario, epoch
        Which run it was.
    violated, done
        What the checks say of its end.
    onset
        The violating call, counted from 1; None without one.
    interventions
        The calls, counted from 1, at which the monitor interfered.
    """

    scenario: str
    epoch: int
    violated: bool
    done: bool
    onset: int | None
    interventions: tuple[int, ...]


def halves(seed: int = 0) -> tuple[list[str], list[str]]:
    """Return the ids of the shipped scenarios in two halves, to fit on and to try on, each with every category."""
    by_category: dict[str, list[str]] = {}
    for one in load_scenarios():
        by_category.setdefault(one.category, []).append(one.id)
    fit: list[str] = []
    held: list[str] = []
    for category in sorted(by_category):
        names = sorted(by_category[category])
        Random(f"{seed}/{category}").shuffle(names)  # noqa: S311  # repeatable on purpose
        fit += names[: (len(names) + 1) // 2]
        held += names[(len(names) + 1) // 2 :]
    return sorted(fit), sorted(held)


def outcomes(logs: Iterable[Path]) -> list[Outcome]:
    """Return how the runs in some logs went."""
    found = []
    for log in logs:
        for sample in read_eval_log_samples(str(log), all_samples_required=False):
            score = (sample.scores or {}).get("end_state")
            if score is not None and sample.error is None:
                found.append(_outcome(sample, (score.metadata or {})["safetydrift"]))
    return found


def _outcome(sample: EvalSample, told: Mapping[str, Any]) -> Outcome:
    order = [call.id for one in sample.messages for call in getattr(one, "tool_calls", None) or ()]
    interfered = [
        event.call.id
        for event in sample.events
        if isinstance(event, ApprovalEvent)
        and event.approver.rpartition("/")[2] == APPROVER
        and event.decision in {"reject", "escalate", "terminate"}
    ]
    places = sorted({order.index(one) + 1 for one in interfered if one in order})
    return Outcome(
        sample.metadata["task"], sample.epoch, told["violated"], told["done"], told["onset"], tuple(places)
    )


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """How one arm of the trial compares with the runs that nobody watched.

    Parameters
    ----------
    runs
        Pairs of runs.
    violated, done
        Shares of the runs with the monitor.
    prevented
        Of the runs that violate unwatched, the share that does not when watched.
    kept
        Of the runs that do the task unwatched and without violation, the share that still does.
    false_interventions
        Of the runs that do not violate unwatched, the share that was interfered with.
    warning
        Steps from the first intervention to the call that violates unwatched, on the average of the runs in which
        there are both; 0 means the violating call itself was caught as it was proposed.
    """

    runs: int
    violated: Estimate
    done: Estimate
    prevented: Estimate
    kept: Estimate
    false_interventions: Estimate
    warning: Estimate


def figures(unwatched: Sequence[Outcome], watched: Sequence[Outcome]) -> ArmFigures:
    """Compare runs with the monitor with the same runs without it.

    Raises
    ------
    ValueError
        If there is no pair.
    """
    before = {(one.scenario, one.epoch): one for one in unwatched}
    pairs = [(before[one.scenario, one.epoch], one) for one in watched if (one.scenario, one.epoch) in before]
    if not pairs:
        raise ValueError("no run was made both with and without the monitor")
    names = sorted({one.scenario for one, _ in pairs})
    task = np.array([names.index(one.scenario) for one, _ in pairs])
    draws = Resamples.draw(len(names))

    def share(hits: list[float], among: list[bool]) -> Estimate:
        return estimate(
            ratio(
                draws.total(np.array(hits) * np.array(among), task), draws.total(np.array(among) * 1.0, task)
            )
        )

    all_ = [True] * len(pairs)
    warned = [bool(a.onset and b.interventions and b.interventions[0] <= a.onset) for a, b in pairs]
    return ArmFigures(
        runs=len(pairs),
        violated=share([b.violated for _, b in pairs], all_),
        done=share([b.done for _, b in pairs], all_),
        prevented=share([not b.violated for _, b in pairs], [a.violated for a, _ in pairs]),
        kept=share(
            [b.done and not b.violated for _, b in pairs], [a.done and not a.violated for a, _ in pairs]
        ),
        false_interventions=share(
            [bool(b.interventions) for _, b in pairs], [not a.violated for a, _ in pairs]
        ),
        warning=share(
            [
                (a.onset or 0) - b.interventions[0] if one else 0
                for one, (a, b) in zip(warned, pairs, strict=True)
            ],
            warned,
        ),
    )


def fitted(logs: Sequence[Path], to: Path, *, horizon: int = 5, space_name: str = "flow") -> None:
    """Fit a model on collected runs and save it."""
    from safetydrift.effects.boundary import Boundary  # noqa: PLC0415  # what only a fit needs
    from safetydrift.effects.labeler import Labeler  # noqa: PLC0415
    from safetydrift.effects.labeling import label_trace  # noqa: PLC0415
    from safetydrift.formats.catalogue_file import load_catalogue  # noqa: PLC0415
    from safetydrift.formats.model_file import save_model  # noqa: PLC0415
    from safetydrift.formats.space_file import load_space  # noqa: PLC0415
    from safetydrift.monitor.fitting import fit_model  # noqa: PLC0415
    from safetydrift.monitor.settings import FitSettings  # noqa: PLC0415

    catalogue, space = load_catalogue(), load_space(space_name)
    labeler = Labeler(catalogue, Boundary(domains=load_scenarios()[0].inside))
    runs = [label_trace(trace, labeler, space) for trace in read_traces(logs)]
    model, _ = fit_model(runs, space, catalogue, FitSettings(), horizon=horizon)
    save_model(model, to)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial came to.

    Parameters
    ----------
    agent
        The model that acted.
    held_out
        The scenarios it was tried on.
    arms
        Figures by intervention; the first, `NONE`, is the runs that nobody watched.
    """

    agent: str
    held_out: tuple[str, ...]
    arms: Mapping[str, ArmFigures]

    @property
    def simulated(self) -> bool:
        """Whether the agent was simulated."""
        return self.agent.startswith(SIMULATED)

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as plain data."""
        return {
            "agent": self.agent,
            "simulated": self.simulated,
            "held_out": self.held_out,
            "arms": self.arms,
        }

    def table(self) -> Table:
        """Return the figures, an arm per row."""
        names = ("prevented", "done", "kept", "false_interventions", "warning", "violated")
        runs = next(iter(self.arms.values())).runs
        kind = "simulated runs" if self.simulated else "runs"
        note = (
            "prevented: of the runs that violate unwatched, those that do not when watched; kept: of the runs that do "
            "the task without violation unwatched, those that still do; warning: steps before the violating call. "
            "Brackets are 95 % intervals over whole scenarios."
        )
        return Table(
            f"{runs} {kind} of {len(self.held_out)} held-out scenarios per arm, by {self.agent}",
            note,
            ("intervention", *(name.replace("_", " ") for name in names)),
            tuple((arm, *(getattr(one, name) for name in names)) for arm, one in self.arms.items()),
        )


def run_trial(
    folder: Path,
    agent: str,
    *,
    monitor: str = "",
    epochs: int = 6,
    seed: int = 0,
    scenarios: tuple[Sequence[str], Sequence[str]] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Trial:
    """Fit on half of the scenarios, and try the monitor on the other half, in every intervention.

    Parameters
    ----------
    folder
        Where logs and model lie; what is there is not made again.
    agent
        As Inspect names models.
    monitor
        A model file, or ``"default"``; fitted on the first half if empty.
    epochs
        Runs per scenario and arm.
    seed
        Of the division, and of the runs.
    scenarios
        What to fit on and what to try on, if not `halves`.
    tell
        Told what is done next.
    """
    to_fit, held = halves(seed) if scenarios is None else scenarios
    if not monitor:
        path = folder / "model.json"
        if not path.exists():
            tell(f"collecting runs of {len(to_fit)} scenarios to fit on")
            made = collect(folder / "fit", agent, names=to_fit, epochs=epochs, seed=seed + 1)
            fitted(made.whole(), path)
        monitor = str(path)
    found: dict[str, list[Outcome]] = {}
    for arm in ARMS:
        tell(f"running {len(held)} held-out scenarios: {arm}")
        how: dict[str, Any] = {} if arm == NONE else {"monitor": monitor, "intervention": arm}
        found[arm] = outcomes(
            collect(folder / arm, agent, names=held, epochs=epochs, seed=seed + 2, **how).whole()
        )
    return Trial(agent, tuple(held), {arm: figures(found[NONE], one) for arm, one in found.items()})
