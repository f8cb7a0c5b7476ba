"""A text that the embedder always refuses keeps nobody else's vectors from being computed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import pytest

from memory_core import Draft, EmbeddingError, Memory
from memory_core.adapting import settled
from memory_core.storage.shared import refusals
from memory_core.storage.shared.refusals import Refusals
from memory_core.storage.sqlite import pending_vectors
from tests.storage.embedders import RefusingEmbedder
from tests.storage.qdrant.settled import wait_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GOOD = {n: [f"good {n}", f"fine {n}"] for n in range(128)}
REFUSED = {-1: ["good", "forbidden", "forbidden again"]}
COUNTED = re.compile(r"(\d+) texts were refused")


class PassingFault(RefusingEmbedder):
    """Works, or fails, until so many calls were made; then it does the opposite."""

    turn_after = 1

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(self.calls) == self.turn_after:
            self.is_out = not self.is_out
        return await super().embed_documents(texts)


class Caching(RefusingEmbedder):
    """An application's embedder, which embeds each text once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, NDArray[np.float32]] = {}

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        unknown = [text for text in texts if text not in self._known]
        if unknown:
            self._known |= dict(zip(unknown, await super().embed_documents(unknown), strict=True))
        return np.stack([self._known[text] for text in texts])


@pytest.fixture
def embedder() -> RefusingEmbedder:
    return RefusingEmbedder()


@pytest.fixture
async def memory(embedder: RefusingEmbedder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Memory]:
    monkeypatch.setattr(pending_vectors, "CHUNKS_AT_ONCE", 4)
    async with Memory(":memory:", embedder=embedder) as opened:
        yield opened


async def test_other_texts_get_their_vectors(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    await ann.add_many([f"forbidden {n}" for n in range(9)], embed="later")
    for n in range(5):
        await bob.add(f"Bob's memory {n}", embed="later")
    await settled(bob, timeout=300)
    assert (await ann.stats()).vectors_pending == 9
    assert sum(map(int, COUNTED.findall(caplog.text))) == 9
    assert "forbidden" not in caplog.text


async def test_a_batch_with_a_refused_text_gets_the_other_vectors_soon_after_it_is_stored(memory: Memory) -> None:
    ann = memory.bind(user="ann")
    await ann.add_many(["forbidden", *(Draft(f"note {n}", session="notes") for n in range(9))])
    await settled(memory.bind(user="ann", session="notes"), timeout=300)
    assert (await ann.stats()).vectors_pending == 1


async def test_a_refused_text_is_not_tried_with_the_next_ones(memory: Memory, embedder: RefusingEmbedder) -> None:
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    await ann.add("forbidden", embed="later")
    await bob.add("Bob's memory", embed="later")
    await settled(bob, timeout=300)
    embedder.calls.clear()
    await bob.add("Another one", embed="later")
    await settled(bob, timeout=300)
    assert embedder.calls == [1]


async def test_a_refused_text_is_tried_again(
    memory: Memory, embedder: RefusingEmbedder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(refusals, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(refusals, "LONGEST_PAUSE_SECONDS", 0.01)
    ann = memory.bind(user="ann")
    await ann.add("forbidden", embed="later")
    await asyncio.to_thread(wait_for, lambda: len(embedder.calls) >= 9)  # three for each time
    assert COUNTED.findall(caplog.text) == ["1"]
    embedder.refused = "nothing"
    await settled(ann, timeout=300)


async def test_one_refused_text_costs_few_calls_and_no_other_key_its_vectors(embedder: RefusingEmbedder) -> None:
    some = Refusals[int](embedder)
    vectors = await some.embed({**GOOD, **REFUSED})
    assert vectors.keys() == GOOD.keys()
    assert {len(rows) for rows in vectors.values()} == {2}
    assert some.set_aside() == [-1]
    assert len(embedder.calls) < 40


async def test_an_outage_costs_two_calls_and_blames_no_text(embedder: RefusingEmbedder) -> None:
    some = Refusals[int](embedder)
    embedder.is_out = True
    with pytest.raises(EmbeddingError):
        await some.embed(GOOD)
    assert embedder.calls == [256, 1]
    assert some.next_try() is None


async def test_an_outage_that_begins_in_the_search_for_a_refused_text_blames_none() -> None:
    embedder = PassingFault()
    embedder.turn_after = 6
    some = Refusals[int](embedder)
    with pytest.raises(EmbeddingError):
        await some.embed({**GOOD, **REFUSED})
    assert len(embedder.calls) <= 8
    assert some.set_aside() == []


async def test_a_text_that_failed_in_the_last_moment_of_an_outage_is_not_refused() -> None:
    embedder = PassingFault()
    embedder.is_out = True
    some = Refusals[int](embedder)
    assert len((await some.embed({1: ["good"]}))[1]) == 1
    assert some.set_aside() == []


async def test_a_cache_does_not_hide_an_outage() -> None:
    embedder = Caching()
    some = Refusals[int](embedder)
    await some.embed(REFUSED)
    embedder.is_out = True
    with pytest.raises(EmbeddingError):
        await some.embed({1: ["good and new"]})
    assert some.set_aside() == [-1]


async def test_pauses_double_until_the_longest(embedder: RefusingEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    some, pauses = Refusals[int](embedder), list[float]()
    for _ in range(6):
        assert not await some.embed(REFUSED)
        due = some.next_try()
        assert due is not None
        pauses.append(due - now)
        assert some.set_aside() == [-1]
        now = due
        assert some.set_aside() == []
    assert pauses == pytest.approx([60, 120, 240, 480, 600, 600])
    embedder.refused = "nothing"
    assert (await some.embed(REFUSED)).keys() == REFUSED.keys()
    embedder.refused = "forbidden"
    await some.embed(REFUSED)
    assert some.next_try() == pytest.approx(now + 60)
