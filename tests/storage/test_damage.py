"""Files with damaged bytes, files that were cut off: nothing wrong is ever returned without a word about it."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from memory_core import (
    DamagedStoreError,
    Draft,
    Link,
    Memory,
    MemoryRecord,
    Patch,
    StorageError,
    Where,
    run_sync,
)
from memory_core.models import STATES
from memory_core.storage.porting import Carried
from memory_core.storage.sqlite.store import SqliteStore
from tests.storage.embedders import WordEmbedder

Everything = dict[str, object]
QUERIES = ("jasmine tea", "Who bought number 7 on Friday?", "the river and the long walk")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with something in every column and table."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        for user in ("ann", "tom"):
            handle = memory.bind(user=user)
            turns = [
                Draft(f"{user} bought tea number {n}", session=f"s{n % 3}", author=user, tags=["tea", f"n{n}"])
                for n in range(40)
            ]
            stored = [cast("MemoryRecord", one) for one in run_sync(handle.add_many, turns)]
            run_sync(handle.add, Draft("a long walk by the river. " * 400, data={"where": ["river", 1.5]}))
            run_sync(handle.add, Draft("grüner Tee", source_key="g", links=[Link("follows", stored[0].id)]))
            for n in range(3):
                run_sync(handle.update, stored[n].id, Patch(text=f"{user} bought jasmine tea number {n}"))
            run_sync(handle.supersede, stored[5].id, "nobody bought anything")
            run_sync(handle.delete, stored[6].id)
            run_sync(handle.list, limit=5, touch=True)
    return path


def everything(path: Path) -> Everything:
    """What exports and searches return; raises what the first of them raises."""
    found: Everything = {}
    with Memory(path, embedder=WordEmbedder()) as memory:
        owners = run_sync(memory.operator().owners)
        found["owners"] = owners
        for owner in owners:
            handle = memory.operator().handle(owner)
            records = run_sync(handle.list, where=Where(states=STATES), limit=1_000).records
            found[f"{owner} records"] = records
            found[f"{owner} history"] = [run_sync(handle.history, record.id) for record in records]
            found[f"{owner} carried"] = run_sync(carried, memory, [record.id for record in records], handle.scope)
            for mode in ("hybrid", "lexical", "vector", "substring"):
                found[f"{owner} {mode}"] = [run_sync(handle.search, query, mode=mode) for query in QUERIES]
    return found


async def carried(memory: Memory, ids: list[str], scope: object) -> list[Carried]:
    store = await memory.ready()
    assert isinstance(store, SqliteStore)
    return await store.port().take(cast("object", scope), ids)  # type: ignore[arg-type]


def verdict(path: Path, before: Everything) -> str:
    """What becomes of a damaged file: `refused`, `reported`, `harmless`, or else what is wrong with that."""
    try:
        with Memory(path, embedder=None) as memory:
            findings = run_sync(memory.operator().check)
    except StorageError:
        return "refused"
    assert all("\n" not in finding for finding in findings)
    try:
        after = everything(path)
    except StorageError as error:
        return "reported" if findings else f"check is silent about what raises {error}"
    if findings:
        return "reported"
    return (
        "harmless" if after == before else f"check is silent about {[k for k in before if after.get(k) != before[k]]}"
    )


def flipped(content: bytes, chance: random.Random) -> bytes:
    """The content with another byte somewhere, as often as not where there was something."""
    place = chance.randrange(len(content))
    while chance.random() < 0.8 and not content[place]:
        place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]


@pytest.mark.parametrize("count", [12, pytest.param(80, marks=pytest.mark.torture)])
def test_a_damaged_byte_is_reported_or_refused_or_changes_nothing(whole: Path, tmp_path: Path, count: int) -> None:
    content, before = whole.read_bytes(), everything(whole)
    chance = random.Random(count)  # noqa: S311  (the same bytes each time)
    seen: dict[str, int] = {}
    for number in range(count):
        path = tmp_path / f"{number}.db"
        path.write_bytes(flipped(content, chance))
        came_to = verdict(path, before)
        assert came_to in {"refused", "reported", "harmless"}, number
        seen[came_to] = seen.get(came_to, 0) + 1
    assert seen.get("reported", 0) > count // 4, seen
