"""Servers that the test starts, stops and kills itself; skipped unless `QDRANT_BINARY` names Qdrant's executable.

`MEMORY_CORE_NODE_KILLS` is how many nodes are killed, 3 unless it is given.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, Memory, StorageError, StoreUnavailableError, Where, run_sync
from memory_core.storage.qdrant.settings import Layout, Patience, Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing.base import everything, texts
from tests.ports import free_port
from tests.storage.embedders import WordEmbedder

BINARY = os.environ.get("QDRANT_BINARY", "")
KILLS = int(os.environ.get("MEMORY_CORE_NODE_KILLS", "3"))
TWO = Layout(shards=6, replicas=2)
"""Survives the loss of one node, and of the next one when the first is whole again."""
THREE = Layout(shards=6, replicas=3, write_consistency=2)
"""Survives crashes of one node after the other within seconds."""
PATIENT = Patience(attempts=60, deadline_seconds=90)

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not BINARY, reason="needs Qdrant's executable; set QDRANT_BINARY to its path"),
]


@dataclass
class Node:
    """A server with a folder of its own."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    ca: str | None = None
    http: int = field(default_factory=free_port)
    grpc: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.ca else 'http'}://localhost:{self.http}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "STORAGE__STORAGE_PATH": str(self.folder / "storage"),
            "STORAGE__SNAPSHOTS_PATH": str(self.folder / "snapshots"),
            "SERVICE__HTTP_PORT": str(self.http),
            "SERVICE__GRPC_PORT": str(self.grpc),
            "TELEMETRY_DISABLED": "true",
            **self.settings,
        }
        environment = {**os.environ, **{f"QDRANT__{name}": value for name, value in settings.items()}}
        with (self.folder / "log").open("ab") as log:
            command = [BINARY, *self.arguments]
            self.process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)
        self.wait()

    def wait(self) -> None:
        """Until it answers that it is ready."""
        trusted = ssl.create_default_context(cafile=self.ca) if self.ca else None
        deadline = time.monotonic() + 300
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=trusted):
                    return
            except OSError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()[-3_000:]
                time.sleep(0.2)

    def is_whole(self) -> bool:
        """True if it knows of no replica that is repaired or waits for it."""
        try:
            collections = [one["name"] for one in self.ask("/collections")["collections"]]
            states = [self.ask(f"/collections/{name}/cluster") for name in collections]
        except OSError:
            return False
        replicas = [shard for state in states for shard in (*state["local_shards"], *state["remote_shards"])]
        moving = [transfer for state in states for transfer in state["shard_transfers"]]
        return not moving and all(replica["state"] == "Active" for replica in replicas)

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
            return json.load(answer)["result"]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(300)
            self.process = None


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Start a server; it is stopped in the end."""
    with ExitStack() as stack:

        def started(name: str, **given: object) -> Node:
            node = Node(tmp_path / name, **given)  # type: ignore[arg-type]
            stack.callback(node.stop, signal.SIGKILL)
            node.start()
            return node

        yield started


def memory(server: Server, *, layout: Layout | None = None, patience: Patience = PATIENT) -> Memory:
    return Memory(QdrantStore(server, embedder=WordEmbedder(), layout=layout, patience=patience))


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("grpc", [False, True], ids=["http", "grpc"])
def test_an_api_key_is_sent_and_a_wrong_one_is_refused(start: Callable[..., Node], *, grpc: bool) -> None:
    node = start("one", settings={"SERVICE__API_KEY": "right"})

    def server(key: str | None) -> Server:
        return Server(url=node.url, api_key=key, prefer_grpc=grpc, grpc_port=node.grpc)

    with memory(server("right")) as opened:
        run_sync(opened.bind(user="ann").add, "tea")
        assert texts(run_sync(opened.bind(user="ann").search, "tea")) == ["tea"]
    for key in ("wrong", None):
        with pytest.raises(StoreUnavailableError, match="refuses the API key"):
            run_sync(memory(server(key)).open)


def test_tls_with_an_authority_of_ones_own(start: Callable[..., Node], tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, to make certificates")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    settings = {"SERVICE__ENABLE_TLS": "true", "TLS__CERT": str(certificate), "TLS__KEY": str(key)}
    node = start("one", settings=settings, ca=str(certificate))
    with memory(Server(url=node.url, ca_file=str(certificate))) as opened:
        run_sync(opened.bind(user="ann").add, "tea")
        assert texts(run_sync(opened.bind(user="ann").search, "tea")) == ["tea"]
    with pytest.raises(StorageError, match="certificate"):
        run_sync(memory(Server(url=node.url), patience=Patience(attempts=1)).open)


def test_a_server_that_is_strict_from_the_beginning(start: Callable[..., Node]) -> None:
    """With Qdrant Cloud's defaults: no condition on a field without an index, from the first request on."""
    strict = "STORAGE__COLLECTION__STRICT_MODE__"
    settings = {f"{strict}ENABLED": "true", f"{strict}MAX_PAYLOAD_INDEX_COUNT": "100"}
    settings |= {f"{strict}UNINDEXED_FILTERING_{what}": "false" for what in ("RETRIEVE", "UPDATE")}
    node = start("one", settings=settings)
    with memory(Server(url=node.url)) as opened:
        ann = opened.bind(user="ann")
        old = run_sync(ann.add, Draft("Ann lives in Oslo", session="s", source_key="k", role="user", tags=("t",)))
        run_sync(ann.supersede, old.id, "Ann lives in Rome")
        assert texts(run_sync(ann.search, "Where does Ann live?", floor=False)) == ["Ann lives in Rome"]
        run_sync(ann.list, where=Where(tags_all=("t",), as_of=old.created_at), touch=True)
        run_sync(opened.operator().vacuum)
        run_sync(ann.erase)
        assert everything(ann) == []


