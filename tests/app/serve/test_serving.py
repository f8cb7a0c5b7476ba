"""The server as a process: signals, the local socket, many clients at once, and what it refuses to do."""

from __future__ import annotations

import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from memory_core import Draft, Memory
from tests.app.serve.conftest import Running, running

pytestmark = pytest.mark.process

CLIENTS, EACH = 50, 6


def bearer(server: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key}"}


def made(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.bind(user="ann").sync.add("The spare key is with Mrs Okafor")
    return path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_an_orderly_way(tmp_path: Path, number: int, code: int) -> None:
    with running(made(tmp_path), "--words-only", "--write") as server:
        assert httpx.get(f"{server.address}/v1/stats", headers=bearer(server)).json()["records"] == 1
        server.process.send_signal(number)
        assert server.process.wait(60) == code
    assert [path.name for path in tmp_path.iterdir()] == ["m.db"]  # the log is merged: it was closed


def test_what_it_acknowledged_before_a_signal_at_any_moment_is_stored(tmp_path: Path) -> None:
    path, pauses = made(tmp_path), random.Random(41)

    def write(server: Running, name: str, acknowledged: set[str]) -> None:
        with httpx.Client(base_url=server.address, headers=bearer(server)) as client:
            for number in range(10_000):
                text = f"{name} note {number}"
                try:
                    if client.post("/v1/records", json={"text": text}).status_code == 201:
                        acknowledged.add(text)
                except httpx.TransportError:
                    return

    known: set[str] = set()
    for turn in range(3):
        with running(path, "--words-only", "--write") as server, ThreadPoolExecutor(4) as pool:
            work = [pool.submit(write, server, f"{turn}.{each}", known) for each in range(4)]
            enough = len(known) + pauses.randrange(1, 60)
            while len(known) < enough:
                assert server.process.poll() is None
                time.sleep(0.001)
            server.process.terminate()
            assert server.process.wait(60) == 0
            for each in work:
                each.result()
    with Memory(path, embedder=None) as memory:
        stored = {record.text for record in memory.bind(user="ann").sync.list(limit=10_000)}
    assert known <= stored


def test_many_clients_beside_a_writing_agent_lose_nothing(tmp_path: Path) -> None:
    path = made(tmp_path)

    def client_of(server: Running, name: int) -> None:
        with httpx.Client(base_url=server.address, headers=bearer(server), timeout=120) as client:
            for number in range(EACH):
                assert client.post("/v1/records", json={"text": f"client {name} note {number}"}).status_code == 201
                found = client.post("/v1/search", json={"query": f"client {name} note {number}", "limit": 3})
                assert found.status_code == 200

    with (
        running(path, "--words-only", "--write") as server,
        Memory(path, embedder=None) as memory,  # another process on the same file
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        work = [pool.submit(client_of, server, name) for name in range(CLIENTS)]
        for number in range(100):
            memory.bind(user="ann").sync.add(Draft(f"agent note {number}"))
        for each in work:
            each.result()
        stored = {record.text for record in memory.bind(user="ann").sync.list(limit=10_000)}
    expected = {f"client {name} note {number}" for name in range(CLIENTS) for number in range(EACH)}
    assert expected | {f"agent note {number}" for number in range(100)} <= stored


def test_the_local_socket_is_for_its_user_alone_and_needs_no_token(tmp_path: Path) -> None:
    path, place = made(tmp_path), tmp_path / "m.sock"
    with running(path, "--words-only", "--socket", str(place)) as server:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), base_url="http://memory-core") as client:
            assert client.get("/v1/stats").json()["records"] == 1
            assert client.get("/v1/stats", headers={"Origin": "http://memory-core"}).status_code == 403
        second = _refused(path, "--socket", str(place), "--port", "0")
        assert "another server listens there" in second
        server.process.kill()
    assert place.exists()  # a killed server leaves it; the next one replaces it
    with (
        running(path, "--words-only", "--socket", str(place)),
        httpx.Client(transport=httpx.HTTPTransport(uds=str(place))) as client,
    ):
        assert client.get("http://memory-core/v1/health").is_success
    assert not place.exists()


def test_without_tokens_it_serves_this_machine_only(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert "--tokens" in _refused(path, "--host", "0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "choose another with --port" in _refused(path, "--port", str(taken.getsockname()[1]))
    assert "there is no memory file" in _refused(tmp_path / "missing.db")


def _refused(path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "memory_core", "serve", "--file", str(path), "--user", "ann", "--words-only"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_nothing_of_a_request_is_logged(tmp_path: Path) -> None:
    path = made(tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "memory_core", "serve", "--file", str(path), "--user", "ann", "--port", "0"]
    with subprocess.Popen([*command, "--words-only"], stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        server = Running(process, process.stderr.readline().split()[-1])
        for secret in ("/v1/records/secret-id", "/v1/records?where=secret", "/o/secret/secret?q=secret"):
            httpx.get(f"{server.address}{secret}", headers=bearer(server))
        httpx.post(f"{server.address}/v1/search", content=b'{"query": "secret', headers=bearer(server))
        process.terminate()
        assert "secret" not in process.stderr.read()
