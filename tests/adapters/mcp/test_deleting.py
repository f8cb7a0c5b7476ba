"""A memory that a client deletes is in no file when its call returns, or the answer says that it is."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from calling import connected, in_process, over_stdio

from memory_core import Memory
from memory_core.embedding.hashing import HashingEmbedder

pytestmark = pytest.mark.uncovered

SECRET = "zq7x"
"""Begins every word that must not be found afterwards."""
TEXT = f"{SECRET}patient has {SECRET}hepatitis"


def traces(db: Path) -> list[str]:
    """The files beside the memory, and itself, that contain the secret."""
    paths = sorted(db.parent.glob(f"{db.name}*"))
    # Reading an open database in this process would drop its locks.
    return [
        path.name
        for path in paths
        if SECRET.encode() in subprocess.run(["cat", path], check=True, stdout=subprocess.PIPE).stdout
    ]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_deleted_memory_is_in_no_file_while_the_server_goes_on(transport: str, tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    async with connected(transport, db) as call:
        for number in range(20):
            await call.store(f"harmless number {number} " + "filler " * number)
        memory_id = await call.store(TEXT, user=f"{SECRET}user", tags=[f"{SECRET}tag"])
        await call.ok("memory_update", id=memory_id, content=f"{TEXT} and more")
        assert traces(db)
        assert await call.ok("memory_delete", id=memory_id) == {
            "id": memory_id,
            "deleted": True,
            "derived": 0,
            "filesClean": True,
        }
        assert traces(db) == []
        assert len((await call.ok("memory_list"))["memories"]) == 20
        assert memory_id in await call.refused("memory_delete", id=memory_id)


async def test_the_answer_says_that_a_reader_elsewhere_keeps_the_text_for_now(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    async with over_stdio(db) as call:
        first, second = await call.store(TEXT), await call.store("Ann rows")
        with closing(sqlite3.connect(db)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM record").fetchall()
            answer = await call.client.call_tool("memory_delete", {"id": first})
            assert answer.structured_content is not None
            assert "may contain its text" in answer.structured_content.pop("note")
            assert answer.structured_content == {
                "id": first,
                "deleted": True,
                "derived": 0,
                "filesClean": False,
            }
            assert "may contain its text" in str(answer.content)
            assert traces(db)
        assert (await call.ok("memory_delete", id=second))["filesClean"]
        assert traces(db) == []


async def test_a_memory_deleted_from_a_shared_space_is_in_no_file_either(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    async with Memory(db, embedder=HashingEmbedder()) as memory:
        own, team = memory.bind(user="ann"), memory.bind(user="team")
        shared = await team.add(TEXT)
        async with in_process(own.sharing({"team": team}, writable=["team"])) as call:
            assert (await call.ok("memory_delete", id=shared.id))["filesClean"]
        assert traces(db) == []
