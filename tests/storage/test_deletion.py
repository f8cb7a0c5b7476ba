"""Deletions by conditions: found first, deleted in batches, and the same as in one transaction."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import (
    Deleted,
    Draft,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    Quota,
    QuotaExceededError,
    Where,
    run_sync,
)
from memory_core.models import Relation
from memory_core.storage.sqlite import deletion
from memory_core.storage.sqlite.rows import MOST_DELETED

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MANY = 5 * MOST_DELETED


def test_what_was_made_of_words_goes_with_them_whoever_decides_the_conditions(tmp_path: Path) -> None:
    for where in (Where(keywords=["jasmine"]), Where(data={"cup": 1}), Where(kinds=["message"])):
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            ann = memory.bind(user="ann").sync
            said = ann.add(Draft("Ann drinks jasmine tea", kind="message", data={"cup": 1}))
            ann.add(Draft("A liking of hers", links=[Link("derived_from", said.id)]))
            assert ann.delete_where(where) == Deleted(1, 1)
            assert not ann.list()


async def test_others_write_between_the_parts_of_a_large_deletion(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        await ann.add_many([Draft(f"note {number}", session="old") for number in range(MANY)])
        await ann.add("The kettle is on")
        deleting, counts = asyncio.create_task(ann.delete_where(Where(session="old"))), set[int]()
        while not deleting.done():
            await bob.add("the tide turns")
            counts.add((await ann.stats()).records)
        assert await deleting == Deleted(MANY)
        assert [record.text for record in await ann.list()] == ["The kettle is on"]
        assert counts - {1, MANY + 1}  # some were gone, and others were not
        assert {count % MOST_DELETED for count in counts} == {1}  # whole parts


@pytest.mark.process
def test_a_process_that_dies_between_two_parts_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann").sync
        ann.add_many([Draft(f"note {number}", data={"old": True}) for number in range(MANY)])
        code = (
            "import sys; from memory_core import Memory, Where; "
            "Memory(sys.argv[1], embedder=None).bind(user='ann').sync.delete_where(Where(data={'old': True}))"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(path)]) as process:
            while ann.stats().records == MANY and process.poll() is None:
                pass
            process.kill()
        left = ann.stats().records
        assert left % MOST_DELETED == 0
        assert run_sync(memory.operator().check) == []
        assert ann.delete_where(Where(data={"old": True})) == Deleted(left)
        assert ann.stats().records == 0


async def test_what_others_change_meanwhile_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MOST_DELETED", 2)
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        stored = await ann.add_many([Draft(f"tea {number}", author="a") for number in range(40)])
        ids = [record.id for record in stored if record is not None]
        deleting = asyncio.create_task(ann.delete_where(Where(keywords=["tea"])))
        await asyncio.gather(
            *(ann.update(each, Patch(text="coffee")) for each in ids[:5]),
            *(ann.update(each, Patch(author="b")) for each in ids[5:10]),
            return_exceptions=True,
        )
        deleted, left = await deleting, await ann.list()
        assert {record.text for record in left} <= {"coffee"}
        assert deleted.records == len(ids) - len(left)


RELATIONS: tuple[Relation, ...] = ("derived_from", "summarizes", "follows", "supersedes", "confirmed_by")
Made = tuple[bool, Relation, frozenset[int]]


def _filled(memory: Memory, made: list[Made]) -> dict[str, str]:
    """Stores a record for each; returns their names by id."""
    ann, names = memory.bind(user="ann").sync, dict[str, str]()
    for number, (is_old, relation, to) in enumerate(made):
        ids = [each for each, name in names.items() if int(name) in to]
        record = ann.add(
            Draft(f"note {number}", data={"old": is_old}, links=[Link(relation, each) for each in ids][:1])
            if relation == "supersedes"
            else Draft(f"note {number}", data={"old": is_old}, links=[Link(relation, each) for each in ids])
        )
        names[record.id] = str(number)
    return names


def _shape(record: MemoryRecord, names: dict[str, str]) -> tuple[object, ...]:
    links = sorted((link.relation, names.get(link.id, "?")) for link in record.links)
    return record.text, record.state, record.left, record.valid_to is None, links


def _deleted(made: list[Made], most: int) -> tuple[Deleted, list[tuple[object, ...]]]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(deletion, "MOST_DELETED", most)
        with Memory(Path(folder) / "m.db", embedder=None, clock=lambda: START) as memory:
            names = _filled(memory, made)
            ann = memory.bind(user="ann").sync
            receipt = ann.delete_where(Where(data={"old": True}, states=("active", "compacted", "archived")))
            left = ann.list(where=Where(states=("active", "compacted", "archived")), limit=100)
            return receipt, sorted((_shape(record, names) for record in left), key=repr)


@given(
    made=st.lists(
        st.tuples(st.booleans(), st.sampled_from(RELATIONS), st.frozensets(st.integers(0, 8), max_size=2)), max_size=9
    ),
    most=st.integers(1, 3),
)
def test_a_deletion_in_parts_deletes_and_says_the_same_as_in_one(made: list[Made], most: int) -> None:
    made = [(old, relation, frozenset(each for each in to if each < n)) for n, (old, relation, to) in enumerate(made)]
    assert _deleted(made, most) == _deleted(made, 1_000)


def _expired(memory: Memory, count: int) -> None:
    memory.bind(user="ann").sync.add_many(
        [Draft(f"note {n}", source_key=f"key {n}", expires_at=START + timedelta(hours=1)) for n in range(count)]
    )


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_write_deletes_a_thousand_of_what_has_expired_and_what_is_in_its_way(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "m.db", embedder=None, clock=clock) as memory:
        ann = memory.bind(user="ann").sync
        _expired(memory, 2 * MOST_DELETED)
        clock.now += timedelta(hours=2)
        again = ann.add(Draft("another", source_key=f"key {2 * MOST_DELETED - 1}"))
        assert again.text == "another"
        assert again.rev == 1  # a new record, and not the expired one changed
        assert [record.text for record in ann.list(limit=10)] == ["another"]
        assert ann.sweep() == MOST_DELETED - 1
        assert ann.sweep() == 0
        assert run_sync(memory.operator().check) == []


def test_what_has_expired_gives_way_before_a_quota_refuses_anything(tmp_path: Path, clock: Clock) -> None:
    most = 3 * MOST_DELETED
    with Memory(tmp_path / "m.db", embedder=None, clock=clock, quota=Quota(records=most)) as memory:
        ann = memory.bind(user="ann").sync
        _expired(memory, most)
        with pytest.raises(QuotaExceededError):
            ann.add("one more")
        clock.now += timedelta(hours=2)
        assert len(ann.add_many([f"new {number}" for number in range(most)])) == most
        with pytest.raises(QuotaExceededError):
            ann.add_many(["one more", "two more"])
