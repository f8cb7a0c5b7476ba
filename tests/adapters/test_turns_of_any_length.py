"""A turn costs what its messages cost, however many they are and however long the conversation was before.

The cost is the number of this project's functions that are called, and of drafts that the store is given: a busy
machine changes neither.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from frameworks import own_container

from memory_core import Memory
from memory_core.conversation.messages.alignment import LOOK_BACK
from tests.adapters.turns.every import TURNS
from tests.adapters.turns.gauge import CountingStore, Gauge

LONG: Final = pytest.param((10, 100, LOOK_BACK, 1_000, 5_000), marks=pytest.mark.torture)
OF_A_TURN: Final = [(LOOK_BACK // 2, LOOK_BACK), LONG]
"""A turn is compared with twice as many messages as it has, and with `LOOK_BACK` at least."""
BEFORE_A_TURN: Final = [(LOOK_BACK, 2 * LOOK_BACK), LONG]
FIRST: Final = LOOK_BACK
"""From as many messages on as `remember` compares with a turn, nothing grows with the conversation."""
GROWTH: Final = 1.2
DRAFTS: Final = 2
"""Most drafts that the store is given for a message of the turn."""
TURN: Final = 10
"""Messages of the turn after a long conversation."""
HAND_OVER_THE_TURN: Final = ("adk", "chain", "history", "mcp", "mcp store", "spade", "xaibo")
"""The frameworks that are handed only the messages of the turn; the others are handed the conversation each time,
and must read it."""


pytestmark = pytest.mark.slow


async def measured(name: str, before: int, during: int) -> Gauge:
    with tempfile.TemporaryDirectory() as folder:
        store = CountingStore(Path(folder) / "memory.db")
        async with Memory(store) as memory:
            gauge = Gauge(store)
            await TURNS[name](memory.bind(app="demo", user="ann"), before, during, gauge.measure)
    assert gauge.calls > 0
    return gauge


def grows_no_more_than_allowed(costs: Mapping[int, float], gauge: Gauge) -> None:
    """From `FIRST` on, or the first of two, no cost is much larger than the first."""
    first = min(FIRST, sorted(costs)[-2])
    worst = max(cost for count, cost in costs.items() if count >= first)
    assert worst <= GROWTH * costs[first], (costs, gauge.most(10))


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("lengths", OF_A_TURN, ids=["short", "long"])
async def test_a_long_turn_costs_what_its_messages_cost(name: str, lengths: tuple[int, ...]) -> None:
    with own_container():
        gauges = {count: await measured(name, 0, count) for count in lengths}
    assert {count: gauge.drafts for count, gauge in gauges.items() if gauge.drafts > DRAFTS * count} == {}
    costs = {count: gauge.calls / count for count, gauge in gauges.items()}
    grows_no_more_than_allowed(costs, gauges[lengths[-1]])


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("lengths", BEFORE_A_TURN, ids=["short", "long"])
async def test_a_turn_after_a_long_conversation_costs_no_more_than_reading_it(
    name: str, lengths: tuple[int, ...]
) -> None:
    with own_container():
        gauges = {count: await measured(name, count, TURN) for count in lengths}
    assert {count: gauge.drafts for count, gauge in gauges.items() if gauge.drafts > DRAFTS * TURN} == {}
    read = {count: 1 if name in HAND_OVER_THE_TURN else count + TURN for count in lengths}
    costs = {count: gauge.calls / read[count] for count, gauge in gauges.items()}
    grows_no_more_than_allowed(costs, gauges[lengths[-1]])
