"""Owners take turns: what one of them has sent before keeps nobody waiting for long."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory_core import Draft, Memory
from memory_core.adapting import settled
from memory_core.storage.shared.turns import Turns
from memory_core.storage.sqlite.adding import MOST_TOGETHER
from memory_core.storage.sqlite.pending_vectors import CHUNKS_AT_ONCE
from tests.storage.embedders import WordEmbedder

MANY = 1_000


class HeldEmbedder(WordEmbedder):
    """Computes nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await asyncio.to_thread(self.may.wait)
        return await super().embed_documents(texts)


async def test_an_add_waits_for_one_batch_whatever_another_user_has_sent_before(tmp_path: Path) -> None:
    embedder = HeldEmbedder()
    async with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
        adding = [asyncio.create_task(tom.add(f"Note {number} about the harbour")) for number in range(MANY)]
        await asyncio.sleep(0)
        last = asyncio.create_task(ann.add("The kettle is off"))
        await asyncio.sleep(0)
        await ann.list()  # all of them wait by now
        embedder.may.set()
        await asyncio.gather(last, *adding)
        assert (
            embedder.embedded.index("The kettle is off") < 2 * MOST_TOGETHER
        )  # the batch that it found at work, and its own
        assert [record.text for record in await tom.list(limit=2, order="oldest")] == [
            "Note 0 about the harbour",
            "Note 1 about the harbour",
        ]


class HeldByHarbours(HeldEmbedder):
    """Computes nothing for texts about the harbour until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not any("harbour" in text for text in texts):
            return await WordEmbedder.embed_documents(self, texts)
        self.is_asked.set()
        return await super().embed_documents(texts)


async def test_an_add_does_not_wait_for_the_vectors_of_somebody_elses_long_text(tmp_path: Path) -> None:
    embedder = HeldByHarbours()
    async with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
        adding = [asyncio.create_task(tom.add(f"{number} " + "the harbour " * 500)) for number in range(3)]
        await asyncio.to_thread(embedder.is_asked.wait)
        assert (await ann.add("The kettle is off")).text == "The kettle is off"
        assert not any(task.done() for task in adding)
        embedder.may.set()
        await asyncio.gather(*adding)
        stats = await tom.stats()
        assert (stats.records, stats.vectors_pending) == (3, 0)


async def test_without_a_model_too_an_add_comes_before_most_of_what_was_sent_before(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
        adding = [asyncio.create_task(tom.add(f"Note {number} about the harbour")) for number in range(5 * MANY)]
        await asyncio.sleep(0)
        await ann.add("The kettle is off")
        assert sum(task.done() for task in adding) < 4 * MANY
        await asyncio.gather(*adding)


async def test_a_pending_vector_waits_for_one_batch_whatever_another_user_has_imported(tmp_path: Path) -> None:
    embedder = HeldEmbedder()
    async with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
        imported = [Draft(f"Note {number} about the harbour") for number in range(MANY)]
        await tom.add_many(imported, embed="later")
        await ann.add("The kettle is off", embed="later")
        embedder.may.set()
        await settled(tom)
        await settled(ann)
        assert embedder.embedded.index("The kettle is off") <= 2 * CHUNKS_AT_ONCE
        assert sorted(embedder.embedded) == sorted(["The kettle is off", *(draft.text for draft in imported)])


async def test_many_owners_with_a_pending_vector_each_share_a_batch(tmp_path: Path) -> None:
    embedder = HeldEmbedder()
    async with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        for number in range(40):
            await memory.bind(user=f"user {number % 20}").add(f"Note {number}", embed="later")
        embedder.may.set()
        for number in range(20):
            await settled(memory.bind(user=f"user {number}"))
    assert sorted(embedder.embedded) == sorted(f"Note {number}" for number in range(40))


@given(sent=st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=30), most=st.integers(1, 5))
def test_nobody_gets_a_second_piece_while_somebody_waits_for_the_first(sent: list[tuple[str, int]], most: int) -> None:
    turns: Turns[str, tuple[str, int]] = Turns()
    of: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for piece in sent:
        turns.put(piece[0], piece)
        of[piece[0]].append(piece)
    taken: list[tuple[str, int]] = []
    while turns:
        taken += turns.take(most)
        assert len(turns) == len(sent) - len(taken)
    counts: dict[str, int] = defaultdict(int)
    for owner, _ in taken:
        counts[owner] += 1
        assert all(counts[owner] <= counts[other] + 1 or counts[other] == len(of[other]) for other in of)
    assert {owner: [piece for piece in taken if piece[0] == owner] for owner in of} == of
