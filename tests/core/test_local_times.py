"""A moment keeps the offset of its place, on every day of the calendar and in every zone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core import Draft, InvalidInputError, Memory, Patch, Scope
from memory_core.adapting import complete
from memory_core.local_time import local_day, local_time
from memory_core.records.draft_to_record import patched
from memory_core.storage.sqlite.codec import to_record, to_row
from memory_core.values.checks import check_local_time
from memory_core.values.times import in_zone, offset_of, shifted
from memory_core.values.zones import MACHINE_ZONE, check_zone, machine_zone_name

SCOPE = Scope("demo", "ann")
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
NAMED = ["America/Los_Angeles", "Europe/London", "Asia/Kathmandu", "Pacific/Chatham", "Africa/Monrovia", "UTC"]
ZONES = st.sampled_from([*map(ZoneInfo, NAMED), UTC]) | st.integers(-1439, 1439).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
ENDS = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
PLAIN = st.integers(1975, 2036).flatmap(
    lambda year: st.timedeltas(timedelta(0), timedelta(days=365)).map(lambda by: datetime(year, 1, 1, tzinfo=UTC) + by)
)


def _is_storable(moment: datetime) -> bool:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return False
    return True


MOMENTS = st.datetimes(timezones=ZONES).filter(_is_storable) | st.sampled_from(ENDS)


@given(MOMENTS, ZONES)
def test_a_stored_moment_has_the_clock_time_of_its_place(moment: datetime, zone: tzinfo) -> None:
    record = complete(Draft("x", occurred_at=moment), SCOPE, NOW.astimezone(zone))
    read = to_record(to_row(record), SCOPE.app, SCOPE.user or "")
    assert read.occurred_at == moment
    assert record.occurred_at.isoformat() == read.occurred_at.isoformat()
    if moment.tzname() != "UTC":  # seconds of old offsets are dropped
        assert abs((local_time(read).replace(tzinfo=None) - moment.replace(tzinfo=None)).total_seconds()) < 60
        assert read.occurred_at.utcoffset() == timedelta(minutes=offset_of(moment))
    assert local_day(read) == read.occurred_at.date()
    assert read.created_at.tzinfo is UTC


@given(PLAIN, ZONES)
def test_a_moment_in_utc_gets_the_zone_of_the_handle(at: datetime, zone: tzinfo) -> None:
    found = check_local_time("occurred_at", at, zone)
    assert found == at
    assert offset_of(found) == offset_of(at.astimezone(zone))


@given(MOMENTS, st.timedeltas(timedelta(days=-10), timedelta(days=10)))
def test_a_shifted_moment_can_be_stored_and_keeps_its_zone(moment: datetime, by: timedelta) -> None:
    later = shifted(moment, by)
    assert _is_storable(later)
    in_utc = moment.astimezone(UTC)
    inside = in_utc - datetime.min.replace(tzinfo=UTC) >= -by and datetime.max.replace(tzinfo=UTC) - in_utc >= by
    if inside:
        assert later - in_utc == by
    assert later.utcoffset() is not None


def test_a_patch_that_changes_only_the_place_is_a_change() -> None:
    record = complete(Draft("x", occurred_at=NOW), SCOPE, NOW)
    tokyo = NOW.astimezone(ZoneInfo("Asia/Tokyo"))
    moved = patched(record, Patch(occurred_at=tokyo), NOW)
    assert (moved.version, moved.occurred_at.isoformat()) == (2, "2026-03-10T21:00:00+09:00")
    assert patched(moved, Patch(occurred_at=moved.occurred_at), NOW) is moved


@pytest.mark.parametrize("wrong", ["Mars/Olympus", "", "Europe", "../etc/passwd", "+9", "+99:00", "\0", 9, None])
def test_what_names_no_zone_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInputError, match="zone must be"):
        check_zone(wrong)


def test_a_memory_refuses_a_zone_at_once() -> None:
    with pytest.raises(InvalidInputError, match="Mars"):
        Memory(":memory:", zone="Mars/Olympus")


async def test_a_narrower_handle_keeps_the_zone() -> None:
    async with Memory(":memory:", embedder=None, clock=lambda: NOW, zone="Asia/Tokyo") as memory:
        ann = memory.bind(user="ann")
        for handle, hour in (
            (ann, 21),
            (ann.bind(session="s"), 21),
            (ann.bind(zone="Europe/Oslo"), 13),
            (ann.bind(zone="Europe/Oslo").bind(session="s"), 13),
            (ann.bind(zone="Europe/Oslo").sharing({"b": memory.bind(user="b")}).own, 13),
            (ann.bind(zone="Europe/Oslo").sharing({"b": memory.bind(user="b")}), 13),
        ):
            assert (await handle.add("x")).occurred_at.hour == hour == handle.now().hour


@pytest.fixture
def machine_in_new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("machine_in_new_york")
@given(PLAIN)
@example(datetime(2026, 11, 1, 5, 30, tzinfo=UTC))
@example(datetime(2026, 11, 1, 6, 30, tzinfo=UTC))  # half past one again
def test_the_zone_of_the_machine_is_that_of_its_operating_system(moment: datetime) -> None:
    ours, theirs = (moment.astimezone(zone) for zone in (MACHINE_ZONE, ZoneInfo("America/New_York")))
    assert ours.isoformat() == theirs.isoformat()
    assert (ours.fold, ours.astimezone(UTC)) == (theirs.fold, moment)


@pytest.mark.usefixtures("machine_in_new_york")
@given(st.sampled_from(ENDS), st.integers(0, 48 * 60))
@example(ENDS[0], 0)
@example(ENDS[1], 0)
def test_near_the_ends_of_the_calendar_a_moment_stays_the_same_in_every_zone(end: datetime, minutes: int) -> None:
    moment = shifted(end, timedelta(minutes=minutes if end == ENDS[0] else -minutes))
    for zone in (MACHINE_ZONE, ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")):
        assert check_local_time("occurred_at", moment, zone) == moment
        assert in_zone(moment, zone).astimezone(UTC) == moment


@pytest.mark.usefixtures("machine_in_new_york")
def test_the_zone_of_the_machine_has_a_name() -> None:
    assert machine_zone_name() in ("EST (UTC-05:00)", "EDT (UTC-04:00)")
    assert datetime(2026, 7, 1, tzinfo=MACHINE_ZONE).astimezone(UTC).hour == 4
    assert local_day(complete(Draft("x"), SCOPE, NOW.astimezone(MACHINE_ZONE))) == date(2026, 3, 10)
