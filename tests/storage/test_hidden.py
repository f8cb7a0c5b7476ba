"""Much that was made of a deleted record: hidden with it, then deleted in parts, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import BoundMemory, Draft, Link, Memory, MemoryRecord, Patch, Where, run_sync
from memory_core.models import STATES
from memory_core.storage.sqlite import hidden
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.rows import MOST_AT_ONCE
from memory_core.transfer.jsonl import export_jsonl
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder

MANY = 3 * MOST_AT_ONCE
ALL = Where(states=STATES, left=None)


def fill(ann: BoundMemory, count: int = MANY) -> MemoryRecord:
    """One turn with `count` facts made of it, and one summary of some of them; returns the turn."""
    said = run_sync(ann.add, Draft("the door code is 2231", session="monday"))
    run_sync(ann.add, "I drink tea")
    read = [Link("derived_from", said.id, said.rev, said.session)]
    facts = run_sync(
        ann.add_many, [Draft(f"fact {n}: code 2231", source_key=f"fact-{n}", links=read) for n in range(count)]
    )
    run_sync(ann.add, Draft("in short: 2231", links=[Link("summarizes", one.id) for one in facts[:500] if one]))
    return said


def shown(ann: BoundMemory) -> set[str]:
    """The texts that any read finds."""
    found = {record.text for record in run_sync(ann.list, where=ALL, limit=1_000).records}
    for mode in ("hybrid", "lexical", "substring"):
        found |= {hit.record.text for hit in run_sync(ann.search, "2231", mode=mode, floor=False, limit=50)}
    return found


def test_much_that_was_made_of_a_turn_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        said = fill(ann)
        (oslo,) = run_sync(ann.add_many, ["Ann lives in Oslo"])
        assert oslo is not None
        links = [Link("derived_from", said.id), Link("supersedes", oslo.id)]
        run_sync(ann.add, Draft("Ann lives in 2231", links=links))
        run_sync(ann.delete, said.id)
        assert shown(ann) == {"I drink tea", "Ann lives in Oslo"}
        assert run_sync(ann.stats).records == 2
        assert run_sync(memory.operator().check) == []
        run_sync(ann.add, Draft("fact 1 again", source_key="fact-1"))
    assert_consistent(file)


def test_an_erasure_counts_it(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        fill(ann)
        receipt = run_sync(ann.bind(session="monday").erase)
        assert (receipt.records, receipt.derived, receipt.files_clean) == (1, MANY + 1, True)
    assert b"2231" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_nobody_reads_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, is_hidden, may_go_on, work_off = (
        tmp_path / "m.db",
        threading.Event(),
        threading.Event(),
        hidden.work_off,
    )

    async def later(writer: Writer) -> None:
        is_hidden.set()
        await asyncio.to_thread(may_go_on.wait)
        await work_off(writer)

    with Memory(file, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        said = fill(ann)
        shown(ann)  # the index has them
        monkeypatch.setattr(hidden, "work_off", later)
        deleting = threading.Thread(target=run_sync, args=(ann.delete, said.id))
        deleting.start()
        is_hidden.wait()
        assert shown(ann) == {"I drink tea"}
        assert run_sync(ann.stats).records == 1
        assert run_sync(ann.list, where=Where(source_keys=("fact-1",))).records == ()
        again = run_sync(ann.add, Draft("my own words", source_key="fact-1"))
        assert shown(ann) == {"I drink tea", "my own words"}
        may_go_on.set()
        deleting.join()
        assert shown(ann) == {"I drink tea", "my own words"}
        assert run_sync(ann.update, again.id, Patch(importance=0.9)).source_key == "fact-1"
        assert run_sync(memory.operator().check) == []
    assert_consistent(file)


ACTS = """
import asyncio, sys
from memory_core import Memory, Patch, run_sync
from memory_core.storage.sqlite import hidden

async def begin_only(writer):
    await writer.write(lambda db: hidden._delete_part(db) or hidden._follow_part(db))
    print("begun", flush=True)
    await asyncio.sleep(3600)

hidden.work_off = begin_only
with Memory(sys.argv[1], embedder=None) as memory:
    ann = memory.bind(user="ann")
    if sys.argv[3] == "delete":
        run_sync(ann.delete, sys.argv[2])
    else:
        run_sync(ann.update, sys.argv[2], Patch(text="the door code is 8874"))
