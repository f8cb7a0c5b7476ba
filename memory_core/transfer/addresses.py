"""Opening a memory by its address: the path of a file, or `qdrant://[key@]host[:port][/collection]`."""

from __future__ import annotations

from pathlib import Path

from memory_core.errors import StoreUnavailableError
from memory_core.memory import Memory
from memory_core.protocols import Embedder
from memory_core.settings import DEFAULT_EMBEDDER, Default, made


def is_server(address: str) -> bool:
    """Whether the address names a Qdrant server instead of a file."""
    return address.startswith(("qdrant://", "qdrant+https://"))


def exists(address: str) -> bool:
    """Whether there is such a file; a server is assumed to be there, and opening it says otherwise."""
    return is_server(address) or Path(address).expanduser().is_file()


def insist_on_existing(address: str) -> None:
    """Refuse a file that does not exist, because opening it would create a file for a misspelt name.

    Raises:
        StoreUnavailableError: There is no such file.
    """
    if not exists(address):
        raise StoreUnavailableError(f"there is no memory file {address!r}; nothing was created")


def memory_at(address: str, embedder: Embedder | Default | None = DEFAULT_EMBEDDER) -> Memory:
    """The memory at an address."""
    if not is_server(address):
        return Memory(address, embedder=embedder)
    from memory_core.storage.qdrant.store import QdrantStore  # noqa: PLC0415  (an extra)

    return Memory(QdrantStore.from_uri(address, embedder=None if embedder is None else made(embedder)))
