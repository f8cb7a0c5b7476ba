"""Opens a memory by its address: the path of a file, or the address of a server, whose scheme names its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final

from memory_core.memory import Memory
from memory_core.protocols import Store
from memory_core.settings import DEFAULT_EMBEDDER, Default, made
from memory_core.supplied import Embedder, Reranker
from memory_core.values.limits import CACHE_BYTES

FORMS: Final = "a file, or qdrant://host/collection"
"""The forms of an address, for the help of commands."""


def _qdrant(address: str, embedder: Embedder | None) -> Store:
    from memory_core.storage.qdrant.store import QdrantStore  # noqa: PLC0415  (an extra)

    return QdrantStore.from_uri(address, embedder=embedder)


_STORES: Final[Mapping[str, Callable[[str, Embedder | None], Store]]] = {"qdrant": _qdrant, "qdrant+https": _qdrant}
"""By the scheme of its addresses, each store of a server."""


def is_server(address: str) -> bool:
    """True if the address names a server instead of a file."""
    scheme, is_url, _ = address.partition("://")
    return bool(is_url) and scheme in _STORES


def exists(address: str) -> bool:
    """True if there is such a file; a server is assumed to be there, and opening it says otherwise."""
    return is_server(address) or Path(address).expanduser().is_file()


def memory_at(
    address: str,
    embedder: Embedder | Default | None = DEFAULT_EMBEDDER,
    reranker: Reranker | None = None,
    cache_bytes: int = CACHE_BYTES,
    zone: tzinfo = UTC,
) -> Memory:
    """The memory at an address."""
    if not is_server(address):
        return Memory(address, embedder=embedder, reranker=reranker, cache_bytes=cache_bytes, zone=zone)
    store = _STORES[address.partition("://")[0]](address, None if embedder is None else made(embedder))
    return Memory(store, reranker=reranker, cache_bytes=cache_bytes, zone=zone)
