"""Each tool call of an agent is a step of its conversation's bank, and the next request sees the last ones."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from frameworks import own_container

from memory_core import BoundMemory, Memory, MemoryBank, Quota
from tests.adapters.drivers.working import WORKING
from tests.recall.blocks import has_block

EVERY = pytest.mark.parametrize("name", WORKING)


@pytest.fixture(autouse=True)
def container() -> Iterator[None]:
    with own_container():
        yield


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=None) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")


@EVERY
async def test_each_tool_call_is_a_step_and_the_next_request_shows_it(
    name: str, memory: Memory, ann: BoundMemory
) -> None:
    agent = WORKING[name](ann)
    first, second, third = await agent.work("one", "two", task="monday")
    assert not has_block(first)
    assert "Step 1 - measure" in second
    assert "two has 900 psi" in third.partition("Step 2 - measure")[2]
    await agent.work("one", task="monday")
    entries = MemoryBank(memory=ann, task="monday").get_all_memories()
    assert [(entry.skill_name, entry.command, entry.step_number) for entry in entries] == [
        ("measure", '{"tank": "one"}', 1),
        ("measure", '{"tank": "two"}', 2),
        ("measure", '{"tank": "one"}', 3),
    ]
    assert (await memory.bind(app="demo", user="bob").stats()).records == 0


@EVERY
async def test_a_tool_that_fails_is_remembered_as_such(name: str, ann: BoundMemory) -> None:
    with suppress(RuntimeError):  # which ends the run of some frameworks
        await WORKING[name](ann).work("three", task="monday")
    (entry,) = MemoryBank(memory=ann, task="monday").get_all_memories()
    assert entry.tags == ["error"]
    assert "no such tank" in entry.result


@EVERY
async def test_a_conversation_is_a_task_and_needs_no_memory_of_its_own(name: str) -> None:
    agent = WORKING[name](None)
    for task in ("monday", "tuesday"):
        before, after = await agent.work("one", task=task)
        assert not has_block(before)
        assert "one has 900 psi" in after.partition("Step 1 - measure")[2]


@pytest.mark.parametrize("name", ["adk", "spade"])  # LangChain raises `ClosedError`
async def test_a_closed_memory_ends_no_conversation(name: str, memory: Memory, ann: BoundMemory) -> None:
    await memory.close()
    assert len(await WORKING[name](ann).work("one", task="monday")) == 2


@EVERY
async def test_an_agent_whose_owner_has_no_room_works_without_a_bank(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory(tmp_path / "full.db", embedder=None, quota=Quota(records=1)) as memory:
        ann = memory.bind(app="demo", user="ann")
        await ann.add("Ann's tea is jasmine tea")
        with caplog.at_level(logging.ERROR):
            assert len(await WORKING[name](ann).work("one", task="monday")) == 2
        assert (await ann.stats()).records == 1
    assert "QuotaExceededError" in caplog.text
