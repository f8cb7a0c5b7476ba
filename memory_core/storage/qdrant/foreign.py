"""The points of a collection that another program made, for importers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.collection import Points
from memory_core.storage.qdrant.connection import Connection
from memory_core.storage.qdrant.settings import Layout, Patience, Server


class ForeignPoint(NamedTuple):
    """A point without its vectors."""

    id: str
    payload: Mapping[str, Any]


async def foreign_points(server: Server | None, collection: str) -> AsyncIterator[list[ForeignPoint]]:
    """All points of a collection by id, a page at a time; runs on the core loop (`on_core`).

    Args:
        server: The server of the collection; missing settings come from the environment, as for `QdrantStore`.
        collection: Its name.

    Raises:
        StorageError: The server cannot be reached, or has no such collection.
    """
    connection = Connection((server or Server()).resolved(), Patience())
    await connection.open()
    try:
        async for page in Points(connection, collection, Layout()).pages(models.Filter()):
            yield [ForeignPoint(str(point.id), point.payload or {}) for point in page]
    finally:
        await connection.close()
