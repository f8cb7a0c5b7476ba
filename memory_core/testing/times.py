"""Time: validity, superseding, and the earlier texts of a record."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    DuplicateIdError,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    SupersededError,
    Where,
    run_sync,
)
from memory_core.models import State
from memory_core.testing.base import Contract, Ticks, add, everything, texts


class TimeContract(Contract):
    """Validity, superseding and history."""

    def test_as_of_finds_what_was_true_at_that_moment(self, ann: BoundMemory, clock: Ticks) -> None:
        start = clock.now
        day = timedelta(days=1)
        add(
            ann,
            Draft("always so", valid_from=start - 9 * day, occurred_at=start + 9 * day),
            Draft("until tuesday", occurred_at=start, valid_to=start + day),
            Draft("from tuesday", occurred_at=start, valid_from=start + day),
            Draft("said on wednesday", occurred_at=start + 2 * day),
        )
        expected = {
            start - day: {"always so"},
            start: {"always so", "until tuesday"},
            start + day: {"always so", "from tuesday"},
            start + 2 * day: {"always so", "from tuesday", "said on wednesday"},
        }
        for moment, said in expected.items():
            where = Where(as_of=moment)
            assert set(texts(run_sync(ann.list, where=where).records)) == said
            assert set(texts(run_sync(ann.search, "always until tuesday said", where=where, mode="lexical"))) == said
            assert set(texts(run_sync(ann.search, "s", where=where, mode="substring"))) == {
                text for text in said if "s" in text
            }
        assert len(everything(ann)) == 4

    def test_a_superseded_record_is_hidden_and_kept(self, ann: BoundMemory, clock: Ticks) -> None:
        (old,) = add(ann, Draft("Ann lives in Oslo", kind="fact", author="Ann", tags=("home",), importance=0.9))
        moved = clock.advance(days=10)
        new = run_sync(ann.supersede, old.id, "Ann lives in Bergen")
        assert (new.kind, new.tier, new.author, new.tags, new.importance) == ("fact", "high", "ann", ("home",), 0.9)
        assert (new.valid_from, new.valid_to, new.links) == (moved, None, (Link("supersedes", old.id),))
        assert run_sync(ann.get, new.id) == new
        assert everything(ann) == [new]
        for mode in ("hybrid", "lexical", "substring"):
            assert texts(run_sync(ann.search, "Ann lives", mode=mode)) == ["Ann lives in Bergen"]
            before = Where(as_of=moved - timedelta(microseconds=1))
            assert texts(run_sync(ann.search, "Ann lives", mode=mode, where=before)) == ["Ann lives in Oslo"]
            after = run_sync(ann.search, "Ann lives", mode=mode, where=Where(as_of=moved))
            assert texts(after) == ["Ann lives in Bergen"]
        retired = replace(old, state="archived", valid_to=moved, former_state="active", updated_at=moved, version=2)
        assert run_sync(ann.get, old.id) == retired
        assert run_sync(ann.list, where=Where(links=[Link("supersedes", old.id)])).records == (new,)

    def test_the_new_record_says_since_when(self, ann: BoundMemory, clock: Ticks) -> None:
        (old,) = add(ann, Draft("the office is on the second floor", valid_to=clock.now + timedelta(days=30)))
        moved = clock.advance(days=10) - timedelta(days=3)
        draft = Draft("the office is on the fifth floor", kind="fact", valid_from=moved)
        new = run_sync(ann.supersede, old.id, draft)
        assert (new.kind, new.valid_from) == ("fact", moved)
        read = run_sync(ann.get, old.id)
        assert read is not None
        assert read.valid_to == moved

    def test_two_records_cannot_take_the_place_of_one(self, ann: BoundMemory) -> None:
        (old,) = add(ann, "one")
        new = run_sync(ann.supersede, old.id, "two")
        with pytest.raises(SupersededError, match=old.id):
            run_sync(ann.supersede, old.id, "another two")
        assert everything(ann) == [new]
        run_sync(ann.supersede, new.id, "three")
        assert texts(everything(ann)) == ["three"]

    def test_only_one_of_concurrent_supersedes_succeeds(self, ann: BoundMemory) -> None:
        (old,) = add(ann, "one")

        async def race() -> list[MemoryRecord | BaseException]:
            return await asyncio.gather(*(ann.supersede(old.id, f"two {n}") for n in range(4)), return_exceptions=True)

        results = run_sync(race)
        assert sum(isinstance(result, SupersededError) for result in results) == 3
        assert everything(ann) == [result for result in results if isinstance(result, MemoryRecord)]

    def test_a_batch_may_contain_a_record_and_its_successor(self, ann: BoundMemory, clock: Ticks) -> None:
        old = Draft("Oslo", id="old", occurred_at=clock.now - timedelta(days=9))
        new = Draft("Bergen", links=[Link("supersedes", "old")], valid_from=clock.now)
        for batch in ([old, new], [replace(new, id="new"), old]):
            run_sync(ann.add_many, batch)
            assert texts(everything(ann)) == ["Bergen"]
            read = run_sync(ann.get, "old")
            assert read is not None
            assert (read.state, read.valid_to) == ("archived", clock.now)
            with pytest.raises(SupersededError, match="old"):
                run_sync(ann.add_many, [new, replace(new, text="Tromsø")])
            assert texts(everything(ann)) == ["Bergen"]
            run_sync(ann.erase)

    def test_a_put_supersedes_like_an_add(self, ann: BoundMemory, clock: Ticks) -> None:
        (old,) = add(ann, "Oslo")
        new = Draft("Bergen", source_key="home", links=[Link("supersedes", old.id)], valid_from=clock.advance(days=1))
        for draft in (new, replace(new, text="Bergen, by the fjord")):  # the second put replaces its own record
            run_sync(ann.put_many, [draft])
            assert texts(everything(ann)) == [draft.text]
            read = run_sync(ann.get, old.id)
            assert read is not None
            assert (read.state, read.valid_to) == ("archived", new.valid_from)
        with pytest.raises(SupersededError, match=old.id):
            run_sync(ann.put_many, [replace(new, source_key="another")])
        assert texts(everything(ann)) == ["Bergen, by the fjord"]

    @pytest.mark.parametrize("ids", ["a", "ab", "abc"])
    def test_records_that_supersede_each_other_in_a_circle_are_refused(self, ann: BoundMemory, ids: str) -> None:
        following = dict(zip(ids, ids[1:] + ids[:1], strict=True))
        drafts = [Draft(one, id=one, source_key=one, links=[Link("supersedes", following[one])]) for one in ids]
        with pytest.raises(InvalidInputError, match="supersedes itself"):
            run_sync(ann.add_many, drafts)
        with pytest.raises(InvalidInputError, match="supersedes itself"):
            run_sync(ann.put_many, drafts)
        if len(drafts) == 1:
            with pytest.raises(InvalidInputError, match="supersedes itself"):
                run_sync(ann.add, drafts[0])
        assert everything(ann) == []

    def test_what_supersedes_a_record_is_new(self, ann: BoundMemory) -> None:
        """Adding a known source key updates its record; a call that is repeated finds what it stored."""
        old, other = add(ann, Draft("Oslo", source_key="home"), Draft("Rome", source_key="work"))
        for key in ("home", "work"):
            with pytest.raises(DuplicateIdError, match=key):
                run_sync(ann.supersede, old.id, Draft("Bergen", source_key=key))
        assert everything(ann) == [old, other]
        new = run_sync(ann.supersede, old.id, Draft("Bergen", source_key="moved"))
        assert run_sync(ann.supersede, old.id, Draft("Bergen", source_key="moved")) == new
        assert everything(ann) == [other, new]

    def test_a_put_that_supersedes_itself_stays_active(self, ann: BoundMemory) -> None:
        (old,) = add(ann, Draft("Oslo", source_key="home"))
        run_sync(ann.put_many, [Draft("Bergen", source_key="home", links=[Link("supersedes", old.id)])])
        assert texts(everything(ann)) == ["Bergen"]

    def test_superseding_reaches_no_further_than_the_handle(self, ann: BoundMemory, memory: Memory) -> None:
        (old,) = add(ann.bind(session="monday"), "one")
        bob = memory.bind(app="contract", user="bob")
        for stranger in (bob, ann.bind(session="tuesday")):
            with pytest.raises(RecordNotFoundError, match=old.id):
                run_sync(stranger.supersede, old.id, "two")
            with pytest.raises(RecordNotFoundError, match=old.id):
                run_sync(stranger.history, old.id)
            run_sync(stranger.add, Draft("claims to", links=[Link("supersedes", old.id)]))
        assert run_sync(ann.get, old.id) == old

    def test_the_history_has_every_text_and_its_period(self, ann: BoundMemory, clock: Ticks) -> None:
        moments = [clock.now]
        (first,) = add(ann, "Oslo")
        moments.append(clock.advance(days=1))
        run_sync(ann.update, first.id, Patch(text="Oslo, by the fjord"))
        clock.advance(days=1)
        run_sync(ann.update, first.id, Patch(tags=["home"]))  # says nothing new
        moments.append(clock.advance(days=1))
        second = run_sync(ann.supersede, first.id, "Bergen")
        moments.append(clock.advance(days=1))
        third = run_sync(ann.supersede, second.id, "Tromsø")
        moments.append(clock.advance(days=1))
        run_sync(ann.update, third.id, Patch(text="Tromsø, in the north"))
        for record in (first, second, third):
            history = run_sync(ann.history, record.id)
            assert [(version.id, version.rev, version.text) for version in history] == [
                (first.id, 1, "Oslo"),
                (first.id, 2, "Oslo, by the fjord"),
                (second.id, 1, "Bergen"),
                (third.id, 1, "Tromsø"),
                (third.id, 2, "Tromsø, in the north"),
            ]
            assert [version.since for version in history] == moments
            assert [version.until for version in history] == [*moments[1:], None]

    def test_the_history_of_a_source_key_is_kept_too(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, Draft("half a", source_key="m"))
        clock.advance(seconds=1)
        add(ann, Draft("half a sentence", source_key="m"))
        clock.advance(seconds=1)
        run_sync(ann.put_many, [Draft("another sentence", source_key="m")])
        history = run_sync(ann.history, record.id)
        assert [version.text for version in history] == ["half a", "half a sentence", "another sentence"]

    def test_the_latest_texts_are_kept_and_older_ones_dropped(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "draft 1")
        for n in range(2, 31):
            clock.advance(seconds=1)
            run_sync(ann.update, record.id, Patch(text=f"draft {n}"))
        history = run_sync(ann.history, record.id)
        assert [version.rev for version in history] == list(range(10, 31))

    def test_a_clock_that_is_set_back_leaves_the_history_in_order(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "one")
        clock.advance(days=-2)
        run_sync(ann.update, record.id, Patch(text="two"))
        clock.advance(hours=1)
        new = run_sync(ann.supersede, record.id, "three")
        history = run_sync(ann.history, new.id)
        assert [version.text for version in history] == ["one", "two", "three"]
        assert [version.until for version in history] == [*(version.since for version in history[1:]), None]
        assert all(version.since <= (version.until or version.since) for version in history)

    @pytest.mark.parametrize("days", [None, 1, 30])
    @pytest.mark.parametrize("state", ["active", "compacted"])
    def test_a_replacement_that_is_taken_back_leaves_the_old_record_as_it_was(
        self, ann: BoundMemory, clock: Ticks, days: int | None, state: State
    ) -> None:
        until = None if days is None else clock.now + timedelta(days=days)
        (old,) = add(ann, Draft("the office is on the second floor", valid_to=until))
        if state != "active":
            old = run_sync(ann.update, old.id, Patch(state=state))
        clock.advance(days=2)
        new = run_sync(ann.supersede, old.id, "the office is on the third floor")
        clock.advance(hours=1)
        run_sync(ann.update, new.id, Patch(state="archived", links=()), expected_version=new.version)
        read = run_sync(ann.get, old.id)
        assert read == replace(old, updated_at=clock.now, version=old.version + 2)

    def test_a_replacement_that_has_changed_meanwhile_is_not_taken_back(self, ann: BoundMemory) -> None:
        (old,) = add(ann, "the office is on the second floor")
        new = run_sync(ann.supersede, old.id, "the office is on the third floor")
        retired = run_sync(ann.get, old.id)
        run_sync(ann.update, new.id, Patch(text="the office is on the fourth floor"))
        with pytest.raises(ConflictError):
            run_sync(ann.update, new.id, Patch(state="archived", links=()), expected_version=new.version)
        assert run_sync(ann.get, old.id) == retired

    def test_what_somebody_has_decided_since_stays_when_a_replacement_is_taken_back(self, ann: BoundMemory) -> None:
        (old,) = add(ann, "the office is on the second floor")
        new = run_sync(ann.supersede, old.id, "the office is on the third floor")
        run_sync(ann.update, old.id, Patch(state="active", valid_to=None))
        archived = run_sync(ann.update, old.id, Patch(state="archived"))
        run_sync(ann.update, new.id, Patch(links=()))
        assert run_sync(ann.get, old.id) == archived

    def test_a_deleted_record_is_in_no_history(self, ann: BoundMemory) -> None:
        (first,) = add(ann, Draft("a secret", source_key="s"))
        run_sync(ann.update, first.id, Patch(text="no secret"))
        second = run_sync(ann.supersede, first.id, "nothing")
        run_sync(ann.delete_where, Where(ids=[first.id], states=("active", "archived")), forget=False)
        assert [version.text for version in run_sync(ann.history, second.id)] == ["nothing"]
        read = run_sync(ann.get, second.id)
        assert read is not None
        assert read.links == ()
        (again,) = add(ann, Draft("fresh", source_key="s", id=first.id))
        assert [version.text for version in run_sync(ann.history, again.id)] == ["fresh"]
        with pytest.raises(RecordNotFoundError, match="nobody"):
            run_sync(ann.history, "nobody")

    def test_links_come_back_and_can_be_searched_for(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        links = (Link("read", one.id, 1, "monday", "a:b"), Link("confirmed_by", two.id), Link("follows", "a:b"))
        (summary,) = add(ann, Draft("both", links=[*links, links[0]]))
        assert summary.links == links
        read = run_sync(ann.get, summary.id)
        assert read == summary
        assert read is not None
        assert (read.links[0].rev, read.links[0].session, read.links[0].collection) == (1, "monday", "a:b")
        for some in (links[:1], links[1:], links):
            assert run_sync(ann.list, where=Where(links=some)).records == (summary,)
        assert run_sync(ann.list, where=Where(links=[Link("confirmed_by", one.id)])).records == ()
        changed = run_sync(ann.update, summary.id, Patch(links=links[1:]))
        assert changed.links == links[1:]
        run_sync(ann.delete, two.id)
        read = run_sync(ann.get, summary.id)
        assert read is not None
        assert (read.links, read.version) == (links[2:], changed.version + 1)

    def test_an_invalid_link_is_refused(self, ann: BoundMemory) -> None:
        wrong: list[Any] = [
            "supersedes",
            [("supersedes", "x")],
            [Link(cast("Any", "loves"), "x")],
            [Link("follows", "")],
        ]
        for links in wrong:
            with pytest.raises(InvalidInputError, match="link"):
                run_sync(ann.add, Draft("x", links=links))
        with pytest.raises(InvalidInputError, match="as_of"):
            run_sync(ann.list, where=Where(as_of=cast("Any", "today")))
        (record,) = add(ann, "x")
        with pytest.raises(InvalidInputError, match="Draft"):
            run_sync(ann.supersede, record.id, cast("Any", {"text": "y"}))
