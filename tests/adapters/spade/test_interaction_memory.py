"""Notes of conversations in the documented JSON file: every documented call, and what a crash may not take away."""

from __future__ import annotations

import errno
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spade_llm.memory import AgentInteractionMemory as StockInteractionMemory

from memory_core import Memory
from memory_spade.memory import AgentInteractionMemory
from memory_spade.memory.exceptions import MemoryStorageError
from memory_spade.memory.notes_in_store import NotesInStore

AGENT = "agent@example.com"


def file_in(folder: Path) -> Path:
    return folder / "agent_example.com_interactions.json"


def test_the_documented_signatures() -> None:
    def signature(method: Any) -> str:
        return str(inspect.signature(method))

    assert list(inspect.signature(AgentInteractionMemory).parameters) == ["agent_id", "memory_path"]
    assert signature(AgentInteractionMemory.add_information) == (
        "(self, conversation_id: 'str', information: 'str') -> 'str'"
    )
    assert signature(AgentInteractionMemory.get_information) == "(self, conversation_id: 'str') -> 'list[str]'"
    assert signature(AgentInteractionMemory.get_context_summary) == "(self, conversation_id: 'str') -> 'str | None'"
    assert signature(AgentInteractionMemory.clear_conversation) == "(self, conversation_id: 'str') -> 'bool'"
    assert signature(AgentInteractionMemory.get_all_conversations) == "(self) -> 'list[str]'"


