"""`import` from each program: everything of ten people is there, whose it was, and kills change nothing.

The small form is among the ordinary tests; `make torture` moves 5,000 memories and kills the move at ten points.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.adk.events import Event
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from qdrant_client import QdrantClient, models
from spade_llm.memory import AgentBaseMemory

from memory_core import Memory
from tests.app.conftest import Run
from tests.app.test_import_owners import write_chroma
from tests.storage.qdrant.loopback import Loopback

PEOPLE = ("ann", "ben", "cem", "dora", "ege", "fay", "gil", "hana", "ivo", "jun")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)


class Said(NamedTuple):
    """A message of one of the ten people."""

    number: int
    user: str
    session: str
    at: datetime

    @property
    def text(self) -> str:
        return f"{self.user} keeps item {self.number} in drawer {self.number % 7}"


@dataclass(frozen=True)
class Program:
    """A program whose memories are imported."""

    write: Callable[[Path, Sequence[Said]], object]
    options: Sequence[str] = ()
    has_users: bool = True
    """Otherwise everything is the user's of the command."""
    has_sessions: bool = True
    has_times: bool = True


def said(count: int) -> list[Said]:
    return [
        Said(n, user := PEOPLE[n % 10], f"{user} {n // 10 % 30}", START + timedelta(minutes=n)) for n in range(count)
    ]


def write_jsonl(path: Path, items: Sequence[Said]) -> None:
    fields = [
        {"id": f"m{each.number}", "text": each.text, "user_id": each.user, "thread_id": each.session}
        | {"created_at": each.at.isoformat()}
        for each in items
    ]
    path.with_suffix(".jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in fields))
    path.symlink_to(path.with_suffix(".jsonl"))


def write_adk(path: Path, items: Sequence[Said]) -> None:
    async def write() -> None:
        service = SqliteSessionService(str(path))
        for session in dict.fromkeys(each.session for each in items):
            of_it = [each for each in items if each.session == session]
            at = await service.create_session(app_name="default", user_id=of_it[0].user, session_id=session)
            for each in of_it:
                content = types.Content(role="user", parts=[types.Part(text=each.text)])
                await service.append_event(
                    at,
                    Event(
                        author="user",
                        content=content,
                        invocation_id=f"i{each.number}",
                        timestamp=each.at.timestamp(),
                        id=f"e{each.number}",
                    ),
                )

    asyncio.run(write())


def write_langgraph(path: Path, items: Sequence[Said]) -> None:
    from langgraph.store.base import PutOp
    from langgraph.store.sqlite import SqliteStore

    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        for each in items:
            value = {"text": each.text, "at": each.at.isoformat()}
            store.batch([PutOp(("users", each.user, each.session), f"{each.number}", value)])


def write_mem0(path: Path, items: Sequence[Said]) -> None:
    """The points as mem0 makes them, in qdrant-client's own folder."""
    client = QdrantClient(path=str(path))
    client.create_collection("mem0", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(
            id=each.number,
            vector=[1.0, 0.0],
            payload={"data": each.text, "user_id": each.user, "run_id": each.session}
            | {"created_at": each.at.isoformat()},
        )
        for each in items
    ]
    client.upsert("mem0", points)
    client.close()


def write_skynet(path: Path, items: Sequence[Said]) -> None:
    path.mkdir()
    documents: list[tuple[str, dict[str, str | int | bool | float]]] = [
        (each.text, {"user_id": each.user, "room": each.session, "timestamp": 1_000 * each.at.timestamp()})
        for each in items
    ]
    write_chroma(path / "chroma.sqlite3", documents)


def write_chatgpt(path: Path, items: Sequence[Said]) -> None:
    path.mkdir()
    conversations: list[dict[str, Any]] = []
    for session in dict.fromkeys(each.session for each in items):
        nodes, parent = dict[str, Any](), None
        for each in [one for one in items if one.session == session]:
            message = {"id": f"m{each.number}", "author": {"role": "user"}, "create_time": each.at.timestamp()}
            message["content"] = {"content_type": "text", "parts": [each.text]}
            nodes[f"m{each.number}"] = {"id": f"m{each.number}", "parent": parent, "message": message}
            parent = f"m{each.number}"
        conversations.append({"conversation_id": session, "title": "", "current_node": parent, "mapping": nodes})
    (path / "conversations.json").write_text(json.dumps(conversations))


def write_markdown(path: Path, items: Sequence[Said]) -> None:
    path.mkdir()
    for each in items:
        head = f"---\nuser: {each.user}\nroom: {each.session}\nwhen: {each.at.isoformat()}\n---\n"
        (path / f"{each.number}.md").write_text(f"{head}{each.text}\n")


def write_spade(path: Path, items: Sequence[Said]) -> None:
    path.mkdir()

    async def write() -> None:
        memories = {user: AgentBaseMemory(user, memory_path=str(path)) for user in PEOPLE}
        for each in items:
            await memories[each.user].store_memory("fact", each.text)

    asyncio.run(write())


PROGRAMS = {
    "jsonl": Program(write_jsonl),
    "adk": Program(write_adk),
    "langgraph": Program(
        write_langgraph, ["--user-from", "namespace.1", "--session-from", "namespace.2", "--time-from", "at"]
    ),
    "mem0": Program(write_mem0),
    "chroma": Program(write_skynet, ["--session-from", "room"]),
    "chatgpt": Program(write_chatgpt, has_users=False),
    "markdown": Program(write_markdown, ["--user-from", "user", "--session-from", "room", "--time-from", "when"]),
    "spade-llm": Program(write_spade, has_sessions=False, has_times=False),
}


def stored(file: str) -> Counter[tuple[str, ...]]:
    """User, first line, session and time of every record."""
    found = Counter[tuple[str, ...]]()
    with Memory(file, embedder=None) as memory:
        for user in ("default", *PEOPLE):
            page = memory.bind(user=user).sync.list(limit=10_000)
            found.update(
                (user, each.text.partition("\n")[0], each.session or "", each.occurred_at.isoformat())
                for each in page.records
            )
    return found


def insist_on_everything(program: Program, items: Sequence[Said], found: Counter[tuple[str, ...]]) -> None:
    """Each memory once, under the right owner, in its session and at its time as far as the program keeps them."""
    wanted = Counter(
        (
            each.user if program.has_users else "default",
            each.text,
            each.session if program.has_sessions else "",
            each.at.isoformat() if program.has_times else "",
        )
        for each in items
    )
    kept = Counter(
        {(user, text, session, at if program.has_times else ""): n for (user, text, session, at), n in found.items()}
    )
    assert kept == wanted


def import_of(source: str, format_: str) -> list[str]:
    """The arguments of a move, up to the name of the file."""
    arguments = ["import", source, "--format", format_, "--yes", "--embedder", "none", *PROGRAMS[format_].options]
    return [*arguments, "--user", "default", "--json", "--file"]


def move_with_kills(source: str, format_: str, items: Sequence[Said], kills: int) -> None:
    """The same at the end, however often the move was killed; and moving again adds nothing."""
    program = PROGRAMS[format_]
    command = [sys.executable, "-m", "memory_core", *import_of(source, format_)]
    began = time.monotonic()
    subprocess.run([*command, "whole.db"], check=True, capture_output=True)
    whole = time.monotonic() - began
    pauses = random.Random(format_)
    for _ in range(kills):
        process = subprocess.Popen([*command, "killed.db"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pauses.uniform(0.2, 1) * whole)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, "killed.db"], check=True, capture_output=True)
    for file in ("whole.db", "killed.db"):
        insist_on_everything(program, items, stored(file))
    again = subprocess.run([*command, "killed.db"], check=True, capture_output=True)
    told = json.loads(again.stdout)
    assert (told["new"], told["known"], told["refused"]) == (0, len(items), [])


