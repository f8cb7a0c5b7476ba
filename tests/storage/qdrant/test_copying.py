"""Memories move between SQLite and Qdrant whole, whatever happens on the way."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core import (
    BoundMemory,
    Draft,
    ForgottenError,
    InvalidInputError,
    Link,
    Memory,
    Patch,
    Progress,
    Where,
    run_sync,
)
from memory_core.app.main import FAILED, main
from memory_core.concurrency.loop import on_core
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.storage.shared.transfer import Copyable, checksum
from memory_core.testing import Ticks
from memory_core.testing.base import everything
from memory_core.transfer.copying import COPIED_AT_ONCE, Report, copy_memory
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from memory_core.where.where import ANY_STATE
from tests.open_store import store_of
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.engine import Call
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.test_congruence import Life, assert_congruent, wait_until_paid

EVERY = ANY_STATE


def file(path: Path, clock: Ticks, embedder: WordEmbedder | None) -> Memory:
    return Memory(path, embedder=embedder, clock=clock)


def qdrant(clock: Ticks, embedder: WordEmbedder | None) -> Memory:
    return Memory(QdrantStore(":memory:", embedder=embedder, clock=clock), clock=clock)


def live(memory: Memory, clock: Ticks) -> None:
    """Something of everything a record can have."""
    ann = memory.bind(user="ann")
    Life(ann, seed=5).live(40)
    old = run_sync(ann.add, Draft("Ann lives in Oslo", session="a", data={"x": [1, {"y": 1e-9}]}, tags=("t",)))
    run_sync(ann.add, Draft("Ann lives in Rome", links=[Link("supersedes", old.id)], collection="a/b"))
    note = run_sync(ann.add, Draft("one", importance=0.1, confidence=0.3, emotion="joy"))
    for text in ("two", "three"):
        clock.advance(seconds=1)
        run_sync(ann.update, note.id, Patch(text=text))
    run_sync(ann.update, run_sync(ann.add, "left behind").id, Patch(left=True))
    run_sync(ann.list, limit=3, touch=True)
    run_sync(ann.add, Draft("soon gone", expires_at=clock.now + timedelta(hours=1)))
    run_sync(ann.add, Draft("secret", source_key="forgotten"))
    run_sync(ann.delete_where, Where(source_keys=("forgotten",)))
    run_sync(memory.bind(app="other", user="ann").add, "somebody else")
    wait_until_paid(ann)


def state(memory: Memory) -> dict[str, str]:
    """The checksum of each owner."""

    async def read() -> dict[str, str]:
        port: Copyable = (await store_of(memory)).port()  # type: ignore[attr-defined]
        return {f"{scope.app} {scope.user}": checksum(await port.manifest(scope)) for scope in await port.owners()}

    return run_sync(lambda: on_core(read))


def assert_same_to_a_caller(one: BoundMemory, other: BoundMemory) -> None:
    for order in ("newest", "oldest", "importance", "accessed"):
        pages = [run_sync(handle.list, where=EVERY, order=order, limit=1_000).records for handle in (one, other)]
        assert pages[0] == pages[1], order
    for record in pages[0]:
        assert run_sync(one.history, record.id) == run_sync(other.history, record.id)
    for query in ("Where does Ann live?", "green tea", "the lake at noon"):
        found = [run_sync(handle.search, query, limit=200) for handle in (one, other)]
        assert_congruent(*found, query=query)


def test_memories_go_to_qdrant_and_back_and_nobody_can_tell(tmp_path: Path) -> None:
    clock, untouched = Ticks(), [WordEmbedder(), WordEmbedder()]
    with (
        file(tmp_path / "a.db", clock, WordEmbedder()) as source,
        qdrant(clock, untouched[0]) as server,
        file(tmp_path / "b.db", clock, untouched[1]) as back,
    ):
        live(source, clock)
        there = run_sync(copy_memory, source, server)
        home = run_sync(copy_memory, server, back)
        assert state(source) == state(server) == state(back)
        assert {f"{o.scope.app} {o.scope.user}": o.checksum for o in there.owners} == state(source)
        assert (there.records, there.removed) == (there.copied, 0) == (home.records, home.removed)
        assert [embedder.embedded for embedder in untouched] == [[], []]  # vectors came along
        for other in (server, back):
            assert_same_to_a_caller(source.bind(user="ann"), other.bind(user="ann"))
            with pytest.raises(ForgottenError):
                run_sync(other.bind(user="ann").add, Draft("secret", source_key="forgotten"))


def test_what_changed_since_is_carried_over_by_the_next_move(tmp_path: Path) -> None:
    clock = Ticks()
    with file(tmp_path / "a.db", clock, WordEmbedder()) as source, qdrant(clock, WordEmbedder()) as server:
        live(source, clock)
        first = run_sync(copy_memory, source, server)
        ann = source.bind(user="ann")
        page = run_sync(ann.list, where=Where(session="a"), limit=4).records
        run_sync(ann.delete, page[0].id)
        run_sync(ann.update, page[1].id, Patch(text="something else entirely"))
        run_sync(ann.add, Draft("late to the party", session="a", occurred_at=page[2].occurred_at))
        run_sync(ann.list, where=Where(ids=(page[3].id,)), touch=True)
        run_sync(source.bind(app="other", user="ann").erase)
        wait_until_paid(ann)
        again = run_sync(copy_memory, source, server)
        assert state(source) == state(server)
        assert again.copied < first.copied / 2
        assert again.removed >= 2
        assert_same_to_a_caller(ann, server.bind(user="ann"))
        assert run_sync(copy_memory, source, server).copied == 0


def test_what_was_made_of_a_record_stays_when_an_import_brings_that_under_another_source_key(tmp_path: Path) -> None:
    clock = Ticks()
    with file(tmp_path / "a.db", clock, None) as source, qdrant(clock, None) as target:
        ann, her = source.bind(user="ann"), target.bind(user="ann")
        said = run_sync(her.add, Draft("I drink tea", id="said", source_key="one"))
        links = [Link("derived_from", said.id, said.rev), Link("confirmed_by", said.id)]
        fact = run_sync(her.add, Draft("Ann drinks tea", links=links))
        run_sync(ann.add, Draft("I drink tea", id="said", source_key="two"))
        newer = run_sync(ann.update, "said", Patch(tags=("tea",)))
        lines: list[bytes] = []
        run_sync(export_jsonl, source, lines.append)
        run_sync(lambda: import_jsonl(target, lines, owner=ann.scope))
        assert everything(her) == [newer, fact]
        assert run_sync(her.get, fact.id) == fact


@pytest.mark.parametrize("open_", [file, qdrant])
def test_what_was_made_of_a_record_stays_when_a_move_removes_that(tmp_path: Path, open_: Callable[..., Memory]) -> None:
    """As it stays in the source of the move, where that record has expired."""
    clock = Ticks()
    with open_(*([tmp_path / "a.db"] if open_ is file else []), clock, None) as target:
        ann = target.bind(user="ann")
        said = run_sync(ann.add, "I drink tea")
        links = [Link("derived_from", said.id, said.rev), Link("confirmed_by", said.id)]
        fact = run_sync(ann.add, Draft("Ann drinks tea", links=links))

        async def remove() -> None:
            port: Copyable = (await store_of(target)).port()  # type: ignore[attr-defined]
            await port.restore(ann.scope, (), remove=[said.id])

        run_sync(lambda: on_core(remove))
        (kept,) = everything(ann)
        assert (kept.id, kept.links) == (fact.id, tuple(links[:1]))


def test_a_source_that_is_written_to_meanwhile_is_copied_too(tmp_path: Path) -> None:
    clock = Ticks()
    with file(tmp_path / "a.db", clock, None) as source, qdrant(clock, None) as server:
        ann = source.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"turn {n}", session="s") for n in range(200)])

        async def both() -> Report:
            report, _ = await asyncio.gather(copy_memory(source, server), write())
            return report

        async def write() -> None:
            for n in range(30):
                await ann.add(Draft(f"meanwhile {n}", session="s"))
                await asyncio.sleep(0)

        assert run_sync(both).records >= 200
        assert run_sync(copy_memory, source, server).behind == 0
        assert state(source) == state(server)


def test_another_embedder_computes_its_own_vectors(tmp_path: Path) -> None:
    clock, other = Ticks(), WordEmbedder("other", 32)
    with file(tmp_path / "a.db", clock, WordEmbedder()) as source, qdrant(clock, other) as server:
        live(source, clock)
        run_sync(copy_memory, source, server)
        ann = server.bind(user="ann")
        wait_until_paid(ann)
        assert state(source) == state(server)
        assert other.embedded
        assert run_sync(ann.search, "Ann lives in Rome", mode="vector", limit=1)[0].record.text == "Ann lives in Rome"


def test_a_target_with_memories_of_its_own_is_left_alone(tmp_path: Path) -> None:
    clock = Ticks()
    with file(tmp_path / "a.db", clock, None) as source, qdrant(clock, None) as server:
        run_sync(source.bind(user="ann").add, "theirs")
        run_sync(server.bind(user="bob").add, "ours")
        with pytest.raises(InvalidInputError, match="not copied from this source"):
            run_sync(copy_memory, source, server)
        assert run_sync(server.bind(user="bob").list).records[0].text == "ours"


def test_progress_is_told_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_core.transfer.copying.COPIED_AT_ONCE", 128)
    clock, told = Ticks(), list[Progress]()
    with file(tmp_path / "a.db", clock, None) as source, qdrant(clock, None) as server:
        run_sync(source.bind(user="ann").add_many, [f"note {n}" for n in range(300)])
        run_sync(copy_memory, source, server, progress=told.append)
    assert [progress.done for progress in told] == [0, 128, 256, 300, 300]
    assert {(progress.total, progress.part) for progress in told} == {(300, "owner 1 of 1")}


def altering(call: Call) -> None:
    """A server that acknowledges what it gets and stores another word."""
    if call.name == "write" and not call.collection.endswith("-meta"):
        for point in points_of(call):
            if "jasmine" in point.payload.get("text", ""):
                point.payload["text"] = "Ann drinks gin"


def points_of(call: Call) -> list[Any]:
    found = [getattr(operation, "upsert", None) for operation in call.body.operations]
    return [point for each in found if each is not None for point in each.points]


def test_a_target_that_returns_another_text_than_it_got_is_no_copy_and_the_error_names_it(
    loopback: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, uri = str(tmp_path / "a.db"), loopback.url.replace("http://", "qdrant://") + "/altered"
    with Memory(path, embedder=None) as source:
        run_sync(source.bind(user="ann").add_many, [Draft("Ann drinks jasmine tea", id="t1"), "Ann lives in Oslo"])
        run_sync(source.bind(user="bob").add, "Bob lives in Rome")
    loopback.fail(altering)
    assert move(path, uri) == FAILED
    said = capsys.readouterr().err.splitlines()[-1]
    loopback.fail()
    with Memory(path, embedder=None) as source, Memory(QdrantStore.from_uri(uri, embedder=None)) as target:
        expected, there = state(source), state(target)
        assert there["default bob"] == expected["default bob"]
        assert "user 'ann'" in said
        assert "'t1'" in said
        assert "bob" not in said
        assert expected["default ann"] in said
        assert there["default ann"] in said
    assert move(path, uri) == 0  # a server that works is given what differs
    assert capsys.readouterr().out.count("1 copied") == 1


def move(source: str, target: str) -> int:
    """The command line in this process; returns its exit code."""
    return main(["copy", "--embedder", "none", "--file", source, target])


def kill_moves(
    loopback: Loopback, arguments: Sequence[str], kill_at: Callable[[Call], bool], killed_after: int, times: int
) -> None:
    """Run the command line in a process of its own and kill it in the midst of its work, some times."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["memory_core.app.main", "memory_core.storage.qdrant.store"])
    for _ in range(times):
        process = processes.Process(target=move, args=arguments)
        seen: list[Call] = []

        def kill(call: Call, process: Any = process, seen: list[Call] = seen) -> None:
            seen += [call] if kill_at(call) else []
            if len(seen) == killed_after:
                os.kill(process.pid, signal.SIGKILL)

        process.start()
        loopback.fail(kill)  # what the process before it had under way may arrive now, and counts
        process.join()
        assert process.exitcode == -signal.SIGKILL
    loopback.fail()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("records", "times"), [(1_600, 2), pytest.param(100_000, 5, marks=pytest.mark.torture)])
