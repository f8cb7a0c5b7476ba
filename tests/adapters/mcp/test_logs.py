"""The protocol's messages for logs: sent to clients that ask for them, and without anything that is private."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.session import LoggingFnT
from mcp_types import (
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotificationParams,
    SetLevelRequest,
    SetLevelRequestParams,
)

from memory_core import BoundMemory, Memory
from memory_mcp import memory_server

SECRET = "the safe opens with 4711"


async def ask(client: Client, level: LoggingLevel) -> None:
    """As `Client.set_logging_level`, which is deprecated."""
    request = SetLevelRequest(params=SetLevelRequestParams(level=level))
    await client.session.send_request(request, EmptyResult)


@asynccontextmanager
async def listening(
    handle: BoundMemory, *, mode: str, level: LoggingLevel | None
) -> AsyncGenerator[tuple[Client, list[str]]]:
    """A client of a version of the protocol that asks for a level, and what it is told."""
    told: list[str] = []

    async def hear(params: LoggingMessageNotificationParams) -> None:
        assert params.logger == "memory"
        told.append(f"{params.level}: {params.data}")

    asked = level if mode != "legacy" else None
    async with Client(memory_server(handle), mode=mode, logging_callback=hear, log_level=asked) as client:
        if mode == "legacy" and level is not None:
            await ask(client, level)
        yield client, told


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_is_told_from_its_level_on(ann: BoundMemory, mode: str) -> None:
    async with listening(ann, mode=mode, level="debug") as (client, told):
        await client.call_tool("memory_store", {"content": SECRET})
        await client.call_tool("memory_search", {"query": SECRET, "nResults": 5_000})
    assert [line.partition(" took ")[0] for line in told] == [
        "debug: memory_store",
        "info: memory_search refused its arguments",
    ]
    async with listening(ann, mode=mode, level="info") as (client, told):
        await client.call_tool("memory_store", {"content": SECRET})
        await client.call_tool("memory_search", {"query": ""})
    assert told == ["info: memory_search refused its arguments"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_does_not_ask_is_told_of_no_call_that_works(ann: BoundMemory, mode: str) -> None:
    async with listening(ann, mode=mode, level=None) as (client, told):
        await client.call_tool("memory_store", {"content": SECRET})
        await client.call_tool("memory_search", {"query": ""})
    assert told == []


async def test_each_client_has_a_level_of_its_own(ann: BoundMemory) -> None:
    heard: dict[str, list[str]] = {"one": [], "two": []}

    def hearing(name: str) -> LoggingFnT:
        async def hear(params: LoggingMessageNotificationParams) -> None:
            heard[name].append(str(params.data))

        return hear

    server = memory_server(ann)
    async with (
        Client(server, mode="legacy", logging_callback=hearing("one")) as one,
        Client(server, mode="legacy", logging_callback=hearing("two")) as two,
    ):
        await ask(one, "debug")
        await ask(two, "error")
        for client in (one, two):
            await client.call_tool("memory_statistics", {})
    assert len(heard["one"]) == 1
    assert heard["two"] == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_message_has_nothing_of_a_memory_a_call_or_a_file(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "private-name.db"
    file.write_bytes(b"no memory " * 1_000)
    memory = Memory(file, embedder=None)
    async with listening(memory.bind(app="demo", user="private-user"), mode=mode, level="error") as (client, told):
        answer = await client.call_tool("memory_store", {"content": SECRET})
        assert answer.is_error
    await memory.close()
    (line,) = told
    assert line.startswith("error: memory_store failed: ")
    assert "private" not in line
    assert "4711" not in line


async def test_the_server_says_that_it_has_logs_and_completions(ann: BoundMemory) -> None:
    async with Client(memory_server(ann), mode="legacy") as client:
        capabilities = client.server_capabilities
        assert capabilities.logging is not None
        assert capabilities.completions is not None