def move_twice(run: Run, source: str, format_: str, items: Sequence[Said]) -> None:
    """All is there, and moving again adds nothing."""
    for new, known in ((len(items), 0), (0, len(items))):
        told = run(*import_of(source, format_), "there.db").value
        assert (told["new"], told["known"], told["refused"]) == (new, known, [])
        insist_on_everything(PROGRAMS[format_], items, stored("there.db"))


@pytest.mark.slow
@pytest.mark.parametrize("format_", PROGRAMS)
def test_everything_of_each_program_is_there_and_whose_it_was(run: Run, tmp_path: Path, format_: str) -> None:
    items, program = said(100), PROGRAMS[format_]
    program.write(tmp_path / "theirs", items)
    move_twice(run, "theirs", format_, items)
    if program.options[:1] == ["--user-from"]:  # without a word about the owners nothing becomes one
        refused = run(
            "import", "theirs", "--format", format_, "--yes", "--embedder", "none", "--file", "other.db", code=2
        )
        assert "who would all become default/ann" in refused.err


@pytest.mark.process
@pytest.mark.parametrize(
    ("format_", "count", "kills"),
    [("jsonl", 300, 2), *(pytest.param(format_, 5_000, 10, marks=pytest.mark.torture) for format_ in PROGRAMS)],
)
def test_everything_is_there_although_the_move_is_killed(tmp_path: Path, format_: str, count: int, kills: int) -> None:
    items = said(count)
    PROGRAMS[format_].write(tmp_path / "theirs", items)
    move_with_kills("theirs", format_, items, kills=kills)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=[pytest.mark.torture, pytest.mark.process])])
def test_everything_of_radbot_is_there_and_whose_it_was(
    run: Run, tmp_path: Path, loopback: Loopback, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    items = said(count)
    monkeypatch.setitem(PROGRAMS, "radbot", Program(lambda path, items: None, has_sessions=False))
    points = [
        models.PointStruct(
            id=each.number + 1,
            vector=[1.0, 0.0],
            payload={"text": each.text, "user_id": each.user, "timestamp": each.at.isoformat(), "memory_type": "fact"},
        )
        for each in items
    ]

    def make() -> None:
        vectors = models.VectorParams(size=2, distance=models.Distance.COSINE)
        loopback.engine.client.create_collection("agent_memory", vectors_config=vectors)
        loopback.engine.client.upsert("agent_memory", points)

    loopback.on_loop(make)
    move_twice(run, loopback.url, "radbot", items)
    if count > 1_000:
        move_with_kills(loopback.url, "radbot", items, kills=10)