@pytest.fixture(params=["file", "process", "store"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentInteractionMemory]:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        made = {
            "file": AgentInteractionMemory(AGENT, str(tmp_path)),
            "process": AgentInteractionMemory(AGENT, ":memory:"),
            "store": AgentInteractionMemory.over(AGENT, NotesInStore(lambda: memory.bind(user="ann"), AGENT)),
        }
        yield made[request.param]


def test_every_documented_call_does_what_the_document_says(notes: AgentInteractionMemory) -> None:
    assert notes.get_information("user1_session") == []
    assert notes.get_context_summary("user1_session") is None
    assert notes.clear_conversation("user1_session") is False
    assert "User prefers JSON responses" in notes.add_information("user1_session", "User prefers JSON responses")
    notes.add_information("user1_session", "API token: abc123")
    notes.add_information("user2_session", "User prefers XML")
    assert notes.get_information("user1_session") == ["User prefers JSON responses", "API token: abc123"]
    assert notes.get_context_summary("user1_session") == (
        "Previous interactions:\n- User prefers JSON responses\n- API token: abc123"
    )
    assert notes.get_all_conversations() == ["user1_session", "user2_session"]
    assert notes.clear_conversation("user1_session") is True
    assert notes.get_information("user1_session") == []
    assert notes.get_all_conversations() == ["user2_session"]


@pytest.mark.parametrize(
    ("conversation", "text"), [("", "x"), (" ", "x"), ("c", ""), ("c", None), (5, "x"), ("c", "\ud800")]
)
def test_what_cannot_be_noted_is_named(notes: AgentInteractionMemory, conversation: Any, text: Any) -> None:
    with pytest.raises(MemoryStorageError, match=r"conversation_id|information"):
        notes.add_information(conversation, text)
    assert notes.get_all_conversations() == []


@pytest.mark.parametrize("missing", [None, "", " "])
def test_a_message_without_a_thread_leads_to_no_conversation_and_clears_none(
    notes: AgentInteractionMemory, missing: Any
) -> None:
    notes.add_information("t1", "Ann's secret")
    assert notes.get_information(missing) == []
    assert notes.get_context_summary(missing) is None
    assert not notes.clear_conversation(missing)
    assert notes.get_information("t1") == ["Ann's secret"]


async def test_the_async_calls_do_the_same(notes: AgentInteractionMemory) -> None:
    for text in ("one", "two", "three"):
        await notes.aadd_information("c", text)
    assert await notes.aget_information("c") == ["one", "two", "three"]
    assert await notes.aget_information("c", last=2) == ["two", "three"]
    assert await notes.aget_information("c", last=9) == ["one", "two", "three"]
    assert await notes.aget_information("d", last=2) == []


def test_the_file_has_the_documented_shape_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    AgentInteractionMemory(AGENT, tmp_path).add_information("conversation_id", "User prefers JSON responses — Ä")
    content = json.loads(file_in(tmp_path).read_text(encoding="utf-8"))
    (note,) = content["interactions"]["conversation_id"]
    assert content == {"agent_id": AGENT, "interactions": {"conversation_id": [note]}}
    assert note["content"] == "User prefers JSON responses — Ä"
    assert note["timestamp"][-5:-1].startswith(".")
    assert note["timestamp"].endswith("Z")
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


def test_files_go_both_ways_between_here_and_stock(tmp_path: Path) -> None:
    StockInteractionMemory(AGENT, str(tmp_path)).add_information("c", "from stock")
    ours = AgentInteractionMemory(AGENT, tmp_path)
    assert ours.get_information("c") == ["from stock"]
    ours.add_information("c", "from here")
    assert StockInteractionMemory(AGENT, str(tmp_path)).get_information("c") == ["from stock", "from here"]


def test_the_environment_and_then_the_default_name_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPADE_LLM_MEMORY_PATH", raising=False)
    AgentInteractionMemory(AGENT).add_information("c", "one")
    assert file_in(tmp_path / "spade_llm/data/agent_memory").exists()
    monkeypatch.setenv("SPADE_LLM_MEMORY_PATH", str(tmp_path / "elsewhere"))
    AgentInteractionMemory(AGENT).add_information("c", "one")
    assert file_in(tmp_path / "elsewhere").exists()


def test_ids_that_make_the_same_file_name_stay_apart(tmp_path: Path) -> None:
    ids = ["a@b.c", "a_b.c", "x" * 1_000 + "@b.c", "x" * 1_001 + "@b.c"]
    for number, agent in enumerate(ids):
        AgentInteractionMemory(agent, tmp_path).add_information("c", f"note {number}")
    for number, agent in enumerate(ids):
        assert AgentInteractionMemory(agent, tmp_path).get_information("c") == [f"note {number}"]


def test_one_identity_whatever_case_and_resource(tmp_path: Path) -> None:
    AgentInteractionMemory("Agent@Example.com/phone", tmp_path).add_information("c", "one")
    assert AgentInteractionMemory("agent@example.com/desk", tmp_path).get_information("c") == ["one"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"{}", b'{"interactions": []}', b'{"interactions": {"c": [5]}}', b"\xff\xfe{}"],
)
def test_a_file_nobody_can_read_is_kept_aside_and_reported(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file_in(tmp_path).write_bytes(content)
    notes = AgentInteractionMemory(AGENT, tmp_path)
    notes.add_information("c", "after")
    assert notes.get_information("c") == ["after"]
    (kept,) = tmp_path.glob("*.set-aside-*")
    assert kept.read_bytes() == content
    assert kept.name in caplog.text


def large(folder: Path, count: int = 2_000) -> AgentInteractionMemory:
    """A file of many notes."""
    content = {"agent_id": AGENT, "interactions": {"old": [{"content": "x" * 100, "timestamp": "t"}] * count}}
    file_in(folder).write_text(json.dumps(content))
    return AgentInteractionMemory(AGENT, folder)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "clear"])), max_size=25))
def test_any_interleaving_of_two_writers_equals_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    writers = [large(folder, 3), AgentInteractionMemory(AGENT, folder)]
    model: dict[str, list[str]] = {}
    for number, (conversation, step) in enumerate(steps):
        writer = writers[number % 2]
        if step == "clear":
            assert writer.clear_conversation(conversation) == (model.pop(conversation, None) is not None)
        else:
            text = f"{number} {step}"
            writer.add_information(conversation, text)
            model.setdefault(conversation, []).append(text)
    for reader in (*writers, AgentInteractionMemory(AGENT, folder)):
        assert {c: reader.get_information(c) for c in reader.get_all_conversations() if c != "old"} == model


