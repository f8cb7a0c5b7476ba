"""Files of LangGraph, mem0 and Chroma come in, and ours go out to mem0.

`data/peers.zip` has what mem0 2.2 and Chroma 1.5 wrote (`peers.py`). `PEERS_PYTHON`, as `.ci/peers` sets it, is a
Python with both: then the files are written again, and mem0 reads ours.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core import Draft, Memory, Patch, run_sync, utc_now
from memory_langchain import MemoryStore
from tests.app.conftest import Run, damaged, import_twice

PEERS_PYTHON = os.environ.get("PEERS_PYTHON")
SCRIPT = Path(__file__).with_name("peers.py")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if PEERS_PYTHON is None:
        return SCRIPT.parent / "data" / "peers.zip"
    folder = tmp_path_factory.mktemp("peers")
    subprocess.run([PEERS_PYTHON, SCRIPT, "write", folder], check=True, env={"PATH": os.environ["PATH"]})
    return folder / "peers.zip"


@pytest.fixture
def peers(archive: Path, tmp_path: Path) -> Path:
    """The folders of mem0 and Chroma."""
    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path / "peers")
    return tmp_path / "peers"


def test_items_of_langgraph_are_found_by_our_store(run: Run, tmp_path: Path) -> None:
    peer = pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    path = tmp_path / "store.db"
    with peer.SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("users", "ann"), "tea", {"text": "Ann drinks jasmine tea"})
        store.put(("users", "ann"), "home", {"text": "Ann lives in Rome"})
    assert len(import_twice(run, path, "langgraph")) == 2
    with Memory("memory.db", embedder=None) as memory:
        ours = MemoryStore(memory.bind(user="ann"), mode="lexical")
        item = ours.get(("users", "ann"), "tea")
        assert item is not None
        assert item.value == {"text": "Ann drinks jasmine tea"}
        assert [found.key for found in ours.search(("users",), query="Rome")][:1] == ["home"]
    damaged(path, "store", "value")
    refused = run("import", str(path), "--yes", "--format", "langgraph", "--embedder", "none", "--json", code=1).value[
        "refused"
    ]
    assert "not JSON" in refused[0]["reason"]


def test_points_of_mem0(run: Run, peers: Path) -> None:
    """In its local Qdrant folder, or the folder around that."""
    (record,) = import_twice(run, peers / "mem0" / "qdrant", "mem0", refused=1)
    assert (record["text"], record["user"], record["data"]["topic"]) == ("Ann keeps bees", "ann", "bees")
    assert run("import", str(peers / "mem0"), "--yes", "--format", "mem0", "--json", code=1).value["known"] == 1


def test_the_history_of_mem0(run: Run, peers: Path) -> None:
    (record,) = import_twice(run, peers / "mem0" / "history.db", "mem0", "--one-user")
    assert record["text"] == "Ann lives in Rome"
    assert record["occurred_at"] == "2026-03-02T09:00:00+00:00"


def test_a_text_of_the_history_of_mem0_has_the_time_at_which_it_was_written(run: Run, peers: Path) -> None:
    """mem0 writes the time of the memory into each event, and that of the update beside it."""
    march, june, july = (f"2026-0{month}-02T09:00:00+00:00" for month in (3, 6, 7))
    events = [
        ("m3", "Tom rows", "ADD", march, None),
        ("m3", "Tom sails", "UPDATE", march, june),
        ("m3", "Tom sails", "UPDATE", march, july),  # of the metadata alone
    ]
    with closing(sqlite3.connect(peers / "mem0" / "history.db")) as db, db:
        db.execute("DELETE FROM history")
        names = "id, memory_id, new_memory, event, created_at, updated_at, is_deleted"
        rows = [(f"e{number}", *each, 0) for number, each in enumerate(events)]
        db.executemany(f"INSERT INTO history ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    (record,) = import_twice(run, peers / "mem0" / "history.db", "mem0", "--one-user")
    assert (record["text"], record["occurred_at"]) == ("Tom sails", june)


def test_a_folder_of_chroma_with_the_metadata_of_skynet(run: Run, peers: Path) -> None:
    (record,) = import_twice(run, peers / "chroma", "chroma", refused=1)
    fields = [record[name] for name in ("text", "user", "kind", "importance", "tags", "collection", "data")]
    assert fields == ["Ann keeps bees", "ann", "fact", 0.9, ["a", "b"], "skynet_memories", {"x": True, "user": "ann"}]
    assert record["occurred_at"].startswith("2023-11-14T22:13:20")


FILES = {
    "mem0/qdrant/meta.json": "mem0/qdrant",
    "mem0/qdrant/collection/mem0/storage.sqlite": "mem0/qdrant",
    "mem0/history.db": "mem0/history.db",
    "chroma/chroma.sqlite3": "chroma",
}


@pytest.mark.parametrize("file", FILES)
def test_a_corrupt_or_half_written_file_is_one_sentence(run: Run, peers: Path, file: str) -> None:
    """Cut after each quarter, and with each quarter overwritten; what can be read of it may come in."""
    whole = (peers / file).read_bytes()
    quarters = range(0, len(whole), -(-len(whole) // 4))
    options = ["--one-user"] if file == "mem0/history.db" else []
    garbled = [whole[:start] + b"\xff" * (len(whole) // 4) + whole[start + len(whole) // 4 :] for start in quarters]
    for content in [whole[:start] for start in quarters] + garbled:
        (peers / file).write_bytes(content)
        source, format_ = str(peers / FILES[file]), file.partition("/")[0]
        done = run(
            "import", source, "--yes", "--format", format_, "--embedder", "none", "--dry-run", *options, code=None
        )
        lines = [line for line in done.err.splitlines() if line.startswith("memory-core: ")]
        assert len(lines) == (done.code == 2)
        if lines:
            assert "is not " in lines[0] or "cannot be read" in lines[0]
        else:
            assert done.out.endswith("\n1 memory read, 1 would be new, 0 known\n")


@pytest.fixture
def exported(run: Run, tmp_path: Path) -> Path:
    """A folder with our exports of memories of two users and an item, with earlier texts and metadata."""
    now = utc_now()
    with Memory("memory.db") as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom@example.org")
        home = run_sync(ann.add, Draft("Ann lives in Oslo", session="s", author="Ann", role="user", occurred_at=now))
        run_sync(ann.update, home.id, Patch(text="Ann lives in Rome"))
        run_sync(ann.add, Draft("Ann keeps bees", id="bees", tags=["bees"], data={"x": 1}))
        run_sync(ann.add, Draft("a long walk by the river. " * 100, expires_at=now + timedelta(days=9)))
        gone = run_sync(ann.add, "Ann had a boat")
        run_sync(ann.supersede, gone.id, "Ann has no boat")
        run_sync(tom.add, "Tom sails")
        MemoryStore(ann).put(("users", "ann"), "tea", {"text": "jasmine"})
    left = {"records": 6, "left_out": 1}
    assert run("export", "mem0", "--format", "mem0", "--json").value == left
    return tmp_path


def test_our_export_to_mem0_comes_back(run: Run, exported: Path) -> None:
    found = {record["text"]: record for record in imported(run, "mem0", "mem0")}
    assert len(found) == 6
    assert "Ann had a boat" not in found
    home, bees = found["Ann lives in Rome"], found["Ann keeps bees"]
    assert (home["user"], home["session"], home["author"], home["role"]) == ("ann", "s", "Ann", "user")
    assert (bees["data"]["x"], bees["data"]["tags"]) == (1, ["bees"])
    assert [each["text"] for each in imported(run, "mem0/history.db", "mem0", "--one-user")].count(
        "Ann lives in Rome"
    ) == 1
    assert not list(exported.glob(".*"))


def imported(run: Run, source: str, format_: str, *options: str) -> list[dict[str, Any]]:
    """The records of all users in a new file after an import."""
    file = f"of-{source.replace('/', '-')}.db"
    run("import", source, "--yes", "--format", format_, "--file", file, "--embedder", "none", *options)
    users = [each["user"] for each in run("stats", "--all", "--file", file, "--json").value]
    pages = [run("list", "--user", user, "--file", file, "--json").value["records"] for user in users]
    return [record for page in pages for record in page]


@pytest.mark.process
@pytest.mark.skipif(PEERS_PYTHON is None, reason="PEERS_PYTHON names no Python with mem0 and Chroma")
def test_mem0_reads_our_export(exported: Path) -> None:
    command = [str(PEERS_PYTHON), str(SCRIPT), "read", str(exported)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]})
    found = json.loads(said.stdout)
    texts = {each["memory"]: each for each in found["mem0"]}
    assert set(texts) >= {"Ann lives in Rome", "Ann keeps bees", "Ann has no boat"}
    assert texts["Ann keeps bees"]["metadata"]["x"] == 1
    assert (
        texts["Ann lives in Rome"].items()
        >= {"user_id": "ann", "run_id": "s", "actor_id": "Ann", "role": "user"}.items()
    )
    events = found["history"][texts["Ann lives in Rome"]["id"]]
    assert [each["new_memory"] for each in events] == ["Ann lives in Oslo", "Ann lives in Rome"]
    assert all(text == nearest for text, nearest in found["nearest"].items())
