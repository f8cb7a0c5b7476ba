"""The records that a search leaves out by a few look-ups, such as the messages that a prompt shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from memory_core import AllOf, AnyOf, BoundMemory, DataCondition, Draft, FieldCondition, Memory, NoneOf, Where
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.storing import satisfies
from memory_core.where.conditions import Condition
from tests.open_store import store_of

pytestmark = pytest.mark.uncovered

CONDITIONS: Mapping[str, Condition] = {
    "ids": FieldCondition("id", "in", ("monday 1", "friday 2", "unknown")),
    "keys": FieldCondition("source_key", "in", ("key 1", "key 2")),
    "no key": FieldCondition("source_key", "in", (None, "key 1")),
    "a session": FieldCondition("session", "eq", "monday"),
    "no session": FieldCondition("session", "eq", None),
    "other ids": FieldCondition("id", "nin", ("monday 1",)),
    "a role": FieldCondition("role", "eq", "user"),
    "a session but some of it": AllOf(
        [
            FieldCondition("session", "eq", "monday"),
            NoneOf([FieldCondition("source_key", "in", ("key 1", "key 3", None))]),
        ]
    ),
    "nothing of all": AllOf([]),
    "all of some data": AllOf(
        [FieldCondition("session", "eq", "monday"), DataCondition(("place",), "exists", value=False)]
    ),
    "a group": AnyOf([FieldCondition("session", "eq", "monday")]),
}


async def fill(handle: BoundMemory) -> None:
    drafts = [
        Draft(f"jasmine tea {n}", id=f"{session} {n}", session=session, source_key=f"key {n}" if session else None)
        for session in ("monday", "friday", None)
        for n in range(5)
    ]
    await handle.add_many(drafts)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("other", [None, FieldCondition("role", "eq", "user")])
async def test_none_of_means_what_it_means_everywhere(name: str, other: FieldCondition | None) -> None:
    none_of = NoneOf([CONDITIONS[name], *([] if other is None else [other])])
    async with Memory(":memory:", embedder=None) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        await fill(ann)
        await fill(bob)
        for reach in (ann, ann.sharing({"bob": bob}), ann.bind(session="friday")):
            for where in (Where(matching=[none_of]), Where(matching=[none_of], kinds=["fact"])):
                all_hits = await reach.search("jasmine tea", limit=100, where=Where(kinds=where.kinds))
                wanted = [hit.record for hit in all_hits if satisfies(hit.record, where, reach.memory.clock())]
                assert [hit.record for hit in await reach.search("jasmine tea", limit=100, where=where)] == wanted


async def test_what_a_prompt_shows_is_not_cached_as_conditions_are(tmp_path: Path) -> None:
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await fill(ann)
        store = await store_of(memory)
        assert isinstance(store, SqliteStore)
        for n in range(5):
            assert await ann.search(
                "tea", where=Where(matching=[NoneOf([FieldCondition("id", "in", (f"monday {n}",))])])
            )
        (followed,) = store._owner_indexes._followed.values()
        assert followed.matching.nbytes == 0
