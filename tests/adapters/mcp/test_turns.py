"""The turns of one caller's calls over HTTP: whoever works takes one until the answer, whoever waits takes none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from calling import TOKENS, Caller, over_http
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult

from memory_core import Draft, Memory
from memory_core.adapting import WebServer, address_of, listening_on
from memory_core.retrieval import reranking
from memory_core.web import fair_share
from memory_core.web.fair_share import AT_ONCE
from memory_mcp import StaticTokens, http_app, memory_server

FEW = 2


BEGIN = {
    "jsonrpc": "2.0",
    "method": "initialize",
    "id": "begin",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


def call(number: int, query: str) -> dict[str, Any]:  # JSON-RPC
    """A search that is sent without a client of the SDK."""
    called = {"name": "memory_search", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "method": "tools/call", "id": number, "params": called}


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something on another loop, which cannot set an event of this one."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


class Slow:
    """A reranker that answers when it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = False

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Called by each search."""
        self.begun.append(query)
        await until(lambda: self.may_end)
        return [0.0] * len(texts)


@asynccontextmanager
async def served(memory: Memory) -> AsyncGenerator[str]:
    """The server with all that stands before the MCP application; its address."""
    app = http_app(memory_server(memory.bind(app="demo"), tools="all", tokens=StaticTokens(TOKENS)))
    with listening_on("127.0.0.1", 0) as listening:
        async with app.router.lifespan_context(app):
            web = WebServer(app, 1)
            serving = asyncio.create_task(web.serve([listening]))
            try:
                yield f"http://{address_of(listening)}/mcp"
            finally:
                web.should_exit = True
                await serving


@asynccontextmanager
async def client_of(url: str, user: str, **options: Any) -> AsyncGenerator[Caller]:  # options of the SDK's client
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKENS[user]}"}, timeout=300)
    async with http, Client(streamable_http_client(url, http_client=http), **options) as client:
        yield Caller(client)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_that_works_takes_a_turn_until_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Literal["legacy", "auto"]
) -> None:
    monkeypatch.setattr(reranking, "DEADLINE_SECONDS", 600.0)
    slow = Slow()
    async with Memory(tmp_path / "m.db", embedder=None, reranker=slow) as memory:
        for user in TOKENS:
            await memory.bind(app="demo", user=user).add_many([Draft(f"tea {n}") for n in range(2)])
        async with served(memory) as url, client_of(url, "ann", mode=mode) as ann, client_of(url, "bob") as bob:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE + FEW):
                    group.create_task(ann.found("tea"))
                await until(lambda: len(slow.begun) >= AT_ONCE)
                group.create_task(bob.found("tea 1"))
                await until(lambda: "tea 1" in slow.begun)
                assert slow.begun == ["tea"] * AT_ONCE + ["tea 1"]
                slow.may_end = True
            assert slow.begun.count("tea") == AT_ONCE + FEW


async def test_whoever_hangs_up_keeps_the_turn_of_what_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranking, "DEADLINE_SECONDS", 600.0)
    slow = Slow()
    async with Memory(tmp_path / "m.db", embedder=None, reranker=slow) as memory:
        for user in TOKENS:
            await memory.bind(app="demo", user=user).add_many([Draft(f"tea {n}") for n in range(2)])
        async with served(memory) as url, client_of(url, "bob") as bob, httpx2.AsyncClient(timeout=300) as http:
            http.headers |= {
                "Authorization": f"Bearer {TOKENS['ann']}",
                "Accept": "application/json, text/event-stream",
            }
            http.headers["mcp-session-id"] = (await http.post(url, json=BEGIN)).headers["mcp-session-id"]
            for number in range(AT_ONCE):
                async with http.stream("POST", url, json=call(number, "tea")):
                    await until(lambda: len(slow.begun) > number)  # noqa: B023  (it ends before the next one)
            async with asyncio.TaskGroup() as group:
                group.create_task(http.post(url, json=call(AT_ONCE, "tea")))
                group.create_task(bob.found("tea 1"))
                await until(lambda: "tea 1" in slow.begun)
                assert slow.begun == ["tea"] * AT_ONCE + ["tea 1"]
                slow.may_end = True
            assert slow.begun.count("tea") == AT_ONCE + 1


@pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")  # the SDK's, of what it never answers
async def test_what_is_never_answered_gives_its_turn_back_after_its_client_has_hung_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranking, "DEADLINE_SECONDS", 600.0)
    monkeypatch.setattr(fair_share, "HUNG_UP_SECONDS", 0.0)
    slow = Slow()
    async with Memory(tmp_path / "m.db", embedder=None, reranker=slow) as memory:
        await memory.bind(app="demo", user="ann").add_many([Draft(f"tea {n}") for n in range(2)])
        async with served(memory) as url, httpx2.AsyncClient(timeout=300) as http:
            http.headers |= {
                "Authorization": f"Bearer {TOKENS['ann']}",
                "Accept": "application/json, text/event-stream",
            }
            http.headers["mcp-session-id"] = (await http.post(url, json=BEGIN)).headers["mcp-session-id"]
            async with AsyncExitStack() as stack:
                for number in range(AT_ONCE):  # with one id: only one of them is ever answered
                    await stack.enter_async_context(http.stream("POST", url, json=call(1, "tea")))
                    await until(lambda: len(slow.begun) > number)  # noqa: B023  (it ends before the next one)
                slow.may_end = True
            slow.begun.clear()
            slow.may_end = False
            async with asyncio.TaskGroup() as group:
                for number in range(AT_ONCE):
                    group.create_task(http.post(url, json=call(10 + number, "tea")))
                await until(lambda: len(slow.begun) == AT_ONCE)
                slow.may_end = True


async def test_idle_event_streams_and_questions_to_a_person_take_no_turn(tmp_path: Path) -> None:
    asked, may_answer = list[str](), asyncio.Event()

    async def answer(_: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        await may_answer.wait()
        return ElicitResult(action="accept", content={"delete": True})

    async with Memory(tmp_path / "m.db", embedder=None) as memory, AsyncExitStack() as stack:
        handle = memory.bind(app="demo", user="ann", collection="notes")
        await handle.add_many([Draft(f"tea {n}", tags=[f"cup {n}"]) for n in range(AT_ONCE + FEW)])
        url = await stack.enter_async_context(served(memory))
        callers = [  # each has an event stream of its own, which waits for whatever the server may say
            await stack.enter_async_context(client_of(url, "ann", mode="legacy", elicitation_callback=answer))
            for _ in range(AT_ONCE + FEW)
        ]
        async with asyncio.TaskGroup() as group:
            for number, caller in enumerate(callers):
                selected = {"filter": {"tags": [f"cup {number}"]}, "collection": "notes"}
                group.create_task(caller.ok("memory_forget", **selected))
            await until(lambda: len(asked) == len(callers))
            async with over_http(url, TOKENS["ann"]) as another:
                assert await another.found("tea", collection="notes")
            may_answer.set()
        assert (await handle.stats()).records == 0
