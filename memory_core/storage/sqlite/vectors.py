"""Vectors for what is about to be written."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from itertools import islice

from memory_core.errors import EmbeddingError, reason_for_log
from memory_core.models import Scope
from memory_core.progress import ProgressCallback
from memory_core.protocols import Embedder
from memory_core.storage.shared.prepared import Prepared, embed_reporting, texts_to_embed
from memory_core.storage.sqlite.connection import Connection
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.writing import by_sources

logger = logging.getLogger(__name__)

Batch = tuple[Scope, Sequence[Prepared]]
"""New records of one owner, in the order in which they are written."""


async def with_vectors(
    embedder: Embedder, reader: Connection, batches: Sequence[Batch], *, progress: ProgressCallback | None = None
) -> list[list[Prepared]]:
    """The batches with vectors, from one call of the embedder.

    Records without text have none, and those that are stored already, word for word, keep theirs. If the embedder
    fails they come back as they were (vectors owed), since text is never lost.

    Args:
        progress: Called with the records whose vectors are computed so far.
    """
    kept = await _stored(reader, batches)
    wanted: list[Prepared] = []
    texts: list[str] = []
    ends: list[int] = []
    for item in (item for _, batch in batches for item in batch):
        if item.chunks and item.record.id not in kept:
            wanted.append(item)
            texts += texts_to_embed(item.record.text, item.chunks)
        ends.append(len(texts))
    if not texts:
        return [list(batch) for _, batch in batches]
    try:
        blobs = iter(await embed_reporting(embedder, texts, ends, progress))
    except EmbeddingError as error:
        logger.warning("%d vectors are owed: %s", len(texts), reason_for_log(error))
        return [list(batch) for _, batch in batches]
    made_by = embedder.fingerprint
    made = {item.record.id: item.embedded(list(islice(blobs, len(item.chunks))), made_by) for item in wanted}
    return [[made.get(item.record.id, item) for item in batch] for _, batch in batches]


async def _stored(reader: Connection, batches: Sequence[Batch]) -> set[str]:
    """The ids of records whose source keys are stored with the same text; in at most one hop."""
    if any(item.record.source_key is not None for _, batch in batches for item in batch):
        found = await reader.run(lambda db: [_stored_of(db, scope, batch) for scope, batch in batches])
        return {id for some in found for id in some}  # noqa: A001
    return set()


def _stored_of(db: sqlite3.Connection, scope: Scope, batch: Sequence[Prepared]) -> set[str]:
    owner = find(db, scope)
    sources = [item.record.source_key for item in batch if item.record.source_key is not None]
    known = by_sources(db, scope, owner.id, sources) if owner is not None and sources else {}
    texts = {source: record.text for source, (_, record) in known.items()}
    return {item.record.id for item in batch if texts.get(item.record.source_key or "") == item.record.text}
