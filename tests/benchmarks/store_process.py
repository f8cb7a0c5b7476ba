"""A process of one store: fill it, or open it and search, and print what was measured as JSON.

python tests/benchmarks/store_process.py fill|search STORE FOLDER SIZE
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[2]))  # also in the Python of the peers

from common import RememberedVectors, drafts, percentiles, questions, time_each
from lines.filling import resident
from lines.installed import NOT_INSTALLED, missing
from stores.every import STORES
from stores.face import Entry, Peer

ASKED, ADDED = 40, 20
SLOW = 1_000.0
"""Milliseconds of a first search from which on only a few more are measured."""


def entries(size: int) -> list[Entry]:
    """Texts of one owner."""
    return [("ann", number, draft.text) for number, draft in enumerate(drafts(size, 3), 1)]


async def fill(kind: type[Peer], folder: Path, size: int) -> tuple[Peer, dict[str, float]]:
    """The store, open and full, and how fast it took the texts."""
    peer, vectors, texts = kind(), RememberedVectors(), entries(size)
    for _, _, text in texts:
        vectors.vector(text)
    await peer.open(folder, vectors)
    start = time.perf_counter()
    await peer.fill(texts)
    return peer, {"fill": size / (time.perf_counter() - start)}


async def filled(kind: type[Peer], folder: Path, size: int) -> dict[str, float]:
    peer, found = await fill(kind, folder, size)
    await peer.close()
    return {**found, "disk": on_disk(folder) / 1e6}


def on_disk(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def searched(kind: type[Peer], folder: Path, size: int) -> dict[str, float]:
    """Of a store that is opened in a process that has loaded nothing yet; what is not on disk is filled again."""
    asked, new = questions(ASKED + 1, 1), [draft.text for draft in drafts(ADDED, int(time.time()))]
    vectors = RememberedVectors()
    for text in (*asked, *new):
        vectors.vector(text)
    before, peer, found = resident(), kind(), dict[str, float]()
    if kind.durability == "nothing":
        peer, _ = await fill(kind, folder, size)
    else:
        start = time.perf_counter()
        await peer.open(folder, vectors)
        found["open"] = 1e3 * (time.perf_counter() - start)
    if kind.searches_by != "nothing":
        start = time.perf_counter()
        await peer.search("ann", asked[0])
        found["first"] = 1e3 * (time.perf_counter() - start)
        some = asked[1:] if found["first"] < SLOW else asked[1:6]
        found["search"], _ = percentiles(await time_each(lambda text: peer.search("ann", text), some))
    gc.collect()
    found["memory"] = (resident() - before) / 1e6
    first = int(time.time() * 1e3)
    numbers = iter(range(first, first + ADDED))
    found["add"], _ = percentiles(await time_each(lambda text: peer.add("ann", next(numbers), text), new))
    await peer.close()
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    what, name, folder, size = sys.argv[1:]
    kind = STORES[name]
    if missing([kind.needs]):
        sys.exit(NOT_INSTALLED)
    own = Path(folder) / f"{list(STORES).index(name)}-{size}"
    own.mkdir(exist_ok=True)
    measure = {"fill": filled, "search": searched}[what]
    print("\n" + json.dumps(asyncio.run(measure(kind, own, int(size)))))


if __name__ == "__main__":
    main()
