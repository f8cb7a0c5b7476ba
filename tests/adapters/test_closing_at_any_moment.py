"""A framework that is closed at any moment, at work and on a slow store: nothing raises, and nothing is lost.

What it had acknowledged is in the file, once; no line of the log tells of an error.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from frameworks import own_container

from memory_core import Memory
from tests.adapters.closes.every import CLOSINGS, Work
from tests.adapters.closes.slow_store import SlowStore, at

AT_ONCE = 8
"""Closes at the same time, each of a memory of its own."""


async def lost_or_twice(name: str, path: Path, seed: str) -> dict[str, int]:
    """The texts that were acknowledged and are not in the file exactly once."""
    dice = Random(seed)
    memory = Memory(SlowStore(at(path), one_by_one=dice.random() < 0.5))
    work = Work(memory, dice)
    await CLOSINGS[name](work)
    async with Memory(path, embedder=None) as again:
        operator = again.operator()
        owners = [operator.handle(owner) for owner in await operator.owners()]
        found = Counter([record.text for owner in owners for record in (await owner.list(limit=10_000)).records])
    twice = {text: count for text, count in found.items() if count > 1}
    return twice | {text: 0 for text in work.acknowledged if text not in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOSINGS)
@pytest.mark.parametrize("closes", [4, pytest.param(200, marks=pytest.mark.torture)], ids=["short", "long"])
async def test_what_was_acknowledged_is_stored_once_however_it_closes(
    name: str, closes: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with own_container(), caplog.at_level(logging.INFO):
        for start in range(0, closes, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, closes))
            wrong = await asyncio.gather(
                *(lost_or_twice(name, tmp_path / f"{number}.db", f"{name} {number}") for number in numbers)
            )
            assert dict(zip(numbers, wrong, strict=True)) == {number: {} for number in numbers}
        gc.collect()  # an error that nobody has asked for is logged now
        await asyncio.sleep(0)
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]
    assert errors == []
