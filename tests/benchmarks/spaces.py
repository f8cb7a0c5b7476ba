"""Search over one's own memories and a shared space, beside one owner with all of them.

    python tests/benchmarks/spaces.py [OWN] [SHARED]

The same records (1,000 and 10,000 by default) are stored twice: with two owners, read together, and with one owner.
Embedding the query is excluded. Repetitions are interleaved.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from common import RememberedVectors, drafts, percentiles, questions, time_each
from memory_core import Memory

ROUNDS, ASKED = 10, 40


async def main(own: int, shared: int) -> None:
    embedder = RememberedVectors()
    texts = drafts(own + shared, 1)
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "spaces.db", embedder=embedder) as memory:
            ann, team, whole = (memory.bind(app="bench", user=user) for user in ("ann", "team", "whole"))
            for handle, part in ((ann, texts[:own]), (team, texts[own:]), (whole, texts)):
                for start in range(0, len(part), 1_000):
                    await handle.add_many(part[start : start + 1_000])
            both = ann.sharing({"team": team})
            together, alone = [], []
            for number in range(ROUNDS):
                asked = questions(ASKED, number)
                for question in asked:
                    embedder.vector(question)  # and is known from here on
                together += await time_each(both.search, asked)
                alone += await time_each(whole.search, asked)
    (p50, p95), (alone50, alone95) = percentiles(together), percentiles(alone)
    print(f"own {own} and shared {shared}: p50 {p50:.2f} p95 {p95:.2f} ms, ", end="")
    print(f"one owner of {own + shared}: p50 {alone50:.2f} p95 {alone95:.2f} ms, ratio {p50 / alone50:.2f}")


if __name__ == "__main__":
    asyncio.run(main(*(int(argument) for argument in sys.argv[1:3] or ("1000", "10000"))))