def test_a_move_that_was_killed_again_and_again_ends_with_equal_checksums(
    real_loopback: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str], records: int, times: int
) -> None:
    # Processes that end after as many requests (and what they have under way then) leave something to the last one.
    killed_after = max(records // COPIED_AT_ONCE // (times + 1) * 4, 1)
    loopback = real_loopback
    one, other = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    uri = loopback.url.replace("http://", "qdrant://") + "/moved?timeout=300"
    with Memory(one, embedder=None) as source:
        drafts = [Draft(f"turn {n}", session=f"s{n % 9}") for n in range(records)]
        run_sync(source.bind(user="ann").add_many, drafts)
        expected = state(source)

    def is_write(call: Call) -> bool:
        return call.name == "write" and not call.collection.endswith("-meta")

    kill_moves(loopback, [one, uri], is_write, killed_after, times=times)
    assert move(one, uri) == 0
    kill_moves(loopback, [uri, other], lambda call: call.name == "scroll", killed_after, times=2)
    assert move(uri, other) == 0
    said = capsys.readouterr().out
    assert said.count(expected["default ann"]) == 2
    assert said.count(f"{records} memories the same in both") == 2
    with Memory(other, embedder=None) as home:
        assert state(home) == expected


def test_a_move_that_cannot_be_says_why_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.db").write_text("something else, long enough to be a file of some kind" * 9)
    assert move(str(tmp_path / "no.db"), str(tmp_path / "b.db")) == FAILED
    assert "is not a memory store" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "b.db").exists()


def test_a_move_from_a_file_that_is_missing_fails_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert move(str(tmp_path / "typo.db"), str(tmp_path / "b.db")) == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert f"there is no memory file {str(tmp_path / 'typo.db')!r}" in line
    assert list(tmp_path.iterdir()) == []
