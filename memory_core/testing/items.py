"""Items: the store as a key-value store, with collection paths and conditions on nested data."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from memory_core import BoundMemory, DataCondition, Draft, DuplicateIdError, InvalidInputError, Patch, Where, run_sync
from memory_core.models import Mode
from memory_core.testing.base import Contract, Ticks, add, everything, texts


class ItemContract(Contract):
    """Put, remove, collections, expiry."""

    def test_a_put_replaces_everything_but_id_and_created_at(self, ann: BoundMemory, clock: Ticks) -> None:
        first, _ = run_sync(
            ann.put_many,
            [
                Draft("tea", source_key="k", kind="item", tags=("a",), author="Ann", data={"v": 1}, collection="x"),
                Draft("other", source_key="l"),
            ],
        )
        clock.advance(hours=1)
        again = Draft(
            "coffee",
            source_key="k",
            data={"w": 2},
            importance=0.9,
            session="s",
            expires_at=clock.advance(hours=1) + timedelta(days=1),
        )
        (second,) = run_sync(ann.put_many, [again])
        assert (second.id, second.created_at, second.rev) == (first.id, first.created_at, 2)
        assert second.updated_at == second.occurred_at == clock.now
        assert (second.text, second.kind, second.tags, second.author, second.data) == (
            "coffee",
            "note",
            (),
            None,
            {"w": 2},
        )
        assert (second.collection, second.session, second.importance) == (None, "s", 0.9)
        assert second.expires_at == again.expires_at
        assert run_sync(ann.get, first.id) == second
        assert texts(run_sync(ann.search, "tea", mode="lexical")) == []
        assert texts(run_sync(ann.search, "coffee", mode="lexical")) == ["coffee"]

    def test_a_put_of_the_same_text_is_the_same_revision(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.put_many, [Draft("tea", source_key="k", data={"v": 1})])
        clock.advance(hours=1)
        (again,) = run_sync(ann.put_many, [Draft("tea", source_key="k", data={"v": 2})])
        assert (again.rev, again.data, again.updated_at) == (1, {"v": 2}, clock.now)
        assert everything(ann) == [again]
        assert texts(run_sync(ann.search, "tea")) == ["tea"]

    def test_no_vector_of_an_older_text_is_found(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        if not has_vectors:
            pytest.skip("a store without vectors")
        for text in ("jasmine", "", "coffee"):
            run_sync(ann.put_many, [Draft(text, source_key="k", data={"v": 1})])
            (hit,) = run_sync(ann.search, "jasmine", mode="vector", floor=False)
            assert (hit.similarity or 0.0) > 0.9 if text == "jasmine" else (hit.similarity or 0.0) < 0.5
            assert (hit.similarity is None) == (text == "")
        run_sync(ann.put_many, [], remove=["k"])
        assert run_sync(ann.search, "coffee", mode="vector", floor=False) == []
        run_sync(ann.put_many, [Draft("", source_key="k", data={"v": 1})])
        (hit,) = run_sync(ann.search, "coffee", mode="vector", floor=False)
        assert hit.similarity is None

    def test_a_put_that_embeds_later_is_found_by_its_words_at_once(self, ann: BoundMemory) -> None:
        run_sync(ann.put_many, [Draft("tea", source_key="k")])
        run_sync(ann.put_many, [Draft("jasmine", source_key="k"), Draft("coffee", source_key="l")], embed="later")
        assert texts(run_sync(ann.search, "jasmine", mode="lexical")) == ["jasmine"]
        assert texts(run_sync(ann.search, "coffee", mode="lexical")) == ["coffee"]
        with pytest.raises(InvalidInputError, match="embed"):
            run_sync(ann.put_many, [], embed=cast("Any", "never"))

    def test_the_later_of_two_puts_with_one_key_wins(self, ann: BoundMemory) -> None:
        one, other, two = run_sync(
            ann.put_many, [Draft("a", source_key="k"), Draft("b", source_key="l"), Draft("c", source_key="k")]
        )
        assert one == two
        assert (one.text, one.rev, other.text) == ("c", 1, "b")
        assert sorted(texts(everything(ann))) == ["b", "c"]

    def test_removed_keys_can_come_back_and_unknown_ones_are_fine(self, ann: BoundMemory) -> None:
        run_sync(ann.put_many, [Draft("a", source_key="k"), Draft("b", source_key="l")])
        run_sync(ann.put_many, [Draft("c", source_key="m")], remove=["k", "nobody"])
        assert sorted(texts(everything(ann))) == ["b", "c"]
        assert run_sync(ann.add, Draft("a", source_key="k")).text == "a"

    def test_a_forgotten_key_can_be_put(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("a", source_key="k"))
        run_sync(ann.delete, record.id)
        (again,) = run_sync(ann.put_many, [Draft("b", source_key="k")])
        assert everything(ann) == [again]

    def test_a_key_stays_forgotten_whatever_was_put_over_it(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("a", source_key="k"))
        run_sync(ann.delete, record.id)
        (again,) = run_sync(ann.put_many, [Draft("b", source_key="k")])
        run_sync(ann.update, again.id, Patch(text="c"))
        run_sync(ann.put_many, [], remove=["k"])
        assert run_sync(ann.add_many, [Draft("a", source_key="k")]) == [None]
        assert everything(ann) == []

    def test_a_deletion_that_does_not_forget_frees_a_key_that_was_forgotten(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("a", source_key="k"))
        run_sync(ann.delete, record.id)
        run_sync(ann.put_many, [Draft("b", source_key="k")])
        assert run_sync(ann.delete_where, Where(source_keys=["k"]), forget=False)
        assert texts(add(ann, Draft("a", source_key="k"))) == ["a"]

    def test_an_expired_record_makes_room_for_a_put(self, ann: BoundMemory, clock: Ticks) -> None:
        (first,) = run_sync(ann.put_many, [Draft("a", source_key="k", expires_at=clock.now + timedelta(days=1))])
        clock.advance(days=2)
        (fresh,) = run_sync(ann.put_many, [Draft("a", source_key="k")])
        assert fresh.id != first.id
        assert (fresh.created_at, fresh.rev) == (clock.now, 1)

    def test_a_refused_put_changes_nothing(self, ann: BoundMemory) -> None:
        before = run_sync(ann.put_many, [Draft("a", source_key="k", session="s1"), Draft("b", source_key="l", id="x")])
        elsewhere = ann.bind(session="s2")
        with pytest.raises(DuplicateIdError, match="'k'"):
            run_sync(elsewhere.put_many, [Draft("new", source_key="m"), Draft("c", source_key="k")])
        with pytest.raises(DuplicateIdError, match="'x'"):
            run_sync(ann.put_many, [Draft("new", source_key="m", id="x")], remove=["k"])
        run_sync(elsewhere.put_many, [], remove=["k"])
        assert sorted(everything(ann), key=lambda record: record.text) == before

    def test_a_turn_that_is_put_into_another_session_has_its_neighbors_there(self, ann: BoundMemory) -> None:
        run_sync(ann.add, Draft("Which berth did the harbour office give us?", session="s1", kind="message"))
        found: list[bool] = []
        for session in ("s2", "s1"):
            run_sync(ann.put_many, [Draft("Fourteen.", session=session, kind="message", source_key="k")])
            hits = run_sync(ann.search, "harbour office", floor=False, explain=True)
            found += ["neighbor" in (hit.components or {}) for hit in hits if hit.record.text == "Fourteen."]
        assert found == [False, True]

    def test_source_keys_are_found_and_an_empty_list_finds_nothing(self, ann: BoundMemory) -> None:
        add(ann, Draft("a", source_key="k"), Draft("b", source_key="l"), "c")
        assert texts(run_sync(ann.list, where=Where(source_keys=("k", "nobody"))).records) == ["a"]
        assert run_sync(ann.list, where=Where(source_keys=())).records == ()
        assert not run_sync(ann.delete_where, Where(source_keys=()))
        assert texts(run_sync(ann.search, "a b c", mode="lexical", where=Where(source_keys=("l",)))) == ["b"]

    def test_a_path_matches_its_children_and_not_its_siblings(self, ann: BoundMemory) -> None:
        inside = ["a/b", "a/b/c", "a/b/c/d", "a/b/\U0001f375"]
        beside = ["a", "a/", "a/b!", "a/b-", "a/b.c", "a/b0", "a/bc", "A/b", "a/b\u00e9", "b/a/b"]
        add(ann, "no collection", *(Draft(f"tea {path}", collection=path) for path in inside + beside))
        found = run_sync(ann.list, where=Where(under="a/b")).records
        assert sorted(record.collection or "" for record in found) == sorted(inside)
        assert len(run_sync(ann.search, "tea", mode="lexical", limit=100, where=Where(under="a/b"))) == len(inside)
        assert run_sync(ann.collections, Where(under="a/b")) == sorted(inside)
        assert run_sync(ann.collections) == sorted(inside + beside)
        assert run_sync(ann.delete_where, Where(under="a/b")).records == len(inside)

    def test_nested_data_is_compared_as_documented(self, ann: BoundMemory) -> None:
        add(ann, Draft("one", data={"n": 1, "in": {"list": [1, {"x": True}], "none": None}, "t": "b"}))
        add(ann, Draft("two", data={"n": 2.5, "in": {"list": [], "a.b": 1}, "t": 5}))
        expected: list[tuple[tuple[str | int, ...], Any, Any, list[str]]] = [
            (("n",), "eq", 1.0, ["one"]),
            (("n",), "eq", True, []),
            (("n",), "gt", 1, ["two"]),
            (("n",), "lte", 2.5, ["one", "two"]),
            (("n",), "gt", "", []),
            (("t",), "gte", "a", ["one"]),
            (("t",), "ne", "b", ["two"]),
            (("in", "none"), "eq", None, ["one"]),
            (("in", "none"), "ne", None, ["two"]),
            (("in", "list"), "eq", [1, {"x": True}], ["one"]),
            (("in", "list"), "eq", [1, {"x": 1}], []),
            (("in", "list", 1, "x"), "eq", True, ["one"]),
            (("in", "list", 5), "ne", 1, ["one", "two"]),
            (("in", "a.b"), "lt", 2, ["two"]),
            (("in", "a", "b"), "lt", 2, []),
        ]
        for path, op, value, wanted in expected:
            where = Where(matching=[DataCondition(path, op, value)])
            assert sorted(texts(run_sync(ann.list, where=where).records)) == wanted, where
            assert sorted(texts(run_sync(ann.search, "one two", mode="lexical", where=where))) == wanted, where

    def test_expiry_can_be_moved_and_nothing_else_changes(self, ann: BoundMemory, clock: Ticks) -> None:
        (first, second) = add(
            ann,
            Draft("tea one", expires_at=clock.now + timedelta(days=1)),
            Draft("tea two", expires_at=clock.now + timedelta(days=1)),
        )
        assert len(run_sync(ann.search, "tea")) == 2
        clock.advance(hours=1)
        run_sync(ann.postpone, {first.id: clock.now + timedelta(days=9), second.id: None, "nobody": None})
        clock.advance(days=2)
        assert texts(everything(ann)) == ["tea one", "tea two"]
        assert len(run_sync(ann.search, "tea")) == 2
        assert [record.updated_at for record in everything(ann)] == [first.updated_at] * 2
        clock.advance(days=9)
        assert texts(everything(ann)) == ["tea two"]
        run_sync(ann.postpone, {first.id: None})
        assert texts(everything(ann)) == ["tea two"]

    def test_sweeping_deletes_what_has_expired_and_only_that(self, ann: BoundMemory, clock: Ticks) -> None:
        soon = clock.now + timedelta(days=1)
        add(ann, "stays", Draft("goes", expires_at=soon, source_key="k", session="s"), Draft("goes", expires_at=soon))
        assert run_sync(ann.sweep) == 0
        clock.advance(days=1)
        assert run_sync(ann.stats).records in (1, 3)
        assert run_sync(ann.bind(session="s").sweep) == 1
        assert run_sync(ann.sweep) == 1
        assert run_sync(ann.stats).records == 1
        assert add(ann, Draft("goes", source_key="k"))[0].rev == 1

    def test_without_the_floor_the_nearest_come_back_however_far(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        add(ann, "jasmine tea", "the train leaves", Draft("", data={"nothing": "to embed"}))
        modes: list[Mode] = ["hybrid", "lexical", "vector"]
        for mode in modes if has_vectors else modes[:2]:
            hits = run_sync(ann.search, "jasmine tea", mode=mode, floor=False)
            assert len(hits) == 3, mode
            assert hits[0].record.text == "jasmine tea", mode
        assert len(run_sync(ann.search, "jasmine tea", floor=False, limit=2)) == 2
