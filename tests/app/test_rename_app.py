"""An app gets another name: its memories move, whole, whatever happens on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memory_core import Draft, InvalidInputError, Link, Memory, Patch, Progress, Scope, ScopeError, Where, run_sync
from memory_core.concurrency.loop import on_core
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from memory_core.transfer.migrate import port_of
from memory_core.transfer.renaming import Renamed, rename_app
from tests.app.conftest import Run
from tests.storage.embedders import WordEmbedder

BATCH = 16
"""Instead of 512, so that some dozens of records are several batches."""
EVERY = Where(states=("active", "archived", "compacted"))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_core.transfer.renaming.BATCH", BATCH)


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


@pytest.fixture(params=["sqlite", "qdrant"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Ticks) -> Iterator[Memory]:
    """Two users of the app `tea`, with something of everything a record can have."""
    if request.param == "sqlite":
        made = Memory(tmp_path / "memory.db", embedder=WordEmbedder(), clock=clock)
    else:
        made = Memory(QdrantStore(":memory:", embedder=WordEmbedder(), clock=clock), clock=clock)
    with made as memory:
        ann = memory.bind(app="tea", user="ann")
        run_sync(ann.add_many, [Draft(f"bird {n}", session="s", source_key=f"s:{n}") for n in range(2 * BATCH + 3)])
        old = run_sync(ann.add, Draft("Ann lives in Oslo", data={"x": [1, {"y": 1e-9}]}, tags=("t",)))
        run_sync(ann.supersede, old.id, "Ann lives in Rome")
        note = run_sync(ann.add, Draft("one", importance=0.1, links=[Link("follows", old.id)]))
        run_sync(ann.update, note.id, Patch(text="two"))
        run_sync(ann.add, Draft("soon gone", expires_at=clock.now + timedelta(hours=1)))
        run_sync(memory.bind(app="tea", user="bob").add, "Bob rows")
        run_sync(memory.bind(app="other", user="ann").add, "somebody else's")
        yield memory


def renamed(memory: Memory, old: str = "tea", new: str = "café", *, dry_run: bool = False) -> Renamed:
    return run_sync(lambda: rename_app(memory, old, new, dry_run=dry_run))


def carried(memory: Memory, app: str, user: str) -> list[object]:
    """Everything of an owner's records but the name of the app and their places among all records."""

    async def read() -> list[object]:
        port = port_of(await memory.ready())
        scope = Scope(app, user)
        items = await port.take(scope, [entry.id for entry in await port.manifest(scope)])
        return [(replace(item.record, app=""), item.revisions, item.vectors) for item in items]

    return run_sync(lambda: on_core(read))


def test_what_has_expired_under_the_new_name_is_not_in_the_way(memory: Memory, clock: Ticks) -> None:
    run_sync(
        memory.bind(app="café", user="ann").add,
        Draft("gone", source_key="s:1", expires_at=clock.now + timedelta(minutes=1)),
    )
    clock.advance(minutes=2)
    before = carried(memory, "tea", "ann")
    assert renamed(memory).left == 0
    assert carried(memory, "café", "ann") == before


def test_nothing_of_a_memory_changes_but_the_app(memory: Memory) -> None:
    before = {user: carried(memory, "tea", user) for user in ("ann", "bob")}
    others = carried(memory, "other", "ann")
    assert renamed(memory, dry_run=True) == Renamed(2, len(before["ann"]) + 1, 0)
    assert {user: carried(memory, "tea", user) for user in ("ann", "bob")} == before
    assert renamed(memory) == Renamed(2, len(before["ann"]) + 1, 0)
    assert {user: carried(memory, "café", user) for user in ("ann", "bob")} == before
    assert carried(memory, "tea", "ann") == carried(memory, "tea", "bob") == []
    assert carried(memory, "other", "ann") == others
    ann = memory.bind(app="café", user="ann")
    assert [hit.record.text for hit in run_sync(lambda: ann.search("Where does Ann live: in Rome?", limit=1))] == [
        "Ann lives in Rome"
    ]


def test_it_may_be_repeated_and_moves_what_came_meanwhile(memory: Memory) -> None:
    renamed(memory)
    assert renamed(memory) == Renamed(0, 0, 0)
    run_sync(memory.bind(app="tea", user="cleo").add, "Cleo skates")
    assert renamed(memory) == Renamed(1, 1, 0)
    assert len(carried(memory, "café", "cleo")) == 1


def test_a_message_that_both_names_have_is_kept_once(memory: Memory) -> None:
    there = memory.bind(app="café", user="ann")
    again = run_sync(there.add, Draft("bird 1", session="s", source_key="s:1"))
    assert renamed(memory).left == 0
    found = run_sync(lambda: there.list(where=Where(source_keys=("s:1",))))
    assert [record.id for record in found.records] == [again.id]
    assert carried(memory, "tea", "ann") == []


