"""The sessions of one caller over HTTP: limited, so that they keep nobody else out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from memory_core import Memory
from memory_mcp import StaticTokens, http_app, memory_server, sessions

TOM, ANN = "t" * 24, "a" * 24
HEAD = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SESSION = "mcp-session-id"


def message(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:  # params of JSON-RPC
    said = {"jsonrpc": "2.0", "method": method, "params": params}
    return said if number is None else {**said, "id": number}


BEGIN = message(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "client", "version": "1"}
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)


@asynccontextmanager
async def served() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server for two users."""
    async with Memory(":memory:", embedder=None) as memory:
        app = http_app(memory_server(memory.bind(), tokens=StaticTokens({"ann": ANN, "tom": TOM})))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=HEAD) as client,
        ):
            yield client


async def begin(client: httpx.AsyncClient, token: str) -> str:
    answer = await client.post("/mcp", json=BEGIN, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    return answer.headers[SESSION]


async def is_open(client: httpx.AsyncClient, token: str, session: str) -> bool:
    headers = {"Authorization": f"Bearer {token}", SESSION: session}
    return (await client.post("/mcp", json=message("tools/list"), headers=headers)).status_code == 200


async def test_a_new_session_beyond_the_limit_ends_the_one_that_was_idle_longest() -> None:
    async with served() as client:
        of_ann = await begin(client, ANN)
        first, second, third = [await begin(client, TOM) for _ in range(3)]
        assert await is_open(client, TOM, first)
        fourth = await begin(client, TOM)
        assert [await is_open(client, TOM, each) for each in (first, second, third, fourth)] == [
            True,
            False,
            True,
            True,
        ]
        assert await is_open(client, ANN, of_ann)


async def test_what_its_client_has_ended_counts_no_longer() -> None:
    async with served() as client:
        first, *others = [await begin(client, TOM) for _ in range(3)]
        ended = await client.delete("/mcp", headers={"Authorization": f"Bearer {TOM}", SESSION: others[0]})
        assert ended.status_code == 200
        await begin(client, TOM)
        assert await is_open(client, TOM, first)
        assert await is_open(client, TOM, others[1])


async def test_a_session_counts_as_long_as_it_is_open_whatever_its_caller_sends() -> None:
    async with served() as client:
        first = await begin(client, TOM)
        headers = {"Authorization": f"Bearer {TOM}", SESSION: first, "mcp-protocol-version": "none"}
        assert (await client.delete("/mcp", headers=headers)).status_code == 405
        for scheme in ("bearer", "BEARER", "Bearer"):
            begun = await client.post("/mcp", json=BEGIN, headers={"Authorization": f"{scheme} {TOM}"})
            assert begun.status_code == 200
        assert not await is_open(client, TOM, first)


async def test_nobody_ends_the_sessions_of_somebody_else() -> None:
    async with served() as client:
        of_ann = await begin(client, ANN)
        for _ in range(10):
            await begin(client, TOM)
            assert not await is_open(client, TOM, of_ann)
            assert (await client.post("/mcp", json=BEGIN)).status_code == 401
        assert await is_open(client, ANN, of_ann)


async def test_a_message_of_very_many_values_is_refused_before_it_is_read() -> None:
    many = f'{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"_meta": {{"a": [{"[]," * 200_000}0]}}}}}}'
    async with served() as client:
        session = await begin(client, ANN)
        headers = {"Authorization": f"Bearer {ANN}", SESSION: session}
        answer = await client.post("/mcp", content=many, headers=headers)
        assert (answer.status_code, "at most 100000 values" in answer.text) == (413, True)
        assert await is_open(client, ANN, session)


async def test_a_message_that_never_ends_is_refused() -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b" " * 1_000_000

    async with served() as client:
        answer = await client.post("/mcp", content=parts(), headers={"Authorization": f"Bearer {ANN}"})
    assert (answer.status_code, sent < 30) == (413, True)
