"""A text that the embedder always refuses keeps nobody else's vectors from being computed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from memory_core import Memory, Patch
from memory_core.adapting import settled
from memory_core.storage.sqlite import pending_vectors
from tests.storage.embedders import RefusingEmbedder


@pytest.fixture
def embedder() -> RefusingEmbedder:
    return RefusingEmbedder()


@pytest.fixture
async def memory(embedder: RefusingEmbedder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Memory]:
    monkeypatch.setattr(pending_vectors, "BATCH", 4)
    async with Memory(":memory:", embedder=embedder) as opened:
        yield opened


async def test_other_texts_get_their_vectors(
    memory: Memory, embedder: RefusingEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    await ann.add_many([f"forbidden {n}" for n in range(9)], embed="later")
    for n in range(5):
        await bob.add(f"Bob's memory {n}", embed="later")
    await settled(bob, timeout=5)
    assert (await ann.stats()).vectors_pending == 9
    assert "forbidden" not in caplog.text
