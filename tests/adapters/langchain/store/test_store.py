"""`MemoryStore` keeps LangGraph's contract, and has none of the faults of the reference stores."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError, run_sync
from memory_core.testing import Ticks
from memory_langchain import MemoryRetriever, MemoryStore
from tests.storage.embedders import MoodyEmbedder


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_an_item_comes_back_as_it_was_put(store: MemoryStore, clock: Ticks) -> None:
    value = {"text": "tea", "n": 1, "f": 2.5, "none": None, "list": [1, {"é": True}], "a.b": {"$x": "\0"}, "": []}
    store.put(("users", "ann"), "k", value)
    item = store.get(("users", "ann"), "k")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "k", value)
    assert item.created_at == item.updated_at == clock.now
    assert store.get(("users", "ann"), "other") is None
    assert store.get(("users",), "k") is None


def test_an_update_keeps_the_moment_of_creation(store: MemoryStore, clock: Ticks) -> None:
    created = clock.now
    store.put(("a",), "k", {"v": 1})
    store.put(("a",), "k", {"v": 2, "w": 3})
    updated = clock.advance(microseconds=1)
    store.put(("a",), "k", {"v": 3})
    item = store.get(("a",), "k")
    assert item is not None
    assert (item.value, item.created_at, item.updated_at) == ({"v": 3}, created, updated)
    assert item.created_at.tzinfo is UTC


def test_a_key_may_be_any_text_and_never_meets_another(store: MemoryStore) -> None:
    pairs = [
        (("a",), "b"),
        (("a", "b"), ""),
        (("a",), "b\0"),
        (("a", "b\t"), "c"),
        (("a",), "b/c"),
        (("a",), "x" * 5000),
    ]
    for number, (namespace, key) in enumerate(pairs):
        store.put(namespace, key, {"n": number})
    for number, (namespace, key) in enumerate(pairs):
        item = store.get(namespace, key)
        assert item is not None
        assert (item.key, item.value) == (key, {"n": number})


def test_a_deleted_item_is_gone_and_can_be_put_again(store: MemoryStore, clock: Ticks) -> None:
    store.put(("a",), "k", {"text": "jasmine"})
    store.delete(("a",), "k")
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert store.search(("a",), query="jasmine") == []
    assert store.list_namespaces() == []
    clock.advance(hours=1)
    store.put(("a",), "k", {"text": "coffee"})
    item = store.get(("a",), "k")
    assert item is not None
    assert item.created_at == clock.now


def test_what_a_caller_does_to_a_value_changes_nothing_stored(store: MemoryStore) -> None:
    value = {"list": [1]}
    store.put(("a",), "k", value)
    value["list"].append(2)
    for _ in range(2):
        item = store.get(("a",), "k")
        assert item is not None
        assert item.value == {"list": [1]}
        item.value["list"].append(3)


@pytest.mark.parametrize(
    "value",
    [{"a": {1}}, {"a": (1, 2)}, {"a": float("nan")}, {1: "a"}, {"a": object()}, {"a": b"x"}, [1], "text"],
    ids=["set", "tuple", "nan", "numeric key", "object", "bytes", "list", "text"],
)
@pytest.mark.parametrize("index", [None, False])
def test_what_is_not_json_is_refused(store: MemoryStore, value: Any, index: Any) -> None:
    with pytest.raises(InvalidInputError):
        store.put(("a",), "k", value, index=index)
    assert store.list_namespaces() == []


def test_a_batch_writes_all_or_nothing(store: MemoryStore) -> None:
    store.put(("a",), "old", {"v": 0})
    ops: list[Any] = [PutOp(("a",), "old", None), PutOp(("a",), "new", {"v": 1}), PutOp(("a",), "bad", {"v": {1}})]
    with pytest.raises(InvalidInputError):
        store.batch(ops)
    assert keys(store.search(("a",))) == ["old"]


def test_a_batch_reads_first_and_the_later_of_two_puts_counts(store: MemoryStore) -> None:
    store.put(("a",), "k", {"v": 0})
    before, nothing, found, spaces, *rest = store.batch(
        [
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"v": 1}),
            SearchOp(("a",)),
            ListNamespacesOp(),
            PutOp(("a",), "k", {"v": 2}),
            PutOp(("b",), "gone", {"v": 3}),
            PutOp(("b",), "gone", None),
            GetOp(("b",), "gone"),
        ]
    )
    assert before is not None
    assert before.value == {"v": 0}  # type: ignore[union-attr]
    assert nothing is None
    assert [item.value for item in found] == [{"v": 0}]  # type: ignore[union-attr]
    assert spaces == [("a",)]
    assert rest == [None, None, None, None]
    assert [item.value for item in store.search(())] == [{"v": 2}]
    assert store.batch([]) == []


def test_reads_leave_no_namespace_behind(store: MemoryStore) -> None:
    assert store.get(("ghost",), "k") is None
    assert store.search(("ghost",), query="tea", filter={"a": 1}) == []
    store.delete(("ghost",), "k")
    assert store.list_namespaces() == []


def test_every_item_is_on_exactly_one_page(store: MemoryStore) -> None:
    for number in range(23):
        index: Any = False if number % 4 == 0 else ["many[*]"]
        store.put(("a", str(number % 3)), f"k{number}", {"many": ["tea"] * 30 + [str(number)]}, index=index)
    for query in (None, "tea", "nothing of this"):
        pages = [store.search(("a",), query=query, limit=5, offset=offset) for offset in range(0, 30, 5)]
        assert [len(page) for page in pages] == [5, 5, 5, 5, 3, 0]
        assert len({item.key for page in pages for item in page}) == 23
        whole = store.search(("a",), query=query, limit=100)
        assert [item for page in pages for item in page] == whole


def test_items_without_an_index_come_last_and_without_a_score(store: MemoryStore) -> None:
    store.put(("a",), "plain", {"text": "jasmine"}, index=False)
    store.put(("a",), "far", {"text": "engine"}, index=["text"])
    store.put(("a",), "near", {"text": "jasmine"}, index=["text"])
    found = store.search(("a",), query="jasmine")
    assert keys(found) == ["near", "far", "plain"]
    assert found[0].score == pytest.approx(1.0, abs=1e-3)
    assert found[2].score is None
    assert [item.score for item in store.search(("a",))] == [None, None, None]


@pytest.mark.parametrize(
    ("value", "index"), [({"text": "x"}, False), ({"text": "coffee"}, None), ({"other": 1}, ["text"])]
)
def test_no_vector_of_an_older_value_ranks_an_item(store: MemoryStore, value: Any, index: Any) -> None:
    store.put(("a",), "k", {"text": "jasmine"}, index=["text"])
    store.put(("a",), "k", value, index=index)
    (found,) = store.search(("a",), query="jasmine")
    assert (found.score or 0.0) < 0.5
    store.delete(("a",), "k")
    store.put(("a",), "k", {"text": "jasmine"}, index=False)
    (found,) = store.search(("a",), query="jasmine")
    assert found.score is None


def test_the_configured_fields_are_what_is_searched(ann: BoundMemory) -> None:
    store = MemoryStore(ann, fields=["title", "parts[*].text"])
    store.put(("a",), "k", {"title": "jasmine", "parts": [{"text": "green"}, {"text": "black"}], "secret": "engine"})
    (record,) = run_sync(ann.list).records
    assert record.text == "jasmine\fgreen\fblack"
    store.put(("a",), "k", {"title": "jasmine", "secret": "engine"}, index=["secret"])
    (record,) = run_sync(ann.list).records
    assert (record.text, record.rev) == ("engine", 2)


def test_the_whole_value_is_searched_unless_fields_are_named(store: MemoryStore, ann: BoundMemory) -> None:
    store.put(("a",), "one", {"b": "jasmine", "a": 1})
    store.put(("a",), "two", {"b": "jasmine", "a": 1}, index=["$"])
    assert {record.text for record in run_sync(ann.list).records} == {'{"a": 1, "b": "jasmine"}'}


def test_one_text_in_two_items_and_two_fields_is_no_conflict(store: MemoryStore) -> None:
    ops = [PutOp(("a",), f"k{n}", {"x": "jasmine", "y": "jasmine"}, index=["x", "y"]) for n in range(3)]
    store.batch(ops)
    assert len(store.search(("a",), query="jasmine")) == 3


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"offset": -1}, {"limit": True}, {"limit": 1.5}], ids=repr)
def test_a_page_that_means_nothing_is_refused(store: MemoryStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        store.search(("a",), **wrong)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        store.list_namespaces(**wrong)


def test_a_question_or_a_depth_that_means_nothing_is_refused(store: MemoryStore) -> None:
    wrong: Any = ["tea"]
    with pytest.raises(InvalidInputError, match="query"):
        store.search(("a",), query=wrong)
    for depth in (-1, wrong):
        with pytest.raises(InvalidInputError, match="max_depth"):
            store.list_namespaces(max_depth=depth)


def test_a_page_may_be_empty_or_beyond_the_end(store: MemoryStore) -> None:
    store.put(("a",), "k", {"v": 1})
    assert (
        store.search(("a",), limit=0)
        == store.search(("a",), offset=5)
        == store.search(("a",), query="v", offset=5)
        == []
    )
    assert store.list_namespaces(limit=0) == store.list_namespaces(offset=1) == []
    with pytest.raises(InvalidInputError, match="10000"):
        store.search(("a",), query="v", limit=10_001)
    assert len(store.search(("a",), limit=50_000)) == 1


def test_a_prefix_reaches_what_is_below_it_and_nothing_beside(store: MemoryStore) -> None:
    for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a/b",), ("A",), ("b", "a")]:
        store.put(namespace, "k", {"text": "tea"})
    for query in (None, "tea"):
        found = store.search(("a",), query=query)
        assert {item.namespace for item in found} == {("a",), ("a", "b"), ("a", "b", "c")}
    assert len(store.search(())) == 7
    assert store.list_namespaces(prefix=("a",), max_depth=2) == [("a",), ("a", "b")]
    assert store.list_namespaces(suffix=("*", "c")) == [("a", "b", "c")]


@pytest.mark.parametrize("bad", [("a.b",), ("",), ("a\0",), (7,), ("a", None)], ids=repr)
def test_an_invalid_namespace_is_refused_in_batches_too(store: MemoryStore, bad: Any) -> None:
    ending = ListNamespacesOp((MatchCondition("suffix", bad),))
    for op in (GetOp(bad, "k"), PutOp(bad, "k", {}), PutOp(bad, "k", None), SearchOp(bad), ending):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("fine",), "k", {"v": 1}), op])
    assert store.list_namespaces() == []


def test_an_empty_namespace_holds_nothing(store: MemoryStore) -> None:
    with pytest.raises(InvalidNamespaceError, match="empty"):
        store.batch([PutOp((), "k", {"v": 1})])
    with pytest.raises(InvalidNamespaceError):
        store.put(("langgraph", "x"), "k", {"v": 1})


def test_an_unknown_operation_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInputError, match="PutOp"):
        store.batch(["get"])  # type: ignore[list-item]


@pytest.mark.parametrize("fields", ["text", [""], [1], {"text": 1}], ids=repr)
def test_fields_that_are_no_paths_are_refused(ann: BoundMemory, fields: Any) -> None:
    with pytest.raises(InvalidInputError, match="path"):
        MemoryStore(ann, fields=fields)
    with pytest.raises(InvalidInputError, match="path"):
        MemoryStore(ann).put(("a",), "k", {"v": 1}, index=fields)


def test_a_store_belongs_to_one_owner(memory: Memory, open_handle: BoundMemory, ann: BoundMemory) -> None:
    wrong: list[Any] = [memory, open_handle, None, ann.bind(collection="c")]
    for handle in wrong:
        with pytest.raises(ScopeError, match=r"handle that is bound to a user|manages collections"):
            MemoryStore(handle)
    bob = MemoryStore(open_handle.bind(user="bob"))
    MemoryStore(ann).put(("a",), "k", {"v": 1})
    assert bob.get(("a",), "k") is None
    assert bob.search((), query="v") == []
    assert bob.list_namespaces() == []
    bob.delete(("a",), "k")
    assert MemoryStore(ann).get(("a",), "k") is not None


def test_namespaces_only_say_which_user_an_item_is_about(store: MemoryStore, ann: BoundMemory) -> None:
    store.put(("users", "bob"), "tea", {"text": "Bob drinks oolong"})
    assert keys(store.search(("users", "bob"))) == keys(store.search(())) == ["tea"]
    (record,) = run_sync(ann.list).records
    assert (record.user, record.collection) == ("ann", "users/bob")


def test_other_memories_of_the_owner_are_no_items_and_items_are_memories(store: MemoryStore, ann: BoundMemory) -> None:
    run_sync(ann.add, "Ann drinks jasmine tea")
    store.put(("a",), "k", {"text": "Bob drinks oolong"}, index=["text"])
    assert keys(store.search((), query="jasmine")) == ["k"]
    assert store.list_namespaces() == [("a",)]
    (found, *_) = MemoryRetriever(memory=ann).invoke("oolong")
    assert found.page_content == "Bob drinks oolong"


def test_a_memory_without_vectors_ranks_by_words(words: BoundMemory) -> None:
    store = MemoryStore(words, mode="lexical")
    for text in ("engine", "jasmine tea", "train"):
        store.put(("a",), text, {"text": text}, index=["text"])
    found = store.search(("a",), query="jasmine")
    assert found[0].key == "jasmine tea"
    assert len(found) == 3
    with pytest.raises(InvalidInputError, match="lexical"):
        MemoryStore(words).search(("a",), query="jasmine")


def test_an_item_whose_vector_is_owed_is_there_without_a_score() -> None:
    embedder = MoodyEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        store = MemoryStore(memory.bind(user="ann"))
        store.put(("a",), "k", {"text": "jasmine"})
        assert store.get(("a",), "k") is not None
        embedder.failing = False
        assert keys(store.search(("a",), query="jasmine")) == ["k"]
