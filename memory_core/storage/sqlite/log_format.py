"""The format of SQLite's write-ahead log: https://sqlite.org/fileformat2.html#walformat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import IO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC: Final = {0x377F0682: "<u4", 0x377F0683: ">u4"}
"""The first bytes of a log, and the byte order of the numbers that its checksums add up."""
_HEADER_BYTES: Final = 32
_FRAME_BYTES: Final = 24
"""Of the headers of a log and of each page in it."""
_SUMMED_BYTES: Final = 8
"""Of the header of a page; the checksum covers these and the page."""

_Words = NDArray[np.uint32]


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
            sums = _continued(_continued(sums, frame[:_SUMMED_BYTES], order), page, order)
            if len(page) != size or sums != _sums(frame[16:]):
                return
        if is_wanted:
            yield page


def _sums(packed: bytes) -> _Sums:
    return _Sums(int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:8], "big"))


def _continued(sums: _Sums, data: bytes, order: str) -> _Sums:
    """The checksum of a log after further bytes.

    The format defines it step by step, for each pair of numbers x, y modulo 2^32: `s += x + t`, then `t += y + s`. That
    is (s, t) -> A (s, t) + (x, x + y) with the matrix A = [[1, 1], [1, 2]], so each pair has been multiplied by a power
    of A at the end.
    """
    words: _Words = np.frombuffer(data, order, len(data) // 8 * 2).astype(np.uint32)
    x, both = words[::2], words[::2] + words[1::2]
    low, middle, high = _weights(len(x))
    s, t = sums
    first = int(low[0]) * s + int(middle[0]) * t + _product(low[1:], x) + _product(middle[1:], both)
    second = int(middle[0]) * s + int(high[0]) * t + _product(middle[1:], x) + _product(high[1:], both)
    return _Sums(first & 0xFFFFFFFF, second & 0xFFFFFFFF)


def _product(weights: _Words, words: _Words) -> int:
    return int((weights * words).sum(dtype=np.uint32))


@cache
def _weights(count: int) -> tuple[_Words, _Words, _Words]:
    """The entries of the powers `count`, ..., 1, 0 of A, modulo 2^32: upper left, upper right, lower right."""
    low, middle, high = 1, 0, 1
    powers = [(low, middle, high)]
    for _ in range(count):
        low, middle, high = low + middle, middle + high, middle + 2 * high
        powers.append((low & 0xFFFFFFFF, middle & 0xFFFFFFFF, high & 0xFFFFFFFF))
    columns = np.array(powers[::-1], np.uint64).astype(np.uint32).T
    return columns[0], columns[1], columns[2]
