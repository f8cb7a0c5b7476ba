"""`bench`: what adds, searches and the model take on this machine, each beside the least that they could take."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, quantiles
from time import perf_counter
from typing import Annotated, Final, TypeVar

import typer

from memory_core.app import showing
from memory_core.app.command import Answer, Invocation
from memory_core.app.settings import embedder_of
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.protocols import Embedder
from memory_core.transfer.migrate import exists, is_server
from memory_core.values.progress import Progress, ProgressCallback

SINGLE: Final = 100
"""Adds, synced writes and searches that are measured one by one."""
BATCH: Final = 100
"""Memories in a transaction, rows in one of SQLite, and texts in a call of the model."""
_WORDS: Final = (
    *("Ann", "Tom", "harbour", "tide", "boat", "tea", "key", "neighbour", "Oslo", "Rome", "museum", "train", "ticket"),
    *("office", "garden", "bees", "doctor", "kitchen", "flight", "morning", "report", "concert", "bridge", "winter"),
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measure:
    """How long one of something took, in milliseconds."""

    what: str
    p50: float
    p95: float
    per_second: float
    limit: str | None = None
    """What takes at least as long on this machine."""
    limit_p50: float | None = None
    ratio: float | None = None
    """`p50` in relation to the limit's; 1 would be perfect."""


async def bench(
    invocation: Invocation,
    *,
    records: Annotated[int, typer.Option("--records", min=BATCH, help="Memories to add to a temporary file.")] = 1_000,
) -> Answer:
    """Measure adds, searches and the model on this machine.

    Each is beside what the disk, SQLite or the bare model take. Adds go to temporary files beside the memory.
    Searches are for memories that it has, and leave it as it is; if it has none, in the temporary file.
    """
    own = await invocation.owner() if exists(invocation.settings.file) else None
    if own is not None and not (await own.stats()).records:
        own = None
    texts = await _texts(own, records)
    parent = Path.cwd() if is_server(invocation.settings.file) else invocation.path.resolve().parent
    embedder = embedder_of(invocation.settings.embedder)
    with (
        tempfile.TemporaryDirectory(dir=parent, prefix=".memory-core-bench-") as name,
        invocation.progress("measuring") as tell,
    ):
        found = await _measured(Path(name), texts, own, embedder, tell)
    head = ("", "p50 ms", "p95 ms", "a second", "beside", "p50 ms", "times")
    rows = [(m.what, m.p50, m.p95, round(m.per_second), m.limit, m.limit_p50, m.ratio) for m in found]
    return Answer([asdict(each) for each in found], showing.table(head, rows))


async def _texts(own: BoundMemory | None, count: int) -> list[str]:
    """Texts of the memory, and made-up ones if it has too few."""
    page = () if own is None else (await own.list(limit=min(count, 1_000))).records
    texts, dice = [record.text for record in page if record.text], random.Random(0)  # noqa: S311  (nothing secret)
    return texts + [" ".join(dice.choices(_WORDS, k=15)) for _ in range(count - len(texts))]


async def _measured(
    folder: Path, texts: Sequence[str], own: BoundMemory | None, embedder: Embedder | None, tell: ProgressCallback
) -> list[Measure]:
    steps = 4 if embedder is None else 6
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    synced = await asyncio.to_thread(_synced, folder / "synced", texts[:SINGLE])
    tell(Progress(1, steps))
    rows = await asyncio.to_thread(_rows, folder / "rows.db", batches)
    tell(Progress(2, steps))
    async with Memory(folder / "words.db", embedder=None) as memory:
        ann = memory.bind(user="bench")
        singles = await _timed(ann.add, texts[:SINGLE])
        many = _each(await _timed(ann.add_many, batches), batches)
        tell(Progress(3, steps))
        found = [
            _measure("one add, words only", singles, "a synced write of its text", synced),
            _measure("an add of many, words only", many, f"a row of SQLite, {BATCH} in a transaction", rows),
        ]
        if embedder is None:
            return [*found, await _search("a search, words only", own or ann, texts)]
    await embedder.embed_documents(texts[:1])  # loads it
    embedded = _each(await _timed(embedder.embed_documents, batches), batches)
    tell(Progress(4, steps))
    async with Memory(folder / "vectors.db", embedder=embedder) as memory:
        ann = memory.bind(user="bench")
        many = _each(await _timed(ann.add_many, batches), batches)
        tell(Progress(5, steps))
        found += [
            _measure("a text for the model", embedded),
            _measure("an add of many, with vectors", many, "a text for the model", embedded),
            await _search("a search", own or ann, texts, embedder),
        ]
    return found


async def _search(what: str, owner: BoundMemory, texts: Sequence[str], embedder: Embedder | None = None) -> Measure:
    count = (await owner.stats()).records
    questions = [" ".join(text.split()[:8]) for text in texts[:SINGLE]]
    await owner.search(questions[0])  # reads the owner's index
    took = await _timed(owner.search, questions)
    if embedder is None:
        return _measure(f"{what}, among {count}", took)
    import numpy as np  # noqa: PLC0415  (with vectors only)

    matrix = np.ones((count, embedder.fingerprint.dimensions), np.float32)

    async def bare(question: str) -> object:
        return matrix @ np.asarray(await embedder.embed_query(f"{question}?"))  # not a question that it remembers

    least = await _timed(bare, questions)
    return _measure(f"{what}, among {count}", took, "the model and one pass over the vectors", least)


async def _timed(work: Callable[[T], Awaitable[object]], items: Iterable[T]) -> list[float]:
    took: list[float] = []
    for item in items:
        began = perf_counter()
        await work(item)
        took.append(perf_counter() - began)
    return took


def _each(took: Iterable[float], batches: Iterable[Sequence[str]]) -> list[float]:
    return [seconds / len(batch) for seconds, batch in zip(took, batches, strict=True)]


def _synced(path: Path, texts: Iterable[str]) -> list[float]:
    took: list[float] = []
    with path.open("wb") as file:
        for text in texts:
            began = perf_counter()
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
            took.append(perf_counter() - began)
    return took


def _rows(path: Path, batches: Iterable[Sequence[str]]) -> list[float]:
    took: list[float] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
        for batch in batches:
            began = perf_counter()
            db.execute("BEGIN")
            db.executemany("INSERT INTO note (text) VALUES (?)", [(text,) for text in batch])
            db.execute("COMMIT")
            took.append((perf_counter() - began) / len(batch))
    return took


def _measure(what: str, took: Sequence[float], limit: str | None = None, least: Sequence[float] = ()) -> Measure:
    p50, p95 = _percentiles(took)
    limit_p50 = _percentiles(least)[0] if least else None
    ratio = p50 / limit_p50 if limit_p50 else None
    return Measure(what, p50, p95, 1 / fmean(took), limit, limit_p50, ratio)


def _percentiles(took: Sequence[float]) -> tuple[float, float]:
    cuts = quantiles(took, n=20, method="inclusive") if len(took) > 1 else [took[0]] * 19
    return 1_000 * cuts[9], 1_000 * cuts[18]


COMMANDS: Final = {"bench": bench}
