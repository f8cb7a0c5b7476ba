"""The pieces of the Universal Sentence Encoder in a file that is looked into where it lies.

A dictionary of 128,000 pieces takes 60 ms and 28 MB of each process, and the index of the package `sentencepiece`
150 ms. This file is a hash table that is mapped into memory: opening it takes no time, and the system keeps what is
read of it once for all processes.

The file has three parts, and its numbers are little-endian. The slots: for each the CRC-32 of a piece in UTF-8 and its
id, which is 0 in an empty slot; a piece stands in the slot that its CRC-32 names, or else in the next empty one. Then,
by id, where the piece starts in the last part and the logarithm of its probability; id 0 has that of a character
without a piece. Last, all pieces in the order of their ids.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from memory_core.errors import EmbeddingError

VOCABULARY: Final = Path(__file__).with_name("pieces.table")
"""Made by `export.py`."""
UNKNOWN: Final = 0
"""The id of a character without a piece."""
MARKS: Final = 3
"""The number of the first ids, which no text has: those of unknown characters, the start and the end."""
LONGEST: Final = 16
"""Characters of the longest piece."""
_PIECES: Final = 128_000
_SLOTS: Final = 1 << 19
"""A power of two: four for each piece, so most of those that no piece has are found to be empty at once."""
_SLOT: Final = struct.Struct("<II")
_PIECE: Final = struct.Struct("<If")
_OFFSET: Final = struct.Struct("<I")
_BY_ID: Final = _SLOTS * _SLOT.size
_TEXT: Final = _BY_ID + (_PIECES + 1) * _PIECE.size


class Vocabulary:
    """The pieces of a file. Several threads can use it at once.

    Raises:
        EmbeddingError: The file cannot be read, or is another one.
    """

    def __init__(self, path: Path = VOCABULARY) -> None:
        try:
            with path.open("rb") as file:
                self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: it is empty
            raise EmbeddingError(f"{path} cannot be read: {error}; install memory-core again") from error
        if len(self._file) < _TEXT or _TEXT + self._start(_PIECES) != len(self._file):
            raise EmbeddingError(f"{path} is not whole; install memory-core again")

    def find(self, piece: bytes) -> int:
        """The id of a piece, given in UTF-8; `UNKNOWN` if there is no such piece."""
        wanted = slot = crc32(piece)
        while True:
            found, number = _SLOT.unpack_from(self._file, slot % _SLOTS * _SLOT.size)
            if not number or (found == wanted and self.piece(number) == piece):
                return int(number)
            slot += 1

    def piece(self, number: int) -> bytes:
        """The piece of an id."""
        return self._file[_TEXT + self._start(number) : _TEXT + self._start(number + 1)]

    def score(self, number: int) -> float:
        """The logarithm of the probability of a piece."""
        score: float = _PIECE.unpack_from(self._file, _BY_ID + number * _PIECE.size)[1]
        return score

    def __iter__(self) -> Iterator[bytes]:
        return map(self.piece, range(_PIECES))

    def _start(self, number: int) -> int:
        start: int = _OFFSET.unpack_from(self._file, _BY_ID + number * _PIECE.size)[0]
        return start


def table(pieces: Sequence[bytes], scores: Sequence[float]) -> bytes:
    """The content of such a file."""
    slots = [(0, 0)] * _SLOTS
    for number, piece in enumerate(pieces[MARKS:], MARKS):
        slot = crc32(piece)
        while slots[slot % _SLOTS][1]:
            slot += 1
        slots[slot % _SLOTS] = (crc32(piece), number)
    by_id, start = bytearray(), 0
    for piece, score in zip([*pieces, b""], [*scores, 0.0], strict=True):
        by_id += _PIECE.pack(start, score)
        start += len(piece)
    return b"".join([*(_SLOT.pack(*slot) for slot in slots), by_id, *pieces])
