"""Fit the shipped score of concerns again from recorded runs: ``python benchmarks/fit_authority.py ../shared``.

Reads AgentDojo and AgentDyn runs, everyday sessions, and grafts into everyday sessions
(`safetydrift.formats.grafts`). Nothing of the runs' text is kept: what is written are tables of log-odds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.authority_fitting import Row, fit_score, rows_of
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.formats.graft_data import load_grafts
from safetydrift.formats.grafts import graft_runs
from safetydrift.formats.reading import read_traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.trace import Trace

decode = msgspec.msgpack.Decoder(list[tuple[str, tuple[tuple[int, ...], ...], bool, bool]]).decode
OUTPUT = Path(__file__).parents[1] / "src" / "safetydrift" / "models" / "authority.json"
SEED, DRAWS = 7, 3


def runs_of(shared: Path, every: int, first: int) -> Iterator[tuple[Trace, str]]:
    """Yield labelled runs, each with the kind of its source."""
    for source in ("agentdojo", "agentdyn"):
        for number, trace in enumerate(read_traces([shared / "traces" / source], skip_bad=True)):
            if number % every == first:
                yield trace, "attacks"
    sessions = list(read_traces([shared / "sessions"], skip_bad=True))
    for number, trace in enumerate(sessions):
        if number % every == first:
            yield trace, "everyday"
    for number, trace in enumerate(graft_runs(sessions, load_grafts(), SEED, per_base=DRAWS)):
        if number // 3 % every == first:
            yield trace, "grafts"


def main() -> None:
    """Read the runs and write the score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shared", type=Path, help="the folder with traces/ and sessions/")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    parser.add_argument("--every", type=int, default=1, help="take one run in so many")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--from-rows", type=Path, nargs="*", help="fit on calls that were written so")
    parser.add_argument("--rows", type=Path, help="only write the calls to fit on, as MessagePack")
    args = parser.parse_args()
    rows = [Row(*row) for path in args.from_rows or () for row in decode(path.read_bytes())]
    labeler = Labeler(load_catalogue())
    for number, (trace, kind) in enumerate(
        () if args.from_rows else runs_of(args.shared, args.every, args.first), 1
    ):
        rows += rows_of(trace, labeler, kind)
        if number % 1000 == 0:
            print(f"\r{number} runs, {len(rows)} calls with concerns", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if args.rows:
        args.rows.write_bytes(msgspec.msgpack.encode(rows))
        return
    tables = fit_score(rows)
    args.output.write_bytes(msgspec.json.format(msgspec.json.encode(tables), indent=0) + b"\n")
    for name, count in tables.fitted_on.items():
        print(f"{name:<40}{count:>9}")


if __name__ == "__main__":
    main()
