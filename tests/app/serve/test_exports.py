"""Downloads of exports that nobody reads, or that are broken off, cost nobody anything."""

from __future__ import annotations

import json
import signal
import socket
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from memory_core import Draft, Memory, Scope
from memory_core.transfer.jsonl import READ_AT_ONCE, exported
from tests.app.serve.conftest import Running, running

DOWNLOADS = 40
"""More than the threads of any pool on this machine."""
LONG = 15
"""Texts that together fill the buffers of a connection."""


def made(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.bind(user="ann").sync.add_many([Draft(f"word{number} " * 60_000) for number in range(LONG)])
    return path


def download(server: Running) -> socket.socket:
    """The beginning of an export, whose rest is not read."""
    where = urlsplit(server.address)
    opened = socket.create_connection((where.hostname or "", where.port or 0))
    head = f"GET /v1/export HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {server.key}\r\n\r\n"
    opened.sendall(head.encode())
    assert b"200" in opened.recv(100)
    return opened


@pytest.mark.process
def test_downloads_that_nobody_reads_stop_nobody_and_the_server_ends(tmp_path: Path) -> None:
    with running(made(tmp_path), "--words-only", "--write") as server, ExitStack() as stack:
        for _ in range(DOWNLOADS):
            stack.enter_context(download(server))
        with httpx.Client(
            base_url=server.address, headers={"Authorization": f"Bearer {server.key}"}, timeout=300
        ) as client:
            assert client.post("/v1/records", json={"text": "The kettle is on"}).status_code == 201
            assert client.post("/v1/search", json={"query": "kettle"}).json()["hits"]
            lines = client.get("/v1/export").text.splitlines()
        assert json.loads(lines[-1])["end"]["records"] == LONG + 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0


@pytest.mark.process
def test_downloads_that_are_broken_off_leave_nothing_behind(tmp_path: Path) -> None:
    with running(made(tmp_path), "--words-only") as server:
        for _ in range(DOWNLOADS):
            download(server).close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0


async def test_an_export_reads_only_what_is_asked_for(tmp_path: Path) -> None:
    async with Memory(made(tmp_path), embedder=None) as memory:
        unread = [exported(memory, owner=Scope("default", "ann")) for _ in range(DOWNLOADS)]
        for lines in unread:
            assert b"memory-core" in await anext(lines)
            assert b"word0" in await anext(lines)
        parts = [part async for part in exported(memory, owner=Scope("default", "ann"))]
        assert parts == [part async for part in exported(memory, owner=Scope("default", "ann"))]
        assert len(parts) == LONG + 2
        for lines in unread:
            await lines.aclose()


async def test_a_download_holds_few_of_many_records(tmp_path: Path) -> None:
    size = 20_000
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for _ in range(4):
            await ann.add_many([Draft("harbour " * (size // 8)) for _ in range(2 * READ_AT_ONCE)])
        lines = exported(memory, owner=ann.scope)
        await anext(lines)
        tracemalloc.start()
        try:
            await anext(lines)  # of the eight times as many that there are
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await lines.aclose()
    assert READ_AT_ONCE * size / 2 < most < 3 * READ_AT_ONCE * size
