"""The CPU that capture and recall add to a turn in each framework, beside the same framework without a memory.

A short conversation and a long one of each kind take turns. Vectors are given: the model takes the same time in each
framework, see the line `embed`.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from common import GivenVectors
from lines.figure import Figure, absolute, relative
from lines.installed import missing
from lines.result import Measured
from lines.talks import TALKS, Talk, Turn
from memory_core import Memory

BEFORE = (20, 400)
"""Messages of the short and of the long conversation before what is measured."""
ROUNDS, TURNS = 7, 6
ADDED, GROWTH = 10.0, 1.2

Costs = dict[tuple[int, bool], list[float]]
"""Milliseconds of CPU a turn, by the messages before it and by whether there is a memory."""


async def cost(turn: Turn, first: int, turns: int) -> float:
    """Milliseconds of CPU a turn, in all threads."""
    gc.collect()
    start = time.process_time()
    for number in range(first, first + turns):
        await turn(number)
    return 1e3 * (time.process_time() - start) / turns


async def costs(talk: Talk, before: Sequence[int], rounds: int, turns: int) -> Costs:
    found: Costs = {}
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        memory = await stack.enter_async_context(Memory(Path(folder) / "turns.db", embedder=GivenVectors()))
        talks: dict[tuple[int, bool], Turn] = {}
        for length in before:
            for remembers in (False, True):
                handle = memory.bind(app="bench", user=f"user {length}") if remembers else None
                talks[length, remembers] = turn = await stack.enter_async_context(talk(handle))
                for number in range(length // 2):
                    await turn(number)
        gc.freeze()  # so that the many objects of frameworks are not searched again and again
        for number in range(rounds):
            for (length, remembers), turn in talks.items():
                took = await cost(turn, length // 2 + number * turns, turns)
                found.setdefault((length, remembers), []).append(took)
        gc.unfreeze()
        for length in before:
            stored = (await memory.bind(app="bench", user=f"user {length}").stats()).records
            assert stored >= length // 2 + rounds * turns, (
                f"{stored} memories after a conversation of {length} messages"
            )
    return found


def added(found: Costs, length: int) -> list[float]:
    """The time that the memory adds, in each round."""
    return [mine - bare for mine, bare in zip(found[length, True], found[length, False], strict=True)]


def figures(found: dict[str, Costs], before: Sequence[int]) -> list[Figure]:
    """Of each framework; then the highest of each kind, which has the goal."""
    short, long = before
    each = [
        absolute(f"{name}, after {length} messages", "ms", added(costs, length), beside="without", other=bare)
        for name, costs in found.items()
        for length in before
        for bare in (costs[length, False],)
    ]
    most = max(each, key=lambda figure: figure.ours)
    growths = [
        relative(name, "ms", added(costs, long), beside=f"after {short} messages", other=added(costs, short))
        for name, costs in found.items()
    ]
    growth = max(growths, key=lambda figure: figure.value)
    return [*each, _named(most, "the most", ADDED), _named(growth, f"the most growth to {long} messages", GROWTH)]


def _named(figure: Figure, name: str, most: float) -> Figure:
    return replace(figure, name=f"{name}: {figure.name}", most=most)


def measure(*, short: bool) -> Measured:
    before, rounds, turns = ((2, 4), 1, 1) if short else (BEFORE, ROUNDS, TURNS)
    found: dict[str, Costs] = {}
    notes: list[str] = []
    for name, (package, talk) in TALKS.items():
        if missing([package]):
            notes.append(f"{name}: {package} is not installed")
        else:
            found[name] = asyncio.run(costs(talk, before, rounds, turns))
    return Measured(figures(found, before), notes)
