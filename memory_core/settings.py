"""What a `Memory` can be given: refused where it cannot work, and the default embedder."""

from __future__ import annotations

import os
from typing import Final

from memory_core.checks import shown
from memory_core.errors import InvalidInputError
from memory_core.models import Quota
from memory_core.protocols import Embedder


class Default:
    """The type of `DEFAULT_EMBEDDER`."""

    def __repr__(self) -> str:
        return "DEFAULT_EMBEDDER"


DEFAULT_EMBEDDER: Final = Default()
"""all-MiniLM-L6-v2, quantised to int8 and run offline on the CPU."""


def insist_on_kinds(store: object, embedder: object) -> None:
    """Refuse here what would fail at the first use with a message about an attribute."""
    if not isinstance(store, str | os.PathLike) and not callable(getattr(store, "open", None)):
        raise InvalidInputError(f"a memory is kept at a path or in a Store, not in {shown(store)}")
    scheme, is_url, _ = store.partition("://") if isinstance(store, str) else ("", "", "")
    if is_url and scheme in {"qdrant", "qdrant+https"}:  # not quoted: it may hold a key
        raise InvalidInputError("that is the address of a server: Memory(QdrantStore.from_uri(address, embedder=...))")
    if is_url and scheme.replace("+", "").isalnum():
        raise InvalidInputError(
            f"a memory is kept at a path, and that is a URL ({scheme}://…); give the path of the file alone, such as "
            'Memory("memory.db"), or a Store'
        )
    if isinstance(embedder, type) or not (isinstance(embedder, Default | None) or hasattr(embedder, "embed_query")):
        raise InvalidInputError(f"embedder takes an embedder, such as MiniLmEmbedder(), or None, not {shown(embedder)}")


def insist_on_file(store: object, quota: object, *, read_only: bool) -> None:
    """Refuse what a store that was made elsewhere cannot be given any more, and what an empty one cannot use."""
    if not isinstance(quota, Quota | None):
        raise InvalidInputError(f"quota takes a Quota, such as Quota(records=10_000), or None, not {shown(quota)}")
    if not isinstance(store, str | os.PathLike) and (quota is not None or read_only):
        raise InvalidInputError(f"quota and read_only are for memories in a file, not for a {type(store).__name__}")
    if store == ":memory:" and read_only:
        raise InvalidInputError("':memory:' is empty when it is opened; read_only=True needs a file that is there")


def made(embedder: Embedder | Default) -> Embedder:
    """The embedder, which is made here if it is the default one."""
    if not isinstance(embedder, Default):
        return embedder
    from memory_core.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415  (numpy and onnxruntime)

    return MiniLmEmbedder()
