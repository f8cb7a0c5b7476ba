"""The statements of the document about the protocols, example by example, with the classes of this package."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from foreign_parts import Digests, Growing, Pieces
from xaibo.core.protocols import memory as xaibos

import memory_xaibo
from memory_core import BoundMemory
from memory_xaibo import (
    ChunkingProtocol,
    CoreMemory,
    EmbeddingProtocol,
    MemoryProtocol,
    MemorySearchResult,
    SentenceTransformerEmbedder,
    TextEmbedder,
    TokenChunker,
    VectorIndex,
    VectorIndexProtocol,
    VectorMemory,
    VectorSearchResult,
)

METHODS: dict[type, set[str]] = {
    ChunkingProtocol: {"chunk"},
    EmbeddingProtocol: {"text_to_embedding", "image_to_embedding", "audio_to_embedding"},
    VectorIndexProtocol: {"add_vectors", "search"},
    MemoryProtocol: {
        *("store_memory", "get_memory", "search_memory", "list_memories", "delete_memory", "update_memory"),
    },
}


def test_the_protocols_and_results_are_xaibos_own() -> None:
    for name in ("ChunkingProtocol", "EmbeddingProtocol", "VectorIndexProtocol", "MemoryProtocol"):
        assert getattr(memory_xaibo, name) is getattr(xaibos, name)
    assert MemorySearchResult is xaibos.MemorySearchResult
    assert MemorySearchResult(memory_id="m", content="c", similarity_score=0.5).attributes is None
    assert VectorSearchResult(vector_id="v", similarity_score=0.5).attributes is None


@pytest.mark.parametrize(
    ("part", "protocol"),
    [
        (TokenChunker, ChunkingProtocol),
        (TextEmbedder, EmbeddingProtocol),
        (SentenceTransformerEmbedder, EmbeddingProtocol),
        (VectorIndex, VectorIndexProtocol),
        (CoreMemory, MemoryProtocol),
        (VectorMemory, MemoryProtocol),
    ],
)
def test_every_class_has_the_methods_of_its_protocol_with_their_parameters(part: type, protocol: type) -> None:
    assert protocol in part.__mro__
    for name in METHODS[protocol]:
        mine, documented = (inspect.signature(getattr(one, name)).parameters for one in (part, protocol))
        assert inspect.iscoroutinefunction(getattr(part, name))
        assert list(mine)[: len(documented)] == list(documented)
        for parameter in documented.values():
            assert mine[parameter.name].default == parameter.default
        extra = list(mine.values())[len(documented) :]
        assert all(one.kind is one.KEYWORD_ONLY and one.default is not one.empty for one in extra)


def test_a_memory_without_parts_is_one_by_the_protocol() -> None:
    parts: list[object] = [None, None, None]
    assert isinstance(VectorMemory(*parts), MemoryProtocol)  # type: ignore[arg-type]  # the document does it
    assert isinstance(Pieces(), ChunkingProtocol)
    assert isinstance(Digests(), EmbeddingProtocol)
    assert isinstance(Growing(), VectorIndexProtocol)


async def test_the_examples_of_chunking_and_embedding() -> None:
    chunker = TokenChunker(window_size=512, window_overlap=50)
    assert await chunker.chunk("Long document text here...") == ["Long document text here..."]
    embedder = SentenceTransformerEmbedder(model_name="all-MiniLM-L6-v2")
    embedding = await embedder.text_to_embedding("Hello world")
    assert embedding.shape == (384,)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-4)


async def test_the_examples_of_the_index() -> None:
    embedder, index = SentenceTransformerEmbedder(), VectorIndex()
    pages = [("document1.txt", 1), ("document1.txt", 2), ("document2.txt", 1)]
    texts = ["How to brew tea", "How to sail a boat", "Prices of berths"]
    vectors = [await embedder.text_to_embedding(text) for text in texts]
    await index.add_vectors(vectors, [{"source": source, "page": page} for source, page in pages])
    results = await index.search(await embedder.text_to_embedding("search query about sailing"), k=5)
    assert len(results) == 3
    assert isinstance(results[0], VectorSearchResult)
    assert results[0].attributes == {"source": "document1.txt", "page": 2}
    assert len({result.vector_id for result in results}) == 3
    scores = [result.similarity_score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_the_examples_of_the_memory(kind_of_memory: MemoryProtocol) -> None:
    memory = kind_of_memory
    attributes = {"date": "2024-01-15", "type": "meeting", "participants": ["Alice", "Bob"]}
    memory_id = await memory.store_memory("Important meeting notes from today", attributes=attributes)
    got = await memory.get_memory(memory_id)
    assert got == {"id": memory_id, "content": "Important meeting notes from today", "attributes": attributes}
    assert await memory.get_memory("mem_123") is None
    (result,) = await memory.search_memory("Important meeting notes from today", k=5)
    assert isinstance(result, MemorySearchResult)
    assert (result.memory_id, result.content, result.attributes) == (memory_id, got["content"], attributes)
    assert result.similarity_score == pytest.approx(1, abs=0.01)
    assert await memory.list_memories() == [got]
    status = {"status": "updated", "action_items": 3}
    assert await memory.update_memory(memory_id, "Updated meeting notes with action items", attributes=status)
    assert not await memory.update_memory("mem_123", "Updated meeting notes")
    got = await memory.get_memory(memory_id)
    assert got == {"id": memory_id, "content": "Updated meeting notes with action items", "attributes": status}
    assert await memory.update_memory(memory_id, "Meeting notes, final")
    got = await memory.get_memory(memory_id)
    assert got == {"id": memory_id, "content": "Meeting notes, final", "attributes": status}
    assert not await memory.delete_memory("mem_123")
    assert await memory.delete_memory(memory_id)
    assert not await memory.delete_memory(memory_id)
    assert await memory.list_memories() == []
    assert await memory.search_memory("meeting notes") == []


async def test_chunks_have_the_documented_attributes_and_the_memorys_own() -> None:
    index = Growing()
    memory = VectorMemory(Pieces(10), Digests(), index)
    memory_id = await memory.store_memory("The tide turns at noon", {"source": "Ann", "chunk_text": "a lie"})
    assert [attributes["chunk_text"] for attributes in index.attributes] == ["The tide t", "urns at no", "on"]
    for number, attributes in enumerate(index.attributes):
        documented = {"memory_id": memory_id, "chunk_id": f"{memory_id}_chunk_{number}", "chunk_index": number}
        assert attributes.items() >= {**documented, "source": "Ann"}.items()


@pytest.fixture(params=["core", "our parts", "their parts"])
def kind_of_memory(request: pytest.FixtureRequest, ann: BoundMemory, tmp_path: Path) -> MemoryProtocol:
    if request.param == "core":
        return CoreMemory(memory=ann)
    if request.param == "our parts":
        index = VectorIndex({"storage_dir": str(tmp_path)})
        return VectorMemory(TokenChunker(), SentenceTransformerEmbedder(), index, memory=ann)
    return VectorMemory(Pieces(), Digests(), Growing(), memory=ann)
