"""Messages to the MCP server that nobody should send: an answer or an error that says what is wrong, and nothing else.

As bytes over HTTP, and as values that JSON cannot express, from a client in the same process.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from memory_core import BoundMemory, Draft, Memory
from memory_mcp import http_app, memory_server
from tests.fuzz.mutating import Mutator, Seeds, changed_bytes, changed_json, kept, mutants, tried
from tests.storage.embedders import WordEmbedder

pytestmark = pytest.mark.uncovered

SUBJECT = "mcp_messages"
SECRET = "Eve buried it under the sundial"
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
AGAIN = 20
"""After so many messages, what others may have deleted is stored again."""
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    """A memory in which Eve, who does not call, has something, and the readers of a wiki, who may not write."""
    async with Memory(":memory:", embedder=WordEmbedder()) as memory:
        kept_whole = {
            "eve": Draft(SECRET, id="tide", source_key="memory_store:tide"),
            "wiki": Draft("a page", id="wiki 1"),
        }
        for user, draft in kept_whole.items():
            await memory.bind(app="demo", user=user).add(draft)
        yield memory
        for user, draft in kept_whole.items():
            (record,) = (await memory.bind(app="demo", user=user).list()).records
            assert (record.id, record.text, record.version) == (draft.id, draft.text, 1)


def reach(memory: Memory, shape: str) -> BoundMemory:
    """The memory that Ann reaches."""
    ann = memory.bind(app="demo", user="ann")
    spaces = {name: memory.bind(app="demo", user=name) for name in ("team", "wiki")}
    return ann.sharing(spaces, writable=["team"]) if shape == "shared" else ann


@pytest.fixture(autouse=True)
def no_crash_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The SDK logs what no tool has foreseen."""
    yield
    crashes = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not crashes, [record.getMessage() for record in crashes]


def insist_on_answer(said: str) -> None:
    assert SECRET not in said
    assert "sundial" not in said
    assert "Traceback" not in said
    assert "Error executing tool" not in said
    assert "Internal" not in said


class Session:
    """A client that posts whatever it is given."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._id = ""

    async def begin(self) -> None:
        """Begin a session of the older protocol."""
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        answer = await self._http.post("/mcp", headers=HEADERS, content=json.dumps(body))
        self._id = answer.headers["mcp-session-id"]
        await self._post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode(), {})

    async def check(self, content: bytes) -> None:
        """Post a body in the session, and as a request of the newer protocol, which has no sessions."""
        insist_on_answer(await self._post(content, {"mcp-session-id": self._id}))
        body, headers = _modern(content)
        insist_on_answer(await self._post(body, headers))

    async def _post(self, content: bytes, headers: dict[str, str]) -> str:
        answer = await self._http.post("/mcp", headers={**HEADERS, **headers}, content=content)
        assert answer.status_code < 500, answer.text
        return answer.text


def _modern(content: bytes) -> tuple[bytes, dict[str, str]]:
    """The body with the envelope of the newer protocol, if it has room for one, and the headers that repeat it."""
    headers = {"mcp-protocol-version": MODERN}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content, headers
    params = body.get("params") if isinstance(body, dict) else None
    if not isinstance(params, dict):
        return content, headers
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    }
    params["_meta"] = meta
    named = {"mcp-method": body.get("method"), "mcp-name": params.get("name", params.get("uri"))}
    fitting = {name: value for name, value in named.items() if isinstance(value, str)}
    headers |= {name: value for name, value in fitting.items() if value.isascii() and value.isprintable()}
    return json.dumps(body).encode(), headers


@asynccontextmanager
async def posting(memory: Memory) -> AsyncIterator[Session]:
    app = http_app(memory_server(memory.bind(app="demo", user="ann"), tools="all"))
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as http,
    ):
        session = Session(http)
        await session.begin()
        yield session


def _with_stores(seeds: Seeds, count: int, change: Mutator) -> Iterator[bytes]:
    """Changed messages, and now and then one that stores what they speak of."""
    for number, content in enumerate(mutants(seeds, count, change)):
        if number % AGAIN == 0:
            yield dict(seeds)["store.json"]
        yield content


async def test_the_kept_messages(memory: Memory) -> None:
    async with posting(memory) as session:
        for _, content in kept(SUBJECT):
            with tried(SUBJECT, content, ".json"):
                await session.check(content)


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.torture)])
async def test_changed_messages(memory: Memory, count: int) -> None:
    async with posting(memory) as session:
        for change in (changed_json, changed_bytes):
            for content in _with_stores(kept(SUBJECT), count // 2, change):
                with tried(SUBJECT, content, ".json"):
                    await session.check(content)


CALLS = [(name, content) for name, content in kept(SUBJECT) if b'"tools/call"' in content]


async def called(client: Client, content: bytes) -> None:
    """Call a tool with arguments that may be no JSON: NaN, lone surrogates, numbers of any size."""
    try:
        params: Any = json.loads(content)["params"]
        name, arguments = params["name"], params["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        insist_on_answer(str(error))
        return
    except ValueError:  # the client's own: it cannot send this
        return
    for block in result.content:
        assert isinstance(block, TextContent)
        insist_on_answer(block.text)
        if result.is_error:
            assert block.text.startswith((f"{name} failed: ", "Unknown tool")), block.text
    assert SECRET not in json.dumps(result.structured_content)


@pytest.mark.parametrize("shape", ["alone", "skynet", "shared"])
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.torture)])
async def test_changed_arguments(memory: Memory, count: int, shape: str) -> None:
    async with Client(memory_server(reach(memory, shape), tools="all", skynet=shape == "skynet")) as client:
        for content in (*(content for _, content in CALLS), *_with_stores(CALLS, count, changed_json)):
            with tried(SUBJECT, content, ".json"):
                await called(client, content)
