"""Namespaces of a store that are in the memory of a team."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, Op, PutOp, SearchOp

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError, SharedMemory, run_sync
from memory_core.testing import Ticks
from memory_langchain import MemoryStore

FACTS = ("team", "facts")
HOSTILE = 1_000


@pytest.fixture
def team(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="team:red")


@pytest.fixture
def handbook(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="company")


@pytest.fixture
def store(ann: BoundMemory, team: BoundMemory, handbook: BoundMemory) -> MemoryStore:
    MemoryStore(handbook, fields=["text"]).put(("rules",), "refund", {"text": "Refunds need two signatures"})
    shared = {"team": team, "handbook": handbook}
    return MemoryStore(ann, fields=["text"], shared=shared, writable=["team"])


def found(store: MemoryStore, *prefix: str, **search: Any) -> list[tuple[tuple[str, ...], str]]:
    return [(item.namespace, item.key) for item in store.search(prefix, **search)]


def test_an_item_of_the_team_is_the_same_for_all_its_members(
    memory: Memory, store: MemoryStore, team: BoundMemory
) -> None:
    store.put(FACTS, "tea", {"text": "The team drinks tea at four"})
    store.put(("users", "ann"), "tea", {"text": "Ann drinks jasmine tea"})
    bobs = MemoryStore(memory.bind(app="demo", user="bob"), fields=["text"], shared={"ours": team})
    hers, his = store.get(FACTS, "tea"), bobs.get(("ours", "facts"), "tea")
    assert hers is not None
    assert his is not None
    assert his.dict() == {**hers.dict(), "namespace": ["ours", "facts"]}
    assert found(MemoryStore(team), "facts") == [(("facts",), "tea")]
    assert found(bobs) == [(("ours", "facts"), "tea")]
    assert bobs.list_namespaces() == [("ours", "facts")]
    store.delete(FACTS, "tea")
    assert found(bobs) == []
    assert found(store, "users") == [(("users", "ann"), "tea")]


def test_everything_is_searched_in_one_ranking_and_a_label_searches_its_space(store: MemoryStore) -> None:
    query = "Refunds need two signatures"
    store.put(FACTS, "refund", {"text": "Mr Okafor gets his refund on Friday"})
    store.put(("users", "ann"), "refund", {"text": "Ann may approve refunds up to 50 euros"})
    store.put(("users", "ann"), "tea", {"text": "Ann drinks jasmine tea"})
    ranked = store.search((), query=query)
    assert (ranked[0].namespace, ranked[0].key) == (("handbook", "rules"), "refund")
    scores = [item.score for item in ranked]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    pages = [store.search((), query=query, limit=1, offset=at)[0] for at in range(4)]
    assert [(item.namespace, item.key) for item in pages] == [(item.namespace, item.key) for item in ranked]
    assert found(store, "team", query="refund") == [(FACTS, "refund")]
    assert found(store, "handbook", "rules") == [(("handbook", "rules"), "refund")]
    assert set(found(store)) == set(found(store, query="refund"))
    assert store.list_namespaces() == [("handbook", "rules"), FACTS, ("users", "ann")]
    assert store.list_namespaces(prefix=("team",), max_depth=1) == [("team",)]


async def test_an_item_may_be_directly_below_the_label(store: MemoryStore, team: BoundMemory) -> None:
    await store.aput(("team",), "tea", {"text": "Tea at four"})
    item = await store.aget(("team",), "tea")
    assert item is not None
    assert item.namespace == ("team",)
    assert [(one.namespace, one.key) for one in await store.asearch(("team",))] == [(("team",), "tea")]
    assert ("team",) in await store.alist_namespaces()
    assert run_sync(team.stats).records == 1


def test_a_space_for_reading_refuses_puts_and_then_nothing_is_written(store: MemoryStore) -> None:
    for op in (PutOp(("handbook", "rules"), "refund", None), PutOp(("handbook",), "new", {"text": "x"})):
        with pytest.raises(ScopeError, match=r"'handbook', which is shared for reading only.*writable="):
            store.batch([PutOp(("users",), "own", {"text": "x"}), PutOp(FACTS, "f", {"text": "x"}), op])
    with pytest.raises(InvalidInputError, match="not JSON"):
        store.batch([PutOp(("users",), "own", {"text": "x"}), PutOp(FACTS, "f", {"text": {1, 2}})])
    assert found(store) == [(("handbook", "rules"), "refund")]


def test_reading_extends_only_what_may_be_written(
    store: MemoryStore, handbook: BoundMemory, ann: BoundMemory, team: BoundMemory, clock: Ticks
) -> None:
    MemoryStore(handbook).put(("notices",), "closed", {"text": "Closed on Monday"}, ttl=10)
    store.put(FACTS, "tea", {"text": "Tea at four"}, ttl=10)
    store.put(("users",), "tea", {"text": "Tea at five"}, ttl=10)
    clock.advance(minutes=6)
    assert len(found(store)) == 4
    assert store.get(FACTS, "tea") is not None
    assert store.get(("handbook", "notices"), "closed") is not None
    clock.advance(minutes=6)
    assert set(found(store)) == {(FACTS, "tea"), (("users",), "tea"), (("handbook", "rules"), "refund")}


def test_a_batch_reads_every_space_before_it_writes(store: MemoryStore) -> None:
    ops: list[Op] = [
        PutOp(FACTS, "tea", {"text": "t"}),
        GetOp(FACTS, "tea"),
        SearchOp(("team",)),
        SearchOp(()),
        GetOp(("u",), "k"),
    ]
    written, got, searched, everything, own = store.batch(ops)
    assert (written, got, searched, own) == (None, None, [], None)
    assert [item.key for item in everything] == ["refund"]  # type: ignore[union-attr]
    assert store.batch([GetOp(FACTS, "tea")])[0] is not None


def test_a_withdrawn_grant_is_gone_at_once(store: MemoryStore, ann: BoundMemory, team: BoundMemory) -> None:
    store.put(FACTS, "tea", {"text": "The team drinks tea at four"})
    after = MemoryStore(ann, fields=["text"])
    assert (found(after), after.list_namespaces(), after.get(FACTS, "tea")) == ([], [], None)
    after.put(FACTS, "tea", {"text": "mine"})
    assert [item.value["text"] for item in MemoryStore(team).search(("facts",))] == ["The team drinks tea at four"]


@pytest.mark.parametrize("seed", range(2))
def test_nobody_reaches_more_than_is_granted(memory: Memory, seed: int) -> None:
    """Random grants and operations of three users and two teams against a plain dictionary for each owner."""
    draw = random.Random(seed)
    people, teams = ("ann", "bob", "eve"), ("red", "blue")
    holds: dict[str, dict[tuple[tuple[str, ...], str], str]] = {owner: {} for owner in (*people, *teams)}
    for step in range(60):
        me, grants = draw.choice(people), {team: draw.choice(("", "read", "write")) for team in teams}
        shared = {team: memory.bind(app="demo", user=team) for team, access in grants.items() if access}
        writable = [team for team, access in grants.items() if access == "write"]
        store = MemoryStore(memory.bind(app="demo", user=me), shared=shared, writable=writable)
        label = draw.choice(("notes", *shared))
        key, text = (draw.choice((("a",), ("a", "b"))), str(step % 5)), f"kettle {step}"
        if label in shared and label not in writable:
            with pytest.raises(ScopeError):
                store.put((label, *key[0]), key[1], {"text": text})
        elif label in shared:
            store.put((label, *key[0]), key[1], {"text": text})
            holds[label][key] = text
        else:
            store.put((label, *key[0]), key[1], {"text": text})
            holds[me][("notes", *key[0]), key[1]] = text
        visible = dict(holds[me])
        for team in shared:
            visible |= {((team, *below), name): said for (below, name), said in holds[team].items()}
        seen = {(item.namespace, item.key): item.value["text"] for item in store.search((), limit=500)}
        assert seen == visible
        assert set(store.list_namespaces(limit=500)) == {namespace for namespace, _ in visible}
        assert {(item.namespace, item.key) for item in store.search((), query="kettle", limit=500)} == set(visible)


def tries_all(memory: Memory, many: int) -> None:
    draw = random.Random(23)
    red = memory.bind(app="demo", user="red")
    store = MemoryStore(memory.bind(app="demo", user="ann"), shared={"red": red})
    MemoryStore(red).put(("facts",), "tea", {"text": "Tea at four"})
    bases = ("red ", "Red", "red/facts", "/red", "%72ed", "r\u200bed", "*", "red\n", "red%", "team:red")
    labels = {draw.choice(bases) + "".join(map(chr, draw.choices(range(47, 0x3000), k=2))) for _ in range(many)}
    ops = [op for label in labels for op in (PutOp((label, "facts"), "tea", {"text": "mine"}), GetOp((label,), "tea"))]
    assert not any(store.batch(ops))
    assert len(found(store, limit=2 * many)) == len(labels) + 1
    assert [item.value["text"] for item in MemoryStore(red).search(())] == ["Tea at four"]


def test_no_hostile_label_reaches_a_space(memory: Memory) -> None:
    tries_all(memory, HOSTILE)


@pytest.mark.torture
def test_none_of_ten_thousand_labels_reaches_a_space(memory: Memory) -> None:
    tries_all(memory, 10 * HOSTILE)


def test_spaces_that_cannot_be_are_refused(memory: Memory, ann: BoundMemory, team: BoundMemory) -> None:
    for label in ("a.b", ""):
        with pytest.raises((InvalidNamespaceError, InvalidInputError)):
            MemoryStore(ann, shared={label: team})
    with pytest.raises(InvalidInputError, match="writable"):
        MemoryStore(ann, shared={"team": team}, writable=["other"])
    with pytest.raises(ScopeError, match="share a handle without"):
        MemoryStore(ann, shared={"team": team.bind(collection="x")})
    with pytest.raises(ScopeError, match="leaves the user open"):
        MemoryStore(ann, shared={"team": memory.bind(app="demo")})
    with pytest.raises(ScopeError, match="owner of another space"):
        MemoryStore(ann, shared={"me": ann})


def test_what_the_store_shares_the_other_classes_recall_too(
    store: MemoryStore, ann: BoundMemory, team: BoundMemory
) -> None:
    store.put(FACTS, "tea", {"text": "The team drinks tea at four"})
    both = SharedMemory(ann, {"team": team})
    assert "[team]" in run_sync(both.recall, "When does the team drink tea?").text
