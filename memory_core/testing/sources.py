"""Source keys: a record added twice is stored once, and the key of a deleted record stays forgotten."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, DuplicateIdError, ForgottenError, Memory, Role, Where, run_sync
from memory_core.testing.base import Contract, Ticks, add, everything, texts


class SourceKeyContract(Contract):
    """Idempotence within an owner."""

    def test_the_same_text_again_changes_nothing(self, ann: BoundMemory, clock: Ticks) -> None:
        (first,) = add(ann, Draft("tea", source_key="m1"))
        clock.advance(hours=1)
        again = run_sync(ann.add, Draft("tea", source_key="m1", kind="fact", importance=1.0))
        assert again == first
        assert everything(ann) == [first]

    def test_a_new_text_updates_the_record(self, ann: BoundMemory, clock: Ticks) -> None:
        (first,) = add(ann, Draft("jasmine", source_key="m1"))
        clock.advance(hours=1)
        again = run_sync(ann.add, Draft("jasmine tea with honey", source_key="m1"))
        assert (again.id, again.rev, again.text) == (first.id, 2, "jasmine tea with honey")
        assert (again.created_at, again.updated_at) == (first.created_at, clock.now)
        assert everything(ann) == [again]
        assert texts(run_sync(ann.search, "honey")) == ["jasmine tea with honey"]

    def test_author_data_and_tags_are_brought_up_to_date_too(self, ann: BoundMemory, clock: Ticks) -> None:
        (first,) = add(ann, Draft("tea", source_key="m1", author="Ann", data={"cups": 1}, tags=("hot",)))
        for change in ({"author": "Bob"}, {"data": {"cups": 2}}, {"tags": ("cold",)}):
            clock.advance(hours=1)
            fields: dict[str, Any] = {"author": first.author, "data": first.data, "tags": first.tags, **change}
            again = run_sync(ann.add, Draft("tea", source_key="m1", **fields))
            assert again == replace(first, updated_at=clock.now, version=first.version + 1, **change)
            first = again
        assert everything(ann) == [first]
        assert texts(run_sync(ann.search, "Bob", mode="lexical")) == ["tea"]

    def test_a_role_is_brought_up_to_date_and_never_lost(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, Draft("tea", source_key="m1"))
        roles: tuple[Role, ...] = ("user", "assistant")
        for role in roles:
            clock.advance(hours=1)
            again = run_sync(ann.add, Draft("tea", source_key="m1", role=role))
            assert again == replace(record, role=role, updated_at=clock.now, version=record.version + 1)
            record = again
        clock.advance(hours=1)
        assert run_sync(ann.add, Draft("tea", source_key="m1")) == record
        grown = run_sync(ann.add, Draft("jasmine tea", source_key="m1"))
        assert (grown.role, grown.rev) == ("assistant", 2)
        assert run_sync(ann.list, where=Where(roles=["assistant"])).records == (grown,)
        assert run_sync(ann.list, where=Where(roles=["user"])).records == ()

    def test_a_record_deleted_without_forgetting_can_be_added_again(self, ann: BoundMemory) -> None:
        (first,) = add(ann, Draft("tea", source_key="m1", id="one"))
        assert run_sync(ann.delete_where, Where(ids=("one",)), forget=False).records == 1
        (second,) = add(ann, Draft("tea", source_key="m1", id="one"))
        assert second == first
        assert texts(run_sync(ann.search, "tea")) == ["tea"]

    def test_twice_in_one_batch_is_one_record_with_the_last_text(self, ann: BoundMemory) -> None:
        drafts: list[Draft | str] = [
            Draft("half a sen", source_key="m1", role="user"),
            "between",
            Draft("half a sentence", source_key="m1"),
        ]
        stored = run_sync(ann.add_many, drafts)
        assert stored[0] is not None
        assert stored[2] is not None
        assert stored[0].id == stored[2].id
        assert stored[0].text == stored[2].text == "half a sentence"
        assert stored[2].role == "user"
        assert sorted(texts(everything(ann))) == ["between", "half a sentence"]
        assert texts(run_sync(ann.search, "sentence", mode="lexical")) == ["half a sentence"]

    def test_twice_the_same_in_one_batch_is_one_record(self, ann: BoundMemory) -> None:
        one, two = run_sync(ann.add_many, [Draft("tea", source_key="m1"), Draft("tea", source_key="m1")])
        assert one == two
        assert everything(ann) == [one]

    def test_a_deleted_source_stays_forgotten(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("secret", source_key="m1"))
        run_sync(ann.delete, record.id)
        with pytest.raises(ForgottenError, match="m1"):
            run_sync(ann.add, Draft("secret", source_key="m1"))
        stored = run_sync(ann.add_many, [Draft("secret", source_key="m1"), "other"])
        assert stored[0] is None
        assert texts(everything(ann)) == ["other"]

    def test_delete_where_and_erase_forget_sources_too(self, ann: BoundMemory) -> None:
        add(ann, Draft("one", source_key="m1"), Draft("two", source_key="m2"))
        run_sync(ann.delete_where, Where(data={"no": "match"}))
        run_sync(ann.delete_where, Where(ids=(everything(ann)[0].id,)))
        run_sync(ann.erase)
        assert run_sync(ann.add_many, [Draft("one", source_key="m1"), Draft("two", source_key="m2")]) == [None, None]
        assert everything(ann) == []

    def test_forgetting_applies_to_one_owner_only(self, memory: Memory, ann: BoundMemory) -> None:
        bob = memory.bind(app="contract", user="bob")
        (record,) = add(ann, Draft("tea", source_key="m1"))
        run_sync(ann.delete, record.id)
        assert texts(add(bob, Draft("tea", source_key="m1"))) == ["tea"]

    def test_an_expired_record_makes_room_for_its_source(self, ann: BoundMemory, clock: Ticks) -> None:
        add(ann, Draft("today: rain", source_key="weather", expires_at=clock.now + timedelta(days=1)))
        clock.advance(days=2)
        (fresh,) = add(ann, Draft("today: rain", source_key="weather", expires_at=clock.now + timedelta(days=1)))
        assert everything(ann) == [fresh]
        assert fresh.rev == 1

    def test_a_narrower_handle_does_not_reach_a_source_outside(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("private words", session="s1", source_key="m1"))
        elsewhere = ann.bind(session="s2")
        for text in ("private words", "overwritten"):
            with pytest.raises(DuplicateIdError, match="m1"):
                run_sync(elsewhere.add, Draft(text, source_key="m1"))
        assert everything(ann) == [record]
