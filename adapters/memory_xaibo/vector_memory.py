"""A memory that combines any chunker, embedder and vector index, and keeps its texts in the core."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
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
from memory_core.adapting import check_count, every_record, new_id, operations
from memory_xaibo.embedding import UnsupportedModalityError
from memory_xaibo.memory import (
    PAGE,
    Attributes,
    CoreMemory,
    MemoryList,
    apart,
    checked_query,
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

logger = logging.getLogger(__name__)

Modality = Literal["image", "audio"]

MADE_OF: Final = "made_of"
"""Attribute of a vector: the digest of the whole text, or `image` or `audio`. A vector of an outdated text is ignored;
vectors of images and sounds remain valid when the text changes."""
REV: Final = "rev"
"""Attribute of a vector: the version of the text, counted from 1, so that outdated vectors can be deleted."""
SINGLE_USER: Final = "single-user"
"""The user of a memory whose configuration names none, as Xaibo's does not."""
PAGE_OF_VECTORS: Final = 16
"""The number of vectors that are requested first to find the ids of a text's vectors."""
MAX_ASKED: Final = 1_000_000
"""Most vectors that one search requests from an index: an index may return stale vectors without end."""


class VectorMemory(MemoryProtocol):
    """A memory whose texts are chunked, embedded and ranked by three other modules.

    The core stores the texts and is authoritative: vectors of deleted memories and outdated texts are skipped, and a
    search requests more vectors until it has `k` memories. An index therefore need not support deletion; if it has a
    method `delete_where(attributes)`, as `VectorIndex` has, or `delete_vectors(vector_ids)`, as many others have, it is
    called with what to delete. The ids are found by searching for the deleted text.

    Args:
        chunker: Cuts texts.
        embedder: Embeds chunks and queries, and images and sounds if it can.
        vector_index: Finds vectors. If the memory outlives this module but the index does not, `reindex` rebuilds it.
        config: `memory_file_path`, a SQLite file, and `user`; `app`, `agent` and `collection` as for `CoreMemory`.
            Without a user, as in Xaibo's own configuration, the file is for one person: all memories belong to the user
            `single-user`, and a warning in the log says so. Without a configuration or a handle the memory lives only
            as long as the module.
        memory: A handle instead of a path; the caller closes it.

    Raises:
        InvalidInputError: An option is unknown or missing.
        ScopeError: No user is named.
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
        """The core's handle on the memories. Changes made through it are seen here."""
        return self._kept.handle

    async def store_memory(
        self,
        text: str,
        attributes: Attributes | None = None,
        *,
        image: bytes | None = None,
        audio: bytes | None = None,
    ) -> str:
        """Store a memory on disk and in the index, or in neither, and return its id.

        What is known already is not stored again: the id is that of the memory with the same text and attributes. With
        an image or a sound, a memory is always new.

        Args:
            text: Text of the memory.
            attributes: Plain JSON.
            image: An image of the memory, which images and texts then find; only its vector is kept.
            audio: A sound of the memory, likewise.

        Raises:
            UnsupportedModalityError: The embedder cannot read an image or a sound.
            InvalidInputError: The text is blank or too long, or the attributes are not JSON.
        """
        memory_id, given = new_id(), attributes or {}
        draft = Draft(insist_on_text(text), id=memory_id, data=given)
        check_draft(draft)  # before anything is written to the index
        attached: dict[Modality, bytes | None] = {"image": image, "audio": audio}
        vectors = {kind: await self._embedded(kind, data) for kind, data in attached.items() if data is not None}
        if not vectors and (known := await operations.known_already(self.handle, draft)) is not None:
            await self._find_in_index(known)
            return known.id
        await self._add(memory_id, text, given, 1)
        for kind, vector in vectors.items():
            named = {"memory_id": memory_id, "chunk_id": f"{memory_id}_{kind}", MADE_OF: kind}
            await self._index.add_vectors([vector], [{**given, **named}])
        if vectors:
            return (await self.handle.add(draft)).id
        return (await operations.store(self.handle, draft)).record.id

    async def get_memory(self, memory_id: str) -> dict[str, Any] | None:
        """Return the memory with this id as `id`, `content` and `attributes`, or `None` for an unknown id."""
        return await self._kept.get_memory(memory_id)

    async def search_memory(self, query: str, k: int = 10) -> list[MemorySearchResult]:
        """Return the `k` memories with the nearest vectors, nearest first; a blank query finds nothing."""
        asked = checked_query(query, k)
        return await self._nearest(await self._embedder.text_to_embedding(asked), k) if asked else []

    async def search_by_image(self, image_data: bytes, k: int = 10) -> list[MemorySearchResult]:
        """Search by an image; raises `UnsupportedModalityError` if the embedder does not support images."""
        check_count("k", k, 1)
        return await self._nearest(await self._embedded("image", image_data), k)

    async def search_by_audio(self, audio_data: bytes, k: int = 10) -> list[MemorySearchResult]:
        """Search by a sound; raises `UnsupportedModalityError` if the embedder does not support audio."""
        check_count("k", k, 1)
        return await self._nearest(await self._embedded("audio", audio_data), k)

    async def list_memories(self, *, limit: int | None = None, cursor: str | None = None) -> MemoryList:
        """See `CoreMemory.list_memories`."""
        return await self._kept.list_memories(limit=limit, cursor=cursor)

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory permanently, and its vectors if the index supports it; return whether it existed."""
        old = await self.handle.get(memory_id)
        if old is None:
            return False
        attributes = {"memory_id": memory_id}
        ids = await self._ids(attributes, old.text)
        if was_there := await self._kept.delete_memory(memory_id):
            await self._drop(attributes, ids)
        return was_there

    async def update_memory(self, memory_id: str, text: str, attributes: Attributes | None = None) -> bool:
        """Replace the text of a memory, and its attributes if any are given; return whether the memory exists."""
        check_draft(Draft(insist_on_text(text), data=attributes or {}))
        patch = Patch(text=text) if attributes is None else Patch(text=text, data=attributes)
        while True:
            old = await self.handle.get(memory_id)
            if old is None:
                return False
            is_new, attributes_before = text != old.text, {"memory_id": memory_id, REV: old.rev}
            ids = await self._ids(attributes_before, old.text) if is_new else []
            if is_new:
                await self._add(memory_id, text, old.data if attributes is None else attributes, old.rev + 1)
            try:
                await self.handle.update(memory_id, patch, expected_version=old.version)
            except ConflictError:  # another writer was faster; the vectors just added belong to no current text
                continue
            except RecordNotFoundError:
                return False
            if is_new:
                await self._drop(attributes_before, ids)
            return True

    async def reindex(self) -> int:
        """Add all memories to the index again, for a new or an in-memory index; return their number.

        Vectors of images and sounds are not restored.
        """
        records = await every_record(self.handle)
        for record in records:
            await self._add(record.id, record.text, record.data, record.rev)
        return len(records)

    async def close(self) -> None:
        """See `CoreMemory.close`."""
        await self._kept.close()

    async def _add(self, memory_id: str, text: str, attributes: Config, rev: int) -> None:
        """Chunk, embed and index a text before its record is written. An interrupted write then leaves vectors that
        searches ignore, never a memory that no search finds."""
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

    async def _find_in_index(self, record: MemoryRecord) -> None:
        """Index a memory that somebody else has stored: the index may not know it."""
        chunk, *_ = await self._chunker.chunk(record.text)
        attributes = {"memory_id": record.id, MADE_OF: _digest(record.text)}
        if not await self._ids_near(await self._embedder.text_to_embedding(chunk), attributes):
            await self._add(record.id, record.text, record.data, record.rev)

    async def _embedded(self, kind: Modality, data: bytes) -> Vector:
        read = getattr(self._embedder, f"{kind}_to_embedding", None)
        if read is None:
            raise UnsupportedModalityError(f"the embedder has no {kind}_to_embedding; use an embedder that has it")
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
        """The different memories of these vectors, ranked by their best vector, without deleted memories and outdated
        texts."""
        ids = {str((one.attributes or {}).get("memory_id")) for one in found}
        records: dict[str, MemoryRecord] = {}
        for some in _parts(sorted(ids), PAGE):
            page = await self.handle.list(where=Where(ids=some), limit=PAGE)
            records |= {record.id: record for record in page.records}
        best: dict[str, float] = {}
        for one in sorted(found, key=lambda one: one.similarity_score, reverse=True):
            attributes = one.attributes or {}
            record = records.get(str(attributes.get("memory_id")))
            if record is not None and _is_of(attributes, record):
                best.setdefault(record.id, min(1.0, max(0.0, one.similarity_score)))
        groups = operations.same_sentences(best, lambda memory_id: records[memory_id], apart)
        return [_result(records[first], best[first]) for first, *_ in groups]

    async def _ids(self, attributes: Attributes, text: str) -> list[str]:
        """The ids of the vectors of a text that have these attributes, if the index needs them for a deletion.

        An index has no list, so a search finds them. It comes before the change, so that an embedder that fails
        prevents a deletion instead of leaving half of it.
        """
        if hasattr(self._index, "delete_where") or not hasattr(self._index, "delete_vectors"):
            return []
        ids = set[str]()
        for chunk in await self._chunker.chunk(text):
            ids |= await self._ids_near(await self._embedder.text_to_embedding(chunk), attributes)
        return sorted(ids)

    async def _drop(self, attributes: Attributes, ids: list[str]) -> None:
        """Delete vectors from an index that can."""
        delete_where: Callable[[Attributes], Awaitable[object]] | None = getattr(self._index, "delete_where", None)
        delete_ids: Callable[[list[str]], Awaitable[object]] | None = getattr(self._index, "delete_vectors", None)
        if delete_where is not None:
            await delete_where(attributes)
        elif delete_ids is not None and ids:
            await delete_ids(ids)

    async def _ids_near(self, vector: Vector, attributes: Attributes) -> set[str]:
        """The ids of the nearest vectors with these attributes: other memories may have the same text."""
        asked = PAGE_OF_VECTORS
        while True:
            found = await self._index.search(vector, asked)
            ids = {one.vector_id for one in found if attributes.items() <= (one.attributes or {}).items()}
            if ids or len(found) < asked or asked >= MAX_ASKED:
                return ids
            asked *= 2


def _handle(memory: BoundMemory | None, config: Config | None) -> BoundMemory:
    given = options(config, "VectorMemory", ("memory_file_path", *OWNER))
    if memory is None and not given:
        return Memory(":memory:", embedder=None).bind(user=SINGLE_USER)
    if memory is None and "memory_file_path" not in given:
        raise InvalidInputError("memory_file_path is required in config")
    path = given.get("memory_file_path")
    if memory is None and "user" not in given:
        logger.warning("VectorMemory has no user: all memories of %s belong to %r; add `user: ann`", path, SINGLE_USER)
        given["user"] = SINGLE_USER
    return bound(memory, None if path is None else Memory(Path(path)), given).own  # it has no place for a label


def _result(record: MemoryRecord, score: float) -> MemorySearchResult:
    return MemorySearchResult(
        memory_id=record.id,
        content=record.text,
        similarity_score=score,
        attributes=shown(record)["attributes"],
    )


def _is_of(attributes: Attributes, record: MemoryRecord) -> bool:
    """True if a vector belongs to the current text of the memory."""
    return attributes.get(MADE_OF) in (*get_args(Modality), _digest(record.text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _parts(ids: Sequence[str], size: int) -> list[Sequence[str]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]
