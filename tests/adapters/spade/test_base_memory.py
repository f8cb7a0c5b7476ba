"""Long-term memories: every documented call, every error by its documented name, on the real store."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory_core import MemoryCoreError
from memory_core.storage.sqlite import connection
from memory_spade.memory import AgentBaseMemory, MemoryEntry, SqliteBackend
from memory_spade.memory.exceptions import (
    MemoryBackendError,
    MemoryInitializationError,
    MemorySearchError,
    MemoryStorageError,
)
from memory_spade.testing.backend import ListBackend
from tests.adapters.spade.saying import Watched

AGENT = "agent@example.com"


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AgentBaseMemory]:
    opened = AgentBaseMemory(AGENT, str(tmp_path))
    yield opened
    await opened.cleanup()


def test_the_documented_signatures() -> None:
    expected = {
        "initialize": "(self) -> 'None'",
        "store_memory": (
            "(self, content: 'str', category: 'str', context: 'str | None' = None, confidence: 'float' = 1.0) -> 'str'"
        ),
        "search_memories": (
            "(self, query: 'str', limit: 'int' = 10, category: 'str | None' = None) -> 'list[MemoryEntry]'"
        ),
        "get_memories_by_category": "(self, category: 'str', limit: 'int' = 10) -> 'list[MemoryEntry]'",
        "get_recent_memories": "(self, limit: 'int' = 10) -> 'list[MemoryEntry]'",
        "update_memory": (
            "(self, memory_id: 'str', content: 'str | None' = None, category: 'str | None' = None, "
            "context: 'str | None' = None, confidence: 'float | None' = None) -> 'bool'"
        ),
        "delete_memory": "(self, memory_id: 'str') -> 'bool'",
        "get_memory_stats": "(self) -> 'dict[str, Any]'",
        "cleanup": "(self) -> 'None'",
    }
    assert {name: str(inspect.signature(getattr(AgentBaseMemory, name))) for name in expected} == expected
    assert list(inspect.signature(AgentBaseMemory).parameters) == ["agent_id", "memory_path", "backend"]


async def test_a_stored_memory_comes_back_whole(memory: AgentBaseMemory) -> None:
    await memory.initialize()
    before = datetime.now(UTC)
    memory_id = await memory.store_memory(
        content="API endpoint requires authentication header",
        category="fact",
        context="API integration discussion",
        confidence=0.9,
    )
    (entry,) = await memory.search_memories(query="API authentication", limit=5, category="fact")
    assert (entry.id, entry.agent_id, entry.category) == (memory_id, AGENT, "fact")
    assert entry.content == "API endpoint requires authentication header"
    assert (entry.context, entry.confidence) == ("API integration discussion", 0.9)
    assert before <= entry.created_at <= entry.last_accessed <= datetime.now(UTC)


async def test_searches_and_listings_count_as_accesses_and_recent_memories_do_not(memory: AgentBaseMemory) -> None:
    await memory.store_memory("counted", "fact")
    await memory.search_memories("counted")
    await memory.get_memories_by_category("fact")
    for _ in range(2):
        (entry,) = await memory.get_recent_memories()
        assert entry.access_count == 2


async def test_a_search_is_answered_although_it_cannot_be_counted(
    memory: AgentBaseMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 50)
    await memory.store_memory("counted", "fact")
    with closing(sqlite3.connect(tmp_path / "agent_example.com_base_memory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert [entry.access_count for entry in await memory.search_memories("counted")] == [1]
        assert [entry.access_count for entry in await memory.get_recent_memories()] == [0]
        other.execute("ROLLBACK")
    assert "was not counted: StoreUnavailableError, caused by OperationalError SQLITE_BUSY at " in caplog.text
    assert [entry.access_count for entry in await memory.search_memories("counted")] == [1]
    assert [entry.access_count for entry in await memory.get_recent_memories()] == [1]


async def test_the_documents_positional_call_works(memory: AgentBaseMemory) -> None:
    await memory.store_memory("content", "fact")
    assert [entry.content for entry in await memory.get_memories_by_category("fact", 20)] == ["content"]


async def test_a_question_finds_what_words_alone_do_not(memory: AgentBaseMemory) -> None:
    """Stock finds nothing: it looks for the question as a substring."""
    await memory.store_memory("User prefers JSON responses over XML", "preference")
    await memory.store_memory("The office closes at six", "fact")
    found = await memory.search_memories("what do they prefer for the API format?")
    assert found[0].content == "User prefers JSON responses over XML"


@pytest.mark.parametrize(
    "query", ["50% off", "a_b", '"quoted"', "NOT (x AND", "c:d*", "Ätherisches Öl", "東京タワー", "a' OR 1=1 --"]
)
async def test_any_query_is_only_text(memory: AgentBaseMemory, query: str) -> None:
    await memory.store_memory(f"It says {query} here", "fact")
    await memory.store_memory("Nothing of the sort", "fact")
    assert (await memory.search_memories(query))[0].content == f"It says {query} here"


async def test_a_blank_query_finds_nothing(memory: AgentBaseMemory) -> None:
    await memory.store_memory("something", "fact")
    assert await memory.search_memories("") == await memory.search_memories("  ") == []


@pytest.mark.parametrize("limit", [0, -1, None, "5", 2.5, True])
async def test_a_limit_that_is_none_is_a_search_error(memory: AgentBaseMemory, limit: Any) -> None:
    for call in (
        memory.search_memories("x", limit),
        memory.get_memories_by_category("fact", limit),
        memory.get_recent_memories(limit),
    ):
        with pytest.raises(MemorySearchError, match="limit"):
            await call


@pytest.mark.parametrize(
    "given",
    [
        {"content": "", "category": "fact"},
        {"content": None, "category": "fact"},
        {"content": "x", "category": "nonsense"},
        {"content": "x", "category": "Fact"},
        {"content": "x", "category": "fact", "confidence": 7},
        {"content": "x", "category": "fact", "confidence": "high"},
        {"content": "x", "category": "fact", "context": object()},
        {"content": "\ud800", "category": "fact"},
    ],
)
async def test_what_cannot_be_stored_is_a_storage_error(memory: AgentBaseMemory, given: dict[str, Any]) -> None:
    with pytest.raises(MemoryStorageError):
        await memory.store_memory(**given)
    memory_id = await memory.store_memory("something", "fact")
    changes = {
        name: value for name, value in given.items() if value is not None and (name, value) != ("category", "fact")
    }
    if changes and changes != {"content": "x"}:
        with pytest.raises(MemoryStorageError):
            await memory.update_memory(memory_id, **changes)
    assert [entry.content for entry in await memory.get_recent_memories()] == ["something"]


async def test_categories_filter_before_the_limit(memory: AgentBaseMemory) -> None:
    for number in range(5):
        await memory.store_memory(f"the API fact {number}", "fact")
    await memory.store_memory("the API is liked", "preference")
    assert [entry.content for entry in await memory.search_memories("API", 1, "preference")] == ["the API is liked"]
    assert [entry.content for entry in await memory.get_memories_by_category("fact", 2)] == [
        "the API fact 4",
        "the API fact 3",
    ]
    with pytest.raises(MemorySearchError, match="category must be one of"):
        await memory.search_memories("API", category="nonsense")
    with pytest.raises(MemorySearchError, match="category must be one of"):
        await memory.get_memories_by_category("nonsense")


async def test_update_changes_what_is_given_and_nothing_else(memory: AgentBaseMemory) -> None:
    memory_id = await memory.store_memory("old words", "fact", "the context", 0.5)
    assert await memory.update_memory(memory_id=memory_id, content="new words", confidence=0.95) is True
    (entry,) = await memory.search_memories("new words")
    assert (entry.content, entry.category, entry.context, entry.confidence) == (
        "new words",
        "fact",
        "the context",
        0.95,
    )
    assert await memory.update_memory(memory_id, category="pattern", context="another") is True
    (entry,) = await memory.get_memories_by_category("pattern")
    assert (entry.content, entry.context) == ("new words", "another")
    assert await memory.update_memory("mem_123", content="x") is False
    with pytest.raises(MemoryStorageError, match="has no colour"):
        await memory.backend.update_memory(memory_id, colour="red")


async def test_delete_tells_whether_there_was_something(memory: AgentBaseMemory) -> None:
    memory_id = await memory.store_memory("gone soon", "fact")
    assert await memory.delete_memory(memory_id) is True
    assert await memory.delete_memory(memory_id) is False
    assert await memory.search_memories("gone soon") == []


async def test_the_same_content_again_is_another_memory(memory: AgentBaseMemory) -> None:
    first, second = [await memory.store_memory("twice", "fact") for _ in range(2)]
    assert first != second
    assert (await memory.get_memory_stats())["total_memories"] == 2


async def test_reading_recent_memories_twice_gives_the_same_list(memory: AgentBaseMemory) -> None:
    """Stock reverses them with every read."""
    for number in range(5):
        await memory.store_memory(f"memory {number}", "fact")
    first = [entry.content for entry in await memory.get_recent_memories(3)]
    assert first == ["memory 4", "memory 3", "memory 2"]
    assert [entry.content for entry in await memory.get_recent_memories(3)] == first


def commits(wal: Path) -> int:
    """The number of transactions that a write-ahead log holds: their last frame says how many pages the database
    has."""
    log = wal.read_bytes()
    frame = 24 + int.from_bytes(log[8:12])
    return sum(any(log[at + 4 : at + 8]) for at in range(32, len(log), frame))


async def test_a_read_makes_one_write_at_most(memory: AgentBaseMemory, tmp_path: Path) -> None:
    """Stock makes one for each hit."""
    for number in range(5):
        await memory.store_memory(f"memory {number}", "fact")
    wal = tmp_path / "agent_example.com_base_memory.db-wal"
    for read, writes in (
        (memory.search_memories("memory"), 1),
        (memory.get_memories_by_category("fact"), 1),
        (memory.get_memories_by_category("preference"), 0),
        (memory.get_recent_memories(), 0),
        (memory.get_memory_stats(), 0),
    ):
        before = commits(wal)
        await read
        await memory.get_recent_memories()  # waits for what a search still has to count
        assert commits(wal) - before == writes


async def test_what_was_searched_for_becomes_recent(memory: AgentBaseMemory) -> None:
    await memory.store_memory("the lighthouse", "fact")
    for number in range(3):
        await memory.store_memory(f"memory {number}", "fact")
    await memory.search_memories("lighthouse", limit=1)
    assert [entry.content for entry in await memory.get_recent_memories(2)] == ["the lighthouse", "memory 2"]


async def test_the_stats_have_the_documents_keys_and_stocks(memory: AgentBaseMemory) -> None:
    empty = await memory.get_memory_stats()
    assert (empty["total_memories"], empty["oldest_memory"], empty["avg_confidence"]) == (0, None, 0.0)
    await memory.store_memory("one", "fact", confidence=0.5)
    await memory.store_memory("two", "preference")
    stats = await memory.get_memory_stats()
    assert stats["total_memories"] == 2
    assert (
        stats["categories"] == {"fact": 1, "pattern": 0, "preference": 1, "capability": 0} == stats["category_counts"]
    )
    assert stats["avg_confidence"] == pytest.approx(0.75)
    assert stats["oldest_memory"] < stats["newest_memory"]
    assert stats["newest_memory"].endswith("Z")


async def test_agents_in_one_file_never_reach_each_others_memories(tmp_path: Path) -> None:
    backend = SqliteBackend(database_path=tmp_path / "all.db")
    ann, bob = AgentBaseMemory("ann@b.c", backend=backend), AgentBaseMemory("ann_b.c", backend=backend)
    memory_id = await ann.store_memory("Ann's secret", "fact")
    assert await bob.search_memories("secret") == await bob.get_recent_memories() == []
    assert await bob.update_memory(memory_id, content="x") is False
    assert await bob.delete_memory(memory_id) is False
    assert (await bob.get_memory_stats())["total_memories"] == 0
    with pytest.raises(MemorySearchError, match="not of"):
        await bob.backend.search_memories("ann@b.c", "secret")
    assert (await backend.search_memories("ANN@b.c/phone", "secret"))[0].content == "Ann's secret"
    assert await backend.update_memory(memory_id, content="Ann's news") is True
    assert (await backend.get_recent_memories("ann@b.c"))[0].content == "Ann's news"
    assert len(await backend.get_memories_by_category("ann@b.c", "fact")) == 1
    assert (await backend.get_memory_stats("ann@b.c"))["total_memories"] == 1
    assert await backend.delete_memory(memory_id) is True
    assert await backend.delete_memory(memory_id) is False
    assert await backend.update_memory(memory_id, content="x") is False
    await backend.cleanup()


async def test_memory_without_a_file_works_whole_and_is_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    memory, other = AgentBaseMemory(AGENT, memory_path=":memory:"), AgentBaseMemory(AGENT, memory_path=":memory:")
    memory_id = await memory.store_memory("only here", "fact")
    assert len(await memory.search_memories("here")) == len(await memory.get_recent_memories()) == 1
    assert await memory.update_memory(memory_id, content="still here") is True
    assert (await memory.get_memory_stats())["total_memories"] == 1
    assert await other.get_recent_memories() == []
    await memory.cleanup()
    assert await memory.get_recent_memories() == []
    await memory.store_memory("used again", "fact")
    for each in (memory, other):
        await each.cleanup()
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


async def test_cleanup_can_be_followed_by_further_use(memory: AgentBaseMemory) -> None:
    await memory.store_memory("kept", "fact")
    for _ in range(2):
        await memory.cleanup()
        await memory.cleanup()
        assert [entry.content for entry in await memory.get_recent_memories()] == ["kept"]


async def test_a_foreign_file_is_an_initialization_error_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "agent_example.com_base_memory.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    before = path.read_bytes()
    memory = AgentBaseMemory(AGENT, tmp_path)
    with pytest.raises(MemoryInitializationError, match="is not a memory store"):
        await memory.initialize()
    with pytest.raises(MemoryInitializationError):
        await memory.store_memory("x", "fact")
    assert path.read_bytes() == before


def test_the_errors_form_the_documented_family() -> None:
    for error in (MemoryInitializationError, MemoryStorageError, MemorySearchError):
        assert issubclass(error, MemoryBackendError)
    assert issubclass(MemoryBackendError, MemoryCoreError)


def test_an_entry_is_made_as_the_document_and_as_stock_make_it() -> None:
    now = datetime.now()  # noqa: DTZ005  (the document's)
    entry = MemoryEntry(
        id="mem_123",
        agent_id=AGENT,
        category="fact",
        content="API requires authentication header",
        context="API integration discussion",
        confidence=0.9,
        created_at=now,
        last_accessed=now,
        access_count=3,
    )
    assert (entry.id, entry.created_at, entry.access_count) == ("mem_123", now, 3)
    short = MemoryEntry(agent_id=AGENT, category="fact", content="x")
    assert (short.context, short.confidence, short.access_count) == (None, 1.0, 0)
    assert short.id != MemoryEntry(agent_id=AGENT, category="fact", content="x").id


async def test_a_local_time_is_stored_as_the_moment_it_is(tmp_path: Path) -> None:
    backend = SqliteBackend(":memory:")
    now = datetime.now()  # noqa: DTZ005
    await backend.store_memory(MemoryEntry(id="mem_1", agent_id=AGENT, category="fact", content="x", created_at=now))
    (entry,) = await backend.get_recent_memories(AGENT)
    assert entry.created_at == now.astimezone(UTC)
    with pytest.raises(MemoryStorageError):
        await backend.store_memory(MemoryEntry(id="mem_1", agent_id=AGENT, category="fact", content="again"))
    await backend.cleanup()


async def test_a_backend_of_ones_own_is_opened_used_and_closed() -> None:
    backend = Watched()
    memory = AgentBaseMemory(AGENT, backend=backend)
    memory_id = await memory.store_memory("theirs", "fact", confidence=0.5)
    assert (await memory.search_memories("their"))[0].confidence == 0.5
    assert await memory.update_memory(memory_id, content="changed") is True
    assert (await memory.get_recent_memories())[0].content == "changed"
    assert (await memory.get_memory_stats())["total_memories"] == 1
    assert backend.opened == 1
    await memory.cleanup()
    assert backend.opened == 0
    with pytest.raises(TypeError, match="memory_path='x'"):
        AgentBaseMemory(AGENT, "x", backend)


async def test_many_tasks_may_use_one_memory_at_once(memory: AgentBaseMemory) -> None:
    ids = await asyncio.gather(*(memory.store_memory(f"memory {number}", "fact") for number in range(100)))
    assert len(set(ids)) == 100
    assert (await memory.get_memory_stats())["total_memories"] == 100


WRITER = """
import asyncio, sys
from pathlib import Path
from memory_core import Memory
from memory_spade import files
from memory_spade.memory import AgentBaseMemory
from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.place import Place

