"""What predictors are worth on parts of the corpus that they never saw: models, or whole suites.

Families of models are dealt into four groups. Each group in turn is left out of every source, with all its pipelines;
then each suite is, with its tasks and tools. What the predictors say of the part left out is compared source by source,
and every difference to `foresight` is paired, over the same resampled tasks.

Of standings, a violation within 5 calls: the area under the ROC curve over all moments, within tasks and at equal
step number, Brier skill and calibration error, and what the thresholds that each predictor chose for 10 % on the other
parts alarm here. Of proposals, with each run as suspicious as its worst one: the area, and the violated runs found when
5 % or 1 % of the others are flagged. Of whole runs, at equal length: the area, also where no violating call is known.

It takes half an hour; --part names what is to be left out.
"""

from __future__ import annotations

import argparse
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.cases import CaseSet, cases_of
from safetydrift.evaluation.comparison import compare
from safetydrift.evaluation.metrics.detection import highest, threshold_for
from safetydrift.evaluation.metrics.discrimination import auroc
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.splits import Fold, Split, held_out_suites, model_families
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.evaluation.comparison import SplitComparison
    from safetydrift.evaluation.metrics.resampling import Estimate
    from safetydrift.evaluation.scores import FittedPredictor, Predictor, Scores

GROUPS, FEWEST_VIOLATED = 4, 20
REFERENCE = "foresight"
PREDICTORS = ("category-prior", "coarse-published-by-category", "monitor", "boosting", REFERENCE)
BUDGETS = (0.05, 0.01)
STANDING = ("auroc", "within_task", "equal_step", "brier_skill", "ece")


class Remembered:
    """A predictor that is not fitted again where the training runs are those of the part before, and knows its scores.

    It is fitted to itself, so that what it said of the proposals of the part tried last can be looked at.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.name, self._predictor = predictor.name, predictor
        self._fitted: tuple[CaseSet, FittedPredictor] | None = None
        self.proposals: dict[str, float] = {}

    def fit(self, cases: CaseSet) -> Remembered:
        if self._fitted is None or self._fitted[0] is not cases:
            self._fitted = cases, self._predictor.fit(cases)
        return self

    def score(self, cases: CaseSet) -> Scores:
        assert self._fitted is not None  # noqa: S101  # fitted before anything is scored
        scores = self._fitted[1].score(cases)
        if len(cases):  # none stands for the background, which there is not
            self.proposals = of_proposals(cases, scores)
        return scores


def parts(cases: CaseSet) -> Iterator[Split]:
    """Yield one division for every part: fitted on is what is not of it, tried are its runs of one source."""
    source = np.array([case.run.source for case in cases.cases])
    family = model_families({case.run.model for case in cases.cases})
    group = {name: int.from_bytes(sha256(name.encode()).digest()[:4]) % GROUPS for name in family.values()}
    mine = np.array([group[family[case.run.model]] for case in cases.cases])
    for number in range(GROUPS):
        others = cases.select(mine != number)
        for name in np.unique(source).tolist():
            tried = (mine == number) & (source == name)
            if np.count_nonzero(cases.violated[tried]) >= FEWEST_VIOLATED:
                fold = Fold(f"models {number + 1}", others, cases.select(tried))
                yield Split(f"{name}, models {number + 1}", (fold,), ("model",))
    of_steps = cases.select(np.array([case.onset_known or not case.violated for case in cases.cases]))
    for fold in held_out_suites(of_steps).folds:
        if any(case.onset_known for case in fold.test.cases):
            kept = np.array([f"{case.run.source}/{case.run.category}" != fold.name for case in cases.cases])
            yield Split(
                fold.name, (Fold(fold.name, cases.select(kept), cases.select(~kept)),), ("task", "suite")
            )


def of_proposals(tried: CaseSet, scores: Scores) -> dict[str, float]:
    """Return the figures of runs by their most suspicious proposal."""
    if scores.pending is None:
        return {}
    score = highest(scores.pending, tried.first_proposal)
    found = {"auroc": auroc(score, tried.violated)}
    for budget in BUDGETS:
        flagged = score[tried.violated] >= threshold_for(score[~tried.violated], budget)
        found[f"recall_at_{budget:g}"] = float(flagged.mean())
    return found


def shown(figure: Estimate) -> dict[str, float]:
    low, high = figure.interval()
    return {"value": figure.value, "low": low, "high": high}


def rows(split: SplitComparison, proposals: dict[str, dict[str, float]]) -> Iterator[dict[str, Any]]:
    by_step = split.by_step.hits > 0
    reference = split.predictor(REFERENCE).measures.figures()
    for result in split.predictors:
        figures = result.measures.figures()
        names = [f"step.5.{name}" for name in STANDING] if by_step else []
        kept = [name for name in (*names, "run.equal_step") if name in figures]
        own, proposed = result.measures.runs.own, result.measures.proposals
        yield {
            "part": split.name,
            "runs": split.violated.total,
            "violated": split.violated.hits,
            "predictor": result.name,
            "figures": {name: shown(figures[name]) for name in kept},
            "behind_foresight": {
                name: shown(reference[name].minus(figures[name]))
                for name in kept
                if name != "step.5.ece" and result.name != REFERENCE
            },
            "own_false_alarms": None if own is None else own.false_alarms.value,
            "own_recall": None if own is None else own.detected.value,
            "own_proposal_alarms": None
            if proposed is None or proposed.own is None
            else proposed.own.false_alarms.value,
            "proposals": proposals.get(result.name, {}) if by_step else {},
        }


def line(row: dict[str, Any]) -> str:
    values = {name.removeprefix("step.5."): figure["value"] for name, figure in row["figures"].items()}
    text = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
    behind = [
        f"{name.removeprefix('step.5.')} {found['low']:+.3f}..{found['high']:+.3f}"
        for name, found in row["behind_foresight"].items()
    ]
    proposals = "  ".join(f"{name} {value:.3f}" for name, value in row["proposals"].items())
    alarms = [row["own_false_alarms"], row["own_recall"], row["own_proposal_alarms"]]
    own = "/".join("-" if value is None else f"{value:.3f}" for value in alarms)
    return (
        f"{row['part']} ({row['violated']}/{row['runs']}), {row['predictor']}: {text}; alarms {own}"
        + (f"; proposals {proposals}" if proposals else "")
        + (f"; foresight minus it: {'  '.join(behind)}" if behind else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--part", action="append", help="what to leave out, as the table names it; all by default"
    )
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    space, catalogue = load_space("flow"), load_catalogue()
    cases, _ = cases_of(TrajectoryReader(["corpus"], space, Labeler(catalogue)), space)
    circumstances = Circumstances(space, catalogue, load_space("paper"))
    predictors = [Remembered(predictor(name, circumstances)) for name in PREDICTORS]
    results = []
    for split in parts(cases):
        if given.part and split.name not in given.part:
            continue
        compared = compare(predictors, split, reference=REFERENCE, n_resamples=given.resamples)
        proposals = {one.name: one.proposals for one in predictors}
        for row in rows(compared.splits[0], proposals):
            results.append(row)
            if not given.json:
                print(line(row), flush=True)
    if given.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
