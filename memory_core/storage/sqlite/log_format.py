"""The format of SQLite's write-ahead log: https://sqlite.org/fileformat2.html#walformat."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
"""The first bytes of a log, and the byte order of the numbers that its checksums add up."""
_HEADER_BYTES: Final = 32
_FRAME_BYTES: Final = 24
"""Of the headers of a log and of each page in it."""
_SUMMED_BYTES: Final = 8
"""Of the header of a page; the checksum covers these and the page."""
_ALL_BITS: Final = 0xFFFFFFFF


class _Sums(NamedTuple):
    """A checksum of the log: two numbers of 32 bits."""

    first: int
    second: int


def header_of(file: IO[bytes]) -> bytes | None:
    """The header of a log, which differs each time the log begins again; `None` if the file is no log."""
    header = file.read(_HEADER_BYTES)
    is_log = len(header) == _HEADER_BYTES and int.from_bytes(header[:4], "big") in _MAGIC
    return header if is_log else None


def pages_in(file: IO[bytes], number: int, *, whole: bool) -> Iterator[bytes]:
    """The versions of a page that a log has, of its present generation, oldest first.

    Args:
        file: The log, at its beginning.
        whole: Stop at the first page whose checksum does not fit, as SQLite does; otherwise only the headers are read.
    """
    header = header_of(file)
    if header is None:
        return
    size, salts, order = int.from_bytes(header[8:12], "big"), header[16:24], _MAGIC[int.from_bytes(header[:4], "big")]
    sums = _sums(header[24:])
    while len(frame := file.read(_FRAME_BYTES)) == _FRAME_BYTES and frame[8:16] == salts:
        is_wanted = int.from_bytes(frame[:4], "big") == number
        if not (is_wanted or whole):
            file.seek(size, os.SEEK_CUR)
            continue
        page = file.read(size)
        if whole:
            sums = _continued(sums, frame[:_SUMMED_BYTES] + page, order) if len(page) == size else sums
            if sums != _sums(frame[16:]):
                return
        if is_wanted:
            yield page


def _sums(packed: bytes) -> _Sums:
    return _Sums(int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:8], "big"))


def _continued(sums: _Sums, data: bytes, order: str) -> _Sums:
    """The checksum of a log after further bytes, as the format defines it."""
    first, second = sums
    for x, y in struct.iter_unpack(f"{order}II", data):
        first = (first + x + second) & _ALL_BITS
        second = (second + y + first) & _ALL_BITS
    return _Sums(first, second)
