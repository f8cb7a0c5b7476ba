"""The server as a process: signals, the local socket, many clients at once, and what it refuses to do."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import httpx
import pytest

from memory_adk import MemoryService
from memory_core import Memory, MemoryRecord
from memory_core.app.serve.local_socket import place_beside
from memory_core.app.serve.serving import listening
from tests.app.serve.conftest import Running, running
from tests.app.serve.writers import client_of, heard, sessions_of

pytestmark = pytest.mark.process

CLIENTS, AGENTS = 50, 4
NOBODY = 65_534


def bearer(server: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key}"}


def made(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.bind(user="ann").sync.add("The spare key is with Mrs Okafor")
    return path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_an_orderly_way(tmp_path: Path, number: int, code: int) -> None:
    with running(made(tmp_path), "--embedder", "none", "--write") as server:
        assert httpx.get(f"{server.address}/v1/stats", headers=bearer(server), timeout=300).json()["records"] == 1
        server.process.send_signal(number)
        assert server.process.wait(300) == code
    assert [path.name for path in tmp_path.iterdir()] == ["m.db"]  # the log is merged: it was closed


STARTED = """
import signal, sys
import memory_core.web.process
from memory_core.__main__ import run

signal.signal(signal.SIGINT, signal.SIG_IGN)
memory_core.web.process.prepare_to_serve = lambda: signal.raise_signal(signal.SIGTERM)
run()
"""
"""Started in the background by a shell, and told to end before it listens."""


def test_a_signal_before_it_listens_is_one_sentence_also_beside_mcp(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED, "serve", "--file", str(made(tmp_path)), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "memory-core: interrupted; nothing is half-written, and the same command continues\n"
    assert (done.returncode, done.stderr) == (143, said)


def test_what_it_acknowledged_before_a_signal_at_any_moment_is_stored(tmp_path: Path) -> None:
    path, pauses = made(tmp_path), random.Random(41)

    def write(server: Running, name: str, acknowledged: set[str]) -> None:
        with httpx.Client(base_url=server.address, headers=bearer(server), timeout=300) as client:
            for number in range(10_000):
                text = f"{name} note {number}"
                try:
                    if client.post("/v1/records", json={"text": text}).status_code == 201:
                        acknowledged.add(text)
                except httpx.TransportError:
                    return

    known: set[str] = set()
    for turn in range(3):
        with running(path, "--embedder", "none", "--write") as server, ThreadPoolExecutor(4) as pool:
            work = [pool.submit(write, server, f"{turn}.{each}", known) for each in range(4)]
            enough = len(known) + pauses.randrange(1, 60)
            while len(known) < enough:
                assert server.process.poll() is None
                time.sleep(0.001)
            server.process.terminate()
            assert server.process.wait(300) == 0
            for each in work:
                each.result()
    with Memory(path, embedder=None) as memory:
        stored = {record.text for record in memory.bind(user="ann").sync.list(limit=10_000)}
    assert known <= stored


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.torture)], ids=["short", "a minute"])
def test_many_clients_beside_writing_agents_lose_nothing(tmp_path: Path, seconds: int) -> None:
    path, until = made(tmp_path), time.monotonic() + seconds

    with (
        running(path, "--embedder", "none", "--write") as server,
        Memory(path, embedder=None) as memory,  # another process on the same file
        ThreadPoolExecutor(CLIENTS + 2 * AGENTS) as pool,
    ):
        service = MemoryService(memory)
        work = [pool.submit(client_of, server, name, until) for name in range(CLIENTS)]
        work += [pool.submit(sessions_of, service, name, until) for name in range(AGENTS)]
        work += [pool.submit(asyncio.run, heard(memory, name, until)) for name in range(AGENTS)]
        expected = [text for each in work for text in each.result()]
        asyncio.run(service.close())
    with Memory(path, embedder=None) as memory:
        stored = [record.text for record in every_record(memory)]
    assert len(expected) >= CLIENTS + 2 * AGENTS
    assert sorted(text for text in stored if "Okafor" not in text) == sorted(expected)  # each once


def every_record(memory: Memory) -> Iterator[MemoryRecord]:
    """All records of Ann's, page by page."""
    cursor: str | None = None
    while True:
        page = memory.bind(user="ann").sync.list(limit=10_000, cursor=cursor)
        yield from page.records
        cursor = page.cursor
        if cursor is None:
            return


def test_the_local_socket_is_for_its_user_alone_and_needs_no_token(tmp_path: Path) -> None:
    path, place = made(tmp_path), tmp_path / "m.sock"
    with running(path, "--embedder", "none", "--socket", str(place)) as server:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(place)), base_url="http://memory-core", timeout=300
        ) as client:
            assert client.get("/v1/stats").json()["records"] == 1
            assert client.get("/v1/stats", headers={"Origin": "http://memory-core"}).status_code == 403
        second = _refused(path, "--socket", str(place), "--port", "0")
        assert "another server answers there already" in second
        server.process.kill()
    assert place.exists()  # a killed server leaves it; the next one replaces it
    with (
        running(path, "--embedder", "none", "--socket", str(place)),
        httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), timeout=300) as client,
    ):
        assert client.get("http://memory-core/v1/health").is_success
    assert not place.exists()


