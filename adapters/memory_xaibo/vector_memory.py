"""A memory made of anybody's chunker, embedder and vector index, with its texts in the core."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    Where,
    check_draft,
)
from memory_core.adapting import new_id
from memory_xaibo.embedding import UnsupportedModalityError
from memory_xaibo.memory import (
    PAGE,
    Attributes,
    CoreMemory,
    MemoryList,
    checked_query,
    insist_on_k,
    insist_on_text,
    shown,
)
from memory_xaibo.modules import OWNER, Config, bound, injects, options
from memory_xaibo.protocols import (
    ChunkingProtocol,
    EmbeddingProtocol,
    MemoryProtocol,
    MemorySearchResult,
    VectorIndexProtocol,
    VectorSearchResult,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

Modality = Literal["image", "audio"]

MADE_OF: Final = "made_of"
"""Attribute of a vector: the digest of the whole text, or `image` or `audio`. One of another text than its memory has
now counts for nothing; those of images and sounds stay when the text changes."""
REV: Final = "rev"
"""Attribute of a vector: of which version of the text, counted from 1, so that those of an old one can be deleted."""
NOBODY_ELSES: Final = "this-module"
"""The user of a memory that ends with its module, which nothing else can reach."""
MAX_ASKED: Final = 1_000_000
"""Most vectors that a search asks an index for, which may return the same ones for ever."""


class VectorMemory(MemoryProtocol):
    """A memory whose texts are chunked, embedded and ranked by three other modules.

    The core holds the texts and is right about them: a vector whose memory was deleted or has another text by now is
    passed over, and a search goes on asking the index until it has `k` memories. So an index needs no way to delete
    anything; one that has a method `delete_vectors(attributes)`, such as `VectorIndex`, is told what to delete.

    Args:
        chunker: Cuts texts.
        embedder: Makes vectors of pieces and of questions; of images and sounds, if it can.
        vector_index: Finds vectors. It has to outlive this module if the memory does; else `reindex` fills it again.
        config: `memory_file_path`, a SQLite file, and `user`; `app`, `agent` and `collection` as for `CoreMemory`.
            Without a configuration or a handle the memory ends with the module.
        memory: A handle in the place of a path; it is the caller's to close.

    Raises:
        InvalidInputError: An option is unknown or missing.
        ScopeError: Nothing says whose memories they are.
    """

    @injects("chunker", "embedder", "vector_index")
    def __init__(
        self,
        chunker: ChunkingProtocol,
        embedder: EmbeddingProtocol,
        vector_index: VectorIndexProtocol,
        config: Config | None = None,
        *,
        memory: BoundMemory | None = None,
    ) -> None:
        self._chunker = chunker
        self._embedder = embedder
        self._index = vector_index
        self._kept = CoreMemory(memory=_handle(memory, config))

    @property
    def handle(self) -> BoundMemory:
        """The memories in the core. What others change there is as if it was changed here."""
        return self._kept.handle

    async def store_memory(
        self,
        text: str,
        attributes: Attributes | None = None,
        *,
        image: bytes | None = None,
        audio: bytes | None = None,
    ) -> str:
        """Store a memory and return its id; it is on disk and in the index then, or neither.

        Args:
            text: Of the memory.
            attributes: Plain JSON.
            image: What the memory shows, to be found by an image and by a text; only its vector is kept.
            audio: How it sounds, likewise.

        Raises:
            UnsupportedModalityError: The embedder cannot read an image or a sound.
            InvalidInputError: The text is blank or too long, or the attributes are not JSON.
        """
        memory_id, given = new_id(), attributes or {}
        draft = Draft(insist_on_text(text), id=memory_id, data=given)
        check_draft(draft)  # before anything is in the index
        attached: dict[Modality, bytes | None] = {"image": image, "audio": audio}
        vectors = {kind: await self._embedded(kind, data) for kind, data in attached.items() if data is not None}
        await self._add(memory_id, text, given, 1)
        for kind, vector in vectors.items():
            named = {"memory_id": memory_id, "chunk_id": f"{memory_id}_{kind}", MADE_OF: kind}
            await self._index.add_vectors([vector], [{**given, **named}])
        return (await self.handle.add(draft)).id

    async def get_memory(self, memory_id: str) -> dict[str, Any] | None:
        """The memory of this id, with `id`, `content` and `attributes`, or `None`."""
        return await self._kept.get_memory(memory_id)

    async def search_memory(self, query: str, k: int = 10) -> list[MemorySearchResult]:
        """The `k` memories of the nearest vectors, nearest first; a blank query finds nothing."""
        asked = checked_query(query, k)
        return await self._nearest(await self._embedder.text_to_embedding(asked), k) if asked else []

    async def search_by_image(self, image_data: bytes, k: int = 10) -> list[MemorySearchResult]:
        """The same for an image; raises `UnsupportedModalityError` if the embedder cannot read one."""
        insist_on_k(k)
        return await self._nearest(await self._embedded("image", image_data), k)

    async def search_by_audio(self, audio_data: bytes, k: int = 10) -> list[MemorySearchResult]:
        """The same for a sound; raises `UnsupportedModalityError` if the embedder cannot read one."""
        insist_on_k(k)
        return await self._nearest(await self._embedded("audio", audio_data), k)

    async def list_memories(self, *, limit: int = PAGE, cursor: str | None = None) -> MemoryList:
        """See `CoreMemory.list_memories`."""
        return await self._kept.list_memories(limit=limit, cursor=cursor)

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory for good; whether there was one. Its vectors are gone if the index can delete."""
        was_there = await self._kept.delete_memory(memory_id)
        if was_there:
            await self._drop({"memory_id": memory_id})
        return was_there

    async def update_memory(self, memory_id: str, text: str, attributes: Attributes | None = None) -> bool:
        """Give a memory another text, and other attributes if any are given; whether there is such a memory."""
        check_draft(Draft(insist_on_text(text), data=attributes or {}))
        patch = Patch(text=text) if attributes is None else Patch(text=text, data=attributes)
        while True:
            old = await self.handle.get(memory_id)
            if old is None:
                return False
            is_new = text != old.text
            if is_new:
                await self._add(memory_id, text, old.data if attributes is None else attributes, old.rev + 1)
            try:
                await self.handle.update(memory_id, patch, expected_version=old.version)
            except ConflictError:  # somebody else was quicker; what was added is of no text that the memory has
                continue
            except RecordNotFoundError:
                return False
            if is_new:
                await self._drop({"memory_id": memory_id, REV: old.rev})
            return True

    async def reindex(self) -> int:
        """Put all memories into the index again, for one that is new or ends with the process; returns how many.

        Vectors of images and sounds are not among them.
        """
        count, cursor = 0, None
        while True:
            page = await self.handle.list(order="oldest", limit=PAGE, cursor=cursor)
            for record in page.records:
                await self._add(record.id, record.text, record.data, record.rev)
            count, cursor = count + len(page.records), page.cursor
            if cursor is None:
                return count

    async def close(self) -> None:
        """See `CoreMemory.close`."""
        await self._kept.close()

    async def _add(self, memory_id: str, text: str, attributes: Config, rev: int) -> None:
        """Chunk, embed and index a text, before its record is written: an interrupted write leaves vectors that no
        search returns, never a memory that none finds."""
        chunks = await self._chunker.chunk(text)
        vectors = [await self._embedder.text_to_embedding(chunk) for chunk in chunks]
        named = [
            {
                **attributes,
                "memory_id": memory_id,
                "chunk_id": f"{memory_id}_chunk_{number}",
                "chunk_index": number,
                "chunk_text": chunk,
                MADE_OF: _digest(text),
                REV: rev,
            }
            for number, chunk in enumerate(chunks)
        ]
        await self._index.add_vectors(vectors, named)

    async def _embedded(self, kind: Modality, data: bytes) -> Vector:
        read = getattr(self._embedder, f"{kind}_to_embedding", None)
        if read is None:
            raise UnsupportedModalityError(f"the embedder has no {kind}_to_embedding; give the memory one that has it")
        vector: Vector = await read(data)
        return vector

    async def _nearest(self, vector: Vector, k: int) -> list[MemorySearchResult]:
        asked = 2 * k
        while True:
            found = await self._index.search(vector, asked)
            results = await self._alive(found)
            if len(results) >= k or len(found) < asked or asked >= MAX_ASKED:
                return results[:k]
            asked *= 2

    async def _alive(self, found: Sequence[VectorSearchResult]) -> list[MemorySearchResult]:
        """The memories of vectors, each at its best one, without those that are gone or say something else now."""
        ids = {str((one.attributes or {}).get("memory_id")) for one in found}
        records: dict[str, MemoryRecord] = {}
        for some in _parts(sorted(ids), PAGE):
            page = await self.handle.list(where=Where(ids=some), limit=PAGE)
            records |= {record.id: record for record in page.records}
        results: dict[str, MemorySearchResult] = {}
        for one in sorted(found, key=lambda one: one.similarity_score, reverse=True):
            attributes = one.attributes or {}
            record = records.get(str(attributes.get("memory_id")))
            if record is None or record.id in results or not _is_of(attributes, record):
                continue
            memory = shown(record)
            results[record.id] = MemorySearchResult(
                memory_id=record.id,
                content=record.text,
                similarity_score=min(1.0, max(0.0, one.similarity_score)),
                attributes=memory["attributes"],
            )
        return list(results.values())

    async def _drop(self, attributes: Attributes) -> None:
        delete = getattr(self._index, "delete_vectors", None)
        if delete is not None:
            await delete(attributes)


def _handle(memory: BoundMemory | None, config: Config | None) -> BoundMemory:
    given = options(config, "VectorMemory", ("memory_file_path", *OWNER))
    if memory is None and not given:
        return Memory(":memory:", embedder=None).bind(user=NOBODY_ELSES)
    if memory is None and "memory_file_path" not in given:
        raise InvalidInputError("memory_file_path is required in config")
    path = given.get("memory_file_path")
    return bound(memory, None if path is None else Memory(Path(path), embedder=None), given)


def _is_of(attributes: Attributes, record: MemoryRecord) -> bool:
    """Whether a vector is of the memory as it is now."""
    return attributes.get(MADE_OF) in (*get_args(Modality), _digest(record.text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _parts(ids: Sequence[str], size: int) -> list[Sequence[str]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]
