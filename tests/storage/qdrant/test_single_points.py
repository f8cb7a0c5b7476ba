"""The guarantees of a store without transactions: every record whole, every write bounded, nobody stopped by
another."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from qdrant_client.http.models import QueryResponse

from memory_core import Draft, FingerprintError, InvalidInputError, Link, Patch, StorageError, Where, run_sync
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.models import Relation
from memory_core.storage.qdrant import background
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import PENDING
from memory_core.storage.qdrant.owners import LIFE
from memory_core.storage.qdrant.settings import SHARED_SHARD, Layout, Server
from memory_core.testing import Ticks
from memory_core.testing.base import everything, texts
from tests.storage.qdrant.conftest import ONCE, Open
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.engine import Call, Fault
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import pending, points, records_collection, settle, wait_for

MEGABYTES = 2**20
ALLOWED = 32 * MEGABYTES
OTHER: Relation = "confirmed_by"


@pytest.fixture
def sizes(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each request; larger ones than servers accept by default are refused with 413."""
    return limited(loopback, monkeypatch, ALLOWED)


def limited(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, allowed: int) -> list[int]:
    seen: list[int] = []
    answer = loopback._answer

    async def measured(method: str, path: str, body: bytes) -> tuple[int, bytes, str]:
        seen.append(len(body))
        if len(body) > allowed:
            return 413, b'{"status":{"error":"Payload reached size limit."}}', ""
        return await answer(method, path, body)

    monkeypatch.setattr(loopback, "_answer", measured)
    return seen


def patient(loopback: Loopback) -> Server:
    return Server(url=loopback.url, timeout_seconds=60)


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "chars"), [(16, 31_000), (1, 300_000)])
def test_ordinary_documents_fit_into_a_request(
    loopback: Loopback, connect: Open, sizes: list[int], documents: int, chars: int
) -> None:
    dice = random.Random(0)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(5_000)]
    text = " ".join(dice.choices(words, k=chars))[:chars]
    ann = connect(patient(loopback), embedder=HashingEmbedder(dimensions=384)).bind(user="ann")
    run_sync(ann.add_many, [f"{n} {text}"[:chars] for n in range(documents)])
    assert run_sync(ann.stats).records == documents
    assert max(sizes) < ALLOWED * 0.75


def test_no_request_is_larger_than_a_server_takes(loopback: Loopback, connect: Open, sizes: list[int]) -> None:
    ann = connect(patient(loopback), words_only=True).bind(user="ann")
    run_sync(ann.add_many, [Draft(f"n{n}", data={"page": "x" * 300_000}) for n in range(24)])
    for rev in range(2):
        run_sync(ann.put_many, [Draft(f"{rev} " * 10_000, source_key=f"k{n}") for n in range(24)])
    assert run_sync(ann.stats).records == 48
    assert max(sizes) < ALLOWED * 0.75