AGENT = "agent@example.com"

async def main(folder, name, count):
    path = Path(folder, "agent_example.com_base_memory.db")
    files.prepare_agent_memories(path)
    place = Place(lambda: Memory(path, embedder=None))  # vectors of 2,400 texts would take longer than all the rest
    memory = AgentBaseMemory(AGENT, backend=HandleBackend(place))
    async def write(numbers):
        for number in numbers:
            await memory.store_memory(f"memory {number} of {name}", "fact")
            print(f"memory {number} of {name}", flush=True)
    await asyncio.gather(*(write(range(start, count, 8)) for start in range(8)))
    await memory.cleanup()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.process
@pytest.mark.slow  # five interpreters
@pytest.mark.parametrize("count", [100, pytest.param(600, marks=pytest.mark.torture)])
def test_four_processes_write_at_once_and_a_killed_fifth_loses_nothing_it_acknowledged(
    tmp_path: Path, count: int
) -> None:
    """Stock answers a good part of such writes with `database is locked`."""

    def writer(name: str, count: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITER, str(tmp_path), name, str(count)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    victim = writer("victim", 100_000)
    running = [writer(name, count) for name in "abcd"]
    assert victim.stdout is not None
    acknowledged = [victim.stdout.readline() for _ in range(5)]
    victim.send_signal(signal.SIGKILL)
    acknowledged += victim.communicate()[0].splitlines(keepends=True)
    outputs = [process.communicate(timeout=300)[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert [len(output) for output in outputs] == [count] * 4

    with closing(sqlite3.connect(tmp_path / "agent_example.com_base_memory.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = {content for (content,) in database.execute("SELECT content FROM agent_memories")}
    assert {line.strip() for line in acknowledged if line.endswith("\n")} <= kept
    assert {line for output in outputs for line in output} <= kept


async def test_no_more_is_shown_than_was_asked_for_whatever_a_backend_returns() -> None:
    class Generous(ListBackend):
        async def search_memories(
            self, agent_id: str, query: str, limit: int = 10, category: str | None = None
        ) -> list[MemoryEntry]:
            return await super().search_memories(agent_id, query, 100, category)

        async def get_memories_by_category(self, agent_id: str, category: str, limit: int = 10) -> list[MemoryEntry]:
            return await super().get_memories_by_category(agent_id, category, 100)

        async def get_recent_memories(self, agent_id: str, limit: int = 10) -> list[MemoryEntry]:
            return await super().get_recent_memories(agent_id, 100)

    memory = AgentBaseMemory(AGENT, backend=Generous())
    for number in range(5):
        await memory.store_memory(f"fact {number}", "fact")
    assert len(await memory.search_memories("fact", limit=2)) == 2
    assert len(await memory.get_memories_by_category("fact", limit=3)) == 3
    assert len(await memory.get_recent_memories(limit=1)) == 1
