"""The contract of stores that can change their embedder while in use."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pytest

from memory_core import BoundMemory, Draft, EmbeddingError, Fingerprint, Memory, Patch, run_sync
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.models import Mode
from memory_core.storage.shared.reference import reference_of
from memory_core.supplied import Weights
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


class TranslatingEmbedder:
    """Two halves: one knows how a text is written, the other knows that Tee means tea. It leans to the second, and to
    the first where a text is not in English."""

    fingerprint = Fingerprint("translating", "1", 192)

    def __init__(self) -> None:
        self._half = HashingEmbedder(dimensions=96)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415  (not at import)

        translated = [text.replace("Tee ", "tea ") for text in texts]
        halves = [await self._half.embed_documents(some) for some in (texts, translated)]
        rows: NDArray[np.float32] = np.hstack(halves) / np.float32(2**0.5)
        return rows

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = (await self.embed_documents([text]))[0]
        return vector

    async def leaning(self, text: str) -> Weights:  # noqa: ARG002  (the same for every text)
        import numpy as np  # noqa: PLC0415

        return Weights(*np.eye(2, dtype=np.float32)[::-1].repeat(96, axis=1))

    async def close(self) -> None:
        """Nothing to close."""


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

    def test_a_ranking_may_lean_and_what_a_hit_shows_stays_a_cosine(self, memory: Memory, ann: BoundMemory) -> None:
        known = ["Tee stays warm here", "tea is kept here", "Der Tee ist für den Abend", "a long way to go"]
        add(ann, *known)
        run_sync(memory.reembed, TranslatingEmbedder())
        whole, leaning = asyncio.run(_cosines("Tee hier", known))
        cases: list[tuple[Mode, dict[str, float]]] = [("vector", whole), ("hybrid", leaning)]
        for mode, ranked in cases:
            hits = run_sync(ann.search, "Tee hier", mode=mode, floor=False, explain=True)
            shown = {hit.record.text: hit.similarity for hit in hits}
            assert shown == pytest.approx({text: max(cosine, 0.0) for text, cosine in whole.items()}, abs=1e-3)
            parts = {hit.record.text: (hit.components or {})["cosine"].raw for hit in hits}
            assert parts == pytest.approx(ranked, abs=1e-3)
        for text in known:
            (hit,) = run_sync(ann.search, text, limit=1)
            assert hit.record.text == text
            assert hit.similarity == pytest.approx(1, abs=1e-3)


async def _cosines(query: str, texts: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """The cosine of each text with a query, and what a ranking compares: the second halves, or the first ones of the
    text that is not in English, on the scale of the others."""
    embedder = TranslatingEmbedder()
    rows, vector = await embedder.embed_documents(texts), await embedder.embed_query(query)
    reference = await reference_of(embedder)
    english, other = (reference.leaning(weights) for weights in await embedder.leaning(query))
    of_others = english.unrelated.taken_from(other.unrelated, rows @ other.of(vector)).tolist()
    ranked = [
        of_other if text.startswith("Der ") else cosine
        for text, cosine, of_other in zip(texts, (rows @ english.of(vector)).tolist(), of_others, strict=True)
    ]
    return dict(zip(texts, (rows @ vector).tolist(), strict=True)), dict(zip(texts, ranked, strict=True))


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
