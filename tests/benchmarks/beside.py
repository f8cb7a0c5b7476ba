"""Ours and the peers side by side: adds by 1, 8 and 32 writers, then searches of one owner among others.

    python tests/benchmarks/beside.py adds [PEER ...]
    python tests/benchmarks/beside.py searches [PEER ...]

Peers are the classes of `peers.py`; without names all that are installed take part.

An add is one call with one text, and every writer awaits it before the next. Each round gives everybody a second and a
half; rounds are interleaved, figures are medians. What is searched is an owner of 1,000 texts beside ten others with
2,000.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from common import GivenVectors, RememberedVectors, drafts, percentiles, questions
from peers import Peer, installed

WRITERS = (1, 8, 32)
ROUNDS = 3
SECONDS = 1.5
OWNED, OTHERS = 1_000, 2_000
ASKED = 20


async def pace(kind: type[Peer], vectors: GivenVectors, texts: list[str], writers: int) -> float:
    """Adds a second of an empty store."""
    peer = kind()
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder:
        await peer.open(Path(folder), vectors)
        await peer.add("ann", next(numbers), texts[0])
        start = time.perf_counter()

        async def write() -> int:
            added = 0
            while time.perf_counter() - start < SECONDS:
                number = next(numbers)
                await peer.add("ann", number, texts[number % len(texts)])
                added += 1
            return added

        added = await asyncio.gather(*(write() for _ in range(writers)), return_exceptions=True)
        seconds = time.perf_counter() - start
        await peer.close()
    failed = [error for error in added if isinstance(error, BaseException)]
    return float("nan") if failed else sum(count for count in added if isinstance(count, int)) / seconds


async def write_side_by_side(kinds: dict[str, type[Peer]], vectors: GivenVectors) -> None:
    texts = [draft.text for draft in drafts(20_000, 5)]
    for text in texts:
        vectors.vector(text)
    for writers in WRITERS:
        paces: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            for name, kind in kinds.items():
                paces[name].append(await pace(kind, vectors, texts, writers))
        ours = statistics.median(paces["Ours"])
        for name, kind in kinds.items():
            median = statistics.median(paces[name])
            print(
                f"{writers:3} writers, {name:18} ({kind.durability:7}): {median:7.0f} /s, ours is {ours / median:.2f} x"
            )


async def search_side_by_side(kinds: dict[str, type[Peer]], vectors: GivenVectors) -> None:
    texts = [draft.text for draft in drafts(OWNED + OTHERS, 6)]
    with tempfile.TemporaryDirectory() as name:
        peers: dict[str, Peer] = {}
        for kind_name, kind in kinds.items():
            if kind.searches_by != "nothing":
                peer = peers[kind_name] = kind()
                (folder := Path(name) / kind_name).mkdir()
                await peer.open(folder, vectors)
                await peer.fill([("ann" if n < OWNED else f"user{n % 10}", n + 1, texts[n]) for n in range(len(texts))])
                await peer.search("ann", texts[0])
        seconds: dict[str, list[float]] = {kind_name: [] for kind_name in peers}
        for number in range(ROUNDS):
            asked = questions(ASKED, number)
            for question in asked:
                vectors.vector(question)
            for kind_name, peer in peers.items():
                for question in asked:
                    start = time.perf_counter()
                    await peer.search("ann", question)
                    seconds[kind_name].append(time.perf_counter() - start)
        ours = percentiles(seconds["Ours"])[0]
        for kind_name, peer in peers.items():
            p50, p95 = percentiles(seconds[kind_name])
            print(
                f"{kind_name:18} by {peer.searches_by:24}: p50 {p50:8.2f} p95 {p95:8.2f} ms, {p50 / ours:6.1f} x ours"
            )
            await peer.close()


async def main(what: str, names: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    measure = {"adds": write_side_by_side, "searches": search_side_by_side}[what]
    kinds = {name: kind for name, kind in installed().items() if not names or name in ("Ours", *names)}
    await measure(kinds, RememberedVectors())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
