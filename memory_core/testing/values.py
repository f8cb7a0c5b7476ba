"""Values: each is returned unchanged, or refused with its name."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from memory_core import BoundMemory, DataCondition, Draft, InvalidInputError, Patch, Where, run_sync
from memory_core.testing.base import Contract, Ticks, add, everything, texts

TEXTS = {
    "nul": "before\0after",
    "right to left": "שלום עולם مرحبا",
    "emoji": "👩‍👩‍👧‍👦 went to 🇫🇷 🏳️‍🌈",
    "combining": "e\u0301 \u00e9 o\u0308",
    "bidi": "abc\u202edef\u202c",
    "line ends": "one\r\ntwo\rthree\u2028four\x85five",
    "controls": "".join(map(chr, range(1, 32))) + "end",
    "astral": "\U0001d4af\U0001d452\U0001d4b6 \U00010348 \U0010ffff",
    "sql": "'; DROP TABLE record; --",
    "fts": '"tea" AND (NEAR(a b) OR c*) -d ^e',
    "spaces": "  leading and trailing  ",
    "japanese": "お茶を飲みます。ヴォイス",
}

DATA: dict[str, Any] = {
    "empty": {},
    "nested": {"a": [1, [2, {"b": None}]], "c": {"d": {"e": True}}},
    "numbers": {"int": 2**53 + 1, "huge": 2**80, "float": 0.1, "tiny": 5e-324, "negative": -0.0, "zero": 0},
    "strings": {"": "empty key", "é": "ключ", "q\"u'o\\te": "\0\n\u2028", "lone": "\ud800", "emoji 🍵": "🍵"},
    "order": {"z": 1, "a": 2, "m": 3},
}

TIMES = (
    datetime.min.replace(tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
)


class ValueContract(Contract):
    """Exactness."""

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    def test_any_text_comes_back_and_is_found(self, ann: BoundMemory, text: str) -> None:
        key = text.replace("\0", "")  # the only character allowed in a text and not in a name
        (record,) = add(ann, Draft(text, author=key, session=key, tags=(key,), source_key=key))
        read = run_sync(ann.get, record.id)
        assert read is not None
        assert read == record
        assert read.text == text
        assert read.author == read.session == read.source_key == read.tags[0] == key
        for where in (Where(author=key), Where(session=key), Where(tags_any=(key,)), Where(tags_all=(key,))):
            assert everything(ann) == list(run_sync(ann.list, where=where).records) == [record]
        assert texts(run_sync(ann.search, text, mode="substring")) == [text]
        run_sync(ann.search, text)
        run_sync(ann.delete, record.id)
        assert everything(ann) == []

    def test_a_text_of_a_million_characters(self, ann: BoundMemory) -> None:
        text = ("The quick brown fox jumps over the lazy dog. " * 25_000)[:999_989] + " needle end"
        (record,) = add(ann, text)
        assert run_sync(ann.get, record.id) == record
        assert record.text == text
        assert [hit.record.id for hit in run_sync(ann.search, "needle", mode="lexical")] == [record.id]
        with pytest.raises(InvalidInputError, match="1000001"):
            run_sync(ann.add, text + "x")

    @pytest.mark.parametrize("data", DATA.values(), ids=DATA.keys())
    def test_data_comes_back_exactly(self, ann: BoundMemory, data: dict[str, Any]) -> None:
        (record,) = add(ann, Draft("x", data=data))
        read = run_sync(ann.get, record.id)
        assert read is not None
        assert repr(read.data) == repr(record.data) == repr(data)  # 1, 1.0 and True are equal but not the same

    @pytest.mark.parametrize("after", [{"seen": True}, {"seen": 1.0}, {"seen": [1]}], ids=repr)
    @pytest.mark.parametrize("before", [{"seen": 1}, {"seen": [True]}], ids=repr)
    def test_data_that_only_python_takes_for_equal_is_changed(
        self, ann: BoundMemory, before: dict[str, Any], after: dict[str, Any]
    ) -> None:
        """In Python `1 == 1.0 == True`; in JSON they differ."""
        (record,) = add(ann, Draft("x", data=before, source_key="key"))
        changed = run_sync(ann.update, record.id, Patch(data=after))
        assert repr(changed.data) == repr(everything(ann)[0].data) == repr(after)
        assert run_sync(ann.update, record.id, Patch(data=after)) == changed  # version included
        (again,) = add(ann, Draft("x", data=before, source_key="key"))
        assert repr(again.data) == repr(everything(ann)[0].data) == repr(before)

    def test_data_nested_too_deeply_is_refused(self, ann: BoundMemory) -> None:
        def nested(levels: int) -> dict[str, Any]:
            deep: Any = 0
            for level in range(levels - 1):
                deep = {"in": deep} if level % 2 else [deep]
            return {"deep": deep}

        add(ann, Draft("x", data=nested(200)))
        same = Where(matching=[DataCondition(("deep",), "eq", nested(200)["deep"])])
        assert run_sync(ann.list, where=same).records == tuple(everything(ann))
        assert len(run_sync(ann.search, "x", where=same, mode="lexical")) == 1
        for levels in (201, 900, 100_000):
            with pytest.raises(InvalidInputError, match="data"):
                run_sync(ann.add, Draft("x", data=nested(levels)))

    @pytest.mark.parametrize("moment", TIMES, ids=str)
    def test_times_are_exact_to_the_microsecond(self, ann: BoundMemory, moment: datetime) -> None:
        text = "I met her yesterday, next week I will see her again in three years"
        (record,) = add(ann, Draft(text, occurred_at=moment, valid_from=moment, valid_to=moment))
        read = run_sync(ann.get, record.id)
        assert read is not None
        assert (read.occurred_at, read.valid_from, read.valid_to) == (moment, moment, moment)
        assert read.occurred_at.tzinfo is UTC
        assert len(run_sync(ann.search, "When did I meet her on May 7?")) == 1
        assert run_sync(ann.stats).oldest == moment

    def test_what_happened_keeps_its_offset_and_other_times_are_utc(self, ann: BoundMemory) -> None:
        tokyo = timezone(timedelta(hours=9))
        at = datetime(2024, 1, 1, 8, 0, tzinfo=tokyo)
        (record,) = add(ann, Draft("x", occurred_at=at, valid_from=at, expires_at=at.replace(year=2124)))
        (read,) = everything(ann)
        for each in (record, read):
            assert each.occurred_at.isoformat() == "2024-01-01T08:00:00+09:00"
            assert each.valid_from == at
            others = [each.created_at, each.valid_from, each.expires_at]
            assert {other and other.tzinfo for other in others} == {UTC}

    def test_the_same_moment_elsewhere_is_another_day(self, ann: BoundMemory) -> None:
        at = datetime(2026, 3, 10, 20, 30, tzinfo=timezone(-timedelta(hours=7)))
        (record,) = add(ann, Draft("dentist", occurred_at=at))
        for question, other in (("10 March 2026", "11 March 2026"), ("11 March 2026", "10 March 2026")):
            ((found,), (other_found,)) = (
                run_sync(ann.search, f"dentist {day}", mode="lexical", floor=False) for day in (question, other)
            )
            assert found.score > other_found.score
            record = run_sync(ann.update, record.id, Patch(occurred_at=at.astimezone(UTC)))
            assert record.occurred_at.isoformat() == "2026-03-11T03:30:00+00:00"
            assert everything(ann) == [record]
        assert record.version == 2

    def test_yesterday_in_a_question_is_that_of_the_handle(self, ann: BoundMemory, clock: Ticks) -> None:
        clock.now = datetime(2026, 3, 11, 3, 30, tzinfo=UTC)  # 20:30 on the 10th in Los Angeles
        days = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (9, 10)]
        ninth, tenth = add(ann, *(Draft("We ate soup", occurred_at=day) for day in days))
        ahead: dict[str, float] = {}
        for zone in ("America/Los_Angeles", "UTC"):
            hits = run_sync(ann.bind(zone=zone).search, "What did we eat yesterday?", mode="lexical", floor=False)
            scores = {hit.record.id: hit.score for hit in hits}
            ahead[zone] = scores[ninth.id] - scores[tenth.id]
        assert ahead["America/Los_Angeles"] > 0 > ahead["UTC"]

    def test_a_handle_says_where_a_time_in_utc_was(self, ann: BoundMemory, clock: Ticks) -> None:
        at = datetime(2026, 3, 8, 12, tzinfo=UTC)  # Los Angeles had changed its clocks two hours before
        there = ann.bind(zone="America/Los_Angeles")
        for moment in (at, at - timedelta(days=1)):
            (record,) = add(there, Draft("x", occurred_at=moment))
            changed = run_sync(there.update, record.id, Patch(occurred_at=at + timedelta(hours=1)))
            assert (record.occurred_at, changed.occurred_at) == (moment, at + timedelta(hours=1))
            assert record.occurred_at.isoformat()[-6:] == ("-07:00" if moment == at else "-08:00")
            assert changed.occurred_at.isoformat()[-6:] == "-07:00"
            run_sync(ann.delete, record.id)
        (now,) = add(ann.bind(zone="+05:45"), "y")
        (elsewhere,) = add(there, Draft("z", occurred_at=at.astimezone(timezone(timedelta(hours=1)))))
        assert now.occurred_at == clock.now == now.created_at
        assert [each.occurred_at.isoformat()[-6:] for each in (now, elsewhere)] == ["+05:45", "+01:00"]
        assert {each.id for each in everything(ann)} == {now.id, elsewhere.id}

    def test_data_without_text_is_a_record(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft(data={"cups": 2}))
        assert everything(ann) == [record]
        assert run_sync(ann.search, "cups") == []

    def test_an_update_may_not_empty_a_record(self, ann: BoundMemory) -> None:
        text, data = add(ann, "tea", Draft(data={"cups": 2}))
        with pytest.raises(InvalidInputError, match="nothing to remember"):
            run_sync(ann.update, text.id, Patch(text=""))
        with pytest.raises(InvalidInputError, match="nothing to remember"):
            run_sync(ann.update, data.id, Patch(data={}))
        assert everything(ann) == [text, data]

    def test_a_returned_record_is_a_copy(self, ann: BoundMemory) -> None:
        given: dict[str, Any] = {"list": [1]}
        (record,) = add(ann, Draft("tea", data=given))
        given["list"].append(2)
        cast("Any", record.data)["list"].append(3)
        hits = run_sync(ann.search, "tea")
        cast("Any", hits[0].record.data)["list"].append(4)
        cast("Any", everything(ann)[0].data)["list"].append(5)
        read = run_sync(ann.get, record.id)
        assert read is not None
        assert read.data == {"list": [1]}
