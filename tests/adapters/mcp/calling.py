"""Clients of the MCP SDK, connected to a server in one of three ways, and what they say in a test."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import TokenVerifier
from mcp_types import TextContent

from memory_mcp import http_app, memory_server
from memory_mcp.owners import Served

ENVIRONMENT = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PATH": os.environ["PATH"]}
PYTHON = re.compile(
    r"<\w+>|\w\[\w|function|instance|dataclass|tzinfo|lambda|memory_core|memory_mcp|Value error|json-or|union"
    r"|\b(?:dict|dictionary|tuple|Sequence|Mapping|class|Where|Filter|Changes|Metadata|Draft|Patch)\b"
)
"""Words of Python, of pydantic, and names of our types."""
TOKENS = {"ann": "anns-token-for-the-tests", "bob": "bobs-token-for-the-tests"}


def token_file(folder: Path, text: str | None = None) -> Path:
    file = folder / "tokens.json"
    file.write_text(json.dumps(TOKENS) if text is None else text)
    file.chmod(0o600)
    return file


@dataclass(frozen=True)
class Caller:
    """A client."""

    client: Client

    async def ok(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a call that works, without its note."""
        _, answer = await self.noted(tool, **arguments)
        return answer

    async def noted(self, tool: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """The note of the answer of a call that works, and the rest of the answer."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        answer: dict[str, Any] | None = result.structured_content
        assert answer is not None
        assert next(iter(answer)) == "note"
        note = answer.pop("note")
        assert note
        return note, answer

    async def text(self, tool: str, /, **arguments: Any) -> str:
        """The answer as text."""
        result = await self.client.call_tool(tool, arguments)
        (block,) = result.content
        assert isinstance(block, TextContent)
        return block.text

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The error that a call which does not work is answered."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.content
        assert result.structured_content is None
        (block,) = result.content
        assert isinstance(block, TextContent)
        assert "Traceback" not in block.text
        return block.text

    async def store(self, content: str, kind: str = "fact", /, **metadata: Any) -> str:
        """Store something and return its id."""
        stored = await self.ok("memory_store", content=content, metadata={"type": kind, **metadata})
        return str(stored["id"])

    async def found(self, query: str, **arguments: Any) -> list[str]:
        """The contents that a search finds."""
        answer = await self.ok("memory_search", query=query, **arguments)
        assert answer["count"] == len(answer["results"])
        assert answer["query"] == query
        return [result["content"] for result in answer["results"]]


@asynccontextmanager
async def in_process(
    handle: Served, collection: str | None = None, *, skynet: bool = True, tools: Any = "all", **options: Any
) -> AsyncIterator[Caller]:
    """A client beside the server, which is Skynet's and offers every tool unless a test says otherwise."""
    server = memory_server(handle, collection=collection, skynet=skynet, tools=tools, **options)
    async with Client(server) as client:
        yield Caller(client)


@asynccontextmanager
async def over_stdio(db: Path, *options: str, user: str = "ann") -> AsyncIterator[Caller]:
    """A client with a server process of its own."""
    arguments = ["-m", "memory_mcp", "--file", str(db), "--app", "demo", "--skynet", "--tools", "all", "--user", user]
    arguments += options
    async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)) as client:
        yield Caller(client)


@asynccontextmanager
async def over_http(url: str, token: str | None = None) -> AsyncIterator[Caller]:
    """A client of a server that runs."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    http = httpx2.AsyncClient(headers=headers, timeout=300)
    async with http, Client(streamable_http_client(url, http_client=http)) as client:
        yield Caller(client)


@asynccontextmanager
async def http_beside(handle: Served, tokens: TokenVerifier | None = None, *hosts: str) -> AsyncIterator[str]:
    """A server on this test's own loop; its address."""
    app = http_app(memory_server(handle, skynet=True, tools="all", tokens=tokens), hosts=hosts)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=120, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def http_server(db: Path, *options: str, skynet: bool = True) -> AsyncIterator[str]:
    """A server in a process of its own; its address."""
    command: Sequence[str] = [
        *(sys.executable, "-m", "memory_mcp", "--file", str(db), "--app", "demo", "--tools", "all"),
        *("--http", "0", *(["--skynet"] if skynet else []), *options),
    ]
    server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=ENVIRONMENT)
    assert server.stderr is not None
    said = (await server.stderr.readline()).decode()
    drained = asyncio.create_task(server.stderr.read())
    try:
        assert said.startswith("memory-mcp: http://"), said + (await drained).decode()
        yield said.removeprefix("memory-mcp: ").strip()
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()
        complaints = (await drained).decode()
        assert "Traceback" not in complaints, complaints


@asynccontextmanager
async def connected(transport: str, db: Path) -> AsyncIterator[Caller]:
    """A client of Ann's memories over one of the transports."""
    if transport == "stdio":
        async with over_stdio(db) as caller:
            yield caller
    else:
        async with http_server(db, "--user", "ann") as url, over_http(url) as caller:
            yield caller
