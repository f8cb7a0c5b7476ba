"""The end of a run compares its own turn only, if that is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_core import BoundMemory, Draft, Memory, Page, Scope
from memory_core.adapting import ListRequest, SqliteStore, Thread, Visible, digest, keep

SESSION = "monday"
LONG = 100


class CountingStore(SqliteStore):
    """Counts the records that it is asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, embedder=None, clock=lambda: datetime.now(UTC))
        self.asked = 0

    def begin_list(self, scope: Scope, request: ListRequest, done: asyncio.Future[Page]) -> None:
        self.asked += request.limit
        super().begin_list(scope, request, done)


def talk(count: int) -> list[Visible]:
    return [Visible(("user", "assistant")[n % 2], f"message {n}", f"{n}") for n in range(count)]


async def kept(handle: BoundMemory, visible: Sequence[Visible], began: Sequence[Visible], *, is_over: bool) -> None:
    async def drafts(places: Sequence[int]) -> list[Draft]:
        found = [visible[place] for place in places]
        return [Draft(each.text, role=each.role, kind="message", session=SESSION) for each in found]

    digests = {message.id or "": digest(message.text) for message in began}
    thread = Thread(visible, digests, is_whole=True, is_over=is_over)
    await keep(handle, SESSION, thread, range(len(visible)), drafts)


async def stored(handle: BoundMemory) -> list[str]:
    return [record.text for record in (await handle.list(order="oldest", limit=1_000)).records]


async def test_it_reads_its_turn_and_not_the_conversation(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "memory.db")
    async with Memory(store) as memory:
        handle, said = memory.bind(user="ann"), talk(LONG + 2)
        begun = said[:-1]
        await kept(handle, begun, begun, is_over=False)
        store.asked = 0
        await kept(handle, said, begun, is_over=True)
        assert 0 < store.asked < LONG / 2
        assert await stored(handle) == [message.text for message in said]


@pytest.mark.parametrize("length", [3, LONG + 1])
async def test_it_stores_all_that_was_not_stored_when_the_run_began(length: int) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle, said = memory.bind(user="ann"), talk(length + 1)
        await kept(handle, said, said[:length], is_over=True)
        assert await stored(handle) == [message.text for message in said]


async def test_it_notes_what_the_run_has_changed_before_its_turn() -> None:
    """Or else the next run would take that for an edit."""
    async with Memory(":memory:", embedder=None) as memory:
        handle, said = memory.bind(user="ann"), talk(6)
        await kept(handle, said[:5], said[:5], is_over=False)
        cleared = [Visible("user", "[cleared]", "0"), *said[1:]]
        await kept(handle, cleared, said[:5], is_over=True)
        more = [*cleared, Visible("user", "and then?", "6")]
        await kept(handle, more, more, is_over=False)
        assert await stored(handle) == [*(message.text for message in said), "and then?"]
