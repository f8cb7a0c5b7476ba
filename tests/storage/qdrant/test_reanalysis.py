"""Points whose texts an older version analysed: they are searched as they are, and catch up by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from qdrant_client import models

from memory_core import Memory, MemoryRecord, run_sync
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.storage.qdrant import background
from memory_core.storage.qdrant.codec import WORDS, analysed, sparse
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import points, records_collection, wait_for

OWNERS, EACH = 2, 5


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "POINTS_AT_ONCE", 3)


@pytest.fixture
def older(connect: Open, loopback: Loopback) -> Loopback:
    """A server with some owners, all of whose texts were analysed to the one term "old" by an older version."""
    memory = connect()
    for owner in range(OWNERS):
        run_sync(memory.bind(user=f"u{owner}").add_many, [f"Jasmine tea {n}" for n in range(EACH)])
    run_sync(memory.close)
    assert [payload["_analysis"] for payload, _ in points(loopback).values()] == [ANALYSIS] * OWNERS * EACH

    def grow_old(client: Any, name: str, chosen: list[Any]) -> None:
        client.set_payload(name, {"_terms": "old", "_analysis": ANALYSIS - 1}, points=chosen)
        client.update_vectors(name, [models.PointVectors(id=id_, vector={WORDS: sparse("old")}) for id_ in chosen])

    on_points(loopback, grow_old)
    return loopback


def on_points(loopback: Loopback, work: Callable[[Any, str, list[Any]], object]) -> None:
    """Do something to the points behind everybody's back: with the client, their collection and all of their ids."""
    name = records_collection(loopback)

    def act() -> None:
        client = loopback.engine.client
        work(client, name, sorted(point.id for point in client.scroll(name, limit=1_000)[0]))

    loopback.on_loop(act)


def terms(loopback: Loopback) -> list[str]:
    return [payload["_terms"] for payload, _ in points(loopback).values()]


def has_left(loopback: Loopback, count: int) -> bool:
    return terms(loopback).count("old") == count


def found(memory: Memory, query: str) -> list[int]:
    return [len(run_sync(memory.bind(user=f"u{n}").search, query, limit=100, mode="lexical")) for n in range(OWNERS)]


def test_older_points_are_analysed_anew_while_they_are_searched(older: Loopback, connect: Open) -> None:
    memory = connect()

    def is_done() -> bool:
        both = zip(found(memory, "old"), found(memory, "jasmine"), strict=True)
        assert all(old + new >= EACH for old, new in both)  # each is found by what it has, old or new
        return found(memory, "jasmine") == [EACH] * OWNERS

    wait_for(is_done)
    wait_for(lambda: all(payload.get("_analysis") == ANALYSIS for payload, _ in points(older).values()))
    assert found(memory, "old") == [0] * OWNERS
    for payload, vectors in points(older).values():
        assert sorted(vectors[WORDS].indices) == sorted(sparse(payload["_terms"]).indices)


def test_it_goes_on_where_it_stopped_and_leaves_what_a_newer_version_did(
    older: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_newer(client: Any, name: str, chosen: list[Any]) -> None:
        client.set_payload(name, {"_terms": "newer", "_analysis": ANALYSIS + 1}, points=chosen[:1])

    on_points(older, be_newer)
    monkeypatch.setattr(background, "ANALYSIS_PAUSE_SECONDS", 3_600)  # one batch, and then it is killed
    for left in (6, 3, 0):
        memory = connect()
        wait_for(partial(has_left, older, left))
        run_sync(memory.close)
    assert terms(older).count("newer") == 1


def test_what_is_written_meanwhile_stays(older: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    interfered: list[str] = []

    def interfere(client: Any, name: str, chosen: list[Any]) -> None:
        written = {"text": "Black coffee", "_terms": "coffe", "_write": "another", "_analysis": ANALYSIS}
        client.set_payload(name, written, points=chosen[:1])
        client.delete(name, chosen[1:2])

    def slowly(record: MemoryRecord, *rest: Any) -> Any:
        if not interfered:
            interfered.append(record.id)
            on_points(older, interfere)
        return analysed(record, *rest)

    monkeypatch.setattr(background, "analysed", slowly)
    memory = connect()
    wait_for(lambda: "old" not in terms(older))
    wait_for(lambda: all(payload.get("_analysis") == ANALYSIS for payload, _ in points(older).values()))
    assert len(points(older)) == OWNERS * EACH - 1
    assert sum(found(memory, "coffee")) == 1
    assert sum(found(memory, "jasmine")) == OWNERS * EACH - 2
