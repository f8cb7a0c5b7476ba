"""The files of other programs come in: once, with a report, and whatever is wrong with them is named."""

from __future__ import annotations

import asyncio
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import _sqlite_memory_service
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from qdrant_client import models
from spade_llm.memory import AgentBaseMemory, AgentInteractionMemory

from memory_core import Memory, run_sync
from memory_core.app.formats import IMPORTERS, entry_of
from memory_core.transfer.documents import PART_CHARS
from tests.app.conftest import Run, damaged, import_twice
from tests.storage.qdrant.loopback import Loopback


def test_every_importer_is_found_and_says_what_its_source_is(run: Run) -> None:
    for each in run("formats", "--json").value:
        assert each["what"][:1].isupper() or each["format"] in {"jsonl", "mem0"}


@pytest.mark.parametrize("format_", ["adk", "chatgpt", "chroma", "document", "langgraph", "mem0", "spade-llm"])
@pytest.mark.parametrize(
    "content",
    [None, b"", b"SQLite format 3\0" + bytes(200), b"\xff" * 5_000, b"[" * 50_000],
    ids=["missing", "empty", "cut", "bytes", "deep"],
)
def test_a_source_of_something_else_is_one_sentence(
    run: Run, tmp_path: Path, format_: str, content: bytes | None
) -> None:
    path = tmp_path / "source.dat"
    if content is not None:
        path.write_bytes(content)
    if format_ == "document" and content in {b"", b"[" * 50_000}:
        pytest.skip("a text")
    failed = run("import", str(path), "--yes", "--format", format_, "--embedder", "none", code=2)
    assert sum(line.startswith("memory-core: ") for line in failed.err.splitlines()) == 1


def event(text: str, author: str = "user", id_: str = "", **more: Any) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    return Event(
        author=author, content=content, invocation_id=more.pop("invocation_id", "i1"), timestamp=1.7e9, id=id_, **more
    )


def adk_sessions(kind: str, path: Path) -> SqliteSessionService | DatabaseSessionService:
    return (
        SqliteSessionService(str(path)) if kind == "sqlite" else DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
    )


async def write_sessions(kind: str, path: Path) -> None:
    service = adk_sessions(kind, path)
    session = await service.create_session(app_name="helper", user_id="ann", session_id="noon")
    said = [event("I keep bees"), event("Noted.", "helper"), event("My hat is blue", invocation_id="i2")]
    undo = Event(author="user", invocation_id="i3", actions=EventActions(rewind_before_invocation_id="i2"))
    for second, each in enumerate([*said, undo, event("My hat is red", invocation_id="i4")]):
        each.timestamp = 1.7e9 + second
        await service.append_event(session, each)
    if isinstance(service, DatabaseSessionService):
        await service.close()


