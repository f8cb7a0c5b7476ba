"""Of a generated file of any format, every item is stored with its words for its owner, or refused by name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models

from memory_core import Where
from memory_core.app.batches import Batches
from memory_core.app.command import Invocation
from memory_core.app.formats import IMPORTERS, entry_of, names
from memory_core.app.mapping import Ownership
from memory_core.app.settings import Settings
from memory_core.models import STATES, MemoryRecord
from tests.app.generated_files import ABSENT, GENERATORS, RADBOT, Generator, Item, radbot_points
from tests.storage.qdrant.loopback import Loopback

ME: Final = Settings(":memory:", "default", "ann", "none", named_user=True)
WORDS: Final = "The spare key is with Mrs Okafor"
OTHERS: Final[tuple[Any, ...]] = (
    *(None, "", " ", "x", 0, 7, -1, 1.5, True, False, [], ["x", "y"], [None, 1], {}, {"a": 1}, {"": []}),
    *("x" * 2_000, "a\0b", "\ud800", "2026-13-45", "9" * 400, float("inf"), float("nan"), 1e308, 2**70, -(2**63)),
)
"""The values that may stand in a field instead of those that belong there."""


@st.composite
def items_of(draw: st.DrawFn, generator: Generator) -> list[Item]:
    """Items of a file, most fields of which are as they should be."""
    value = st.sampled_from(OTHERS) | st.just(ABSENT)
    changes = st.dictionaries(st.sampled_from(sorted(generator.optional) or [""]), value, max_size=3)
    people = st.sampled_from(generator.owners) if generator.owners else st.none()
    owners = people | people | st.sampled_from([ABSENT, None, "", 7, 1.5, True])
    made: list[Item] = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        fields = {**generator.optional, **{name: each for name, each in draw(changes).items() if name}}
        id_ = draw(st.sampled_from(["i1", "i2", f"n{number}"]))
        made.append(Item(number, f"{WORDS}, door {number}.", draw(owners), id_, fields))
    return made


def owner_of(item: Item, generator: Generator) -> str | None:
    """The owner of an item; `None` if nobody can tell, and it has to be refused."""
    if not generator.owners:
        return ME.user
    if generator.owners == ("tom",):
        return "tom"
    if item.owner in (ABSENT, None):
        return None if generator.needs_owner else ME.user
    is_number = isinstance(item.owner, int) and not isinstance(item.owner, bool)
    return str(item.owner) if (isinstance(item.owner, str) and item.owner) or is_number else None


async def imported(format_: str, source: str, *, mine: bool) -> tuple[Batches, list[MemoryRecord]]:
    """The report of an import, and everything that is stored."""
    invocation = Invocation(ME)
    batches = Batches(invocation, Ownership(ME, one_user=mine), dry_run=False)
    try:
        memory = await invocation.memory(create=True)
        await batches.take(entry_of(IMPORTERS, format_)(source), lambda _: None)
        owners = [memory.bind(app=each.app, user=each.user) for each in await memory.operator().owners()]
        found = [(await owner.list(where=Where(states=STATES), limit=1_000)).records for owner in owners]
        return batches, [record for records in found for record in records]
    finally:
        await invocation.close()


def insist_on_every_item(items: Sequence[Item], generator: Generator, format_: str, source: str) -> None:
    batches, stored = asyncio.run(imported(format_, source, mine=generator.mine))
    left_out = [*batches.report.refused, *batches.report.left_out]
    for item in items:
        holders = Counter(record.user for record in stored if item.words in record.text)
        owner = owner_of(item, generator)
        named = [each for each in left_out if generator.place(item) in each.place and each.reason]
        assert holders == ({} if named and not holders else {owner: 1}), (item, holders, left_out)
    assert all(WORDS in record.text for record in stored)


@pytest.mark.parametrize("name", GENERATORS)
@given(data=st.data())
def test_every_item_is_stored_for_its_owner_or_refused_by_name(name: str, data: st.DataObject) -> None:
    generator = GENERATORS[name]
    items = data.draw(items_of(generator))
    with TemporaryDirectory() as folder:
        insist_on_every_item(items, generator, name.partition(",")[0], generator.write(Path(folder), items))


@given(data=st.data())
def test_every_point_of_radbot_is_stored_for_its_owner_or_refused_by_name(data: st.DataObject) -> None:
    items = data.draw(items_of(RADBOT))
    with Loopback() as loopback:
        client = loopback.engine.client

        def make() -> None:
            vectors = models.VectorParams(size=1, distance=models.Distance.DOT)
            client.create_collection("agent_memory", vectors_config=vectors)
            client.upsert("agent_memory", radbot_points(items))

        loopback.on_loop(make)
        insist_on_every_item(items, RADBOT, "radbot", loopback.url)


def test_every_importer_has_a_generator() -> None:
    assert {name.partition(",")[0] for name in GENERATORS} | {"radbot"} == set(names(IMPORTERS))
