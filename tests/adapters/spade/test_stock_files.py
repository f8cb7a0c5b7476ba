"""Databases of spade_llm are refused and say how to bring them in; ours are shown as it documents them."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from spade_llm.memory import AgentBaseMemory as StockBaseMemory
from spade_llm.memory import AgentInteractionMemory as StockInteractionMemory

from memory_core import InvalidInputError, Memory, NotAStoreError
from memory_core.app.main import main
from memory_spade import MemoryLLMAgent, files
from memory_spade.memory import AgentBaseMemory, AgentInteractionMemory, SqliteBackend
from memory_spade.memory.exceptions import MemoryInitializationError
from memory_spade.testing.provider import ScriptedProvider
from tests.adapters.spade.saying import Jid, Start

AGENT = "agent@example.com"
FILE = "agent_example.com_base_memory.db"

Row = tuple[Any, ...]


def rows(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.execute("SELECT * FROM agent_memories").fetchall(), key=repr)


async def stock_database(folder: Path) -> list[Row]:
    memory = StockBaseMemory(AGENT, memory_path=str(folder))
    await memory.store_memory("preference", "User prefers JSON responses over XML", "a chat", 0.9)
    await memory.store_memory("fact", "The office closes at six")
    await memory.search_memories("JSON")
    return rows(folder / FILE)


def odd_database(path: Path, *odd: Row) -> None:
    """spade_llm's table, filled past its checks."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE agent_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, category TEXT NOT NULL, "
            "content TEXT NOT NULL, context TEXT, confidence REAL DEFAULT 1.0, created_at TIMESTAMP, "
            "last_accessed TIMESTAMP, access_count INTEGER DEFAULT 0)"
        )
        db.executemany("INSERT INTO agent_memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", odd)


def commands_in(error: MemoryInitializationError) -> list[list[str]]:
    """The shell commands of an error's sentence."""
    (quoted,) = re.findall("`(.*)`", str(error))
    return [shlex.split(each) for each in quoted.split(" && ")]


def follow(commands: list[list[str]]) -> None:
    """Do what the sentence says."""
    for name, *arguments in commands:
        if name == "mv":
            Path(arguments[0]).rename(arguments[1])
        else:
            assert name == "memory-core"
            assert main([*arguments, "--yes"]) == 0


async def refused(opening: Awaitable[object]) -> list[list[str]]:
    with pytest.raises(MemoryInitializationError, match="is a database of spade_llm; stop the processes") as raised:
        await opening
    return commands_in(raised.value)


