"""A mirror follows its file exactly, and nobody notices when it cannot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import Draft, InvalidInputError, Memory, Patch, StorageError, Where, run_sync
from memory_core.concurrency.loop import on_core
from memory_core.storage import mirror
from memory_core.storage.mirror import MirroredStore
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.shared.transfer import checksum
from memory_core.storage.sqlite import owners
from memory_core.testing import Ticks
from memory_core.testing.base import texts
from tests.storage.embedders import WordEmbedder
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import points, records_collection, wait_for
from tests.storage.qdrant.test_congruence import QUERIES, Life, assert_congruent, wait_until_paid
from tests.storage.qdrant.test_reembedding import ClosableEmbedder

OpenMirror = Callable[[], tuple[Memory, MirroredStore]]


@pytest.fixture
def mirrored(tmp_path: Path, loopback: Loopback, clock: Ticks, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenMirror]:
    """Open memories on one file with one mirror, which looks again soon."""
    monkeypatch.setattr(mirror, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(mirror, "REST_SECONDS", 0.1)
    opened: list[Memory] = []

    def memory() -> tuple[Memory, MirroredStore]:
        server = Server(url=loopback.url, timeout_seconds=1)
        store = MirroredStore(tmp_path / "m.db", server, embedder=WordEmbedder(), clock=clock)
        opened.append(Memory(store, clock=clock))
        return opened[-1].__enter__(), store

    yield memory
    for one in opened:
        one.__exit__(None, None, None)


def catch_up(store: MirroredStore) -> None:
    run_sync(lambda: on_core(store.catch_up))


def sums(store: Any) -> dict[str, str]:
    """The checksum of each owner."""

    async def read() -> dict[str, str]:
        port = store.port()
        return {str(scope): checksum(await port.manifest(scope)) for scope in await port.owners()}

    return run_sync(lambda: on_core(read))


def assert_followed(store: MirroredStore) -> None:
    """The mirror holds what the file holds."""
    wait_for(lambda: run_sync(lambda: on_core(store.behind)) == 0)
    assert store._follower is not None
    assert sums(store._follower.remote) == sums(store)


def queries(loopback: Loopback) -> int:
    return sum(call.name == "query" for call in loopback.engine.calls)


def test_whatever_happens_to_the_file_happens_to_the_mirror(loopback: Loopback, mirrored: OpenMirror) -> None:
    memory, store = mirrored()
    ann = memory.bind(user="ann")
    Life(ann, seed=3).live(40)
    run_sync(memory.bind(user="bob").add, "somebody else's")
    wait_until_paid(ann)
    assert_followed(store)
    run_sync(memory.bind(user="bob").erase)
    assert_followed(store)
    assert {payload["user"] for payload, _ in points(loopback).values()} == {"ann"}


def test_searches_go_to_the_mirror_while_it_is_where_the_file_is(loopback: Loopback, mirrored: OpenMirror) -> None:
    memory, store = mirrored()
    ann = memory.bind(user="ann")
    Life(ann, seed=4).live(30)
    wait_until_paid(ann)
    assert_followed(store)
    for query in QUERIES:
        before = queries(loopback)
        theirs = run_sync(ann.search, query)
        assert queries(loopback) > before
        ours = run_sync(on_core, lambda query=query: file_search(store, ann, query))
        assert_congruent(ours, theirs, query=query)
    loopback.fail(lambda call: mirror_stands_still(call.is_write))
    run_sync(ann.add, "a unicorn crossed the bridge")
    assert texts(run_sync(ann.search, "unicorn")) == ["a unicorn crossed the bridge"]  # nobody waits for the mirror


def test_the_file_answers_a_search_whose_embedder_is_replaced_at_the_mirror(tmp_path: Path, loopback: Loopback) -> None:
    embedder = ClosableEmbedder(WordEmbedder("the successor", 96))
    store = MirroredStore(tmp_path / "m.db", Server(url=loopback.url, timeout_seconds=5), embedder=embedder)
    with Memory(store) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add, "Ann drinks jasmine tea")
        catch_up(store)
        embedder.store = store
        before = queries(loopback)
        assert texts(run_sync(ann.search, "jasmine tea", mode="vector")) == ["Ann drinks jasmine tea"]
        assert (embedder.is_closed, queries(loopback)) == (True, before)


class Foreigner(WordEmbedder):
    """Knows none of the words that it is asked for."""

    async def familiarity(self, text: str) -> float:
        return 0.0


def test_the_mirror_weighs_cosines_as_the_file_does(tmp_path: Path, loopback: Loopback) -> None:
    store = MirroredStore(tmp_path / "m.db", Server(url=loopback.url, timeout_seconds=5), embedder=Foreigner())
    with Memory(store) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, ["jasmine tea at noon", "black coffee", "a walk"])
        assert_followed(store)
        before = queries(loopback)
        theirs = run_sync(ann.search, "tea at noon", floor=False)
        assert queries(loopback) > before
        ours = run_sync(on_core, lambda: file_search(store, ann, "tea at noon", floor=False))
        assert_congruent(ours, theirs, query="tea at noon")


async def file_search(store: MirroredStore, ann: Any, query: str, *, floor: bool = True) -> Any:
    follower, store._follower = store._follower, None
    try:
        from memory_core.protocols import SearchRequest

        request = SearchRequest(text=query, limit=10, mode="hybrid", where=Where(), explain=False, floor=floor)
        return await store.search(ann.scope, request)
    finally:
        store._follower = follower


def mirror_stands_still(is_write: bool) -> Any:  # noqa: FBT001
    from tests.storage.qdrant.engine import Fault

    return Fault.UNAVAILABLE if is_write else None


def test_without_the_server_the_file_serves_and_the_mirror_catches_up(
    loopback: Loopback, mirrored: OpenMirror, caplog: pytest.LogCaptureFixture
) -> None:
    memory, store = mirrored()
    ann = memory.bind(user="ann")
    one = run_sync(ann.add, Draft("tea at noon", session="s"))
    assert_followed(store)
    with caplog.at_level(logging.WARNING):
        loopback.stop()
        assert texts(run_sync(ann.search, "tea")) == ["tea at noon"]
        run_sync(ann.update, one.id, Patch(text="tea at one"))
        run_sync(ann.add_many, [Draft(f"turn {n}", session="s") for n in range(20)])
        run_sync(ann.delete_where, Where(ids=(run_sync(ann.list, order="oldest").records[5].id,)))
        assert texts(run_sync(ann.search, "tea"))[0] == "tea at one"
        with pytest.raises(StorageError):
            catch_up(store)
        receipt = run_sync(memory.bind(user="bob").erase)
    assert not receipt.files_clean
    assert "the mirror does not: UnansweredError" in caplog.text
    loopback.start()
    wait_until_paid(ann)
    assert_followed(store)


def test_a_mirror_can_start_while_the_server_is_down(loopback: Loopback, mirrored: OpenMirror) -> None:
    loopback.stop()
    memory, store = mirrored()
    run_sync(memory.bind(user="ann").add, "tea")
    assert texts(run_sync(memory.bind(user="ann").search, "tea")) == ["tea"]
    loopback.start()
    assert_followed(store)


def test_what_the_log_no_longer_holds_is_compared_anew(
    loopback: Loopback, mirrored: OpenMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, store = mirrored()
    ann = memory.bind(user="ann")
    records = run_sync(ann.add_many, [f"note {n}" for n in range(30)])
    assert_followed(store)
    monkeypatch.setattr(owners, "OUTBOX_KEPT", 2)
    loopback.stop()
    for n, record in enumerate(records[:20]):
        assert record is not None
        run_sync(ann.update, record.id, Patch(importance=n / 40))
    run_sync(ann.erase)
    run_sync(ann.add, "a new life")
    loopback.start()
    assert_followed(store)
    assert [payload["text"] for payload, _ in points(loopback).values()] == ["a new life"]


def test_a_mirror_that_was_lost_comes_back(loopback: Loopback, mirrored: OpenMirror) -> None:
    memory, store = mirrored()
    ann = memory.bind(user="ann")
    run_sync(ann.add_many, ["one", "two"])
    assert_followed(store)
    loopback.on_loop(loopback.engine.reset)
    assert texts(run_sync(ann.search, "two")) == ["two"]
    wait_for(lambda: len(loopback.engine.created) == 2 and len(points(loopback)) == 2)
    assert_followed(store)


def test_one_process_at_a_time_feeds_the_mirror_and_another_takes_over(
    loopback: Loopback, mirrored: OpenMirror
) -> None:
    (first, feeding), (second, following) = mirrored(), mirrored()
    run_sync(first.bind(user="ann").add, "one")
    run_sync(second.bind(user="ann").add, "two")
    assert_followed(feeding)
    assert_followed(following)
    before = queries(loopback)
    assert texts(run_sync(second.bind(user="ann").search, "two")) == ["two"]
    assert queries(loopback) > before
    first.__exit__(None, None, None)
    run_sync(second.bind(user="ann").add, "three")
    assert_followed(following)


def test_a_collection_with_memories_of_its_own_is_not_overwritten(
    loopback: Loopback, mirrored: OpenMirror, connect: Open
) -> None:
    run_sync(connect().bind(user="ann").add, "theirs")
    memory, store = mirrored()
    run_sync(memory.bind(user="ann").add, "ours")
    with pytest.raises(StorageError, match="belongs to another store"):
        catch_up(store)
    assert texts(run_sync(memory.bind(user="ann").search, "ours")) == ["ours"]
    assert [payload["text"] for payload, _ in points(loopback).values()] == ["theirs"]
    assert records_collection(loopback) == "memory-core"


def test_a_mirror_needs_a_file() -> None:
    with pytest.raises(InvalidInputError, match="a mirror follows a file"):
        MirroredStore(":memory:", embedder=None)
