"""A collection that RadBot made becomes memories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from qdrant_client import models

from memory_adk.radbot import importing
from memory_core import Memory, StorageError, run_sync
from memory_core.formats import Found, Refused
from memory_core.storage.qdrant.settings import Patience, Server
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.loopback import Loopback

POINTS: list[dict[str, Any]] = [
    {"text": "Ann prefers tea", "user_id": "ann", "timestamp": "2025-03-04T05:06:07", "memory_type": "important_fact"},
    {
        "text": "We designed the boat",
        "user_id": "ann",
        "timestamp": "2025-03-05T05:06:07+00:00",
        "memory_type": "memories",
        "tags": ["boat"],
        "session_id": "s1",
        "agent_name": "radbot",
    },
    {"text": "Bob sails", "user_id": "bob", "timestamp": 1_741_000_000, "memory_type": "conversation_turn"},
    {"text": "Where do I sail?", "user_id": "cyd", "timestamp": 1_741_000_000, "memory_type": "user_query"},
    {"text": "whose?", "timestamp": "2025-03-04T05:06:07", "memory_type": "memories"},
    {"text": "when?", "user_id": "ann", "timestamp": "yesterday", "memory_type": "memories"},
    {"user_id": "ann"},
]


@pytest.fixture
def radbot(loopback: Loopback) -> Server:
    def make() -> None:
        client = loopback.engine.client
        client.create_collection(
            "agent_memory", vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
        )
        points: list[Any] = [
            models.PointStruct(id=n, vector=[1.0, 0.0, 0.0, float(n)], payload=payload)
            for n, payload in enumerate(POINTS)
        ]
        client.upsert("agent_memory", points)

    loopback.on_loop(make)
    return Server(url=loopback.url)


def test_a_collection_of_radbot_becomes_memories_of_its_users(radbot: Server) -> None:
    assert radbot.url is not None
    items = run_sync(read, radbot.url)
    assert {item.place: item.reason for item in items if isinstance(item, Refused)} == {
        "point 4": "it has no user_id",
        "point 5": "its timestamp 'yesterday' is not an ISO time",
        "point 6": "it has no text",
    }
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        for _ in range(2):
            for item in items:
                if isinstance(item, Found):
                    run_sync(memory.bind(app="bot", user=item.user).add_many, [item.draft])
        design, fact = run_sync(memory.bind(app="bot", user="ann").list).records
        assert (fact.text, fact.kind, fact.tier) == ("Ann prefers tea", "important_fact", "high")
        assert fact.occurred_at == datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
        assert (design.tags, design.session, design.data) == (("boat",), "s1", {"agent_name": "radbot"})
        (turn,) = run_sync(memory.bind(app="bot", user="bob").list).records
        (question,) = run_sync(memory.bind(app="bot", user="cyd").list).records
        assert turn.occurred_at.year == 2025
        assert (fact.role, turn.role, question.role) == (None, None, "user")


def test_a_collection_that_is_not_there_is_an_error(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_core.storage.qdrant.points.Patience", lambda: Patience(attempts=1))
    with pytest.raises(StorageError):
        run_sync(read, f"{loopback.url}/nowhere")


async def read(address: str) -> list[Found | Refused]:
    return [item async for item in importing.radbot(address)]
