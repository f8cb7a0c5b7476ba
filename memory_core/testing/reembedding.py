"""The contract of stores that can change their embedder while in use."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pytest

from memory_core import BoundMemory, Draft, EmbeddingError, Memory, Patch, run_sync
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.testing.base import Contract, add

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNT: Final = 40


class FailingEmbedder(HashingEmbedder):
    """Fails on the text that names a kettle."""

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("kettle" in text for text in texts):
            raise EmbeddingError("no kettles here")
        return await super().embed_documents(texts)


class ReembeddingContract(Contract):
    """Subclass it for a store that has `Maintained.reembed` and whose memories have an embedder."""

    @pytest.fixture
    def talk(self, memory: Memory, ann: BoundMemory) -> BoundMemory:
        add(memory.bind(app="contract", user="bob"), "Bob likes cake")
        run_sync(ann.add_many, [Draft(f"turn {n} about topic{n}", session=f"s{n % 3}") for n in range(COUNT)])
        return ann

    def test_a_memory_goes_on_with_the_new_embedder(self, memory: Memory, talk: BoundMemory) -> None:
        assert run_sync(memory.reembed, HashingEmbedder(dimensions=96)) == COUNT + 1
        assert _nearest(talk, "turn 7 about topic7") == "turn 7 about topic7"
        assert _nearest(memory.bind(app="contract", user="bob"), "Bob likes cake") == "Bob likes cake"
        add(talk, "Ann drinks jasmine tea")
        assert _nearest(talk, "Ann drinks jasmine tea") == "Ann drinks jasmine tea"
        assert run_sync(talk.stats).vectors_pending == 0
        assert run_sync(memory.reembed, HashingEmbedder(dimensions=96)) == 0

    def test_no_search_fails_and_no_write_is_lost_meanwhile(self, memory: Memory, talk: BoundMemory) -> None:
        async def use_it() -> int:
            work = asyncio.create_task(memory.reembed(HashingEmbedder(dimensions=96)))
            turns = 0
            while not work.done():
                for mode in ("vector", "hybrid"):
                    assert await talk.search(f"turn {turns % COUNT}", mode=mode, floor=False)
                await talk.add(f"said meanwhile {turns}")
                turns += 1
            await work
            return turns

        turns = asyncio.run(use_it())
        assert run_sync(talk.stats).records == COUNT + turns
        _wait_for_vectors(talk)  # a text that was embedded when the embedder changed is embedded again
        assert _nearest(talk, f"said meanwhile {turns - 1}").startswith("said meanwhile")

    def test_an_embedder_that_fails_leaves_the_old_one_in_its_place(self, memory: Memory, talk: BoundMemory) -> None:
        (kettle,) = add(talk, "the copper kettle")
        with pytest.raises(EmbeddingError, match="no kettles here"):
            run_sync(memory.reembed, FailingEmbedder(dimensions=96))
        assert _nearest(talk, "turn 7 about topic7") == "turn 7 about topic7"
        run_sync(talk.update, kettle.id, Patch(text="the copper pot"))
        run_sync(memory.reembed, FailingEmbedder(dimensions=96))
        assert _nearest(talk, "the copper pot") == "the copper pot"


def _wait_for_vectors(handle: BoundMemory) -> None:
    for _ in range(1_000):
        if not run_sync(handle.stats).vectors_pending:
            return
        time.sleep(0.01)
    raise AssertionError("vectors are still pending after ten seconds")


def _nearest(handle: BoundMemory, query: str) -> str:
    hit = run_sync(handle.search, query, mode="vector", limit=1)[0]
    assert hit.similarity is not None
    return hit.record.text
