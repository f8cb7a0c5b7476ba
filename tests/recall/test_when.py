"""Whoever asks when gets the day of the person, and not that of UTC."""

from __future__ import annotations

from itertools import groupby

import pytest

from memory_core import Memory
from memory_core.retrieval.time_expressions import format_date, resolve
from tests.corpora.when import Saying, days_of, memory_of, sayings

BY_ZONE = {zone: list(group) for zone, group in groupby(sayings(), key=lambda each: each.zone.key)}


@pytest.mark.parametrize("said", BY_ZONE.values(), ids=BY_ZONE.keys())
def test_each_saying_has_the_offset_of_its_zone_and_means_its_day(said: list[Saying]) -> None:
    for each in said:
        assert each.said.utcoffset() == each.said.astimezone(each.zone).utcoffset(), each.text
        meant = resolve(each.text, each.said.date())
        assert meant == [format_date(each.day)], each.text
        assert format_date(each.day) in each.dated, each.text


@pytest.mark.parametrize("said", BY_ZONE.values(), ids=BY_ZONE.keys())
async def test_a_block_gives_the_day_of_the_person(said: list[Saying]) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        ann = await memory_of(memory, said)
        for each in said:
            block = str(await ann.recall(each.when))
            assert days_of(block, each.text) == {format_date(each.day)}, block
