"""Addresses of Qdrant collections for the command line."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from uuid import uuid4

from tests.storage.qdrant.emptied import drop
from tests.storage.qdrant.loopback import Loopback


@contextmanager
def empty_collection() -> Generator[str]:
    """The address of an empty collection of `QDRANT_URL`'s server, or of the engine of one over HTTP."""
    server, collection = os.environ.get("QDRANT_URL"), f"empty-{uuid4().hex}"
    if server:
        scheme, _, place = server.partition("://")
        yield f"qdrant{'+https' if scheme == 'https' else ''}://{place}/{collection}"
        drop(server, collection)
    else:
        with Loopback() as loopback:
            yield f"qdrant://{loopback.url.partition('://')[2]}/{collection}"