def health(path: Path) -> bool:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=300) as client:
        return client.get("http://memory-core/v1/health").is_success


def test_it_listens_beside_its_file_where_a_second_server_does_not_take_its_place(tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / "link.db").symlink_to(path)
    place = tmp_path / "m.db-socket"
    with running(tmp_path / "link.db", "--embedder", "none") as first:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with running(path, "--embedder", "none") as second:
            assert second.process.stderr is not None
            said = second.process.stderr.readline()
            assert said.startswith("memory-core: hooks do not ask this server: cannot listen on the local socket")
            assert "another server answers there already" in said
            assert httpx.get(f"{second.address}/v1/health", timeout=300).is_success
        second.process.wait()
        assert health(place)
        first.process.kill()
    assert place.exists()
    with running(path, "--embedder", "none"):
        assert health(place)
    assert not place.exists()


@pytest.mark.parametrize("other", ["link", "file", "folder", "socket of somebody else", "too long"])
def test_what_stands_beside_the_file_is_left_alone(tmp_path: Path, other: str) -> None:
    place = place_beside(tmp_path / ("x" * 120 if other == "too long" else "m.db"))
    if other == "link":
        place.symlink_to(tmp_path / "nowhere")
    elif other == "file":
        place.write_text("a file")
    elif other == "folder":
        place.mkdir()
    elif other == "socket of somebody else":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(place))
        os.chown(place, NOBODY, NOBODY)
    before = place.lstat() if other != "too long" else None
    with listening("127.0.0.1", 0, path=None, beside=place) as found:
        assert len(found.sockets) == 1
        assert "cannot listen on the local socket" in str(found.unheard)
    assert before is None or place.lstat() == before


def test_a_server_does_not_remove_the_socket_of_a_later_one(tmp_path: Path) -> None:
    path, place = made(tmp_path), tmp_path / "m.db-socket"
    with running(path, "--embedder", "none") as first:
        place.unlink()
        with running(path, "--embedder", "none"):
            first.process.terminate()
            first.process.wait()
            assert health(place)
    assert not place.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a moment")
def test_the_local_socket_hangs_up_on_another_user_even_if_its_mode_lets_them_in(tmp_path: Path) -> None:
    with (
        TemporaryDirectory(dir="/tmp") as folder,
        running(made(tmp_path), "--socket", f"{folder}/s", "--embedder", "none"),
    ):
        Path(folder).chmod(0o755)
        Path(folder, "s").chmod(0o666)
        with socket.socket(socket.AF_UNIX) as asking:
            os.seteuid(NOBODY)
            try:
                asking.connect(f"{folder}/s")
            finally:
                os.seteuid(0)
            with suppress(ConnectionError):
                asking.sendall(b"GET /v1/health HTTP/1.1\r\nHost: memory-core\r\n\r\n")
            with suppress(ConnectionError):
                assert asking.recv(100) == b""
        assert health(Path(folder, "s"))


def test_without_tokens_it_serves_this_machine_only(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert "--tokens" in _refused(path, "--host", "0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "choose another port" in _refused(path, "--port", str(taken.getsockname()[1]))
    assert "there is no memory file" in _refused(tmp_path / "missing.db")


def _refused(path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "memory_core", "serve", "--file", str(path), "--user", "ann", "--embedder", "none"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_nothing_of_a_request_is_logged(tmp_path: Path) -> None:
    path = made(tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "memory_core", "serve", "--file", str(path), "--user", "ann", "--port", "0"]
    with subprocess.Popen(
        [*command, "--embedder", "none"], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        server = Running(process, process.stderr.readline().split()[-1])
        for secret in ("/v1/records/secret-id", "/v1/records?where=secret", "/o/secret/secret?q=secret"):
            httpx.get(f"{server.address}{secret}", headers=bearer(server), timeout=300)
        httpx.post(f"{server.address}/v1/search", content=b'{"query": "secret', headers=bearer(server), timeout=300)
        process.terminate()
        assert "secret" not in process.stderr.read()


def test_a_client_that_hangs_up_is_no_defect(tmp_path: Path) -> None:
    paths = ("/v1/records", "/v1/owners/default/ann/remember", "/sign-in", "/o/default/ann/add")
    with running(made(tmp_path), "--write", "--embedder", "none") as server:
        where = urlsplit(server.address)
        signed_in = httpx.post(f"{server.address}/sign-in", data={"token": server.key}, timeout=300)
        cookie = "; ".join(f"{name}={value}" for name, value in signed_in.cookies.items())
        assert cookie
        for path, body in product(paths, (b"", b"{", b'{"text": "tea"')):
            with socket.create_connection((where.hostname or "", where.port or 0)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {server.key}\r\n"
                kind = f"Cookie: {cookie}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
                client.sendall(f"{head}{kind}".encode() + body)
        for _ in range(20):  # the server has noticed by then
            assert httpx.get(f"{server.address}/v1/health", timeout=300).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.stderr is not None
        said = server.process.stderr.read()
    assert "a request failed" not in said
    assert "Traceback" not in said
