"""Much that was made of a deleted record: hidden with it, then deleted in parts, whatever happens in between."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from memory_core import BoundMemory, Draft, Link, Memory, MemoryRecord, Patch, Where, run_sync
from memory_core.models import STATES
from memory_core.storage.sqlite import hidden
from memory_core.storage.sqlite.group_commit import Writer
from memory_core.storage.sqlite.rows import MOST_AT_ONCE
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
    file, is_hidden, may_go_on, delete_hidden = (
        tmp_path / "m.db",
        threading.Event(),
        threading.Event(),
        hidden.delete_hidden,
    )

    async def later(writer: Writer, now: datetime) -> None:
        is_hidden.set()
        await asyncio.to_thread(may_go_on.wait)
        await delete_hidden(writer, now)

    with Memory(file, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        said = fill(ann)
        shown(ann)  # the index has them
        monkeypatch.setattr(hidden, "delete_hidden", later)
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


DELETES = """
import asyncio, sys
from memory_core import Memory, run_sync
from memory_core.storage.sqlite import hidden

async def begin_only(writer, now):
    await writer.write(lambda db: hidden._delete_part(db, now))
    print("begun", flush=True)
    await asyncio.sleep(3600)

hidden.delete_hidden = begin_only
with Memory(sys.argv[1], embedder=None) as memory:
    run_sync(memory.bind(user="ann").delete, sys.argv[2])
"""


@pytest.mark.process
def test_a_process_that_dies_in_between_leaves_nothing_visible_and_the_next_one_finishes(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        said = fill(memory.bind(user="ann"))
    process = subprocess.Popen([sys.executable, "-c", DELETES, str(file), said.id], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGKILL)
    process.wait()
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
