"""The limits of a client that would fill the memory without a connection: few questions, and no long message."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest
from calling import Caller
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from memory_core import BoundMemory, Draft
from memory_mcp import kept, memory_server, sessions
from tests.adapters.mcp.test_sessions import ANN, BEGIN, SESSION, begin, message, served

LONG = "x" * 1_000_000
MODERN = "2026-07-28"
ABOUT = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"Authorization": f"Bearer {ANN}"}


async def test_a_question_beyond_the_limit_ends_the_one_that_has_waited_longest(
    ann: BoundMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_QUESTIONS", 2)
    asked, may_answer = asyncio.Queue[str](), asyncio.Event()

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await asked.put(params.message)
        await may_answer.wait()
        return ElicitResult(action="accept", content={"delete": True})

    await ann.add_many([Draft(f"tea {n}", tags=[f"cup {n}"]) for n in range(3)])
    server = memory_server(ann, tools="all")
    async with Client(server, mode="legacy", elicitation_callback=answer) as client, asyncio.TaskGroup() as group:
        tasks = list[asyncio.Task[dict[str, Any]]]()
        for n in range(3):
            asking = Caller(client).ok("memory_forget", filter={"tags": [f"cup {n}"]})
            tasks.append(group.create_task(asking if n else ended(asking)))
            await asked.get()
        assert "2 newer questions wait for an answer" in (await tasks[0])["error"]
        may_answer.set()
        assert [(await task)["deleted"] for task in tasks[1:]] == [1, 1]
    assert [record.text for record in (await ann.list()).records] == ["tea 0"]


async def ended(asking: Any) -> dict[str, Any]:
    with pytest.raises(MCPError) as error:
        await asking
    return {"error": str(error.value)}


async def test_a_request_that_stays_in_memory_is_short() -> None:
    long_name = {**BEGIN, "params": {**BEGIN["params"], "clientInfo": {"name": LONG, "version": "1"}}}
    forgotten = message("tools/call", name="memory_forget", arguments={"filter": {"type": "fact"}}, _meta={"a": LONG})
    async with served() as client:
        session = await begin(client, ANN)
        for sent, headers in ((long_name, {}), (long_name, {SESSION: session}), (forgotten, {SESSION: session})):
            refused = await client.post("/mcp", json=sent, headers={**HEADERS, **headers})
            assert "this message may have 65536 bytes at most" in refused.text


@pytest.mark.parametrize(
    ("method", "number"),
    [("ping", 1), ("notifications/progress", None), (LONG, 1)],
    ids=["request", "notification", "answer"],
)
async def test_a_session_keeps_no_long_message_and_no_long_answer(
    method: str, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 9)
    sent = message(method, number, progressToken=1, progress=0, message=LONG)
    async with served() as client:
        opened = [await begin(client, ANN) for _ in range(9)]
        tracemalloc.start()
        for session in opened:
            assert (await client.post("/mcp", json=sent, headers={**HEADERS, SESSION: session})).is_success
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < len(opened) * len(LONG) / 2


async def test_there_are_no_streams_of_changes_for_there_is_nothing_to_say() -> None:
    headers = {**HEADERS, "MCP-Protocol-Version": MODERN}
    listen = message("subscriptions/listen", _meta=ABOUT, notifications={"resourceSubscriptions": ["memory://a"]})
    async with served() as client:
        refused = await client.post("/mcp", json=listen, headers={**headers, "Mcp-Method": listen["method"]})
        assert refused.status_code == 404
        discover = message("server/discover", _meta=ABOUT)
        found = await client.post("/mcp", json=discover, headers={**headers, "Mcp-Method": discover["method"]})
    promised = found.json()["result"]["capabilities"]
    assert not any(each.get("listChanged") or each.get("subscribe") for each in promised.values())
