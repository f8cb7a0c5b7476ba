"""Listing: filters, orders and pages."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pytest

from memory_core import BoundMemory, Draft, FieldCondition, InvalidInputError, MemoryRecord, Patch, Where, run_sync
from memory_core.testing.base import Contract, Ticks, add, everything, texts
from memory_core.values.limits import MAX_LISTED
from memory_core.where.conditions import NAME_FIELDS, NUMBER_FIELDS, TIME_FIELDS
from memory_core.where.meaning import satisfies

DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)

ONE: Final = Draft(
    "one",
    role="user",
    kind="fact",
    author="Ann",
    agent="planner",
    session="s1",
    collection="c/1",
    emotion="joy",
    tags=("red", "blue"),
    importance=0.9,
    confidence=0.1,
    occurred_at=DAY,
    data={"a": 1, "s": "x", "é": "ü", 'q"': None, "big": 2**70, "b": True, "f": 1.5, "n": "x\0y", "list": [1]},
)
TWO: Final = Draft(
    "two",
    role="assistant",
    kind="message",
    author="ann",
    agent="planner ",
    session="s1 ",
    collection="c",
    emotion="Joy",
    tags=("blue", "green"),
    importance=0.2,
    confidence=1.0,
    occurred_at=DAY + timedelta(microseconds=1),
    data={"a": "1", "s": 1, "b": 1, "f": 1, "n": "x"},
)

FILTERS: Final[dict[str, tuple[Where, str]]] = {
    "nothing": (Where(), "one two"),
    "kinds": (Where(kinds=("fact", "other")), "one"),
    "roles": (Where(roles=["user", "tool"]), "one"),
    "several roles": (Where(roles=["user", "assistant"]), "one two"),
    "tiers": (Where(tiers=["raw"]), "two"),
    "tags any": (Where(tags_any=("red", "green")), "one two"),
    "tags any one": (Where(tags_any=("red",)), "one"),
    "tags all": (Where(tags_all=("blue", "green")), "two"),
    "tags all none": (Where(tags_all=("red", "green")), ""),
    "author": (Where(author="Ann"), "one"),
    "agent": (Where(agent="planner"), "one"),
    "session": (Where(session="s1 "), "two"),
    "collection": (Where(collection="c"), "two"),
    "emotion": (Where(emotion="joy"), "one"),
    "min importance": (Where(min_importance=0.9), "one"),
    "min confidence": (Where(min_confidence=0.5), "two"),
    "since": (Where(since=DAY + timedelta(microseconds=1)), "two"),
    "until": (Where(until=DAY + timedelta(microseconds=1)), "one"),
    "window": (Where(since=DAY, until=DAY), ""),
    "ids": (Where(ids=("two", "three")), "two"),
    "no ids": (Where(ids=()), ""),
    "both": (Where(kinds=("fact",), tags_all=("blue",)), "one"),
    "contradiction": (Where(kinds=("fact",), tags_all=("green",)), ""),
    "data number": (Where(data={"a": 1}), "one"),
    "data text of a number": (Where(data={"a": "1"}), "two"),
    "data text": (Where(data={"s": "x"}), "one"),
    "data not ascii": (Where(data={"é": "ü"}), "one"),
    "data null": (Where(data={'q"': None}), "one"),
    "data missing is not null": (Where(data={"missing": None}), ""),
    "data huge": (Where(data={"big": 2**70}), "one"),
    "data nearly huge": (Where(data={"big": 2**70 + 1}), ""),
    "data true": (Where(data={"b": True}), "one"),
    "data one is not true": (Where(data={"b": 1}), "two"),
    "data float": (Where(data={"f": 1.5}), "one"),
    "data equal number": (Where(data={"f": 1.0}), "two"),
    "data nul": (Where(data={"n": "x\0y"}), "one"),
    "data before nul": (Where(data={"n": "x"}), "two"),
    "data list": (Where(data={"list": 1}), ""),
}

CURSORS: Final = {
    "empty": "",
    "words": "next please",
    "not base64": "%%%",
    "number": base64.b64encode(b"5").decode(),
    "object": base64.b64encode(b'{"newest":1,"b":2,"c":3}').decode(),
    "short": base64.b64encode(b'["newest",1]').decode(),
    "texts": base64.b64encode(b'["newest","1","2"]').decode(),
    "nan": base64.b64encode(b'["newest",NaN,1]').decode(),
    "infinite": base64.b64encode(b'["newest",1e999,1]').decode(),
    "huge": base64.b64encode(json.dumps(["newest", 10**40, 10**40]).encode()).decode(),
    "deep": base64.b64encode(b"[" * 100_000).decode(),
    "not utf-8": base64.b64encode(b"\xff\xfe").decode(),
    "half a character": "\ud800",
    "sql": base64.b64encode(b'["newest","0) OR 1=1 --",1]').decode(),
}


class ListingContract(Contract):
    """Reads without ranking."""

    @pytest.mark.parametrize(("where", "found"), FILTERS.values(), ids=FILTERS.keys())
    def test_every_condition_is_the_same_for_every_operation(self, ann: BoundMemory, where: Where, found: str) -> None:
        run_sync(ann.add_many, [Draft(**_fields(ONE), id="one"), Draft(**_fields(TWO), id="two")])
        expected = found.split()
        assert texts(run_sync(ann.list, where=where, order="oldest").records) == expected
        for mode in ("hybrid", "lexical"):
            assert sorted(texts(run_sync(ann.search, "one two", where=where, mode=mode))) == sorted(expected)
        assert texts(run_sync(ann.search, "o", where=where, mode="substring")) == expected[::-1]
        assert run_sync(ann.delete_where, where).records == len(expected)
        assert texts(everything(ann)) == [text for text in ("one", "two") if text not in expected]

    def test_every_field_compares_as_matching_says(self, ann: BoundMemory, clock: Ticks) -> None:
        started = clock.now
        run_sync(ann.add_many, [Draft(**_fields(ONE), id="one"), Draft(**_fields(TWO), id="two")])
        clock.advance(seconds=1)
        run_sync(ann.update, "one", Patch(text="one more", valid_to=clock.now))
        run_sync(ann.list, where=Where(ids=["two"]), touch=True)
        records = everything(ann)
        assert len(records) == 2
        for field in (*TIME_FIELDS, *NUMBER_FIELDS, *NAME_FIELDS):
            present = [getattr(record, field) for record in records]
            asked = [(op, value) for value in {*present, None} for op in ("eq", "ne")]
            asked += [("in", values) for values in ([], [present[0], None], present[1:])]
            if field not in NAME_FIELDS:
                moments_or_numbers = [clock.now if value is None else value for value in present]
                asked += [(op, value) for value in moments_or_numbers for op in ("gt", "gte", "lt", "lte")]
            for op, value in asked:
                where = Where(matching=[FieldCondition(field, cast("Any", op), value)])
                expected = {record.id for record in records if satisfies(record, where, clock.now)}
                assert {record.id for record in run_sync(ann.list, where=where).records} == expected, where
        read = Where(matching=[FieldCondition("access_count", "gte", 1), FieldCondition("accessed_at", "gt", started)])
        assert texts(run_sync(ann.search, "one two", where=read, mode="lexical")) == ["two"]
        run_sync(ann.list, where=Where(ids=["one"]), touch=True)
        assert len(run_sync(ann.search, "one two", where=read, mode="lexical")) == 2

    def test_thousands_of_ids_and_tags_are_a_condition_too(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("tea", tags=[f"tag {n}" for n in range(256)]))
        many = [f"id {n}" for n in range(MAX_LISTED - 1)]
        assert run_sync(ann.list, where=Where(ids=[*many, record.id])).records == (record,)
        assert run_sync(ann.list, where=Where(ids=many)).records == ()
        assert run_sync(ann.list, where=Where(tags_all=record.tags, kinds=["note", *many])).records == (record,)
        assert run_sync(ann.list, where=Where(tags_all=many)).records == ()
        assert len(run_sync(ann.search, "tea", where=Where(tags_any=[*many, "tag 7"]))) == 1

    def test_orders(self, ann: BoundMemory, clock: Ticks) -> None:
        for day, (text, importance) in enumerate([("a", 0.1), ("b", 0.9), ("c", 0.5), ("d", 0.9)]):
            add(ann, Draft(text, importance=importance, occurred_at=DAY + timedelta(days=day % 3)))
        assert texts(run_sync(ann.list).records) == ["c", "b", "d", "a"]  # d arrived after a, of the same day
        assert texts(run_sync(ann.list, order="oldest").records) == ["a", "d", "b", "c"]
        assert texts(run_sync(ann.list, order="importance").records) == ["d", "b", "c", "a"]
        for text in "ca":
            clock.advance(seconds=1)
            run_sync(ann.list, where=Where(ids=_ids(ann, text)), touch=True)
        assert texts(run_sync(ann.list, order="accessed").records) == ["a", "c", "d", "b"]

    def test_a_touch_counts_the_read_and_changes_nothing_else(self, ann: BoundMemory, clock: Ticks) -> None:
        one, two = add(ann, "one", "two")
        clock.advance(hours=1)
        page = run_sync(ann.list, limit=1, touch=True)
        after = run_sync(ann.get, two.id)
        assert after is not None
        assert page.records == (after,)
        assert (after.access_count, after.accessed_at, after.updated_at) == (1, clock.now, two.updated_at)
        assert run_sync(ann.get, one.id) == one

    def test_the_profile_has_what_is_pinned(self, ann: BoundMemory) -> None:
        add(ann, "one", Draft("two", tags=("pinned",)), Draft("three", tags=("pinned-by-model",), author="Tom"))
        assert texts(run_sync(ann.profile).records) == ["two"]

    @pytest.mark.parametrize("order", ["newest", "oldest", "importance", "accessed"])
    def test_pages_contain_everything_once_despite_concurrent_writes(self, ann: BoundMemory, order: Any) -> None:
        moments = [DAY + timedelta(days=n % 7) for n in range(50)]  # many ties
        run_sync(
            ann.add_many,
            [Draft(f"n{n}", occurred_at=moment, importance=n % 5 / 4) for n, moment in enumerate(moments)],
        )
        seen: list[MemoryRecord] = []
        cursor: str | None = None
        for _ in range(100):
            page = run_sync(ann.list, order=order, limit=7, cursor=cursor, where=Where(kinds=("note",)))
            assert len(page.records) <= 7
            seen += page.records
            add(ann, Draft("late", occurred_at=DAY + timedelta(days=3), importance=0.5))
            run_sync(ann.delete, run_sync(ann.list, limit=1, where=Where(ids=_ids(ann, "late"))).records[0].id)
            run_sync(ann.update, seen[0].id, Patch(tags=[str(len(seen))]))
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(texts(seen)) == sorted(f"n{n}" for n in range(50))

    def test_the_last_page_has_no_cursor(self, ann: BoundMemory) -> None:
        add(ann, "a", "b")
        assert run_sync(ann.list, limit=2).cursor is None
        page = run_sync(ann.list, limit=1)
        assert page.cursor is not None
        assert run_sync(ann.list, limit=1, cursor=page.cursor).cursor is None

    @pytest.mark.parametrize("cursor", CURSORS.values(), ids=CURSORS.keys())
    def test_a_made_up_cursor_is_refused(self, ann: BoundMemory, cursor: str) -> None:
        for known in (False, True):
            with pytest.raises(InvalidInputError, match="cursor"):
                run_sync(ann.list, cursor=cursor)
            if not known:
                add(ann, "tea")

    def test_a_cursor_belongs_to_its_order(self, ann: BoundMemory) -> None:
        add(ann, "a", "b")
        cursor = run_sync(ann.list, limit=1).cursor
        with pytest.raises(InvalidInputError, match="cursor"):
            run_sync(ann.list, limit=1, order="oldest", cursor=cursor)
        with pytest.raises(InvalidInputError, match="cursor"):
            run_sync(ann.list, cursor=cast("Any", 5))


def _fields(draft: Draft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in Draft.__slots__ if name not in ("id", "_")}


def _ids(handle: BoundMemory, text: str) -> tuple[str, ...]:
    return tuple(record.id for record in everything(handle) if record.text == text)