@pytest.mark.parametrize("name", ["memories", "Ann's memories; all"])
async def test_a_database_of_stock_is_refused_untouched_and_the_sentence_says_how_to_bring_it_in(
    name: str, tmp_path: Path
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    await stock_database(folder)
    original = (folder / FILE).read_bytes()
    by_file = await refused(SqliteBackend(folder / FILE).initialize())
    commands = await refused(AgentBaseMemory(AGENT, folder).initialize())
    assert commands == by_file
    assert (folder / FILE).read_bytes() == original
    assert list(folder.iterdir()) == [folder / FILE]

    await asyncio.to_thread(follow, commands)
    memory = AgentBaseMemory(AGENT, folder)
    found = await memory.search_memories("what do they prefer for the API format?")
    assert (found[0].content, found[0].context, found[0].confidence) == (
        *("User prefers JSON responses over XML", "a chat", 0.9),
    )
    assert (await memory.get_memory_stats())["total_memories"] == 2
    await memory.cleanup()
    assert (folder / f"{FILE}.spade_llm").read_bytes() == original


async def test_an_agent_with_a_database_of_stock_does_not_start_and_says_why(
    tmp_path: Path, start: Start, jid: Jid
) -> None:
    await StockBaseMemory(jid("bot"), memory_path=str(tmp_path)).store_memory("fact", "written by stock")
    bot = MemoryLLMAgent(jid("bot"), "pw", ScriptedProvider(lambda _: ""), agent_base_memory=(True, tmp_path))
    with pytest.raises(NotAStoreError, match="&& memory-core import --format spade-llm"):
        await start(bot)


async def test_rows_that_no_record_can_hold_come_back_from_an_export_as_they_were(tmp_path: Path) -> None:
    odd: list[Row] = [
        ("", AGENT, "fact", "no id", None, 1.0, "2025-01-10T10:30:00", "2025-01-10T10:30:00", 0),
        ("1", AGENT, "", "", None, 7.0, "yesterday", None, -1),
        ("2", AGENT, "rumour", "other kind", "", 0.5, "2025-01-10T10:30:00.5", "2025-01-11T10:30:00.123456", 3),
        ("3", AGENT, "fact", b"\xff\xfe", 5, "high", 12, "2025-01-10T10:30:00", 2**62),
        ("4", AGENT, "fact", "two\nlines \x00 and NUL", "c", 0.0, "2025-01-10T10:30:00", "2025-01-10T10:30:00", 1),
    ]
    odd_database(tmp_path / FILE, *odd)
    before = without_ids(tmp_path / FILE)
    commands = await refused(AgentBaseMemory(AGENT, tmp_path).initialize())
    await asyncio.to_thread(follow, commands)
    async with Memory(tmp_path / FILE) as opened:
        handle = opened.bind(user=AGENT, collection=files.BASE_COLLECTION)
        assert await files.export_agent_memories(handle, tmp_path / "out.db", agent_id=AGENT) == 5
    assert without_ids(tmp_path / "out.db") == before


def without_ids(path: Path) -> list[Row]:
    """The rows without what changes when memories are brought in: a record has an id of its own, and has not been
    read."""
    return sorted((normal(row[1:7]) for row in rows(path)), key=repr)


def normal(row: Row) -> Row:
    """The same moment may be written with or without zeros behind the seconds."""
    return tuple(value.removesuffix(".500000").removesuffix(".5") if isinstance(value, str) else value for value in row)


async def test_agents_that_shared_a_file_in_stock_stay_apart(tmp_path: Path) -> None:
    """Stock gives `a@b.c` and `a_b.c` the same file."""
    for agent in ("a@b.c", "a_b.c"):
        await StockBaseMemory(agent, memory_path=str(tmp_path)).store_memory("fact", f"the secret of {agent}")
    await asyncio.to_thread(follow, await refused(AgentBaseMemory("a_b.c", tmp_path).initialize()))
    for agent in ("a@b.c", "a_b.c"):
        memory = AgentBaseMemory(agent, tmp_path)
        assert [entry.content for entry in await memory.get_recent_memories()] == [f"the secret of {agent}"]
        await memory.cleanup()


async def test_what_stock_kept_under_another_case_or_resource_is_the_agents_too(tmp_path: Path) -> None:
    written = "Agent@Example.com/phone"
    await StockBaseMemory(written, memory_path=str(tmp_path)).store_memory("fact", "learnt on the phone")
    StockInteractionMemory(written, str(tmp_path)).add_information("c", "noted on the phone")
    left_alone = {path: path.read_bytes() for path in tmp_path.iterdir()}  # noqa: ASYNC240
    (command,) = await refused(AgentBaseMemory(written, tmp_path).initialize())
    await asyncio.to_thread(follow, [command])
    memory, notes = AgentBaseMemory(written, tmp_path), AgentInteractionMemory(written, tmp_path)
    assert [entry.content for entry in await memory.get_recent_memories()] == ["learnt on the phone"]
    notes.add_information("c", "noted here")
    await memory.cleanup()
    desk = AgentBaseMemory("agent@example.com/desk", tmp_path)
    assert [entry.content for entry in await desk.get_recent_memories()] == ["learnt on the phone"]
    await desk.cleanup()
    assert AgentInteractionMemory(AGENT, tmp_path).get_information("c") == ["noted on the phone", "noted here"]
    assert {path: path.read_bytes() for path in left_alone} == left_alone


async def test_a_database_with_tables_of_others_is_not_taken_for_stocks(tmp_path: Path) -> None:
    odd_database(tmp_path / FILE)
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        db.execute("CREATE TABLE theirs (x)")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(MemoryInitializationError, match="is not a memory store"):
        await SqliteBackend(tmp_path / FILE).initialize()
    assert (tmp_path / FILE).read_bytes() == before


READER = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
names = [name for _, name, *_ in db.execute("PRAGMA table_info (agent_memories)")]
print(json.dumps([names, db.execute("SELECT * FROM agent_memories ORDER BY content").fetchall()]))
"""


@pytest.mark.process
async def test_any_sqlite_reader_sees_the_documented_table(tmp_path: Path) -> None:
    memory = AgentBaseMemory(AGENT, tmp_path)
    first = await memory.store_memory("first", "fact", context="why", confidence=0.5)
    second = await memory.store_memory("second", "pattern")
    gone = await memory.store_memory("third", "fact")
    await memory.delete_memory(gone)
    # Also while it is open here, and with nothing of ours imported there.
    command = [sys.executable, "-I", "-c", READER, str(tmp_path / FILE)]
    names, found = json.loads(await asyncio.to_thread(subprocess.check_output, command))
    assert names == [
        *("id", "agent_id", "category", "content", "context", "confidence"),
        *("created_at", "last_accessed", "access_count"),
    ]
    assert [row[:6] for row in found] == [
        [first, AGENT, "fact", "first", "why", 0.5],
        [second, AGENT, "pattern", "second", None, 1.0],
    ]
    assert [row[6] for row in found] == sorted(row[6] for row in found)
    entries = {entry.id: entry for entry in await memory.get_recent_memories()}
    assert found[0][6] == entries[first].created_at.isoformat().replace("+00:00", "Z")
    await memory.cleanup()


async def test_stock_reads_and_writes_what_is_exported_for_it(tmp_path: Path) -> None:
    memory = AgentBaseMemory(AGENT, tmp_path / "ours")
    await memory.store_memory("User prefers JSON", "preference", "a chat", 0.9)
    async with Memory(tmp_path / "ours" / FILE) as opened:
        handle = opened.bind(user=AGENT, collection=files.BASE_COLLECTION)
        assert await files.export_agent_memories(handle, tmp_path / FILE, agent_id=AGENT) == 1
        with pytest.raises(InvalidInputError, match="there is a file"):
            await files.export_agent_memories(handle, tmp_path / FILE, agent_id=AGENT)
    await memory.cleanup()

    stock = StockBaseMemory(AGENT, memory_path=str(tmp_path))
    await stock.store_memory("fact", "written by stock")
    (found,) = await stock.search_memories("JSON")
    assert (found.category, found.content, found.context, found.confidence) == (
        *("preference", "User prefers JSON", "a chat", 0.9),
    )
    assert {row[3] for row in rows(tmp_path / FILE)} == {"User prefers JSON", "written by stock"}


@pytest.mark.parametrize("order", [lambda pair: pair, reversed], ids=["stock first", "ours first"])
def test_ids_that_make_the_same_name_in_other_letters_keep_their_notes(
    order: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    """`Bot_X` is another agent than `Bot@X`, whose file stock would call the same."""
    StockInteractionMemory("Bot_X", str(tmp_path)).add_information("c", "of Bot_X")
    for agent in order(["Bot@X", "Bot_X"]):
        AgentInteractionMemory(agent, tmp_path).add_information("c", f"of {agent} here")
    assert AgentInteractionMemory("Bot_X", tmp_path).get_information("c") == ["of Bot_X", "of Bot_X here"]
    assert AgentInteractionMemory("bot@x/home", tmp_path).get_information("c") == ["of Bot@X here"]
    assert list(tmp_path.glob("*.set-aside-*")) == []