@pytest.fixture
def cluster(start: Callable[..., Node]) -> list[Node]:
    ports = [free_port() for _ in range(3)]
    first = f"http://127.0.0.1:{ports[0]}"
    return [
        start(
            f"node{n}",
            settings={"CLUSTER__ENABLED": "true", "CLUSTER__P2P__PORT": str(port)},
            arguments=("--uri", f"http://127.0.0.1:{port}", *(("--bootstrap", first) if n else ())),
        )
        for n, port in enumerate(ports)
    ]


def wait_until_whole(cluster: list[Node]) -> None:
    deadline = time.monotonic() + 120
    while not all(node.is_whole() for node in cluster):
        assert time.monotonic() < deadline
        time.sleep(0.5)


@dataclass
class Acknowledged:
    """The acknowledgements of the server to some writers."""

    stored: dict[str, str] = field(default_factory=dict)
    """Texts by id."""
    deleted: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    """The ids of records whose deletion failed, perhaps after it was done."""
    errors: int = 0


async def write(ann: BoundMemory, name: str, until: asyncio.Event, heard: Acknowledged) -> None:
    """Add records, some with vectors that follow later, and delete every fourth, until told to stop."""
    number = 0
    while not until.is_set():
        number += 1
        try:
            draft = Draft(f"{name} number {number}", source_key=f"{name} {number}")
            record = await ann.add(draft, embed="later" if number % 3 else "now")
        except StorageError:
            heard.errors += 1
            continue
        heard.stored[record.id] = record.text
        if number % 4 == 0:
            heard.doubtful.add(record.id)
            try:
                await ann.delete(record.id)
            except StorageError:
                heard.errors += 1
            else:
                heard.deleted.add(record.id)


@pytest.mark.timeout(300 + 60 * KILLS)  # nodes start again, and a cluster elects
@pytest.mark.parametrize(
    ("how", "times", "layout"),
    [(signal.SIGTERM, 3, TWO), (signal.SIGKILL, KILLS, TWO), (signal.SIGKILL, KILLS, THREE)],
    ids=["restart", "kill-two-replicas", "kill-three-replicas"],
)
def test_nothing_acknowledged_is_lost_when_nodes_go(
    cluster: list[Node], how: signal.Signals, times: int, layout: Layout
) -> None:
    """A rolling restart, and nodes killed one after the other, under writers of three owners on three nodes."""
    heard = {owner: Acknowledged() for owner in ("ann", "bob", "eve")}
    with ExitStack() as stack:
        run_sync(stack.enter_context(memory(Server(url=cluster[0].url), layout=layout)).open)
        memories = [stack.enter_context(memory(Server(url=node.url), layout=layout)) for node in cluster]

        async def work() -> None:
            stopped = asyncio.Event()
            handles = [one.bind(user=owner) for one, owner in zip(memories, heard, strict=True)]
            writers = [
                asyncio.create_task(write(handle, f"{owner}{n}", stopped, heard[owner]))
                for handle, owner in zip(handles, heard, strict=True)
                for n in range(2)
            ]
            for n in range(times):
                await asyncio.sleep(3)
                node = cluster[n % len(cluster)]
                await asyncio.to_thread(node.stop, how)
                await asyncio.sleep(1)
                await asyncio.to_thread(node.start)
                if layout is TWO:
                    await asyncio.to_thread(wait_until_whole, cluster)
            await asyncio.sleep(3)
            stopped.set()
            await asyncio.gather(*writers)

        asyncio.run(work())
        for one in memories:
            for owner, said in heard.items():
                handle = one.bind(user=owner)
                deadline = time.monotonic() + 120
                while run_sync(handle.stats).vectors_pending:  # the background work of every owner goes on
                    assert time.monotonic() < deadline
                    time.sleep(0.5)
                there = {record.id: record.text for record in run_sync(handle.list, limit=10_000).records}
                assert not said.deleted & there.keys()
                certain = said.stored.keys() - said.doubtful
                assert {one: there.get(one) for one in certain} == {one: said.stored[one] for one in certain}
    counts = [(len(said.stored), len(said.deleted), said.errors) for said in heard.values()]
    stored, deleted, errors = map(sum, zip(*counts, strict=True))
    killed = f"{times} nodes, {how.name}, {layout.replicas} replicas"
    sys.stdout.write(f"{killed}: {stored} acknowledged, {deleted} deleted, {errors} errors\n")
    assert stored > 30
