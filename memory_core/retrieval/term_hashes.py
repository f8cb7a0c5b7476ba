"""Terms as hashes of a fixed length, the form in which an index holds them."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from typing import Final

from memory_core.concurrency.threads import yield_now

TERM_BYTES: Final = 5
"""A term is stored as this many bytes of its hash, see `postings.py`."""
TOGETHER: Final = 2_000
"""Terms packed in one step, which takes a few milliseconds."""


class _Hashes(dict[str, bytes]):
    """Hashes by term, computed when first needed, since terms recur."""

    _CAPACITY = 65_536

    def __missing__(self, term: str) -> bytes:
        digest = blake2b(term.encode(), digest_size=TERM_BYTES).digest()
        if len(self) < self._CAPACITY:
            self[term] = digest
        return digest


HASH_OF: Final = _Hashes()


def pack(terms: Iterable[str]) -> bytes:
    """Pack analysed terms for `Postings`; order and repetitions are kept."""
    left, parts = iter(terms), list[bytes]()
    while part := b"".join(map(HASH_OF.__getitem__, islice(left, TOGETHER))):
        parts.append(part)
        if len(part) == TOGETHER * TERM_BYTES:
            yield_now()
    return b"".join(parts)
