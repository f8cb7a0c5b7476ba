"""Vectors for what is about to be written."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice

from memory_core.errors import EmbeddingError, reason_for_log
from memory_core.models import Fingerprint, Scope
from memory_core.progress import ProgressCallback
from memory_core.protocols import Embedder
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.prepared import Before, Prepared, embed_reporting, texts_to_embed
from memory_core.storage.sqlite.turns import NEW, is_placed, turns_before

logger = logging.getLogger(__name__)

Batch = tuple[Scope, Sequence[Prepared]]
"""New records of one owner, in the order in which they are written."""


async def with_vectors(
    embedder: Embedder,
    reader: Connection,
    batches: Sequence[Batch],
    key: int = NEW,
    *,
    progress: ProgressCallback | None = None,
) -> list[list[Prepared]]:
    """The batches with vectors, from one call of the embedder.

    If the embedder fails they come back as they were (vectors owed), since text is never lost.

    Args:
        key: Of the one record of all batches, if it is stored already and about to change.
        progress: Called with the records whose vectors are computed so far.
    """
    befores = await _befores(reader, batches, key)
    texts: list[str] = []
    ends: list[int] = []
    for (_, batch), before in zip(batches, befores, strict=True):
        for item in batch:
            if item.record.id in before:
                texts += texts_to_embed(item.record, item.chunks, before[item.record.id])
            ends.append(len(texts))
    if not texts:
        return [list(batch) for _, batch in batches]
    try:
        blobs = await embed_reporting(embedder, texts, ends, progress)
    except EmbeddingError as error:
        logger.warning("%d vectors are owed: %s", len(texts), reason_for_log(error))
        return [list(batch) for _, batch in batches]
    made_by, left = embedder.fingerprint, iter(blobs)
    return [
        [_embedded(item, before[item.record.id], left, made_by) if item.record.id in before else item for item in batch]
        for (_, batch), before in zip(batches, befores, strict=True)
    ]


def _embedded(item: Prepared, before: Before | None, blobs: Iterator[bytes], made_by: Fingerprint) -> Prepared:
    vectors = list(islice(blobs, len(item.chunks)))
    return item.embedded(vectors, before.turn if before else None, made_by)


async def _befores(reader: Connection, batches: Sequence[Batch], key: int) -> list[dict[str, Before | None]]:
    """For each batch the records that need vectors (by id) and the turn before each; in at most one hop."""
    if any(is_placed(item) for _, batch in batches for item in batch):
        return await reader.run(lambda db: [turns_before(db, scope, batch, key) for scope, batch in batches])
    return [dict.fromkeys((item.record.id for item in batch if item.chunks), None) for _, batch in batches]
