"""Opening a memory by its address: the path of a file, or `qdrant://[key@]host[:port][/collection]`."""

from __future__ import annotations

from pathlib import Path

from memory_core.errors import StoreUnavailableError
from memory_core.memory import Memory


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


def memory_at(address: str, *, words_only: bool = False) -> Memory:
    """The memory at an address, with the default embedder or, with `words_only`, without one."""
    if not is_server(address):
        return Memory(address, embedder=None) if words_only else Memory(address)
    from memory_core.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415  (numpy and onnxruntime)
    from memory_core.storage.qdrant.store import QdrantStore  # noqa: PLC0415  (an extra)

    return Memory(QdrantStore.from_uri(address, embedder=None if words_only else MiniLmEmbedder()))
