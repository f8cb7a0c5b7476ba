"""Downloads of exports that nobody reads, or that are broken off, cost nobody anything."""

from __future__ import annotations

import json
import re
import signal
import socket
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from memory_core import Draft, Memory, Scope
from memory_core.transfer.jsonl import exported
from memory_core.web.fair_share import MOST_ANSWERS
from tests.app.serve.conftest import Running, running
from tests.app.serve.test_api import TOKENS, as_user

pytestmark = pytest.mark.uncovered

DOWNLOADS = 40
"""More than the threads of any pool on this machine."""
LONG = 15
"""Texts that together fill the buffers of a connection."""


def made(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.bind(user="ann").sync.add_many([Draft(f"word{number} " * 60_000) for number in range(LONG)])
    return path


def with_tokens(tmp_path: Path) -> tuple[str, str]:
    """The option for a server with users."""
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(TOKENS))
    path.chmod(0o600)
    return "--tokens", str(path)


def download(server: Running) -> socket.socket:
    """The beginning of an export of Ann's, whose rest is not read."""
    where = urlsplit(server.address)
    opened = socket.create_connection((where.hostname or "", where.port or 0))
    head = f"GET /v1/export HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {TOKENS['ann']}\r\n\r\n"
    opened.sendall(head.encode())
    return opened


@pytest.mark.process
def test_downloads_that_nobody_reads_stop_nobody_and_the_server_ends(tmp_path: Path) -> None:
    with (
        running(made(tmp_path), *with_tokens(tmp_path), "--embedder", "none", "--write") as server,
        ExitStack() as stack,
    ):
        opened = [stack.enter_context(download(server)) for _ in range(DOWNLOADS)]
        for each in opened[:MOST_ANSWERS]:
            assert b"200" in each.recv(100)
        with httpx.Client(base_url=server.address, headers=as_user("*"), timeout=300) as client:
            assert client.post("/v1/records", json={"text": "The kettle is on"}).status_code == 201
            assert client.post("/v1/search", json={"query": "kettle"}).json()["hits"]
            lines = client.get("/v1/export").text.splitlines()
        assert json.loads(lines[-1])["end"]["records"] == LONG + 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0


@pytest.mark.process
def test_downloads_that_are_broken_off_leave_nothing_behind(tmp_path: Path) -> None:
    with running(made(tmp_path), *with_tokens(tmp_path), "--embedder", "none") as server:
        for _ in range(DOWNLOADS):
            with download(server) as opened:
                assert b"200" in opened.recv(100)
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


async def test_an_export_has_few_long_records_in_memory(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for number in range(60):
            await ann.add(Draft(f"Chart {number}", data={"chart": "x" * 480_000}))
        tracemalloc.start()
        try:
            lines = [line async for part in exported(memory, owner=ann.scope) for line in part.splitlines()[:1]]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000 + sum(map(len, lines))


async def test_an_export_has_all_records_also_where_long_ones_and_gaps_are_among_them(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for number in range(30):
            chart = {"chart": "x" * 900_000} if number % 3 else {}
            await ann.add(Draft(f"Chart {number}", id=f"chart{number}", data=chart))
        for number in (0, 5, 6, 29):
            await ann.delete(f"chart{number}")
        lines = b"".join([part async for part in exported(memory, owner=ann.scope)]).splitlines()
    ids = [found[0].decode() for line in lines if (found := re.findall(rb'"(chart\d+)"', line))]
    assert ids == [f"chart{number}" for number in range(30) if number not in (0, 5, 6, 29)]
    assert json.loads(lines[-1])["end"]["records"] == 26
