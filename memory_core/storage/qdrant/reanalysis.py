"""Reanalysis in the background of texts that an older version analysed; until then they are searched as they are.

Each point records the version of the analysis of its terms, so a filter finds the remaining work: after a kill it
continues where it stopped, several processes can share it, and texts that a newer version analysed are left unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from memory_core.errors import StorageError, reason_for_log
from memory_core.models import Scope
from memory_core.retrieval.features import ANALYSIS
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import WORDS, Stored, owner_key, searched_fields, sparse, to_stored
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.retry import MissingPointError
from memory_core.storage.qdrant.where import all_of, among, between, same

logger = logging.getLogger(__name__)

BATCH: Final = 64
"""Points per request; two operations each."""
PAUSE_SECONDS: Final = 0.05
"""Pause between two batches, for searches and writes."""


class Reanalysis:
    """The task that reanalyses. Lives on the core loop."""

    def __init__(self, records: Points) -> None:
        self._task = asyncio.create_task(_run(records), name="memory-core qdrant reanalysis")

    async def close(self) -> None:
        """Stop; the next process that opens the store continues."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def renew(records: Points) -> bool:
    """Analyse some points of older versions; returns whether there were any."""
    older = all_of(but_not=[between("_analysis", ANALYSIS, None)])
    (found,) = await records.query([models.QueryRequest(filter=older, limit=BATCH, with_payload=True)])
    items = sorted((to_stored(str(point.id), point.payload) for point in found), key=_owner)
    for owner, some in groupby(items, key=_owner):
        await _store(records.for_owner(owner), list(some))
    return bool(found)


async def _store(points: Points, items: Sequence[Stored]) -> None:
    """Store new terms, except for records changed meanwhile, which their writers have analysed."""
    operations: list[models.UpdateOperation] = []
    for item in items:
        fields, unchanged = searched_fields(item.record), same("_write", item.write)
        words = models.PointVectors(id=item.point, vector={WORDS: sparse(fields["_terms"])})
        # The version last: if this stops half-way, the point is processed again.
        operations.append(points.set_vectors([words], all_of(unchanged)))
        operations.append(points.set_fields(fields, all_of(among([item.point]), unchanged)))
    try:
        await points.write(*operations)
    except MissingPointError:
        logger.debug("a record was deleted while it was analysed; the others follow with the next batch")


def _owner(item: Stored) -> str:
    return owner_key(Scope(item.record.app, item.record.user))


async def _run(records: Points) -> None:
    try:
        while await renew(records):  # noqa: ASYNC110  (a pause for other work; it waits for no event)
            await asyncio.sleep(PAUSE_SECONDS)
    except StorageError as error:
        logger.warning("reanalysis of texts stopped until the store is opened again: %s", reason_for_log(error))
