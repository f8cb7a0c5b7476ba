"""MCP on the port of the page: the same tokens, the same rules."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from memory_core import Memory
from tests.adapters.mcp.calling import over_http
from tests.app.serve.conftest import running
from tests.app.serve.test_serving import made

pytestmark = pytest.mark.process

TOKENS = {name: f"the-long-token-of-{name}".ljust(24, ".") for name in ("ann", "tom", "*")}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream"}


def tokens_file(folder: Path) -> str:
    path = folder / "tokens.json"
    path.write_text(json.dumps(TOKENS))
    path.chmod(0o600)
    return str(path)


def records_of(address: str, user: str) -> list[str]:
    answer = httpx.get(f"{address}/v1/records", headers={"Authorization": f"Bearer {TOKENS[user]}"}, timeout=300)
    return [record["text"] for record in answer.json()["records"]]


async def test_each_token_reaches_its_own_memories_and_the_spaces(tmp_path: Path) -> None:
    path = made(tmp_path)
    with Memory(path, embedder=None) as memory:
        memory.bind(user="team-red").sync.add("The release is on Friday")
    options = ["--embedder", "none", "--write", "--tokens", tokens_file(tmp_path), "--share", "team=team-red"]
    with running(path, *options) as server:
        url = f"{server.address}/mcp"
        async with over_http(url, TOKENS["ann"]) as ann, over_http(url, TOKENS["tom"]) as tom:
            assert await ann.found("spare key") == ["The spare key is with Mrs Okafor"]
            assert await tom.found("spare key") == []
            assert await tom.found("release") == ["The release is on Friday"]
            await tom.ok("memory_store", content="Tom keeps bees")
            assert "team" in await tom.refused("memory_store", content="The release is off", space="team")
            assert await ann.found("bees") == []
        async with over_http(url, TOKENS["*"]) as operator:  # whose memories without a path are those of --user
            assert await operator.found("spare key") == ["The spare key is with Mrs Okafor"]
        listed = await asyncio.to_thread(records_of, server.address, "tom")
        assert listed == ["Tom keeps bees"]


async def test_a_server_that_only_reads_offers_tools_that_only_read(tmp_path: Path) -> None:
    with running(made(tmp_path), "--embedder", "none") as server:
        async with over_http(f"{server.address}/mcp", server.key) as ann:
            tools = (await ann.client.list_tools()).tools
            assert {
                tool.name for tool in tools if tool.annotations is not None and tool.annotations.read_only_hint
            } == {
                "memory_recall",
                "memory_search",
                "memory_list",
                "memory_get",
                "memory_history",
                "memory_statistics",
            }
            assert len(tools) == 6
            assert "Okafor" in (await ann.ok("memory_recall", query="where is the spare key"))["block"]


def test_nobody_is_answered_who_may_not_ask(tmp_path: Path) -> None:
    with running(made(tmp_path), "--embedder", "none", "--write") as server:
        known = {**HEADERS, "Authorization": f"Bearer {server.key}"}
        url = f"{server.address}/mcp"
        assert httpx.post(url, json=INITIALIZE, headers=known, timeout=300).status_code == 200
        refused = {
            401: [HEADERS, {**HEADERS, "Authorization": "Bearer not-the-key-of-this-server"}],
            403: [{**known, "Origin": "https://evil.example"}, {**known, "Origin": "null"}],
            421: [{**known, "Host": "evil.example"}],
        }
        for status, tries in refused.items():
            for headers in tries:
                answer = httpx.post(url, json=INITIALIZE, headers=headers, timeout=300)
                assert answer.status_code == status, headers
                assert "Okafor" not in answer.text


async def test_an_open_client_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    path = made(tmp_path)
    with running(path, "--embedder", "none", "--write") as server:
        async with over_http(f"{server.address}/mcp", server.key) as ann:
            await ann.ok("memory_store", content="Ann rows")
            server.process.terminate()
            assert await asyncio.to_thread(server.process.wait, 300) == 0
    assert await asyncio.to_thread(os.listdir, tmp_path) == ["m.db"]
    with Memory(path, embedder=None) as memory:
        assert "Ann rows" in {record.text for record in memory.bind(user="ann").sync.list()}


def test_without_its_extra_the_page_is_served_and_says_what_is_not(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None; from memory_core.app.main import main; sys.exit(main(sys.argv[1:]))"
    )
    options = ["serve", "--file", str(made(tmp_path)), "--user", "ann", "--port", "0", "--embedder", "none"]
    with subprocess.Popen([sys.executable, "-c", program, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1].partition("/sign-in")[0]
        assert "/mcp is not served: `memory_mcp` needs" in (said := process.stderr.readline())
        assert "pip install 'memory-core[mcp]'" in said
        assert httpx.get(f"{address}/v1/health", timeout=300).is_success
        assert httpx.post(f"{address}/mcp", json=INITIALIZE, timeout=300).status_code == 404
        process.terminate()
