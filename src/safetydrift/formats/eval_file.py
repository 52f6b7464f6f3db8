"""The samples in an Inspect log: a zip archive whose members are usually compressed with Zstandard.

Python's own zip reader knows where members stand, but not this compression before 3.14; so it is asked for the places
alone. A log that was cut off while it was written holds the samples that were complete by then.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import msgspec

from safetydrift.formats.files import LOG_SUFFIX, Damage, zstd_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

_HEADERS = ("header.json", "_journal/start.json")
_LOCAL = struct.Struct("<4s5H3I2H")
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_MAX_MEMBERS = 200_000


def is_eval(path: Path) -> bool:
    """Return whether a file is an Inspect log by its name."""
    return path.name.lower().endswith(LOG_SUFFIX)


def sample_records(
    path: Path, limit: int, on_read: Callable[[int], None]
) -> Iterator[tuple[int, bytes | None]]:
    """Yield every sample with its number, as JSON text ``{"eval": .., "sample": ..}``; None for one over the limit.

    Raises
    ------
    Damage
        If the file is no Inspect log, or damaged.
    MissingExtraError
        If it is compressed with Zstandard and the package for it is not installed.
    """
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = {member.filename: member for member in archive.infolist()[:_MAX_MEMBERS]}
            header = next((members[name] for name in _HEADERS if name in members), None)
            if header is None:
                raise Damage("not an Inspect log: it has no header")
            told = _member(stream, header, limit)
            facts = b"{}" if told is None else _facts(told)
            number = 0
            for name, member in members.items():
                if name.startswith("samples/") and name.endswith(".json"):
                    number += 1
                    text = _member(stream, member, limit)
                    on_read(member.compress_size)
                    yield number, None if text is None else b'{"eval":%b,"sample":%b}' % (facts, text)
    except (OSError, zipfile.BadZipFile, struct.error, zlib.error, EOFError, NotImplementedError) as error:
        raise Damage(f"not an Inspect log, or damaged: {error}") from error


class _Header(msgspec.Struct):
    eval: msgspec.Raw


def _facts(header: bytes) -> bytes:
    try:
        return bytes(msgspec.json.decode(header, type=_Header).eval)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damage(f"not an Inspect log: its header is damaged: {error}") from error


def _member(stream: IO[bytes], member: zipfile.ZipInfo, limit: int) -> bytes | None:
    """Return the content of a member; None if it is longer than the limit."""
    if member.file_size > limit or member.compress_size > limit:
        return None
    stream.seek(member.header_offset)
    fields = _LOCAL.unpack(stream.read(_LOCAL.size))
    stream.seek(fields[-2] + fields[-1], 1)
    data = stream.read(member.compress_size)
    if member.compress_type == _STORED:
        return data
    if member.compress_type == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, limit)
    if member.compress_type == _ZSTD:
        return _unpacked(data, limit)
    raise Damage(f"a member is compressed by the unknown method {member.compress_type}")


def _unpacked(data: bytes, limit: int) -> bytes | None:
    """Return what Zstandard frames hold, one after the other."""
    zstd = zstd_module()
    pieces: list[bytes] = []
    size = 0
    while data:
        unpacker = zstd.ZstdDecompressor()
        try:
            piece = unpacker.decompress(data, limit + 1 - size)
        except zstd.ZstdError as error:
            raise Damage(f"a member is damaged: {error}") from error
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            return None
        if not unpacker.eof:
            raise Damage("a member is cut short")
        data = unpacker.unused_data
    return b"".join(pieces)
