"""A cache of vectors, so that the same text is embedded once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from memory_core.embedding.checks import check_documents
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint
from memory_core.protocols import Embedder, familiarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DOCUMENT: Final = b"d"
_QUERY: Final = b"q"


class CachedEmbedder:
    """Any embedder with a cache for its vectors: useful where embedding costs money or time.

    Documents and queries are cached separately, by a digest of the text; no text is kept. The least recently used
    vectors are evicted first. Nothing is written to disk.

    Args:
        inner: Embeds texts that are not cached; closed with this one.
        max_bytes: Maximum size of the cached vectors, without overhead (about 200 bytes each). The default is 10,922
            vectors of 1,536 dimensions.
    """

    def __init__(self, inner: Embedder, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        if max_bytes < 0:
            raise InvalidInputError(f"max_bytes must not be negative, but is {max_bytes}")
        self._inner = inner
        self._most = max_bytes // (4 * inner.fingerprint.dimensions)
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        """Locked briefly only: calls may come from several event loops."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The inner embedder's fingerprint, because the vectors are the same."""
        return self._inner.fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given; the inner embedder sees each unknown text once.

        Raises:
            EmbeddingError: The inner embedder failed; nothing of this call is cached.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        check_documents(texts)
        keys = [_digest(_DOCUMENT, text) for text in texts]
        rows = self._known(keys)
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if unknown:
            made = await self._inner.embed_documents(list(unknown.values()))
            if len(made) != len(unknown):
                raise EmbeddingError(f"{self.fingerprint.name} returned {len(made)} vectors for {len(unknown)} texts")
            rows |= {key: row.copy() for key, row in zip(unknown, made, strict=True)}
            self._remember({key: rows[key] for key in unknown})
        return np.stack([rows[key] for key in keys]) if keys else np.zeros((0, self.fingerprint.dimensions), np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a query; raises `EmbeddingError`."""
        key = _digest(_QUERY, text)
        vector = self._known([key]).get(key)
        if vector is None:
            vector = await self._inner.embed_query(text)
            self._remember({key: vector.copy()})
        return vector.copy()

    async def familiarity(self, text: str) -> float:
        """The inner embedder's familiarity; 1 if it does not report one."""
        return await familiarity(self._inner, text)

    async def close(self) -> None:
        """Clear the cache and close the inner embedder."""
        with self._lock:
            self._vectors.clear()
        await self._inner.close()

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        return found

    def _remember(self, vectors: dict[bytes, NDArray[np.float32]]) -> None:
        with self._lock:
            self._vectors.update(vectors)
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)


def _digest(kind: bytes, text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind).digest()
