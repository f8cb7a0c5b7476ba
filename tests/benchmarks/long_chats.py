"""Search of one owner of long chats: 20,000 messages of 2,000 characters, beside numpy's product of the same vectors.

    python tests/benchmarks/long_chats.py [MESSAGES]

Ten million tokens of a user and an assistant. A message has a vector for each of its pieces, and a hybrid search takes
the cosine of every one. Beside it stands one product in numpy of as many float32 vectors with the query. Both are timed
in turns, with a pause after the product: numpy's threads keep their cores busy for a while.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import DIMENSIONS, GivenVectors, drafts, percentiles, questions, time_each
from memory_core import Draft, Memory
from memory_core.models import Role

LENGTH, SESSION, ASKED = 2_000, 60, 60
PAUSE = 0.2
"""Seconds after a product."""
ROLES: tuple[Role, Role] = ("user", "assistant")


class CountedVectors(GivenVectors):
    """The same vectors, and how many there were of documents."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.count += len(texts)
        return await super().embed_documents(texts)


def messages(count: int) -> Iterator[Draft]:
    """Turns of a user and an assistant, in sessions of `SESSION`."""
    words = random.Random(5)
    parts = [draft.text for draft in drafts(4_000, 5)]
    for number in range(count):
        text = ". ".join(words.choices(parts, k=12))[:LENGTH]
        yield Draft(text, role=ROLES[number % 2], kind="message", session=f"chat {number // SESSION}")


async def main(count: int) -> None:
    embedder = CountedVectors()
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "chats.db", embedder=embedder) as memory:
            ann = memory.bind(app="bench", user="ann")
            texts = list(messages(count))
            for first in range(0, count, 500):
                await ann.add_many(texts[first : first + 500])
            pieces = embedder.count
            vectors = np.random.default_rng(1).standard_normal((pieces, DIMENSIONS), np.float32)
            await time_each(ann.search, questions(10, 0))
            ours, product = [], []
            for question in questions(ASKED, 1):
                ours += await time_each(ann.search, [question])
                query = embedder.vector(question)
                start = time.perf_counter()
                vectors @ query
                product.append(time.perf_counter() - start)
                await asyncio.sleep(PAUSE)
    (p50, p95), (numpy50, numpy95) = percentiles(ours), percentiles(product)
    ratio = statistics.median(one / other for one, other in zip(ours, product, strict=True))
    print(f"{count} messages in {pieces} pieces: search p50 {p50:.1f} p95 {p95:.1f} ms, ", end="")
    print(f"product p50 {numpy50:.1f} p95 {numpy95:.1f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
