"""Changing the embedder of a store in use: every embedder has a named vector of its own.

The new vectors are added beside the old ones, a page at a time, each under the condition that its record is
unchanged. An interrupted run goes on where it stopped, because a filter finds the points that lack the new vector.
Searches use the old vectors until the description of the store names the new embedder; what was written meanwhile is
pending then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory_core.errors import FingerprintError, StorageError, UnsupportedError
from memory_core.progress import Progress, ProgressCallback
from memory_core.protocols import Embedder
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Stored, named_vectors, to_stored
from memory_core.storage.qdrant.collection import by
from memory_core.storage.qdrant.meta import vector_name
from memory_core.storage.qdrant.owners import Access
from memory_core.storage.qdrant.retry import MissingPointError, UnansweredError
from memory_core.storage.qdrant.schema import ensure_vector
from memory_core.storage.qdrant.where import all_of, any_of, ranged
from memory_core.storage.shared.prepared import embed_pieces

BATCH: Final = 32
PASSES: Final = 3
"""How often records written meanwhile are looked for: before the switch, and once more after it."""


async def change(access: Access, embedder: Embedder, progress: ProgressCallback | None) -> int:
    """Compute the vectors that are missing, then describe the store as the embedder's; returns how many there were.

    Raises as `QdrantStore.reembed`.
    """
    fingerprint, known = embedder.fingerprint, await access.meta.known()
    if known.fingerprint == fingerprint:
        return 0
    try:
        await ensure_vector(access.points.connection, access.points.name, fingerprint)
    except UnansweredError:
        raise
    except StorageError as error:
        raise UnsupportedError(f"the server cannot add vectors to a collection; upgrade it to 1.18: {error}") from error
    computed = 0
    for _ in range(PASSES):
        made = await compute(access, embedder, progress, computed)
        computed += made
        if not made:
            break
    if not await access.meta.change(known, replace(known, fingerprint=fingerprint)):
        raise FingerprintError("another process has changed the embedder of this store meanwhile; begin again")
    return computed


async def compute(access: Access, embedder: Embedder, progress: ProgressCallback | None, computed: int) -> int:
    """One pass over the points that lack a vector; returns how many vectors were computed, after `computed` others."""
    vector, made = vector_name(embedder.fingerprint), 0
    lacking = all_of(ranged("_seq", gte=0), but_not=[models.HasVectorCondition(has_vector=vector)])
    async for page in access.points.pages(lacking):
        items = [to_stored(record) for record in page]
        for some in by(BATCH, [item for item in items if item.spans]):
            vectors = await embed_pieces(embedder, [(item.record.text, item.spans) for item in some])
            await _store(access, vector, list(zip(some, vectors, strict=True)))
            made += sum(map(len, vectors))
            if progress is not None:
                progress(Progress(computed + made, computed + made))
    return made


async def _store(access: Access, vector: str, items: Sequence[tuple[Stored, Sequence[bytes]]]) -> None:
    """Add vectors to the points that are unchanged."""
    update = models.UpdateVectors(
        points=[models.PointVectors(id=item.point, vector=named_vectors(vector, rows)) for item, rows in items],
        update_filter=all_of(any_of("_write", [item.write for item, _ in items])),
    )
    try:
        await access.points.write(models.UpdateVectorsOperation(update_vectors=update))
    except MissingPointError:  # one of them was deleted meanwhile
        for one in items if len(items) > 1 else ():
            await _store(access, vector, [one])
