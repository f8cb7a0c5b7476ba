"""The time that other calls wait while a record is deleted, edited or resumed of which thousands were made.

`python -m tests.benchmarks.derived_deletion [how many] [rounds] [delete|edit|leave|resume]` prints the longest wait of
each call in milliseconds, beside the longest wait of the same calls while nothing is done.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memory_core import BoundMemory, Draft, Link, Memory, MemoryRecord, Patch, Where
from memory_core.every_record import every_record

Call = Callable[[], Awaitable[object]]


async def filled(ann: BoundMemory, count: int) -> MemoryRecord:
    """A turn of which `count` facts were made, beside a thousand other memories."""
    said = await ann.add("the door code is 2231")
    await ann.add_many([f"walk number {n} along the river" for n in range(1_000)])
    read = [Link("derived_from", said.id, said.rev)]
    for first in range(0, count, 1_000):
        facts = [Draft(f"fact {n}: the code is 2231", kind="fact", links=read) for n in range(first, first + 1_000)]
        await ann.add_many(facts)
    await ann.search("river")  # the index is loaded
    return said


async def longest(call: Call, end: Awaitable[object]) -> tuple[float, int]:
    """The longest of the calls that begin before `end`, in seconds, and how many there were."""
    ending, worst, count = asyncio.ensure_future(end), 0.0, 0
    while not ending.done():
        began = time.perf_counter()
        await call()
        worst, count = max(worst, time.perf_counter() - began), count + 1
        await asyncio.sleep(0.001)
    await ending
    return worst, count


async def measure(name: str, call: Callable[[BoundMemory, BoundMemory], Call], count: int, act: str) -> str:
    """One line: the waits of a call by itself, and during the act."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "m.db", embedder=None) as memory:
            ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
            await tom.add("tom walks along the river")
            said = await filled(ann, count)
            if act == "resume":
                await ann.update(said.id, Patch(left=True))
            one = call(ann, tom)
            await one()
            idle, _ = await longest(one, asyncio.sleep(0.5))
            began = time.perf_counter()
            busy, calls = await longest(one, ACTS[act](ann, said.id))
            took = time.perf_counter() - began
            facts = await every_record(ann, Where(kinds=["fact"]))
            assert len(facts) == (count if act == "resume" else 0)
    return (
        f"{name:28} alone {idle * 1e3:6.1f} ms   meanwhile {busy * 1e3:6.1f} ms ({calls} calls, {act} took "
        f"{took * 1e3:.0f} ms)"
    )


ACTS: dict[str, Callable[[BoundMemory, str], Awaitable[object]]] = {
    "delete": lambda ann, said: ann.delete(said),
    "edit": lambda ann, said: ann.update(said, Patch(text="the door code is 8874")),
    "leave": lambda ann, said: ann.update(said, Patch(left=True)),
    "resume": lambda ann, said: ann.update(said, Patch(left=False)),
}


CALLS: dict[str, Callable[[BoundMemory, BoundMemory], Call]] = {
    "add, same owner": lambda ann, _: lambda: ann.add("a new note"),
    "add, another owner": lambda _, tom: lambda: tom.add("a new note"),
    "search, same owner": lambda ann, _: lambda: ann.search("walk by the river"),
    "search, another owner": lambda _, tom: lambda: tom.search("walk by the river"),
    "list, same owner": lambda ann, _: lambda: ann.list(limit=20),
}


async def main(count: int, rounds: int, act: str) -> None:
    """Print a line for each call and round."""
    for _ in range(rounds):
        for name, call in CALLS.items():
            print(await measure(name, call, count, act), flush=True)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("10000", "1", "delete")[len(sys.argv) - 1 :]]
    asyncio.run(main(int(given[0]), int(given[1]), given[2]))
