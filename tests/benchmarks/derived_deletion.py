"""How long other calls wait while a record is deleted of which thousands were made.

`python -m tests.benchmarks.derived_deletion [how many] [rounds]` prints the longest wait of each call in milliseconds,
beside the longest wait of the same calls while nothing is deleted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memory_core import BoundMemory, Draft, Link, Memory, MemoryRecord

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


async def measure(name: str, call: Callable[[BoundMemory, BoundMemory], Call], count: int) -> str:
    """One line: the waits of a call without a deletion, and during one."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "m.db", embedder=None) as memory:
            ann, tom = memory.bind(user="ann"), memory.bind(user="tom")
            await tom.add("tom walks along the river")
            said = await filled(ann, count)
            one = call(ann, tom)
            await one()
            idle, _ = await longest(one, asyncio.sleep(0.5))
            began = time.perf_counter()
            busy, calls = await longest(one, ann.delete(said.id))
            took = time.perf_counter() - began
            assert (await ann.list(limit=1, order="oldest")).records[0].text != said.text
    return (
        f"{name:28} alone {idle * 1e3:6.1f} ms   during the deletion {busy * 1e3:6.1f} ms "
        f"({calls} calls, the deletion took {took * 1e3:.0f} ms)"
    )


CALLS: dict[str, Callable[[BoundMemory, BoundMemory], Call]] = {
    "add, same owner": lambda ann, _: lambda: ann.add("a new note"),
    "add, another owner": lambda _, tom: lambda: tom.add("a new note"),
    "search, same owner": lambda ann, _: lambda: ann.search("walk by the river"),
    "search, another owner": lambda _, tom: lambda: tom.search("walk by the river"),
    "list, same owner": lambda ann, _: lambda: ann.list(limit=20),
}


async def main(count: int, rounds: int) -> None:
    """Print a line for each call and round."""
    for _ in range(rounds):
        for name, call in CALLS.items():
            print(await measure(name, call, count), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["10000"])[0]), int((sys.argv[2:] or ["1"])[0])))
