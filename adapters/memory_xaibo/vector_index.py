"""A vector index for Xaibo's modules in a core file: exact, durable, shared by processes, and with deletion."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from memory_core import BoundMemory, Draft, EmbeddingError, Fingerprint, InvalidInputError, Memory, Where
from memory_core.adapting import check_path, new_id
from memory_xaibo.modules import Config, injects, options
from memory_xaibo.protocols import VectorIndexProtocol, VectorSearchResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

USER: Final = "vectors"
"""Owner of the memory that stores the vectors and nothing else."""
NAME: Final = "vec_"
"""Prefix of vector ids."""
MOST_FOUND: Final = 10_000
"""Most vectors of one search."""


class VectorIndex(VectorIndexProtocol):
    """An index of vectors with attributes; searches are exact and rank by cosine.

    Args:
        config: `storage_dir`, the folder for the file, created with the first vectors; without it, the vectors live
            only as long as the module.

    Raises:
        InvalidInputError: The configuration has an unknown option.
    """

    @injects()
    def __init__(self, config: Config | None = None) -> None:
        folder = options(config, "VectorIndex", ("storage_dir",)).get("storage_dir")
        if folder is not None:
            check_path("storage_dir", folder)
        self._folder = None if folder is None else Path(folder)
        self._dimensions = 0
        self._handle: BoundMemory | None = None

    async def add_vectors(self, vectors: Sequence[Vector], attributes: Sequence[dict[str, Any]] | None = None) -> None:
        """Add vectors, each with its attributes (plain JSON): all of them or, on an error, none.

        Raises:
            InvalidInputError: A vector is zero or has another length than the rest, the numbers of attributes and
                vectors differ, or some attributes are not JSON.
        """
        described: list[dict[str, Any]] = [{} for _ in vectors] if attributes is None else list(attributes)
        if len(vectors) != len(described):
            raise InvalidInputError(
                f"Number of vectors and attributes must match, but there are {len(vectors)} and {len(described)}"
            )
        if not described:
            return
        if self._folder is not None:
            await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        handle = self._opened(len(vectors[0]))
        named = {NAME + new_id(): self._unit(vector) for vector in vectors}
        drafts = [Draft(name, id=name, data=data) for name, data in zip(named, described, strict=True)]
        _given.update(named)
        try:
            await handle.add_many(drafts)
        finally:
            for name in named:
                del _given[name]

    async def search(self, query_vector: Vector, k: int = 10) -> list[VectorSearchResult]:
        """Return the `k` nearest vectors, nearest first, with scores from 0 to 1; at most 10,000."""
        handle = self._opened()
        if handle is None:
            return []
        vector: list[float] = self._unit(query_vector).tolist()
        hits = await handle.search_by_vector(vector, limit=min(k, MOST_FOUND), floor=False)
        return [
            VectorSearchResult(
                vector_id=hit.record.id, similarity_score=hit.similarity or 0.0, attributes=dict(hit.record.data)
            )
            for hit in hits
        ]

    async def delete_where(self, attributes: dict[str, Any]) -> int:
        """Delete the vectors that have all of these attributes (at least one); return their number."""
        handle = self._opened()
        if handle is None:
            return 0
        if not attributes:
            raise InvalidInputError("name at least one attribute of the vectors to delete")
        return (await handle.delete_where(Where(data=attributes), forget=False)).records

    async def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            await self._handle.memory.close()

    @overload
    def _opened(self, dimensions: int) -> BoundMemory: ...

    @overload
    def _opened(self) -> BoundMemory | None: ...

    def _opened(self, dimensions: int | None = None) -> BoundMemory | None:
        """The memory of the vectors, created for vectors of this length; `None` if it is empty and none are added."""
        if self._handle is None:
            self._dimensions = self._known_dimensions() or dimensions or 0
            if self._dimensions:
                file = ":memory:" if self._folder is None else self._folder / f"vectors-{self._dimensions}.db"
                memory = Memory(file, embedder=_GivenVectors(self._dimensions))
                self._handle = memory.bind(user=USER)
        return self._handle

    def _known_dimensions(self) -> int:
        """The dimensions in the file's name, which must be known before the file is opened."""
        files = [] if self._folder is None else sorted(self._folder.glob("vectors-*.db"))
        return int(files[0].stem.removeprefix("vectors-")) if files else 0

    def _unit(self, vector: Vector) -> Vector:
        """The vector scaled to length 1.

        Raises:
            InvalidInputError: It has another length than the vectors in the index, or no direction.
        """
        import numpy as np  # noqa: PLC0415  (not at import)

        row = np.asarray(vector, np.float64)
        if row.shape != (self._dimensions,):
            raise InvalidInputError(
                f"Vector dimension mismatch. Expected {self._dimensions}, got {row.shape[-1] if row.ndim else 0}"
            )
        length = float(np.linalg.norm(row))
        if not 0 < length < float("inf"):
            raise InvalidInputError("the vector is zero, infinite or NaN; pass one that has a direction")
        unit: Vector = (row / length).astype(np.float32)
        return unit


_given: dict[str, Vector] = {}
"""Vectors that are being written, by the text of their records; shared by all indexes of a process."""


class _GivenVectors:
    """The embedder of this memory. The texts are names, by which it finds the vectors that are being written."""

    def __init__(self, dimensions: int) -> None:
        self._fingerprint = Fingerprint("given", "1", dimensions)

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        import numpy as np  # noqa: PLC0415

        return np.stack([self._vector(text) for text in texts])

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = (await self.embed_documents([text]))[0]
        return vector

    async def close(self) -> None:
        """Do nothing; there are no resources to release."""

    def _vector(self, text: str) -> Vector:
        """The vector being written, or a generated one for the sentences with which the core measures an embedder."""
        import numpy as np  # noqa: PLC0415

        if text in _given:
            return _given[text]
        if text.startswith(NAME):
            raise EmbeddingError(f"the vector {text!r} was given by the caller and cannot be computed; add it again")
        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        vector = np.random.default_rng(seed).standard_normal(self._fingerprint.dimensions)
        unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit
