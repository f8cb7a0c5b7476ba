"""The quota of an owner: it is counted in the transaction of each write, and a write beyond it is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from memory_core import (
    Draft,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    Quota,
    QuotaExceededError,
    Where,
    run_sync,
)
from tests.storage.embedders import WordEmbedder


def test_a_write_beyond_the_records_of_a_quota_is_refused_whole(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None, quota=Quota(records=3)) as memory:
        ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
        run_sync(ann.add_many, ["one", "two"])
        with pytest.raises(QuotaExceededError, match="default/ann holds 2 of 3 records and would hold 4; delete"):
            run_sync(ann.add_many, ["three", "four"])
        run_sync(ann.add, "three")
        with pytest.raises(QuotaExceededError, match="holds 3 of 3 records and would hold 4"):
            run_sync(ann.put_many, [Draft("four", source_key="4")])
        assert run_sync(ann.stats).records == 3
        run_sync(tom.add_many, ["one", "two", "three"])
        run_sync(ann.delete_where, Where(), forget=False)
        run_sync(ann.add, "four")


def test_a_write_beyond_the_bytes_of_a_quota_is_refused(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None, quota=Quota(bytes=1_000)) as memory:
        ann = memory.bind(user="ann")
        record = run_sync(ann.add, "x" * 900)
        held = run_sync(ann.stats).bytes
        assert held is not None
        assert 900 <= held < 910
        with pytest.raises(QuotaExceededError, match=rf"holds {held} of 1,000 bytes"):
            run_sync(ann.add, "y" * 200)
        for patch in (Patch(text="x" * 1_001), Patch(data={"x": "x" * 100}), Patch(tags=["x" * 100])):
            with pytest.raises(QuotaExceededError, match="bytes"):
                run_sync(ann.update, record.id, patch)
        assert run_sync(ann.get, record.id) == record
        run_sync(ann.update, record.id, Patch(text="tea"))
        run_sync(ann.add, "y" * 200)


def test_who_holds_too_much_already_may_hold_less(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        records = run_sync(memory.bind(user="ann").add_many, ["one" * 100, "two" * 100])
    with Memory(path, embedder=None, quota=Quota(records=1, bytes=10)) as memory:
        ann = memory.bind(user="ann")
        first = cast("MemoryRecord", records[0])
        run_sync(ann.update, first.id, Patch(text="one"))
        run_sync(ann.delete, first.id)
        with pytest.raises(QuotaExceededError):
            run_sync(ann.add, "three")


def test_of_many_who_add_at_once_as_many_as_fit_are_stored(tmp_path: Path) -> None:
    async def add_all() -> list[object]:
        async with Memory(tmp_path / "memory.db", embedder=WordEmbedder(), quota=Quota(records=20)) as memory:
            ann = memory.bind(user="ann")
            return await asyncio.gather(*(ann.add(f"number {n}") for n in range(50)), return_exceptions=True)

    results = asyncio.run(add_all())
    assert sum(isinstance(result, MemoryRecord) for result in results) == 20
    assert sum(isinstance(result, QuotaExceededError) for result in results) == 30


def test_the_count_of_an_owner_follows_every_kind_of_write(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann", session="s")
        operator = memory.operator()
        first, second = (cast("MemoryRecord", one) for one in run_sync(ann.add_many, ["ännä", Draft("b", tags=["ü"])]))
        run_sync(ann.add, Draft("c", source_key="c", data={"a": [1, "ü"]}))
        run_sync(ann.add, Draft("c and more", source_key="c", data={"a": 1}))
        run_sync(ann.add, Draft("d", links=[Link("derived_from", first.id), Link("follows", second.id)]))
        run_sync(ann.put_many, [Draft("ee", source_key="c"), Draft("f", source_key="f")], remove=["g"])
        run_sync(ann.update, second.id, Patch(text="bbb", data={"x": "y"}))
        run_sync(ann.update, second.id, Patch(tags=["a", "b"]))
        run_sync(ann.supersede, second.id, "bbbb")
        run_sync(ann.list, touch=True)
        run_sync(ann.postpone, {first.id: None})
        assert run_sync(operator.check) == []
        run_sync(ann.delete, first.id)
        assert run_sync(operator.check) == []
        run_sync(ann.erase)
        assert run_sync(operator.check) == []


def test_a_quota_is_a_quota_and_for_a_file(tmp_path: Path) -> None:
    for wrong in ({"records": -1}, {"bytes": 1.5}, {"records": True}):
        with pytest.raises(InvalidInputError, match="a quota of"):
            Quota(**cast("Any", wrong))
    with pytest.raises(InvalidInputError, match="quota must be a Quota"):
        Memory(tmp_path / "memory.db", quota=cast("Any", 5))
