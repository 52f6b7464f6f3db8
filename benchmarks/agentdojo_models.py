"""Models for `agentdojo_guard.py` that have not seen a suite: the shipped settings, on the corpus without its runs.

Writes ``without-<suite>.json`` for each of AgentDojo's suites. Needs the extra ``fit``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, load_space, save_model
from safetydrift.formats.corpus import corpus_file
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.settings import FitSettings

SUITES = ("workspace", "travel", "banking", "slack")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit one model per suite of AgentDojo without its runs.")
    parser.add_argument("output", type=Path, help="folder for the models")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    space, labeler = load_space("flow"), Labeler(load_catalogue())
    runs = list(TrajectoryReader([str(corpus_file())], space, labeler))
    for suite in SUITES:
        kept = [run for run in runs if run.category != suite]
        model, _ = fit_model(kept, space, labeler.catalogue, FitSettings(risk_score=True))
        save_model(model, folder / f"without-{suite}.json")
        print(f"{suite}: fitted on {len(kept)} of {len(runs)} runs", flush=True)


if __name__ == "__main__":
    main()