def test_a_request_that_is_too_large_for_this_server_is_halved(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = connect(words_only=True)
    run_sync(memory.open)
    limited(loopback, monkeypatch, 100_000)
    run_sync(memory.bind(user="ann").add_many, [f"{n} " * 4_000 for n in range(20)])
    assert run_sync(memory.bind(user="ann").stats).records == 20
    with pytest.raises(StorageError, match="too large"):
        run_sync(memory.bind(user="ann").add, Draft("x", data={"page": "x" * 200_000}))


def test_a_write_that_can_never_be_done_stops_nobody(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = connect()
    run_sync(memory.open)
    limited(loopback, monkeypatch, 100_000)
    with pytest.raises(StorageError, match="too large"):
        run_sync(memory.bind(user="ann").add_many, [Draft("n", data={"page": "x" * 300_000}), "small"])
    for other in (memory, connect()):
        run_sync(other.bind(user="bob").add, "tea", embed="later")
        wait_for(lambda: not pending(loopback))


def test_an_owner_whose_vectors_cannot_be_stored_stops_nobody(loopback: Loopback, connect: Open) -> None:
    run = loopback.engine._write

    def refuse_ann(collection: str, body: Any) -> Any:
        if "'text-" in repr(body) and "jam" in repr(body):
            raise ValueError("no")
        return run(collection, body)

    memory = connect()
    loopback.engine._write = refuse_ann  # type: ignore[method-assign]
    try:
        stays = run_sync(memory.bind(user="ann").add, "jam", embed="later")
        run_sync(memory.bind(user="bob").add, "tea", embed="later")
        wait_for(lambda: pending(loopback) == [stays.id])
        run_sync(memory.bind(user="bob").add, "coffee", embed="later")
        wait_for(lambda: pending(loopback) == [stays.id])
    finally:
        loopback.engine._write = run  # type: ignore[method-assign]


def test_a_record_that_is_deleted_while_a_server_reads_it_is_left_out(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server finds points first and reads them then, so what it found as a record may come as a marker."""
    memory = connect()
    ann = memory.bind(user="ann")
    drafts = [Draft(text, session="s", role="user") for text in ("jasmine tea", "green tea", "black tea")]
    gone, stays = run_sync(ann.add_many, drafts[:2])
    assert gone is not None
    settle(loopback)
    run, marker = loopback.engine.run, {"_marker": "deleted", "_write": "w", "_writes": ["w"], "expires_at": None}

    def late(call: Call) -> Any:
        found = run(call)
        if call.name == "scroll":
            return found.model_copy(
                update={"points": [marked(point, call.body.with_payload) for point in found.points]}
            )
        if call.name != "query":
            return found
        return [
            answer.model_copy(update={"points": [marked(point, request.with_payload) for point in answer.points]})
            for request, answer in zip(call.body.searches, found, strict=True)
        ]

    def marked(point: Any, fields: Any) -> Any:
        if str(point.id) != place:
            return point
        read = {name: value for name, value in marker.items() if fields is True or (fields and name in fields)}
        return point.model_copy(update={"payload": read})

    records: list[models.Record] = []
    name = records_collection(loopback)
    loopback.on_loop(lambda: records.extend(loopback.engine.client.scroll(name, limit=100)[0]))
    (place,) = [str(record.id) for record in records if (record.payload or {}).get("id") == gone.id]
    monkeypatch.setattr(loopback.engine, "run", late)
    for mode in ("hybrid", "lexical", "vector", "substring"):
        assert texts(run_sync(ann.search, "tea", mode=mode)) == ["green tea"]
    assert everything(ann) == [stays]
    assert run_sync(ann.stats).records == 1
    assert run_sync(ann.get, gone.id) is None
    run_sync(ann.add, drafts[2])
    assert run_sync(ann.delete_where, Where(roles=("user",))).records == 2


def test_computed_vectors_leave_the_state_of_a_record(loopback: Loopback, connect: Open) -> None:
    """Replicas may, when a node dies, apply a change and the vectors in different orders: both have to have effect."""
    record = run_sync(connect().bind(user="ann").add, "tea", embed="later")
    settle(loopback)
    payload, _ = points(loopback)[record.id]
    assert payload["_writes"] == [payload["_write"]]


def test_computed_vectors_take_no_change_back_that_one_query_shows_in_part(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One write changes two records in different shards; a query may find one as it was and the other as it is."""
    drafts = [Draft(f"tea {n}", source_key=str(n)) for n in range(2)]
    run_sync(connect().bind(user="ann").add_many, drafts)
    records: list[models.Record] = []
    name = records_collection(loopback)
    loopback.on_loop(lambda: records.extend(loopback.engine.client.scroll(name, limit=100)[0]))
    (before,) = [record for record in records if (record.payload or {}).get("source_key") == "0"]
    run, shown = loopback.engine.run, list[Call]()

    def partly(call: Call) -> Any:
        found = run(call)
        if call.name != "query" or PENDING not in repr(call.body) or not found[0].points:
            return found
        shown.append(call)
        earlier = {"payload": before.payload}
        points = [point.model_copy(update=earlier) if point.id == before.id else point for point in found[0].points]
        return [found[0].model_copy(update={"points": points})]

    monkeypatch.setattr(loopback.engine, "run", partly)
    ann = connect().bind(user="ann")
    changed = [Draft(f"green {draft.text}", source_key=draft.source_key) for draft in drafts]
    run_sync(ann.add_many, changed, embed="later")
    wait_for(lambda: bool(shown) and len(pending(loopback)) < 2)
    assert sorted(texts(everything(ann))) == ["green tea 0", "green tea 1"]


def test_pending_vectors_that_a_replica_does_not_show_are_looked_for_again(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "FIRST_ROUND_SECONDS", 0.01)
    run, hidden = loopback.engine.run, list[Call]()

    def behind(call: Call) -> Any:
        if call.name == "query" and PENDING in repr(call.body) and len(hidden) < 6:
            hidden.append(call)
            return [QueryResponse(points=[]) for _ in call.body.searches]
        return run(call)

    memory = connect()
    monkeypatch.setattr(loopback.engine, "run", behind)
    run_sync(memory.bind(user="ann").add, "tea", embed="later")
    settle(loopback)
    assert len(hidden) == 6


def test_what_is_deleted_between_two_writes_of_a_failed_put_stops_nobody(loopback: Loopback, connect: Open) -> None:
    ann = connect(patience=ONCE).bind(user="ann")
    drafts = [Draft("one", source_key="1"), Draft("two", source_key="2")]
    run_sync(ann.put_many, drafts)
    loopback.fail(lambda call: Fault.RESET if call.is_write else None)
    with pytest.raises(StorageError):
        run_sync(ann.put_many, [Draft(draft.text, source_key=draft.source_key, tags=("x",)) for draft in drafts])
    loopback.fail()
    other = connect().bind(user="ann")
    run_sync(other.delete_where, Where())
    bob = connect().bind(user="bob")
    run_sync(bob.add, "tea", embed="later")
    wait_for(lambda: not pending(loopback))
    assert everything(other) == []


def test_no_write_looks_through_the_whole_collection(loopback: Loopback, connect: Open) -> None:
    memory = connect()
    ann = memory.bind(user="ann")
    run_sync(ann.add, "first")
    time.sleep(0.2)
    loopback.engine.calls.clear()
    for n in range(5):
        run_sync(ann.add, Draft(f"n{n}", session="s", source_key=f"k{n}", role="user"))
        time.sleep(0.02)
    run_sync(ann.delete_where, Where(source_keys=("k1",)))
    asked = [call for call in loopback.engine.calls if call.name in ("query", "scroll")]
    assert asked
    for call in asked:
        sent = call.body.model_dump_json(exclude_none=True)
        assert "_owner" in sent or "pending" in sent, call
        assert "is_empty" not in sent or "_owner" in sent, call
    assert not [call for call in asked if "must_not" in call.body.model_dump(exclude_none=True).get("filter", {})]


def test_deleting_a_record_does_not_undo_a_change_of_links(loopback: Loopback, connect: Open) -> None:
    """One process deletes what a record links to, while another adds a link to it."""
    one, other = connect().bind(user="ann"), connect().bind(user="ann")
    gone, stays = run_sync(one.add, "x"), run_sync(one.add, "z")
    linking = run_sync(one.add, Draft("y", links=(Link(OTHER, gone.id),)))
    name, state = records_collection(loopback), {"done": False}

    def interfere(call: Call) -> None:
        if state["done"] or not call.is_write or "set_payload" not in repr(call.body):
            return
        state["done"] = True
        client: Any = loopback.engine.client
        (found,) = [point for point in client.scroll(name, limit=100)[0] if point.payload.get("text") == "y"]
        keys = [*found.payload["_keys"], f"links={OTHER}:{stays.id}", "tags=b-was-here"]
        links = [f"{OTHER}:{gone.id}", f"{OTHER}:{stays.id}"]
        changed = {"links": links, "_keys": keys, "_write": "b" * 32, "tags": ["b-was-here"]}
        client.set_payload(name, changed, [found.id])

    loopback.fail(interfere)
    run_sync(one.delete, gone.id)
    loopback.fail()
    assert state["done"]
    after = run_sync(other.get, linking.id)
    assert after is not None
    assert (after.tags, after.links) == (("b-was-here",), (Link(OTHER, stays.id),))


def test_a_deletion_counts_although_a_replica_that_is_behind_is_read_back(
    loopback: Loopback, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = connect().bind(user="ann")
    gone = run_sync(ann.add, "x")
    linking = run_sync(ann.add, Draft("y", links=(Link(OTHER, gone.id),)))
    answers, run = iter([True]), loopback.engine.run

    def behind(call: Call) -> Any:
        found = run(call)
        if call.name != "retrieve" or not any("_writes" in point.payload for point in found) or not next(answers, 0):
            return found
        return [point if "_epoch" in point.payload else point.model_copy(update={"payload": {}}) for point in found]

    monkeypatch.setattr(loopback.engine, "run", behind)
    run_sync(ann.delete, gone.id)
    assert next(answers, None) is None
    after = run_sync(ann.get, linking.id)
    assert after is not None
    assert (texts(everything(ann)), after.links) == (["y"], ())


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_reader_sees_the_old_or_the_new_truth_wherever_a_writer_dies(
    loopback: Loopback, connect: Open, clock: Ticks, nth: int
) -> None:
    ann = connect(patience=ONCE).bind(user="ann")
    reader = connect()
    old = run_sync(ann.add, Draft("Ann lives in Oslo", source_key="home"))
    writes: list[Call] = []

    def die(call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta"):
            writes.append(call)
        return Fault.UNAVAILABLE if len(writes) >= nth else None

    loopback.fail(die)
    try:
        run_sync(ann.supersede, old.id, Draft("Ann lives in Rome", id="new"))
        is_dead = False
    except StorageError:
        is_dead = True
    loopback.fail()
    assert is_dead == (nth <= 3)
    bob = reader.bind(user="ann")
    seen = texts(everything(bob))
    assert seen in (["Ann lives in Oslo"], ["Ann lives in Rome"])
    assert texts(run_sync(bob.search, "Where does Ann live?", floor=False)) == seen
    problems = run_sync(reader.operator().check)
    assert bool(problems) == (nth in (2, 3))
    clock.advance(seconds=LIFE.total_seconds())
    run_sync(reader.operator().vacuum)
    assert run_sync(reader.operator().check) == []
    assert texts(everything(bob)) == seen
    if seen == ["Ann lives in Oslo"]:
        run_sync(bob.supersede, old.id, Draft("Ann lives in Rome", id="new"))
    assert texts(everything(bob)) == ["Ann lives in Rome"]
    closed = run_sync(bob.get, old.id)
    assert closed is not None
    assert (closed.state, closed.valid_to is not None) == ("archived", True)


@pytest.mark.parametrize("then", ["supersede", "delete", "archive", "expire", "vacuum"])
def test_a_superseded_record_stays_so_whatever_becomes_of_its_successor(
    loopback: Loopback, connect: Open, clock: Ticks, then: str
) -> None:
    """The writer died after it had stored the new record, and before it closed the old one."""
    expires = clock.now + LIFE / 2 if then == "expire" else None
    old, new = superseded_by_a_dead_writer(loopback, connect, expires)
    memory = connect()
    ann, left = memory.bind(user="ann"), list[str]()
    if then == "supersede":
        run_sync(ann.supersede, new, "Ann lives in Bonn")
        left = ["Ann lives in Bonn"]
    elif then == "delete":
        run_sync(ann.delete, new)
    elif then == "archive":
        run_sync(ann.update, new, Patch(state="archived"))
    elif then == "expire":
        clock.advance(seconds=LIFE.total_seconds())
        run_sync(ann.sweep)
    else:
        left = ["Ann lives in Rome"]
    assert texts(everything(ann)) == left
    clock.advance(seconds=2 * LIFE.total_seconds())
    run_sync(memory.operator().vacuum)
    assert run_sync(memory.operator().check) == []
    assert texts(everything(ann)) == left
    closed = run_sync(ann.get, old)
    assert closed is not None
    assert (closed.state, closed.valid_to is not None) == ("archived", True)


def test_a_superseded_record_can_be_active_again_although_its_writer_died(loopback: Loopback, connect: Open) -> None:
    old, _ = superseded_by_a_dead_writer(loopback, connect, None)
    ann = connect().bind(user="ann")
    run_sync(ann.update, old, Patch(state="active"))
    assert sorted(texts(everything(ann))) == ["Ann lives in Oslo", "Ann lives in Rome"]


def superseded_by_a_dead_writer(loopback: Loopback, connect: Open, expires: datetime | None) -> tuple[str, str]:
    """The ids of the old and the new record; of three writes the last was never done."""
    ann = connect(patience=ONCE).bind(user="ann")
    old = run_sync(ann.add, Draft("Ann lives in Oslo", source_key="home"))
    writes: list[Call] = []

    def die(call: Call) -> Fault | None:
        if call.is_write and not call.collection.endswith("-meta"):
            writes.append(call)
        return Fault.UNAVAILABLE if len(writes) > 2 else None

    loopback.fail(die)
    with pytest.raises(StorageError):
        run_sync(ann.supersede, old.id, Draft("Ann lives in Rome", id="new", expires_at=expires))
    loopback.fail()
    return old.id, "new"


def test_shard_keys_survive_a_fault_while_they_are_made(loopback: Loopback, connect: Open) -> None:
    hit: list[Call] = []

    def fail_once(call: Call) -> Fault | None:
        if call.name == "shard_key" and len(hit) < 1:
            hit.append(call)
            return Fault.UNAVAILABLE
        return None

    loopback.fail(fail_once)
    with pytest.raises(StorageError):
        run_sync(connect(layout=Layout(tenant_shards=True), patience=ONCE).open)
    loopback.fail()
    connect(layout=Layout(tenant_shards=True))
    connect(layout=Layout(tenant_shards=True))
    assert loopback.engine.shard_keys[records_collection(loopback)] == [SHARED_SHARD]


def test_indexes_are_completed_by_the_next_process(loopback: Loopback, connect: Open) -> None:
    made: list[Call] = []

    def fail_in_the_middle(call: Call) -> Fault | None:
        made.extend([call] if call.name == "index" else [])
        return Fault.UNAVAILABLE if len(made) > 7 else None

    loopback.fail(fail_in_the_middle)
    with pytest.raises(StorageError):
        run_sync(connect(patience=ONCE).open)
    loopback.fail()
    connect()
    from memory_core.storage.qdrant.schema import RECORD_INDEXES

    assert loopback.engine.indexes[records_collection(loopback)].keys() == RECORD_INDEXES.keys()


@pytest.mark.parametrize("url", ["http://127.0.0.2", "https://xyz.eu-central.aws.cloud.qdrant.io", "http://h:80/p"])
def test_a_url_without_a_port_means_6333_as_for_qdrant_client(url: str) -> None:
    from qdrant_client import QdrantClient

    from memory_core.storage.qdrant.connection import new_client

    theirs: Any = QdrantClient(url=url, check_compatibility=False)
    ours: Any = new_client(Server(url=url).resolved({}))
    assert ours._client.rest_uri == theirs._client.rest_uri


def test_the_advice_of_the_fingerprint_error_works(connect: Open) -> None:
    run_sync(connect().bind(user="ann").add, "tea at noon")
    with pytest.raises(FingerprintError, match=r"embedder=None and call `await memory.reembed"):
        run_sync(connect(embedder=HashingEmbedder(dimensions=96)).open)
    memory = connect(words_only=True)
    run_sync(memory.reembed, HashingEmbedder(dimensions=96))
    again = connect(embedder=HashingEmbedder(dimensions=96))
    for one in (memory, again):
        assert texts(run_sync(one.bind(user="ann").search, "tea", mode="vector", floor=False)) == ["tea at noon"]


def test_owners_are_listed_without_a_cut(connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_core.storage.qdrant.transfer.FIRST_OWNERS", 2)
    memory = connect(words_only=True)
    for n in range(11):
        run_sync(memory.bind(user=f"u{n}").add, "tea")
    assert len(run_sync(memory.operator().owners)) == 11


@pytest.mark.slow
@pytest.mark.parametrize("grpc", [False, True])
def test_a_search_takes_three_round_trips(loopback: Loopback, connect: Open, *, grpc: bool) -> None:
    server = Server(url=loopback.url, timeout_seconds=60, prefer_grpc=grpc, grpc_port=loopback.grpc_port)
    ann = connect(server).bind(user="ann")
    drafts = [Draft(f"turn {n} about tea{n % 50}", session=f"s{n // 40}", role="user") for n in range(400)]
    run_sync(ann.add_many, drafts)
    run_sync(ann.search, "tea7 at noon?")  # the authors of an owner are asked for once a minute
    loopback.engine.calls.clear()
    assert run_sync(ann.search, "tea7 at noon?", floor=False)
    alone = [call for call in loopback.engine.calls if call.name == "query" and len(call.body.searches) == 1]
    asked = [call.name for call in loopback.engine.calls if call not in alone]  # without the work in the background
    assert Counter(asked) == {"query": 3}


@pytest.mark.slow
def test_a_search_of_an_owner_of_2000_downloads_less_than_100_kilobytes(
    real_engine: EdgeEngine, real_loopback: Loopback, connect: Open
) -> None:
    real_loopback.on_loop(real_engine.clear)
    ann = connect(patient(real_loopback)).bind(user="ann")
    dice = random.Random(1)
    words = ["".join(dice.choices("bcdfgaeiou", k=dice.randint(3, 9))) for _ in range(3_000)]
    drafts = [
        Draft(f"{' '.join(dice.choices(words, k=14))} tea{n % 50}", session=f"s{n // 40}", role="user", author="Ann")
        for n in range(2_000)
    ]
    run_sync(ann.add_many, drafts)
    run_sync(ann.search, "tea7")
    before = real_loopback.sent_bytes
    assert run_sync(ann.search, f"tea7 {words[3]} at {words[5]}?", floor=False)
    assert real_loopback.sent_bytes - before < 100_000


def test_a_batch_on_this_store_is_no_transaction() -> None:
    from memory_core import QdrantStore
    from memory_core.protocols import has_atomic_batches

    assert not has_atomic_batches(QdrantStore(":memory:", embedder=None))


def test_ports_are_checked() -> None:
    with pytest.raises(InvalidInputError):
        Server(host="h", port=70_000)
