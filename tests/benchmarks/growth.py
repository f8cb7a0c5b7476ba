"""How filling, searching, memory and disk grow with the number of records, for ours and for the peers.

    python tests/benchmarks/growth.py fill FOLDER [--sizes 1000 10000] [--only Ours Chroma] [--others]
    python tests/benchmarks/growth.py search FOLDER
    python tests/benchmarks/growth.py plot FOLDER docs/plots

`fill` stores as many texts of one owner (with `--others`: 1,000 of one owner, the rest of 100 others) through each
store's own bulk call, in a process of its own and a folder of its own below FOLDER. `search` opens each of them again,
in a new process: the first search, 40 more, and the resident memory of that process then, less that of the same process
before it opened anything; the peers' own libraries are in that. What is not on disk is filled again first. A store that
would need more than `LONGEST_FILL` seconds for the next size is left out. Results are lines of FOLDER/results.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from charts import Series, chart
from common import GivenVectors, drafts, percentiles, questions, time_each
from peers import Entry, Peer, installed

OWNED = 1_000
ASKED = 40
LONGEST_FILL = 200.0
CHUNK = 10_000
NAMES = {
    "Ours": "memory-core",
    "AdkInMemory": "ADK in memory",
    "AdkSqlite": "ADK SQLite",
    "LangGraphInMemory": "LangGraph in memory",
    "LangGraphSqlite": "LangGraph SQLite",
    "SpadeLlm": "spade_llm",
    "QdrantLocal": "Qdrant local mode",
    "Chroma": "Chroma",
    "Mem0": "mem0",
}
Result = dict[str, Any]


def entries(first: int, count: int, *, others: bool) -> list[Entry]:
    """Texts in chunks, so that a million do not have to be in memory."""
    texts = [draft.text for draft in drafts(count, first)]
    owners = ("ann" if not others or n < OWNED else f"user{n % 100}" for n in range(first, first + count))
    return [(owner, n + 1, text) for owner, n, text in zip(owners, range(first, first + count), texts, strict=True)]


async def fill(kind: type[Peer], folder: Path, size: int, *, others: bool) -> tuple[Peer, Result]:
    """The store, open and full, and how fast it took the texts."""
    peer, seconds = kind(), 0.0
    await peer.open(folder, GivenVectors())
    for first in range(0, size, CHUNK):
        some = entries(first, min(CHUNK, size - first), others=others)
        start = time.perf_counter()
        await peer.fill(some)
        seconds += time.perf_counter() - start
    return peer, {"seconds": seconds, "rate": size / seconds}


async def filled(kind: type[Peer], folder: Path, size: int, *, others: bool) -> Result:
    peer, found = await fill(kind, folder, size, others=others)
    await peer.close()
    return found


def on_disk(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def searched(kind: type[Peer], folder: Path, size: int, *, others: bool) -> Result:
    vectors = GivenVectors()
    before = resident()
    if kind.durability == "nothing":
        peer, _ = await fill(kind, folder, size, others=others)
        opened = 0.0
    else:
        peer = kind()
        start = time.perf_counter()
        await peer.open(folder, vectors)
        opened = time.perf_counter() - start
    found: Result = {"open": 1e3 * opened}
    if kind.searches_by != "nothing":
        start = time.perf_counter()
        await peer.search("ann", questions(1, 99)[0])
        found["first"] = 1e3 * (time.perf_counter() - start)
        asked = questions(ASKED if found["first"] < 1_000 else 5, 1)
        found["p50"], found["p95"] = percentiles(await time_each(lambda text: peer.search("ann", text), asked))
    gc.collect()
    found["memory"] = resident() - before
    await peer.close()
    return found


def resident() -> int:
    """Bytes of this process in memory, those of files mapped into it included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def in_a_process(what: str, kind: str, folder: Path, size: int, *, others: bool) -> Result | None:
    """The result, `None` if it failed; noted in the results."""
    arguments = [sys.executable, __file__, "one", what, kind, str(folder), str(size), str(int(others))]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        print(f"{what} {kind} {size}: failed", flush=True)
        return None
    found: Result = json.loads(done.stdout.splitlines()[-1])
    line = {"what": what, "store": kind, "size": size, "others": others, **found}
    print(json.dumps(line), flush=True)
    with (folder / "results.jsonl").open("a") as results:
        results.write(json.dumps(line) + "\n")
    return found


def fill_all(folder: Path, sizes: Sequence[int], only: Sequence[str], *, others: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind in only or installed():
        expected = 0.0
        for before, size in zip([0, *sizes], sizes, strict=False):
            if expected * size / max(before, 1) > LONGEST_FILL and kind != "Ours":
                print(f"{kind} {size}: left out, {before} took {expected:.0f} s", flush=True)
                break
            found = in_a_process("fill", kind, folder, size, others=others)
            if found is None:
                break
            expected = found["seconds"]


def search_all(folder: Path, only: Sequence[str]) -> None:
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["what"] == "fill" and (not only or line["store"] in only):
            in_a_process("search", line["store"], folder, line["size"], others=line["others"])


def plot(folder: Path, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    last = {(line["what"], line["store"], line["size"], line["others"]): line for line in lines}
    pictures = {
        "search": ("search", "p50", 1.0, "one search of an owner of n records, p50, ms"),
        "first": ("search", "first", 1.0, "first search after opening, ms"),
        "memory": ("search", "memory", 1e-6, "memory of a process that searches, MB"),
        "disk": ("fill", "disk", 1e-6, "on disk, MB"),
        "fill": ("fill", "rate", 1.0, "texts a second, bulk"),
    }
    for name, (what, measure, scale, title) in pictures.items():
        series: list[Series] = []
        for store, shown in NAMES.items():
            points = [
                (size, scale * line[measure])
                for (kind, who, size, others), line in sorted(last.items())
                if (kind, who, others) == (what, store, False) and line.get(measure, 0) > 0
            ]
            if points:
                series.append((shown, points))
        (into / f"growth-{name}.svg").write_text(chart(title, "records", series))


def one(what: str, name: str, folder: Path, size: int, *, others: bool) -> Result:
    """What a process of its own measures."""
    own = folder / f"{name}-{size}-{int(others)}"
    own.mkdir(exist_ok=what == "search")
    measure = {"fill": filled, "search": searched}[what]
    found = asyncio.run(measure(installed()[name], own, size, others=others))
    return {**found, "disk": on_disk(own)}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if sys.argv[1:2] == ["one"]:
        what, name, folder, size, others = sys.argv[2:]
        print(json.dumps(one(what, name, Path(folder), int(size), others=others == "1")))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fill", "search", "plot"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("into", type=Path, nargs="?", default=Path("docs/plots"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--only", nargs="+", default=[], choices=list(NAMES))
    parser.add_argument("--others", action="store_true")
    given = parser.parse_args()
    if given.what == "fill":
        fill_all(given.folder, given.sizes, given.only, others=given.others)
    elif given.what == "search":
        search_all(given.folder, given.only)
    else:
        plot(given.folder, given.into)


if __name__ == "__main__":
    main()