def test_a_full_disk_is_an_error_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for notes in (AgentInteractionMemory(AGENT, tmp_path), large(tmp_path)):
        notes.add_information("c", "kept")
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
            with pytest.raises(MemoryStorageError, match="full"):
                notes.add_information("c", "lost")
        assert notes.get_information("c") == ["kept"]
        assert AgentInteractionMemory(AGENT, tmp_path).get_information("c") == ["kept"]
        notes.clear_conversation("c")
        assert list(tmp_path.glob("*.tmp")) == []


@pytest.mark.process
def test_a_file_size_limit_of_the_system_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path), "0", "500"],
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MemoryStorageError" in done.stderr
    kept = AgentInteractionMemory(AGENT, tmp_path).get_information("c0")
    assert kept == done.stdout.splitlines()
    assert kept


WRITER = """
import sys
from memory_spade.memory import AgentInteractionMemory
notes = AgentInteractionMemory("agent@example.com", sys.argv[1])
for number in range(int(sys.argv[3])):
    notes.add_information(f"c{sys.argv[2]}", f"note {number}")
    print(f"note {number}", flush=True)
"""


@pytest.mark.process
def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Stock keeps half of them."""
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), str(name), "60"] for name in range(2)]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    for process in running:
        assert process.wait(300) == 0
    notes = AgentInteractionMemory(AGENT, tmp_path)
    for name in range(2):
        assert notes.get_information(f"c{name}") == [f"note {number}" for number in range(60)]


KILLER = """
import os, random, signal, sys, time
from memory_spade.memory import AgentInteractionMemory

folder, rounds = sys.argv[1], int(sys.argv[2])
chance = random.Random(4)

def write(path):
    notes = AgentInteractionMemory("agent@example.com", folder)
    acknowledged = os.open(path, os.O_WRONLY | os.O_CREAT)
    for number in range(100_000):
        notes.add_information(os.path.basename(path), f"note {number}")
        os.write(acknowledged, b"x")  # one system call: what was written of it survives a kill

for number in range(rounds):
    children, names = [], [os.path.join(folder, f"{number}{side}") for side in "ab"]
    for name in names:  # forked, as an interpreter takes a hundred times longer to start than to kill
        child = os.fork()
        if not child:
            write(name)
        children.append(child)
    while not all(os.path.exists(name) and os.path.getsize(name) for name in names):
        time.sleep(0.001)
    time.sleep(chance.random() / 20)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""


@pytest.mark.process
@pytest.mark.parametrize("pairs", [3, pytest.param(50, marks=pytest.mark.torture)])
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path, pairs: int) -> None:
    """Two at a time write to one file, at first a small one, later a large one."""
    for make, rounds in ((lambda folder: None, pairs), (large, pairs + 1)):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        make(folder)
        subprocess.run([sys.executable, "-c", KILLER, str(folder), str(rounds)], check=True)
        notes, total = AgentInteractionMemory(AGENT, folder), 0
        for name in (f"{number}{side}" for number in range(rounds) for side in "ab"):
            acknowledged = (folder / name).stat().st_size
            kept = notes.get_information(name)
            assert kept == [f"note {number}" for number in range(len(kept))]
            assert acknowledged <= len(kept) <= acknowledged + 1
            total += acknowledged
        assert total > 2 * rounds
        assert json.loads(file_in(folder).read_text())["agent_id"] == AGENT
        assert list(folder.glob("*.set-aside-*")) == []


async def test_noting_beside_ten_thousand_notes_blocks_no_event_loop(tmp_path: Path) -> None:
    """Stock rewrites the file on the loop, 33 ms at this size."""
    blockbuster: Any = pytest.importorskip("blockbuster")
    notes = large(tmp_path, 10_000)
    with blockbuster.blockbuster_ctx():
        for number in range(20):
            await notes.aadd_information("c", f"note {number}")
        assert len(await notes.aget_information("c")) == 20
        assert await notes.aget_information("c", last=2) == ["note 18", "note 19"]
