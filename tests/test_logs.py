"""The log for operators; no line of any library shows what is remembered, asked, or whose it is."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core import (
    Draft,
    DuplicateIdError,
    Embedder,
    EmbeddingError,
    FieldCondition,
    InvalidInputError,
    Memory,
    Patch,
    RecordNotFoundError,
    Where,
    run_sync,
    utc_now,
)
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.embedding.openai import OpenAiEmbedder
from memory_core.storage.sqlite import schema
from tests.embedding.hosted_server import KEY, EmbeddingServer, Fault, running

SECRET = "zanzibar"
"""In every text, query, owner and other value of these tests, and in nothing else."""
USER = f"{SECRET}@example.com"


class Lines(logging.Handler):
    """Everything that any logger of the process says, at any level, as it would be written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def naming(self, *words: str) -> list[str]:
        return [line for line in self.lines if any(word in line.lower() for word in words)]

    def of(self, name: str) -> list[str]:
        return [line for line in self.lines if line.startswith(f"{name} ")]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root, handler = logging.getLogger(), Lines()
    level = root.level
    loggers = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [(each, each.level, each.disabled, each.propagate) for each in loggers]
    for each in loggers:  # libraries silence others when they are imported, as litellm does with httpx
        each.level, each.disabled, each.propagate = logging.NOTSET, False, True
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)  # and every logger forgets what it was enabled for
    yield handler
    root.removeHandler(handler)
    for each, its_level, disabled, propagate in before:
        each.level, each.disabled, each.propagate = its_level, disabled, propagate
    root.setLevel(level)


class Quoting(HashingEmbedder):
    """Fails, and says with which texts."""

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ValueError(f"these are too much for me: {texts}")

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        raise ValueError(f"this is too much for me: {text}")


async def everything(memory: Memory) -> None:
    """Every operation of a memory, an owner and an operator, also such that fail."""
    ann = memory.bind(app=f"{SECRET} app", user=USER, session=f"{SECRET} session")
    hour = timedelta(hours=1)
    keyed = Draft(f"{SECRET} tea", author=SECRET, data={SECRET: SECRET}, tags=[SECRET], source_key=SECRET)
    one = (await ann.add(keyed)).id
    await ann.add_many([f"{SECRET} {number}" for number in range(20)], embed="later")
    await ann.put_many([Draft(f"{SECRET} put", source_key=f"{SECRET} key")], remove=[f"{SECRET} other"])
    for mode in ("hybrid", "lexical", "substring", "vector"):
        await ann.search(f"where is {SECRET}?", mode=mode, explain=True)
    await ann.search(SECRET, diversity=0.5, where=Where(keywords=[SECRET], data={SECRET: SECRET}))
    await ann.search_by_vector([0.125] * 512)
    page = await ann.list(where=Where(matching=[FieldCondition("author", "eq", SECRET)]), touch=True)
    assert page.records[0].text == f"{SECRET} tea"
    await ann.get(one)
    await ann.update(one, Patch(text=f"{SECRET} changed"))
    await ann.supersede(one, f"{SECRET} new")
    await ann.history(one)
    await ann.collections(Where(under=SECRET))
    await ann.postpone({one: utc_now() + hour})
    await ann.stats()
    await memory.operator().search(SECRET)
    await memory.operator().stats()
    assert await memory.operator().check() == []
    await memory.operator().vacuum()
    with suppress(InvalidInputError):
        await ann.search(SECRET, mode=SECRET)  # type: ignore[arg-type]
    with suppress(DuplicateIdError):
        await ann.add(Draft(SECRET, id=one))
    with suppress(RecordNotFoundError):
        await ann.update("nothing", Patch(kind=SECRET))
    await ann.delete(one)
    await ann.sweep()
    await ann.erase()


def debugged(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run work on a loop that is being debugged, and takes every turn for a slow one, which is worth a line."""

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = 0
        await work()

    asyncio.run(watched())


async def failing(embedder: Embedder, path: Path) -> None:
    """A memory whose embedder fails."""
    async with Memory(path, embedder=embedder) as memory:
        ann = memory.bind(user=USER)
        await ann.add(f"{SECRET} tea")
        await ann.add_many([f"{SECRET} coffee", f"{SECRET} cocoa"], embed="later")
        with suppress(EmbeddingError):
            await ann.search(f"where is {SECRET}?")
        await asyncio.sleep(0.05)  # the background tries as well
        with suppress(EmbeddingError):
            await ann.erase()


def shows_nothing(lines: Lines) -> None:
    assert lines.lines
    found = lines.naming(SECRET, "0.125", "array(", "float32")
    assert not found, "\n".join(line[:500] for line in found[:9])


def test_no_line_shows_what_passes_through_a_file(tmp_path: Path, lines: Lines) -> None:
    async def work() -> None:
        async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
            await everything(memory)
            await memory.reembed(HashingEmbedder(dimensions=64))

    debugged(work)
    shows_nothing(lines)


def test_no_line_quotes_an_embedder_that_quotes_what_it_was_given(tmp_path: Path, lines: Lines) -> None:
    debugged(lambda: failing(Quoting(), tmp_path / "memory.db"))
    shows_nothing(lines)
    assert lines.naming("vectors are pending: embeddingerror, caused by valueerror at ")


@pytest.mark.parametrize("status", [200, 400])
def test_no_line_quotes_a_server_that_embeds(tmp_path: Path, lines: Lines, status: int) -> None:
    quote = Fault(status, f'{{"error": {{"message": "no {SECRET}"}}}}'.encode())
    server = EmbeddingServer(faults=[quote] * (9 if status == 400 else 0))
    with running(server):
        embedder = OpenAiEmbedder("text-embedding-3-small", dimensions=64, api_key=KEY, base_url=server.url)
        debugged(lambda: failing(embedder, tmp_path / "memory.db"))
    shows_nothing(lines)
    assert lines.of("httpx")
    assert not lines.naming(KEY)


@pytest.mark.process
def test_the_loop_of_the_memories_is_not_debugged() -> None:
    code = "from memory_core.adapting import core_loop; assert not core_loop().loop.get_debug()"
    subprocess.run([sys.executable, "-X", "dev", "-c", code], check=True)


def test_opening_upgrading_re_embedding_and_sweeping_are_said_once_each(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = tmp_path / "memory.db", utc_now()
    with Memory(path, embedder=None, clock=lambda: now) as memory:
        run_sync(memory.bind(user=USER).add, Draft(f"{SECRET} tea", expires_at=now + timedelta(hours=1)))
        now += timedelta(hours=2)
        run_sync(memory.bind(user=USER).sweep)
        run_sync(memory.reembed, HashingEmbedder())
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, lambda db: None))
    with Memory(path, embedder=None):
        pass
    formats = len(schema.MIGRATIONS)
    said = [line.partition("INFO ")[2] for line in lines.lines if line.startswith("memory_core") and "INFO" in line]
    assert [re.sub(r"[\d.]+ s$", "0 s", line) for line in said] == [
        f"opened {str(path)!r}",
        "swept 1 expired records",
        f"re-embedding {str(path)!r} with hashing",
        f"re-embedded {str(path)!r}: 0 vectors in 0 s",
        f"upgraded a memory file from format {formats - 1} to {formats}",
        f"opened {str(path)!r}",
    ]
    shows_nothing(lines)
