"""A chunker, an embedder and an index of somebody else, as simple as the protocols allow, and agents made of YAML."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xaibo import AgentConfig, ConfigOverrides, Xaibo
from xaibo.core.models.response import Response
from xaibo.primitives.modules.llm.mock import MockLLM

from memory_core.embedding.hashing import HashingEmbedder
from memory_xaibo import ChunkingProtocol, EmbeddingProtocol, VectorIndexProtocol, VectorSearchResult

Vector = NDArray[np.float32]


class Pieces(ChunkingProtocol):
    """Pieces of so many characters."""

    def __init__(self, size: int = 100, config: dict[str, Any] | None = None):
        self.size = size

    async def chunk(self, text: str) -> list[str]:
        return [text[start : start + self.size] for start in range(0, len(text), self.size)]


Pieces.__init__.__annotations__.clear()  # Xaibo would look for a module that is an `int`


class Digests(EmbeddingProtocol):
    """A text has the vector of its hash, an image and a sound that of how long they are."""

    def __init__(self, config: dict[str, Any] | None = None):
        self.dimensions = 384

    async def text_to_embedding(self, text: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(0, 1, self.dimensions).astype(np.float32)

    async def image_to_embedding(self, image_data: bytes) -> Vector:
        return await self.text_to_embedding(str(len(image_data)))

    async def audio_to_embedding(self, audio_data: bytes) -> Vector:
        return await self.text_to_embedding(str(-len(audio_data)))


class Unreachable(Digests):
    """An embedder behind a network that is down."""

    async def text_to_embedding(self, text: str) -> Vector:
        raise ConnectionError("no route to host")


class Spellings(Digests):
    """Texts are near if they are spelled alike; vectors are not of unit length."""

    async def text_to_embedding(self, text: str) -> Vector:
        vector: Vector = 3 * (await HashingEmbedder().embed_documents([text]))[0]
        return vector


class Growing(VectorIndexProtocol):
    """An index that only grows, scores from -1 to 1, and gives the attributes out as they came in."""

    def __init__(self, config: dict[str, Any] | None = None):
        self.vectors: list[Vector] = []
        self.attributes: list[dict[str, Any]] = []
        self.asked: list[int] = []

    async def add_vectors(self, vectors: Sequence[Vector], attributes: Sequence[dict[str, Any]] | None = None) -> None:
        self.vectors.extend(vectors)
        self.attributes.extend(attributes or [{} for _ in vectors])

    async def search(self, query_vector: Vector, k: int = 10) -> list[VectorSearchResult]:
        self.asked.append(k)
        if not self.vectors:
            return []
        rows = np.stack(self.vectors)
        cosines = rows @ query_vector / np.linalg.norm(rows, axis=1) / np.linalg.norm(query_vector)
        best = np.argsort(-cosines)[:k]
        return [
            VectorSearchResult(vector_id=str(n), similarity_score=float(cosines[n]), attributes=self.attributes[n])
            for n in best
        ]


class Deleting(Growing):
    """An index that deletes vectors by their ids."""

    async def delete_vectors(self, vector_ids: list[str]) -> None:
        for number in sorted(map(int, vector_ids), reverse=True):
            del self.vectors[number], self.attributes[number]


HELPER = """\
id: helper
modules:
  - module: xaibo.primitives.modules.memory.MemoryToolProvider
    id: tools
  - module: xaibo.primitives.modules.conversation.SimpleConversation
    id: history
  - module: xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator
    id: orchestrator
"""


def calling(*calls: tuple[str, dict[str, Any]]) -> MockLLM:
    """A model that calls tools, one after the other, and is done."""
    responses: list[dict[str, Any]] = [
        {"content": "", "tool_calls": [{"id": str(n), "name": name, "arguments": arguments}]}
        for n, (name, arguments) in enumerate(calls)
    ]
    return MockLLM({"responses": [*responses, {"content": "Done."}]})


async def told(modules: str, *calls: tuple[str, dict[str, Any]], xaibo: Xaibo | None = None) -> list[Any]:
    """The answers of the tools of an agent to a model that calls them; all of the agent but its model is made of
    YAML."""
    yaml = HELPER + modules
    running = xaibo or Xaibo()
    if "helper" not in running.list_agents():
        stand_in = "  - {module: xaibo.primitives.modules.llm.MockLLM, id: llm, config: {responses: [{content: x}]}}\n"
        running.register_agent(AgentConfig.from_yaml(yaml + stand_in))
    agent = running.get_agent_with("helper", ConfigOverrides(instances={"llm": calling(*calls)}))
    response: Response = await agent.handle_text("Use your tools")
    assert response.text == "Done."
    return [event for event in response.events if event.type == "tool_result"]
