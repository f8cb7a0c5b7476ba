"""Addresses of Qdrant collections for the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from qdrant_client import QdrantClient

from tests.storage.qdrant.loopback import Loopback


@contextmanager
def empty_collection() -> Iterator[str]:
    """The address of an empty collection of `QDRANT_URL`'s server, or of the engine of one over HTTP."""
    server, collection = os.environ.get("QDRANT_URL"), f"empty-{uuid4().hex}"
    if server:
        yield f"qdrant://{server.partition('://')[2]}/{collection}"
        QdrantClient(server, check_compatibility=False).delete_collection(collection)
    else:
        with Loopback() as loopback:
            yield f"qdrant://{loopback.url.partition('://')[2]}/{collection}"
