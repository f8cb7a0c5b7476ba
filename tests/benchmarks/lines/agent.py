"""A turn of an agent of LangChain with a memory, beside the same agent without one, in threads of several lengths.

The agent keeps its thread with a checkpointer in memory, and its model answers from a script at once. CPU of all
threads is measured, as in the line `turns`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lines.figure import Figure, relative
from lines.result import Measured
from lines.talks import langgraph
from lines.turns import Costs, costs

BEFORE = (10, 500, 2_000)
"""Messages of the thread before what is measured."""
ROUNDS, TURNS = 7, 4
MOST = 3.0


def figures(found: Costs, before: Sequence[int]) -> list[Figure]:
    return [
        relative(
            f"after {length} messages",
            "ms",
            found[length, True],
            beside="the bare agent",
            other=found[length, False],
            most=MOST,
        )
        for length in before
    ]


def measure(*, short: bool) -> Measured:
    before, rounds, turns = ((2, 4), 1, 1) if short else (BEFORE, ROUNDS, TURNS)
    return Measured(figures(asyncio.run(costs(langgraph, before, rounds, turns)), before), [])
