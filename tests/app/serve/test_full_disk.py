"""A disk that is full: the system refuses to let the files of the server grow."""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path
from time import sleep

import httpx
import pytest

from memory_core import Memory, run_sync
from memory_core.app.serve.health import KEPT_SECONDS
from tests.app.serve.conftest import Running, running

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")]

LONG = "harbour " * 2_000


def made(tmp_path: Path) -> Path:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("The spare key is with Mrs Okafor")
    return tmp_path / "m.db"


def fill(server: Running, path: Path) -> None:
    """Let no file of the server become longer than the longest is."""
    longest = max(each.stat().st_size for each in (path, path.with_name(f"{path.name}-wal")))
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (longest, resource.RLIM_INFINITY))


def free(server: Running) -> None:
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def add_until_it_fails(client: httpx.Client, text: str, names: list[str]) -> httpx.Response:
    for _ in range(1_000):
        name = f"key {len(names)}"
        answer = client.post("/v1/records", json={"text": text, "source_key": name})
        if answer.status_code != 201:
            return answer
        names.append(name)
    raise AssertionError("the disk never was full")


@pytest.mark.parametrize("ends_full", [False, True], ids=["freed", "ended while it is full"])
def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path: Path, ends_full: bool) -> None:  # noqa: FBT001
    path, stored = made(tmp_path), list[str]()
    with running(path, "--embedder", "none", "--write") as server:
        head = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.address, headers=head, timeout=300) as client:
            client.post("/v1/records", json={"text": "The kettle is on"})
            fill(server, path)
            assert add_until_it_fails(client, LONG, stored).status_code == 503
            refused = add_until_it_fails(client, "a note", stored)  # what is short had room for longer
            assert refused.status_code == 503
            assert refused.headers["content-type"] == "application/problem+json"
            assert client.get("/v1/health").status_code == 503
            assert client.get("/v1/live").status_code == 200
            assert client.post("/v1/search", json={"query": "spare key"}).json()["hits"]
            if not ends_full:
                free(server)
                sleep(KEPT_SECONDS)
                assert client.get("/v1/health").status_code == 200
                assert client.post("/v1/records", json={"text": LONG, "source_key": "last"}).status_code == 201
                stored.append("last")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0  # what was acknowledged is in the log already, and the end needs no disk
    with Memory(path, embedder=None) as memory:
        assert run_sync(memory.operator().check) == []
        kept = {record.source_key for record in memory.bind(user="ann").sync.list(limit=1_000)} - {None}
        assert kept >= set(stored)