@pytest.mark.parametrize("kind", ["sqlite", "database"])
def test_sessions_of_adk(run: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sessions.db"
    asyncio.run(write_sessions(kind, path))
    records = import_twice(run, path, "adk")
    assert sorted(record["text"] for record in records) == ["I keep bees", "My hat is red", "Noted."]
    assert {(record["app"], record["user"], record["session"]) for record in records} == {("helper", "ann", "noon")}
    assert {record["role"] for record in records} == {"user", "assistant"}


def test_half_written_events_of_adk_are_named_and_the_rest_comes_in(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    asyncio.run(write_sessions("sqlite", path))
    damaged(path, "events", "event_data")
    assert len(import_twice(run, path, "adk", refused=1)) == 2


def test_the_memory_of_adk(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"

    async def write() -> None:
        service = _sqlite_memory_service.SqliteMemoryService(str(path))
        for user in ("ann", "tom"):
            events = [event(f"{user} keeps bees", id_="e1"), event(f"{user} sails", id_="e2")]
            await service.add_session_to_memory(Session(id="s", app_name="helper", user_id=user, events=events))

    asyncio.run(write())
    records = import_twice(run, path, "adk")
    assert sorted(record["text"] for record in records) == [
        "ann keeps bees",
        "ann sails",
        "tom keeps bees",
        "tom sails",
    ]
    damaged(path, "memory_events", "content_json")
    refused = run("import", str(path), "--yes", "--format", "adk", "--embedder", "none", "--json", code=1).value[
        "refused"
    ]
    assert refused[0]["place"] == "event 'e1'"


def test_files_of_spade_llm(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()

    async def write() -> None:
        memory = AgentBaseMemory("bot@localhost", memory_path=str(folder))
        await memory.store_memory("fact", "Ann keeps bees", "she said so")
        await memory.store_memory("preference", "Ann prefers tea")

    asyncio.run(write())
    notes = AgentInteractionMemory("bot@localhost", str(folder))
    notes.add_information("ann_session", "Ann is in a hurry")
    records = import_twice(run, folder, "spade-llm")
    bees = "Ann keeps bees (context: she said so)"
    assert {record["text"] for record in records} == {bees, "Ann prefers tea", "Ann is in a hurry"}
    assert {record["user"] for record in records} == {"bot@localhost"}
    (half,) = folder.glob("*_interactions.json")
    half.write_bytes(half.read_bytes()[:-9])
    assert (
        "is not JSON, or was cut"
        in run("import", str(half), "--yes", "--format", "spade-llm", "--embedder", "none", code=2).err
    )
    half.write_text('{"agent_id": "\\ud800", "interactions": {"s": [{"content": "tea"}]}}')
    assert (
        "agent_id contains"
        in run("import", str(half), "--yes", "--format", "spade-llm", "--embedder", "none", code=2).err
    )
    (tmp_path / "empty").mkdir()
    assert (
        "no file of spade_llm"
        in run("import", "empty", "--yes", "--format", "spade-llm", "--embedder", "none", code=2).err
    )


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


def test_a_collection_of_radbot(run: Run, loopback: Loopback) -> None:
    payloads = [
        {"text": "the gate has code 4711", "user_id": "ann", "timestamp": "2026-03-02T09:00:00", "memory_type": "fact"},
        {"text": "no user", "timestamp": "2026-03-02T09:00:00"},
    ]
    points = [models.PointStruct(id=n, vector=[1.0, 0.0], payload=each) for n, each in enumerate(payloads, 1)]

    def make() -> None:
        vectors = models.VectorParams(size=2, distance=models.Distance.COSINE)
        loopback.engine.client.create_collection("agent_memory", vectors_config=vectors)
        loopback.engine.client.upsert("agent_memory", points)

    loopback.on_loop(make)
    (record,) = import_twice(run, loopback.url, "radbot", refused=1)
    assert (record["text"], record["user"], record["kind"]) == ("the gate has code 4711", "ann", "fact")
    assert (
        "is not the address"
        in run("import", "nowhere", "--yes", "--format", "radbot", "--embedder", "none", code=2).err
    )


def conversation_of_chatgpt() -> dict[str, Any]:
    """As its export has it: a tree of messages, in which an edited question is another branch."""

    def node(id_: str, parent: str | None, role: str, *parts: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": list(parts)}
        message = {"id": id_, "author": {"role": role}, "create_time": 1.7e9, "content": content}
        return {"id": id_, "parent": parent, "children": [], "message": message}

    nodes = [
        {"id": "root", "parent": None, "children": ["1"], "message": None},
        node("1", "root", "system", ""),
        node("2", "1", "user", "What is the capital of Frence?"),
        node("3", "1", "user", "What is the capital of France?", {"content_type": "image_asset_pointer"}),
        node("4", "3", "assistant", "Paris."),
    ]
    return {
        "conversation_id": "c1",
        "title": "Capitals",
        "create_time": 1.7e9,
        "current_node": "4",
        "mapping": {each["id"]: each for each in nodes},
    }


@pytest.mark.parametrize("kind", ["file", "zip"])
def test_an_export_that_was_saved_on_windows_with_a_byte_order_mark(run: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation_of_chatgpt()]), encoding="utf-8-sig")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(path, path.name)
    source = {"file": path, "zip": tmp_path / "export.zip"}[kind]
    assert len(import_twice(run, source, "chatgpt", refused=0)) == 2


@pytest.mark.parametrize("kind", ["file", "folder", "zip"])
def test_an_export_of_chatgpt(run: Run, tmp_path: Path, kind: str) -> None:
    (tmp_path / "export").mkdir()
    path = tmp_path / "export" / "conversations.json"
    path.write_text(json.dumps([conversation_of_chatgpt(), {"no": "messages"}, 3]))
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(path, "conversations.json")
    source = {"file": path, "folder": path.parent, "zip": tmp_path / "export.zip"}[kind]
    records = import_twice(run, source, "chatgpt", refused=2)
    assert [(record["role"], record["text"]) for record in records] == [
        ("user", "What is the capital of France?"),
        ("assistant", "Paris."),
    ]
    assert {(record["session"], record["data"]["title"]) for record in records} == {("c1", "Capitals")}
    half = tmp_path / "half.json"
    half.write_bytes(path.read_bytes()[:-5])
    assert (
        "is not JSON, or was cut"
        in run("import", str(half), "--yes", "--format", "chatgpt", "--embedder", "none", code=2).err
    )


def test_documents_keep_the_place_of_every_part(run: Run, tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {n}. " + "The harbour was built in stone. " * 40 for n in range(20)]
    (tmp_path / "harbour.md").write_text("\n\n".join(paragraphs))
    records = run("import", "harbour.md", "--format", "document", "--yes", "--embedder", "none", "--json").value
    assert records["new"] == records["read"] > 3
    found = run("list", "-n", "99", "--json").value["records"]
    text = (tmp_path / "harbour.md").read_text()
    for record in found:
        start, stop = record["data"]["start"], record["data"]["stop"]
        assert stop - start <= PART_CHARS
        assert record["data"]["file"] == "harbour.md"
        assert text[start:stop] == record["text"]
    assert (
        run("import", "harbour.md", "--format", "document", "--yes", "--embedder", "none", "--json").value["new"] == 0
    )


@pytest.mark.parametrize(("name", "content"), [("tide.pdf", b"%PDF-1.4"), ("tide.html", b"<p>"), ("tide.txt", b"\xff")])
def test_what_is_no_text_is_for_a_loader(run: Run, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert "document loader" in run("import", name, "--yes", "--embedder", "none", code=2).err


def test_an_importer_that_needs_a_missing_package_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memory_langchain.importer", None)
    assert "cannot be loaded" in run("import", "x", "--yes", "--format", "langgraph", "--embedder", "none", code=2).err
    assert "cannot be loaded" in " ".join(run("formats").out.split())
    assert callable(entry_of(IMPORTERS, "chatgpt"))


def test_the_list_of_formats_names_the_extra_that_a_format_needs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "memory_adk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.adk", None)
    said = {each["format"]: each["what"] for each in run("formats", "--json").value if each["command"] == "import"}
    assert said["adk"] == "needs: memory-core[adk]"
    assert "needs" not in said["chatgpt"]


def test_what_was_forgotten_here_does_not_come_back(run: Run, tmp_path: Path) -> None:
    line = {"at": "2026-03-02T09:12:00+01:00", "session": "s", "author": "Nadia", "text": "The tide turns"}
    (tmp_path / "talk.jsonl").write_text(json.dumps(line))
    run("import", "talk.jsonl", "--format", "conversation", "--yes", "--embedder", "none")
    (record,) = run("list", "--json").value["records"]
    run("forget", record["id"], "--yes")
    assert (
        run("import", "talk.jsonl", "--format", "conversation", "--yes", "--embedder", "none").out
        == "1 memory read, 0 of them new, 0 known, 1 forgotten here before\n"
    )
    with Memory("memory.db", embedder=None) as memory:
        assert run_sync(memory.bind(user="ann").stats).records == 0