def test_another_memory_in_its_place_is_not_overwritten(memory: Memory, clock: Ticks) -> None:
    here, there = (memory.bind(app=app, user="bob") for app in ("tea", "café"))
    run_sync(here.add, Draft("Allergic to nuts", id="allergy"))
    run_sync(here.add, Draft("heard as one thing", source_key="k"))
    clock.advance(seconds=1)
    run_sync(there.add, Draft("Allergic to pollen", id="allergy"))
    run_sync(there.add, Draft("heard as another", source_key="k"))
    assert renamed(memory).left == 2
    assert {record.text for record in run_sync(here.list).records} == {"Allergic to nuts", "heard as one thing"}
    texts = {record.text for record in run_sync(there.list).records}
    assert texts == {"Allergic to pollen", "heard as another", "Bob rows"}
    assert renamed(memory) == Renamed(1, 0, 2)


def test_what_was_forgotten_under_the_new_name_does_not_come_back(memory: Memory) -> None:
    there = memory.bind(app="café", user="ann")
    run_sync(there.add, Draft("bird 2", source_key="s:2"))
    run_sync(there.delete_where, Where(source_keys=("s:2",)))
    assert renamed(memory).left == 1
    assert not run_sync(lambda: there.list(where=replace(EVERY, source_keys=("s:2",)))).records


def test_a_name_that_nobody_uses_is_an_error_and_not_a_success(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"no memories of an app 'teas'; it has those of 'other', 'tea'"):
        renamed(memory, "teas", "café")
    with pytest.raises(InvalidInputError, match="is 'tea' already"):
        renamed(memory, "tea", "tea")
    with pytest.raises(ScopeError):
        renamed(memory, "tea", "")


KILLED = """
import os, signal, sys
from memory_core import Memory, run_sync
from memory_core.transfer import renaming
renaming.BATCH = 16
left = int(sys.argv[2])
def tell(progress):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
with Memory(sys.argv[1], embedder=None) as memory:
    port = type(renaming.port_of(run_sync(memory.ready)))
    restore = port.restore
    async def restored(self, *arguments, **named):
        await restore(self, *arguments, **named)
        tell(None)
    port.restore = restored
    run_sync(lambda: renaming.rename_app(memory, "tea", "café"))
"""


@pytest.mark.parametrize("writes", [1, 2, 3, 4, 5])
def test_a_killed_call_loses_nothing_and_the_next_one_continues(tmp_path: Path, writes: int) -> None:
    path = tmp_path / "killed.db"
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(app="tea", user="ann")
        run_sync(ann.add_many, [Draft(f"bird {n}", source_key=f"s:{n}") for n in range(2 * BATCH + 3)])
        before = carried(memory, "tea", "ann")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(writes)], check=False)
    assert done.returncode == -signal.SIGKILL
    with Memory(path, embedder=None) as memory:
        assert len({*map(str, carried(memory, "tea", "ann")), *map(str, carried(memory, "café", "ann"))}) == len(before)
        assert renamed(memory).left == 0
        assert carried(memory, "café", "ann") == before
        assert carried(memory, "tea", "ann") == []


def test_a_change_after_an_interrupted_call_moves_too(memory: Memory) -> None:
    class StopError(Exception):
        pass

    def stop(_: Progress) -> None:
        raise StopError

    with pytest.raises(StopError):
        run_sync(lambda: rename_app(memory, "tea", "café", progress=stop))
    ann = memory.bind(app="tea", user="ann")
    record = run_sync(lambda: ann.list(order="oldest", limit=50)).records[-1]
    run_sync(ann.update, record.id, Patch(text="seen twice"))
    renamed(memory)
    moved = run_sync(memory.bind(app="café", user="ann").get, record.id)
    assert moved is not None
    assert moved.text == "seen twice"


def test_the_command_says_what_it_did(run: Run) -> None:
    run("add", "Ann drinks tea", "--app", "tea", "--user", "ann", "--words-only")
    assert "1 memory of 1 user would move from tea to café" in run("rename-app", "tea", "café", "--dry-run").out
    assert "1 memory of 1 user moved from tea to café" in run("rename-app", "tea", "café").out
    assert run("rename-app", "tea", "café", "--json").value == {"users": 0, "records": 0, "left": 0, "dry_run": False}
    assert "no memories of an app 'tee'" in run("rename-app", "tee", "coffee", code=2).err
    run("add", "mine", "--app", "tea", "--user", "ann", "--words-only")
    assert [record["text"] for record in run("list", "--app", "café", "--user", "ann", "--json").value["records"]] == [
        "Ann drinks tea"
    ]
