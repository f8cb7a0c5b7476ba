"""The parts that every store writes for a record: the record, its features and its pieces, with their vectors.

A `Prepared` record is ready to be written in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memory_core.chunking import DEFAULT_CHUNKER, Chunker, pieces_of
from memory_core.concurrency.loop import off_loop
from memory_core.concurrency.threads import yield_now
from memory_core.errors import InvalidInputError
from memory_core.models import Fingerprint, MemoryRecord
from memory_core.retrieval.features import Features, features
from memory_core.values.long_texts import is_long


class Prepared(NamedTuple):
    """Everything that is written for one record. `vectors` is empty while they are pending."""

    record: MemoryRecord
    features: Features
    chunks: Sequence[tuple[int, int]]
    vectors: Sequence[bytes] = ()
    made_by: Fingerprint | None = None
    """The embedder of the vectors; not set for vectors that come from the file itself."""
    chunker: Chunker = DEFAULT_CHUNKER

    def again(self, record: MemoryRecord) -> Prepared:
        """Prepare another record, or a newer version of this one, in the same way; the same text keeps its vectors."""
        made = prepare(record, self.chunker)
        is_same = record.text == self.record.text
        return made._replace(vectors=self.vectors, made_by=self.made_by) if is_same else made

    def embedded(self, vectors: Sequence[bytes], made_by: Fingerprint) -> Prepared:
        """The same with its vectors."""
        return Prepared(self.record, self.features, self.chunks, vectors, made_by, self.chunker)


def prepare(record: MemoryRecord, chunker: Chunker = DEFAULT_CHUNKER) -> Prepared:
    """Analyse a record; its vectors are pending until `texts_to_embed` are embedded."""
    return Prepared(record, features(record), pieces_of(record.text, chunker), chunker=chunker)


async def prepare_all(prepare: Callable[[MemoryRecord], Prepared], records: Sequence[MemoryRecord]) -> list[Prepared]:
    """`prepare` for each record; long work runs in a thread."""

    def prepare_each() -> list[Prepared]:
        batch: list[Prepared] = []
        for record in records:
            batch.append(prepare(record))
            yield_now()
        return batch

    return await off_loop(is_long(*(record.text for record in records)), prepare_each)


def with_these_vectors(item: Prepared, vectors: Sequence[bytes], made_by: Fingerprint | None) -> Prepared:
    """The same with vectors that come from another store or a file, at unit length.

    They are pending instead, to be computed again, if they are not one for each piece of the text, or not vectors of
    this embedder.
    """
    if not vectors or made_by is None or len(vectors) != len(item.chunks):
        return item
    from memory_core.retrieval.unit_vectors import unit_halves  # noqa: PLC0415  (only stores that embed need it)

    try:
        return item.embedded(unit_halves(vectors, made_by.dimensions), made_by)
    except InvalidInputError:
        return item
