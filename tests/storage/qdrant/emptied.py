"""One pair of collections on a server for many tests, emptied before each: to create a pair takes seconds."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager

from qdrant_client import QdrantClient, models

from memory_core.storage.qdrant.schema import meta_name


@contextmanager
def client_of(url: str) -> Generator[QdrantClient]:
    """A client for what a store does not do, with the key of the environment."""
    client = QdrantClient(url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60, check_compatibility=False)
    yield client
    client.close()


def drop(url: str, *names: str) -> None:
    """Delete the collections of some stores, of which a server has open files and maps."""
    with client_of(url) as client:
        for name in names:
            client.delete_collection(name)
            client.delete_collection(meta_name(name))


@contextmanager
def emptied_collection(url: str) -> Generator[Callable[[], str]]:
    """A function that empties the collections and returns the name of their store, which is a new one then; they are
    dropped in the end."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    everything = models.FilterSelector(filter=models.Filter())
    with client_of(url) as client:

        def emptied() -> str:
            for one in filter(client.collection_exists, (meta_name(name), name)):
                client.delete(one, everything, wait=True, ordering=models.WriteOrdering.STRONG)
            return name

        yield emptied
    drop(url, name)
