"""The shipped corpus: labelled runs derived from real agent traces, with a manifest that says of what.

A corpus is a folder of three files: ``runs.jsonl.xz`` (see `safetydrift.formats.runs`), ``manifest.json`` (counts per
source, digests of the input files and of the runs) and ``credits.toml``.
"""

from __future__ import annotations

import json
import lzma
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from safetydrift._version import __version__
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.formats.files import replaced_when_complete
from safetydrift.formats.reading import read_traces
from safetydrift.formats.runs import RunWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

CORPUS_FORMAT = "safetydrift.corpus/1"
COMPRESSION = {
    "id": lzma.FILTER_LZMA2,
    "preset": 6,
    "nice_len": 64,
    "depth": 16,
    "lc": 4,
    "lp": 0,
    "pb": 0,
}
"""Lines that are this alike gain little from looking further back, which takes several times as long."""

UNCATALOGUED = "?"
"""Stands for tool names that the catalogue does not list: models invent some, and those are text of theirs."""


def corpus_file() -> Path:
    """Return the runs of the shipped corpus."""
    return Path(str(resources.files("safetydrift") / "corpus" / "runs.jsonl.xz"))


def corpus_manifest(folder: Path | None = None) -> dict[str, Any]:
    """Return the manifest of a corpus; of the shipped one by default."""
    folder = corpus_file().parent if folder is None else folder
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    return manifest


def corpus_credits() -> dict[str, dict[str, str]]:
    """Return whom the runs of the shipped corpus are owed to, by source."""
    return tomllib.loads((corpus_file().parent / "credits.toml").read_text("utf-8"))


@dataclass(slots=True)
class _SourceCount:
    """What one source contributed."""

    runs: int = 0
    steps: int = 0
    violated: int = 0
    not_violated: int = 0
    unusable: Counter[str] = field(default_factory=Counter)
    with_onset: int = 0

    def add(self, run: Trajectory) -> None:
        self.runs += 1
        self.steps += run.n_steps
        label = run.label
        if label.unusable or label.violated is None:
            self.unusable[label.unusable or "the source says nothing about violation"] += 1
        elif label.violated:
            self.violated += 1
            self.with_onset += label.onset is not None
        else:
            self.not_violated += 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "steps": self.steps,
            "violated": self.violated,
            "violated_with_known_onset": self.with_onset,
            "not_violated": self.not_violated,
            "without_usable_label": dict(self.unusable.most_common()),
        }


def build_corpus(
    root: Path,
    output: Path,
    space: StateSpace,
    catalogue: Catalogue,
    on_source: Callable[[str], None] = lambda _name: None,
) -> dict[str, Any]:
    """Derive a corpus from a folder that holds one folder of traces per source.

    Parameters
    ----------
    root
        The folder of sources; the name of each folder becomes the source of its runs.
    output
        Where to write ``runs.jsonl.xz`` and ``manifest.json``.
    on_source
        Called with the name of each source before it is read.

    Returns
    -------
    dict
        The manifest, as written.

    Raises
    ------
    TraceFormatError
        If a record cannot be read. A corpus leaves nothing out silently, so there is no skipping here.
    """
    output.mkdir(parents=True, exist_ok=True)
    with (
        replaced_when_complete(output / "manifest.json") as manifest_file,
        replaced_when_complete(output / "runs.jsonl.xz") as runs_file,
    ):
        with lzma.open(runs_file, "wb", filters=[COMPRESSION]) as stream:
            writer = RunWriter(stream, space, catalogue.identity)
            sources, inputs = _derived(root, writer, space, catalogue, on_source)
        manifest = {
            "format": CORPUS_FORMAT,
            "safetydrift": __version__,
            "space": {"name": space.name, "identity": space.identity},
            "catalogue": {
                "name": catalogue.name,
                "version": catalogue.version,
                "identity": catalogue.identity,
            },
            "runs_sha256": sha256(runs_file.read_bytes()).hexdigest(),
            "sources": sources,
            "inputs_sha256": inputs,
        }
        manifest_file.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def _derived(
    root: Path,
    writer: RunWriter,
    space: StateSpace,
    catalogue: Catalogue,
    on_source: Callable[[str], None],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the runs of every source; return what each contributed, and the digests of its files."""
    labeler = Labeler(catalogue)
    sources, inputs = {}, {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        on_source(folder.name)
        count = _SourceCount()
        for trace in read_traces([folder]):
            run = label_trace(replace(trace, source=folder.name), labeler, space)
            run = _without_invented_names(run, catalogue)
            writer.write(run)
            count.add(run)
        sources[folder.name] = count.as_dict()
        inputs[folder.name] = {
            path.name: sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir())
            if path.name.endswith(".xz")
        }
    return sources, inputs


def _without_invented_names(run: Trajectory, catalogue: Catalogue) -> Trajectory:
    moves = [move if move.tool in catalogue.tools else replace(move, tool=UNCATALOGUED) for move in run.moves]
    return replace(run, moves=tuple(moves))
