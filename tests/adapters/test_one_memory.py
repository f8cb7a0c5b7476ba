"""One handle given to SPADE, ADK, LangChain, MCP clients and Xaibo is one memory; two owners are two."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from frameworks import FRAMEWORKS, Elsewhere, Framework, RefusedError, opened

from memory_core import BoundMemory, Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_spade.testing.xmpp import XmppServer

pytestmark = pytest.mark.process

PAIRS = list(itertools.permutations(FRAMEWORKS, 2))
OTHERS = {"user": ("demo", "bob"), "app": ("other", "ann"), "case": ("demo", "Ann"), "both": ("demo/an", "n")}
FACTS = ("Mia is allergic to peanuts", "The spare key is with Mrs Okafor", "The passport expires in June 2027")


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as opened_memory:
        yield opened_memory


@pytest_asyncio.fixture
async def ann(memory: Memory, server: XmppServer, container: None) -> AsyncIterator[dict[str, Framework]]:
    """Every framework on Ann's handle."""
    async with AsyncExitStack() as stack:
        yield await everywhere(stack, memory.bind(app="demo", user="ann"), server)


async def everywhere(stack: AsyncExitStack, handle: BoundMemory, server: XmppServer) -> dict[str, Framework]:
    return {name: await stack.enter_async_context(opened(name, handle, server)) for name in FRAMEWORKS}


@pytest.mark.parametrize(("here", "there"), PAIRS)
async def test_what_one_framework_writes_another_finds_with_the_same_id_and_rank(
    ann: dict[str, Framework], here: str, there: str
) -> None:
    written = [await ann[here].write(fact) for fact in FACTS]
    for fact, memory_id in zip(FACTS, written, strict=True):
        found = await ann[there].find(fact)
        assert found[0] == memory_id
        assert found == await ann[here].find(fact)


@pytest.mark.parametrize(("here", "there"), PAIRS)
async def test_what_one_framework_changes_or_removes_the_next_read_of_another_sees(
    ann: dict[str, Framework], here: str, there: str
) -> None:
    kept, changed, gone = [await ann[there].write(fact) for fact in FACTS]
    await ann[here].update(changed, "The spare key hangs behind the mill")
    await ann[here].delete(gone)
    assert (await ann[there].find("mill"))[:1] == [changed]
    assert changed not in (await ann[there].find("Mrs Okafor"))[:1]
    assert gone not in await ann[there].find("passport June 2027")
    await ann[here].erase()
    assert await ann[there].find("Mia peanuts mill") == []
    assert kept not in await ann[there].find(FACTS[0])


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("difference", OTHERS)
async def test_no_framework_lets_an_owner_reach_what_belongs_to_another(
    memory: Memory, server: XmppServer, container: None, name: str, difference: str
) -> None:
    app, user = OTHERS[difference]
    handle = memory.bind(app="demo", user="ann")
    async with opened(name, handle, server) as ann, opened(name, memory.bind(app=app, user=user), server) as other:
        mine = await ann.write(FACTS[0])
        theirs = await other.write("Peanuts grow underground")
        assert await other.find(FACTS[0]) in ([theirs], [])
        for attack in (other.update(mine, "overwritten"), other.delete(mine), other.erase()):
            with suppress(RefusedError):
                await attack
        assert await ann.find(FACTS[0]) == [mine]
        record = await handle.get(mine)
        assert record is not None
        assert record.text == FACTS[0]


async def test_another_process_sees_and_makes_the_same_changes(
    server: XmppServer, container: None, tmp_path: Path
) -> None:
    path = tmp_path / "shared.db"
    async with Memory(path, embedder=None) as memory, AsyncExitStack() as stack:
        there = await asyncio.to_thread(Elsewhere, path, "demo")
        stack.callback(there.close)
        for name in FRAMEWORKS:
            here = await everywhere(stack, memory.bind(app="demo", user=name), server)
            await _changes_are_seen(here, functools.partial(asyncio.to_thread, there.do, name))


async def _changes_are_seen(here: dict[str, Framework], there: Callable[..., Awaitable[Any]]) -> None:
    facts = (*FACTS, "Jo's bicycle is blue", "The ferry leaves at noon")
    written = {via: await framework.write(fact) for (via, framework), fact in zip(here.items(), facts, strict=True)}
    for memory_id, fact in zip(written.values(), facts, strict=True):
        assert (await there("find", fact))[0] == memory_id
    added = await there("write", "Tom plays the tuba")
    await there("update", written["adk"], "The spare key hangs behind the mill")
    await there("delete", written["langchain"])
    for framework in here.values():
        assert (await framework.find("tuba"))[:1] == [added]
        assert (await framework.find("mill"))[:1] == [written["adk"]]
        assert await framework.find("passport") == []
    await there("erase")
    assert [await framework.find("tuba spare key peanuts") for framework in here.values()] == [[] for _ in here]
