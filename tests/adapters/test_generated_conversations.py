"""Whatever a person does in a conversation, recall has what it shows: once, and nothing that was taken back.

Each framework is driven through a random sequence of what it offers, in two processes. The oracle is what the framework
itself shows at the end; docs/conversations.md has the tables.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from frameworks import own_container
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import Memory
from memory_core.storage.sqlite.store import SqliteStore
from tests.adapters.chats.chat import DOINGS, Chat
from tests.adapters.chats.every import CHATS

PROCESSES = 2
Doing = tuple[str, int, int]
"""With a number that chooses the place, and the process."""


def opened(file: Path) -> Memory:
    """The memory as another process opens it: with a store of its own."""
    return Memory(SqliteStore(file, embedder=None, clock=lambda: datetime.now(UTC)))


async def difference(name: str, doings: Sequence[Doing], folder: str) -> tuple[list[str], list[str]]:
    file = Path(folder) / "memory.db"
    async with opened(file) as first, opened(file) as second:
        handles = [memory.bind(app="demo", user="ann") for memory in (first, second)]
        chat: Chat = CHATS[name](handles)
        await chat.do("say", 0, "text first", process=0)
        for number, (what, place, process) in enumerate(doings):
            await chat.do(what, place, f"text {number}", process=process)
        shown = await chat.shown()
        page = await handles[0].list(limit=1_000)
        return sorted(record.text for record in page.records), sorted(shown)


def check(name: str, doings: Sequence[Doing]) -> None:
    with own_container(), tempfile.TemporaryDirectory() as folder:
        remembered, shown = asyncio.run(difference(name, doings, folder))
    assert remembered == shown


PLACES, EITHER = st.integers(0, 5), st.integers(0, PROCESSES - 1)
SEQUENCES = st.lists(st.tuples(st.sampled_from(DOINGS), PLACES, EITHER), max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHATS)
@settings(max_examples=5)
@given(doings=SEQUENCES)
def test_the_memory_has_what_the_conversation_shows(name: str, doings: list[Doing]) -> None:
    check(name, doings)


@pytest.mark.torture
@pytest.mark.parametrize("name", CHATS)
@settings(max_examples=500)
@given(doings=SEQUENCES)
def test_the_memory_has_what_many_conversations_show(name: str, doings: list[Doing]) -> None:
    check(name, doings)
