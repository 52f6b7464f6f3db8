"""Sample files: which calls were drawn for a review and what the program said of them then, without any text.

So decisions can be compared with the program of that day, however much it has changed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from safetydrift._version import __version__
from safetydrift.errors import ReviewError
from safetydrift.study.review.sampling import Moment
from safetydrift.study.review.sheets import scales_of

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.study.review.sampling import Sample

SAMPLE_FORMAT = "safetydrift.review/1"
MAX_SAMPLE_BYTES = 256 << 20


class CatalogueLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which catalogue effects were read with."""

    name: str
    version: str
    identity: str


class SampledStratum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many calls there were of one source, layer and tool, and how many of them were drawn."""

    source: str
    layer: str
    tool: str
    calls: int
    drawn: int


class SampledCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A drawn call with the effect that the program saw in it; ``stratum`` is a position in the list of strata."""

    id: str
    source: str
    tool: str
    stratum: int
    layer: str
    levels: dict[str, str]
    kinds: tuple[str, ...] = ()


class SampleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sample file holds."""

    format: str
    safetydrift: str
    catalogue: CatalogueLabel
    seed: int
    per: str
    moment: Moment
    scales: dict[str, tuple[str, ...]]
    strata: tuple[SampledStratum, ...]
    calls: tuple[SampledCall, ...]


def sample_file(
    sample: Sample, catalogue: Catalogue, *, seed: int, per: str, moment: Moment = Moment.PROPOSED
) -> SampleFile:
    """Return what is kept of a sample."""
    positions = {stratum: position for position, stratum in enumerate(sample.seen)}
    drawn = dict.fromkeys(sample.seen, 0)
    for call in sample.calls:
        drawn[call.stratum] += 1
    return SampleFile(
        format=SAMPLE_FORMAT,
        safetydrift=__version__,
        catalogue=CatalogueLabel(catalogue.name, catalogue.version, catalogue.identity),
        seed=seed,
        per=per,
        moment=moment,
        scales=scales_of(catalogue),
        strata=tuple(
            SampledStratum(*stratum, calls=calls, drawn=drawn[stratum])
            for stratum, calls in sample.seen.items()
        ),
        calls=tuple(
            SampledCall(
                id=call.id,
                source=call.source,
                tool=call.tool,
                stratum=positions[call.stratum],
                layer=call.effect.source,
                levels=dict(call.effect.levels),
                kinds=call.effect.kinds,
            )
            for call in sample.calls
        ),
    )


def encode_sample(sample: SampleFile) -> bytes:
    """Return a sample as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(sample), indent=1) + b"\n"


def load_sample(path: Path) -> SampleFile:
    """Read a sample file.

    Raises
    ------
    ReviewError
        If it cannot be read, or is none; the message names the file.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SAMPLE_BYTES + 1)
    except OSError as error:
        raise ReviewError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_SAMPLE_BYTES:
        raise ReviewError(f"{path}: a sample file has at most {MAX_SAMPLE_BYTES:,} bytes")
    try:
        sample = msgspec.json.decode(data, type=SampleFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"{path}: not a sample of a review: {error}") from error
    _check(sample, path)
    return sample


def _check(sample: SampleFile, path: Path) -> None:
    if sample.format != SAMPLE_FORMAT:
        raise ReviewError(f"{path}: expected format {SAMPLE_FORMAT!r}, got {sample.format!r}")
    for call in sample.calls:
        if not 0 <= call.stratum < len(sample.strata):
            raise ReviewError(f"{path}: call {call.id!r} is of stratum {call.stratum}, and there is none")
        for name, levels in sample.scales.items():
            if call.levels.get(name) not in levels:
                raise ReviewError(f"{path}: call {call.id!r} has no level of {name!r}")
    if any(stratum.calls < stratum.drawn or stratum.drawn < 0 for stratum in sample.strata):
        raise ReviewError(f"{path}: a stratum counts fewer calls than were drawn from it")