"""


def fill_and_kill(file: Path, act: str) -> None:
    """Fill a file, and kill a process that has dealt with a part of what it has hidden."""
    with Memory(file, embedder=None) as memory:
        said = fill(memory.bind(user="ann"))
    process = subprocess.Popen([sys.executable, "-c", ACTS, str(file), said.id, act], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.process
def test_a_process_that_dies_in_between_leaves_nothing_visible_and_the_next_one_finishes(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    fill_and_kill(file, "delete")
    with Memory(file, embedder=None, read_only=True) as memory:
        assert shown(memory.bind(user="ann")) == {"I drink tea"}
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM record").fetchone()[0] > 1
    with Memory(file, embedder=None) as memory:
        assert shown(memory.bind(user="ann")) == {"I drink tea"}
        assert run_sync(memory.operator().check) == []
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT text FROM record").fetchall() == [("I drink tea",)]
    assert_consistent(file)


@pytest.mark.slow
@pytest.mark.parametrize("patch", [Patch(text="the door code is 8874"), Patch(left=True)])
def test_much_that_was_made_of_a_turn_follows_it(tmp_path: Path, patch: Patch) -> None:
    """And what was made of that, and nothing else; a resumed turn brings it back."""
    file = tmp_path / "m.db"
    with Memory(file, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        said = fill(ann)
        before = shown(ann)
        edited = run_sync(ann.update, said.id, patch)
        here = {record.text for record in run_sync(ann.list, limit=1_000).records}
        assert here == {"I drink tea", *([edited.text] if not edited.left else ())}
        left = run_sync(ann.list, where=Where(left=True), limit=1_000).records
        assert len(left) == MANY + 1 + edited.left
        assert all(record.version == 2 for record in left)
        run_sync(ann.update, said.id, Patch(left=False))
        assert (shown(ann) == before) is (patch.left is True)
        assert run_sync(memory.operator().check) == []
    assert_consistent(file)


def test_a_known_key_that_is_added_again_alone_hides_it(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        said = run_sync(ann.add, Draft("the door code is 2231", source_key="said"))
        read = [Link("derived_from", said.id, said.rev)]
        run_sync(ann.add_many, [Draft(f"fact {n}: code 2231", links=read) for n in range(MANY)])
        run_sync(ann.add, Draft("the door code is 8874", source_key="said"))
        assert [record.text for record in run_sync(ann.list, limit=1_000).records] == ["the door code is 8874"]
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        assert len(run_sync(ann.list, where=Where(left=True), limit=1_000).records) == MANY


def test_what_happens_while_much_follows_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads it; an export has it as left; it can be deleted and given other words, also with its source."""
    file, is_hidden, may_go_on, work_off = tmp_path / "m.db", threading.Event(), threading.Event(), hidden.work_off

    async def later(writer: Writer) -> None:
        is_hidden.set()
        await asyncio.to_thread(may_go_on.wait)
        await work_off(writer)

    with Memory(file, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        said = fill(ann)
        facts = run_sync(ann.list, where=Where(source_keys=("fact-1", "fact-2")), order="oldest").records
        shown(ann)  # the index has them
        monkeypatch.setattr(hidden, "work_off", later)
        editing = threading.Thread(target=run_sync, args=(ann.update, said.id, Patch(text="the door code is 8874")))
        editing.start()
        is_hidden.wait()
        assert shown(ann) == {"I drink tea", "the door code is 8874"}
        lines: list[bytes] = []
        run_sync(export_jsonl, memory, lines.append)
        exported = [json.loads(line) for line in lines[1:-1]]
        assert sum("2231" in str(each["record"]["text"]) for each in exported) == MANY + 1
        assert all(each["record"]["left"] for each in exported if "2231" in str(each["record"]["text"]))
        run_sync(ann.add, Draft("my own words", source_key="fact-1"))
        deleting = threading.Thread(target=run_sync, args=(ann.delete, facts[1].id))
        deleting.start()
        may_go_on.set()
        for each in (editing, deleting):
            each.join()
        assert shown(ann) == {"I drink tea", "the door code is 8874", "my own words"} | {
            record.text for record in run_sync(ann.list, where=Where(left=True), limit=1_000).records
        }
        assert run_sync(ann.get, facts[1].id) is None
        assert "my own words" in {record.text for record in run_sync(ann.list, limit=1_000).records}
        run_sync(ann.delete, said.id)
        assert shown(ann) == {"I drink tea", "my own words"}
        assert run_sync(memory.operator().check) == []
    assert_consistent(file)


@pytest.mark.process
def test_a_process_that_dies_while_much_follows_shows_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    fill_and_kill(file, "edit")
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        assert {record.text for record in run_sync(ann.list, limit=1_000).records} == {
            "I drink tea",
            "the door code is 8874",
        }
        assert len(run_sync(ann.list, where=Where(left=True), limit=1_000).records) == MANY + 1
        assert run_sync(memory.operator().check) == []
    assert_consistent(file)
