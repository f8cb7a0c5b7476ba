"""A reranker orders the best hits of every search, and costs no search its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from unittest import mock

import pytest

from memory_core import Draft, InvalidInputError, Memory
from memory_core.retrieval import reranking
from memory_core.testing import RerankerContract

NOTES = ["Tea with the harbour office", "Tea for the crew of the ferry", "The ferry leaves at nine", "Roses in May"]


class ByLength:
    """The shorter a text, the better."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((query, len(texts)))
        return [-float(len(text)) for text in texts]


class Hanging:
    """Never answers, and does not listen to being cancelled."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        while True:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
                return []


class Raising:
    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        raise KeyError(query, texts)


class Short:
    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [1.0] * (len(texts) - 1)


class NotANumber:
    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float("nan"), *[1.0] * (len(texts) - 1)]


class TestByLength(RerankerContract):
    @pytest.fixture
    def reranker(self) -> ByLength:
        return ByLength()


async def test_hits_come_in_its_order_with_falling_scores_and_explain_says_so() -> None:
    reranker = ByLength()
    async with (
        Memory(":memory:", embedder=None) as plain,
        Memory(":memory:", embedder=None, reranker=reranker) as memory,
    ):
        for each in (plain, memory):
            await each.bind(user="ann").add_many(NOTES)
        before = await plain.bind(user="ann").search("tea ferry", floor=False)
        after = await memory.bind(user="ann").search("tea ferry", floor=False, explain=True)
    texts = [hit.record.text for hit in after]
    assert texts == sorted((hit.record.text for hit in before), key=len)
    assert [hit.score for hit in after] == [hit.score for hit in before]
    for hit in after:
        assert hit.components is not None
        assert hit.components["reranker"].raw == -len(hit.record.text)
        assert sum(part.weighted for part in hit.components.values()) == pytest.approx(hit.score, abs=1e-4)


async def test_it_chooses_from_more_hits_than_are_wanted() -> None:
    reranker = ByLength()
    async with Memory(":memory:", embedder=None, reranker=reranker) as memory:
        ann, team = memory.bind(user="ann"), memory.bind(user="team")
        await ann.add_many([f"tea {'very ' * (60 - n)}number {n}" for n in range(60)])
        (best,) = await ann.search("tea", limit=1, floor=False)
        (shared,) = await ann.sharing({"team": team}).search("tea", limit=1, floor=False)
        hits = await ann.search("tea", limit=60, floor=False)
    assert best.record.text == shared.record.text
    assert len(best.record.text) < len("tea " + "very " * 50)
    assert len({hit.record.id for hit in hits}) == 60
    assert {count for _, count in reranker.asked} == {reranking.RERANKED}


async def test_recall_asks_it_too() -> None:
    reranker = ByLength()
    async with Memory(":memory:", embedder=None, reranker=reranker) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(NOTES)
        recalled = await ann.recall("tea ferry")
    assert "ferry" in recalled.text
    assert reranker.asked


@pytest.mark.parametrize(
    "reranker", [Hanging(), Raising(), Short(), NotANumber()], ids=lambda each: type(each).__name__
)
async def test_a_reranker_that_fails_costs_its_order_only_and_is_logged_once(
    reranker: Hanging | Raising | Short | NotANumber, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        mock.patch.object(reranking, "DEADLINE_SECONDS", 0.05),
        caplog.at_level(logging.DEBUG, "memory_core.retrieval"),
    ):
        async with Memory(":memory:", embedder=None) as plain:
            await plain.bind(user="ann").add_many(NOTES)
            expected = [hit.record.text for hit in await plain.bind(user="ann").search("tea ferry")]
        async with Memory(":memory:", embedder=None, reranker=reranker) as memory:
            ann = memory.bind(user="ann")
            await ann.add_many(NOTES)
            found = [[hit.record.text for hit in await ann.search("tea ferry")] for _ in range(3)]
    assert len(expected) > 1
    assert found == [expected] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert type(reranker).__name__ in caplog.text
    assert "tea" not in caplog.text


async def test_a_reranker_that_fails_again_after_it_has_worked_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_down = [True, True, False, True, True]

    class Unsteady(ByLength):
        async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            if is_down.pop(0):
                raise ConnectionError("out of reach")
            return await super().rerank(query, texts)

    async with Memory(":memory:", embedder=None, reranker=Unsteady()) as memory:
        await memory.bind(user="ann").add_many(NOTES)
        for _ in range(5):
            assert await memory.bind(user="ann").search("tea ferry")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


async def test_what_needs_no_judgement_is_not_reranked() -> None:
    reranker = ByLength()
    async with Memory(":memory:", embedder=None, reranker=reranker) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many([Draft(text) for text in NOTES])
        assert len(await ann.search("tea", mode="substring")) == 2
        assert len(await ann.search("roses")) == 1
    assert not reranker.asked


@pytest.mark.parametrize("wrong", [ByLength, "a model", 3])
def test_what_is_no_reranker_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(InvalidInputError, match=r"reranker must be .*rerank\(query, texts\)"):
        Memory(":memory:", reranker=wrong)  # type: ignore[arg-type]
