"""Adding, changing, deleting and counting records."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from memory_core import (
    BoundMemory,
    ClosedError,
    ConflictError,
    Draft,
    DuplicateIdError,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    Where,
    run_sync,
)
from memory_core.testing.base import Contract, Ticks, add, everything, texts
from memory_core.where.where import ANY_STATE

COUNTERS = 8


def full_draft(now: datetime) -> Draft:
    """A draft with a value in each field, none of which is its default, but for the passages."""
    return Draft(
        "The bus leaves at nine",
        role="user",
        kind="fact",
        tier="summary",
        author="Ann Lee",
        data={"line": 7, "stops": ["a", None, {"deep": [True, 0.1]}]},
        tags=("travel", "daily"),
        importance=0.25,
        confidence=0.75,
        emotion="calm",
        occurred_at=datetime(2020, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
        expires_at=now + timedelta(days=1),
        valid_from=datetime(2019, 1, 1, tzinfo=UTC),
        valid_to=now + timedelta(days=2),
        source_key="message-1",
        id="mem_1",
        agent="planner",
        session="monday",
        collection="trips/2020",
        links=(Link("follows", "mem_0"),),
    )


class RecordContract(Contract):
    """The operations on single records and batches."""

    def test_a_text_is_a_record_with_defaults(self, ann: BoundMemory, clock: Ticks) -> None:
        record = run_sync(ann.add, "Ann drinks tea")
        assert record == MemoryRecord(
            id=record.id,
            text="Ann drinks tea",
            role=None,
            kind="note",
            tier="raw",
            author=None,
            data={},
            tags=(),
            importance=0.5,
            confidence=1.0,
            emotion=None,
            created_at=clock.now,
            updated_at=clock.now,
            accessed_at=None,
            occurred_at=clock.now,
            access_count=0,
            expires_at=None,
            valid_from=None,
            valid_to=None,
            state="active",
            source_key=None,
            rev=1,
            version=1,
            app="contract",
            user="ann",
            agent=None,
            session=None,
            collection=None,
        )
        assert run_sync(ann.get, record.id) == record

    def test_every_field_of_a_draft_comes_back(self, ann: BoundMemory, clock: Ticks) -> None:
        draft = full_draft(clock.now)
        record = run_sync(ann.add, draft)
        assert record == run_sync(ann.get, "mem_1")
        for name in {field.name for field in fields(Draft)} - {"passages"}:  # these are part of the text
            assert getattr(record, name) == getattr(draft, name) != getattr(Draft(), name), name

    def test_a_batch_comes_back_in_order(self, ann: BoundMemory) -> None:
        stored = run_sync(ann.add_many, [f"number {number}" for number in range(20)])
        assert texts(record for record in stored if record) == [f"number {number}" for number in range(20)]
        assert everything(ann) == stored

    def test_an_empty_batch_is_nothing(self, ann: BoundMemory) -> None:
        assert run_sync(ann.add_many, []) == []
        assert everything(ann) == []

    def test_one_bad_draft_stops_the_whole_batch(self, ann: BoundMemory) -> None:
        with pytest.raises(InvalidInputError, match="draft 1"):
            run_sync(ann.add_many, ["good", Draft("bad", importance=2.0), "good too"])
        assert everything(ann) == []

    @pytest.mark.parametrize("embed", ["now", "later"])
    def test_a_taken_id_stops_the_whole_batch(self, ann: BoundMemory, embed: str) -> None:
        (first,) = add(ann, Draft("first", id="taken"))
        with pytest.raises(DuplicateIdError, match="taken"):
            run_sync(
                ann.add_many,
                ["before", Draft("again", id="taken"), "after"],
                embed="now" if embed == "now" else "later",
            )
        assert everything(ann) == [first]
        assert run_sync(ann.search, "before", mode="lexical") == []

    def test_an_id_twice_in_one_batch_is_refused(self, ann: BoundMemory) -> None:
        with pytest.raises(DuplicateIdError, match="twin"):
            run_sync(ann.add_many, [Draft("one", id="twin"), Draft("two", id="twin")])
        assert everything(ann) == []

    def test_many_writers_at_once_lose_nothing(self, ann: BoundMemory) -> None:
        async def write() -> list[MemoryRecord]:
            return await asyncio.gather(*(ann.add(f"number {number}") for number in range(32)))

        written = run_sync(write)
        assert len({record.id for record in written}) == 32
        assert sorted(texts(everything(ann))) == sorted(f"number {number}" for number in range(32))

    def test_one_refused_write_does_not_hurt_the_others(self, ann: BoundMemory) -> None:
        async def write() -> list[MemoryRecord | BaseException]:
            drafts = [Draft(f"number {n}", id=f"id {n // 2}") for n in range(32)]
            return await asyncio.gather(*(ann.add(draft) for draft in drafts), return_exceptions=True)

        results = run_sync(write)
        assert sum(isinstance(result, DuplicateIdError) for result in results) == 16
        assert {record.id for record in everything(ann)} == {f"id {n}" for n in range(16)}

    def test_an_update_changes_what_it_names_and_nothing_else(self, ann: BoundMemory, clock: Ticks) -> None:
        (before,) = add(ann, Draft("tea", author="Ann", tags=("drink",), emotion="joy", data={"a": 1}))
        clock.advance(hours=1)
        after = run_sync(ann.update, before.id, Patch(importance=1.0, emotion=None))
        assert after == replace(before, importance=1.0, emotion=None, updated_at=clock.now, version=2)
        assert run_sync(ann.get, before.id) == after

    def test_every_field_of_a_patch_is_applied(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "tea")
        draft = full_draft(clock.now)
        given = {field.name for field in fields(Draft)} & {field.name for field in fields(Patch)}
        patch = Patch(state="archived", left=True, **{name: getattr(draft, name) for name in given})
        run_sync(ann.update, record.id, patch)
        after = run_sync(ann.get, record.id)
        assert after is not None
        for field in fields(patch):
            assert getattr(after, field.name) == getattr(patch, field.name), field.name
        assert (after.rev, after.version) == (2, 2)

    def test_only_a_new_text_makes_a_new_revision(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "tea")
        clock.advance(seconds=1)
        assert run_sync(ann.update, record.id, Patch(text="tea")) == record  # version included
        assert run_sync(ann.update, record.id, Patch(tags=["hot"])).rev == 1
        assert run_sync(ann.update, record.id, Patch(text="coffee")).rev == 2

    def test_a_new_kind_brings_its_tier(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("tea", kind="note"))
        assert run_sync(ann.update, record.id, Patch(kind="fact")).tier == "high"
        assert run_sync(ann.update, record.id, Patch(tier="raw")).tier == "raw"
        assert run_sync(ann.update, record.id, Patch(kind="summary")).tier == "summary"
        assert run_sync(ann.update, record.id, Patch(kind="fact", tier="raw")).tier == "raw"

    def test_an_update_of_the_version_that_was_read_is_written(self, ann: BoundMemory) -> None:
        record = run_sync(ann.add, "tea")
        changed = run_sync(ann.update, record.id, Patch(text="coffee"), expected_version=record.version)
        assert (changed.text, changed.version) == ("coffee", record.version + 1)

    def test_an_update_of_another_version_is_a_conflict_and_changes_nothing(self, ann: BoundMemory) -> None:
        record = run_sync(ann.add, "tea")
        changed = run_sync(ann.update, record.id, Patch(text="coffee"))
        for patch in (Patch(text="water"), Patch(tags=["cold"])):
            with pytest.raises(ConflictError, match="version 2 now, not 1"):
                run_sync(ann.update, record.id, patch, expected_version=record.version)
        assert run_sync(ann.get, record.id) == changed

    def test_concurrent_updates_with_expected_versions_lose_nothing(self, ann: BoundMemory) -> None:
        record = run_sync(ann.add, Draft("a counter", data={"count": 0}))

        async def count() -> None:
            while True:
                read = await ann.get(record.id)
                assert read is not None
                data = {"count": cast("int", read.data["count"]) + 1}
                with suppress(ConflictError):
                    await ann.update(record.id, Patch(data=data), expected_version=read.version)
                    return

        async def count_together() -> None:
            await asyncio.gather(*(count() for _ in range(COUNTERS)))

        run_sync(count_together)
        counted = run_sync(ann.get, record.id)
        assert counted is not None
        assert (counted.data, counted.version) == ({"count": COUNTERS}, COUNTERS + 1)

    def test_a_refused_update_changes_nothing(self, ann: BoundMemory) -> None:
        (record,) = add(ann, "tea")
        with pytest.raises(InvalidInputError, match="confidence"):
            run_sync(ann.update, record.id, Patch(text="coffee", confidence=7.0))
        assert run_sync(ann.get, record.id) == record

    def test_an_unknown_id_is_an_error_for_writes_and_none_for_reads(self, ann: BoundMemory) -> None:
        for known in (False, True):
            assert run_sync(ann.get, "nobody") is None
            with pytest.raises(RecordNotFoundError, match="nobody"):
                run_sync(ann.update, "nobody", Patch(text="x"))
            with pytest.raises(RecordNotFoundError, match="nobody"):
                run_sync(ann.delete, "nobody")
            if not known:
                add(ann, "now the owner exists")

    def test_a_deleted_record_is_gone_from_every_read(self, ann: BoundMemory) -> None:
        gone, stays = add(ann, "green tea", "black tea")
        run_sync(ann.delete, gone.id)
        assert run_sync(ann.get, gone.id) is None
        assert everything(ann) == [stays]
        assert texts(run_sync(ann.search, "green tea")) == ["black tea"]
        assert run_sync(ann.stats).records == 1
        with pytest.raises(RecordNotFoundError):
            run_sync(ann.delete, gone.id)

    def test_what_is_deleted_is_exactly_what_was_seen_or_nothing(self, ann: BoundMemory) -> None:
        seen = add(ann, "one", "two", "three")
        versions = {record.id: record.version for record in seen}
        changed = run_sync(ann.update, seen[1].id, Patch(text="two and more"))
        later = run_sync(ann.add, "four")
        with pytest.raises(ConflictError):
            run_sync(ann.delete_exactly, versions)
        with pytest.raises(ConflictError):
            run_sync(ann.delete_exactly, {"no such memory": 1, seen[0].id: seen[0].version})
        assert len(everything(ann)) == 4
        run_sync(ann.delete_exactly, {**versions, changed.id: changed.version})
        assert texts(everything(ann)) == [later.text]
        run_sync(ann.delete_exactly, {})
        assert texts(everything(ann)) == [later.text]

    def test_only_the_version_that_was_read_is_deleted_or_superseded(self, ann: BoundMemory) -> None:
        (read,) = add(ann, "tea")
        changed = run_sync(ann.update, read.id, Patch(text="coffee"))
        for call in (
            lambda: run_sync(ann.delete, read.id, expected_version=read.version),
            lambda: run_sync(ann.supersede, read.id, "cocoa", expected_version=read.version),
        ):
            with pytest.raises(ConflictError):
                call()
        assert everything(ann) == [changed]
        new = run_sync(ann.supersede, read.id, "cocoa", expected_version=changed.version)
        assert everything(ann) == [new]
        run_sync(ann.delete, new.id, expected_version=new.version)
        with pytest.raises(RecordNotFoundError):
            run_sync(ann.delete, new.id, expected_version=new.version)

    def test_delete_where_returns_how_many_were_deleted(self, ann: BoundMemory) -> None:
        add(ann, *(Draft(f"number {n}", kind="fact" if n % 3 else "note") for n in range(12)))
        assert run_sync(ann.delete_where, Where(kinds=("fact",))).records == 8
        assert run_sync(ann.delete_where, Where(kinds=("fact",))).records == 0
        assert {record.kind for record in everything(ann)} == {"note"}

    def test_expired_records_are_gone_from_every_operation(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, Draft("the ticket is in the drawer", expires_at=clock.now + timedelta(minutes=1)))
        assert run_sync(ann.get, record.id) == record
        clock.advance(minutes=1)  # from this very moment on
        assert run_sync(ann.get, record.id) is None
        assert everything(ann) == []
        for mode in ("hybrid", "lexical", "substring"):
            assert run_sync(ann.search, "ticket", mode=mode) == []
            assert run_sync(ann.search, "ticket", mode=mode, where=ANY_STATE) == []
        assert run_sync(ann.stats).records == 0
        with pytest.raises(RecordNotFoundError):
            run_sync(ann.update, record.id, Patch(expires_at=None))
        with pytest.raises(RecordNotFoundError):
            run_sync(ann.delete, record.id)
        assert run_sync(ann.delete_where, ANY_STATE).records == 0

    def test_what_has_expired_already_is_refused_and_an_update_ends_a_record_at_once(
        self, ann: BoundMemory, clock: Ticks
    ) -> None:
        (record,) = add(ann, Draft("old ticket", expires_at=clock.now + timedelta(minutes=1)))
        for late in (clock.now, clock.now - timedelta(days=9)):
            gone = Draft("old ticket", expires_at=late)
            with pytest.raises(InvalidInputError, match=r"expires_at .* has passed"):
                run_sync(ann.add, gone)
            for choice in ("merge", "refuse"):
                with pytest.raises(InvalidInputError, match="has passed"):
                    run_sync(ann.add, gone, on_duplicate=choice)
            with pytest.raises(InvalidInputError, match=r"draft 1: expires_at .* has passed"):
                run_sync(ann.add_many, ["tea", gone])
            with pytest.raises(InvalidInputError, match="has passed"):
                run_sync(ann.supersede, record.id, gone)
        assert everything(ann) == [record]
        run_sync(ann.update, record.id, Patch(expires_at=clock.now))
        assert everything(ann) == []

    def test_the_id_of_an_expired_record_is_free(self, ann: BoundMemory, clock: Ticks) -> None:
        add(ann, Draft("old ticket", id="ticket", expires_at=clock.now + timedelta(minutes=1)))
        clock.advance(minutes=2)
        (fresh,) = add(ann, Draft("new ticket", id="ticket"))
        assert everything(ann) == [fresh]
        assert texts(run_sync(ann.search, "ticket")) == ["new ticket"]

    def test_other_states_are_seen_when_asked_for(self, ann: BoundMemory) -> None:
        (record, active) = add(ann, "old tea", "new tea")
        run_sync(ann.update, record.id, Patch(state="archived"))
        archived = Where(states=("archived",))
        assert everything(ann) == [active]
        assert texts(run_sync(ann.list, where=archived).records) == ["old tea"]
        assert run_sync(ann.get, record.id) is not None
        for mode in ("hybrid", "lexical", "substring"):
            assert texts(run_sync(ann.search, "tea", mode=mode)) == ["new tea"]
            assert texts(run_sync(ann.search, "tea", mode=mode, where=archived)) == ["old tea"]
            assert len(run_sync(ann.search, "tea", mode=mode, where=ANY_STATE)) == 2
        run_sync(ann.update, record.id, Patch(state="active"))
        assert len(run_sync(ann.search, "tea")) == 2

    def test_stats_count_what_the_handle_reaches(self, ann: BoundMemory) -> None:
        assert run_sync(ann.stats).records == 0
        early, late = datetime(2000, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
        one, *_ = add(
            ann,
            Draft("a", kind="fact", session="s1", occurred_at=early, importance=0.0),
            Draft("b", session="s1", occurred_at=late, importance=1.0, confidence=0.5),
            Draft("c", session="s2"),
            Draft("d"),
        )
        run_sync(ann.update, one.id, Patch(state="compacted"))
        stats = run_sync(ann.stats)
        assert (stats.records, stats.sessions, stats.oldest, stats.newest) == (4, 2, early, late)
        assert dict(stats.by_kind) == {"fact": 1, "note": 3}
        assert dict(stats.by_tier) == {"high": 1, "raw": 3}
        assert dict(stats.by_state) == {"compacted": 1, "active": 3}
        assert stats.average_importance == pytest.approx(0.5)
        assert stats.average_confidence == pytest.approx(0.875)
        assert run_sync(ann.bind(session="s1").stats).records == 2
        assert dict(run_sync(ann.stats, Where()).by_kind) == {"note": 3}
        assert run_sync(ann.stats, Where(session="s2")).newest == run_sync(ann.stats, Where(keywords=["c"])).newest

    def test_erase_takes_everything_in_reach_and_says_how_much(self, ann: BoundMemory, clock: Ticks) -> None:
        add(
            ann,
            Draft("a", session="s1"),
            Draft("b", session="s2"),
            Draft("expired", session="s3", expires_at=clock.now + timedelta(seconds=1)),
        )
        clock.advance(hours=1)
        receipt = run_sync(ann.erase)
        assert (receipt.records, receipt.sessions, receipt.at, receipt.files_clean) == (3, 3, clock.now, True)
        assert everything(ann) == []
        assert run_sync(ann.stats).records == 0
        assert run_sync(ann.erase).records == 0
        add(ann, "life goes on")
        assert texts(run_sync(ann.search, "life")) == ["life goes on"]

    def test_a_narrower_handle_erases_only_its_part(self, ann: BoundMemory) -> None:
        add(ann, Draft("tea at noon", session="s1"), Draft("tea at nine", session="s2"))
        receipt = run_sync(ann.bind(session="s1").erase)
        assert (receipt.records, receipt.sessions) == (1, 1)
        assert texts(everything(ann)) == ["tea at nine"]
        assert texts(run_sync(ann.search, "tea")) == ["tea at nine"]

    def test_a_closed_memory_says_so_and_closes_twice(self, memory: Memory, ann: BoundMemory) -> None:
        add(ann, "tea")
        run_sync(memory.close)
        run_sync(memory.close)
        with pytest.raises(ClosedError, match="closed"):
            run_sync(ann.search, "tea")
        with pytest.raises(ClosedError, match="closed"):
            run_sync(ann.add, "coffee")
