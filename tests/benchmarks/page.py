"""The page of `memory-core serve` on 100,000 memories, beside the library's own calls in the same process.

    python tests/benchmarks/page.py [MEMORIES]

The page answers inside this process, over ASGI and without a network: what is measured is what the page adds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median

import httpx

from memory_core import BoundMemory, Draft, Memory, Scope
from memory_core.app.serve.application import application
from memory_core.app.serve.callers import THE_OPERATOR, Signer, tokens_of
from memory_core.app.serve.served import Served

ROUNDS = 31
BATCH = 5_000
Call = Callable[[], Awaitable[object]]
TYPED = ("wh", "where is", "where is the key", "where is the key of room 7")


async def fill(ann: BoundMemory, count: int) -> None:
    """Notes about rooms, each a few words."""
    for start in range(0, count, BATCH):
        await ann.add_many(
            [Draft(f"The key of room {n} is kept by guard {n % 97}") for n in range(start, start + BATCH)]
        )


async def milliseconds(call: Call) -> float:
    """The time that a call takes."""
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1e3


async def measure(memory: Memory) -> None:
    """Print the medians of calls in turns."""
    ann, signer = memory.bind(user="ann"), Signer(b"a secret")
    served = Served(memory, Scope("default", "ann"), tokens_of({"*": "x" * 24}), signer, frozenset(), writable=False)
    cookies = {"memory_core_0": signer.cookie(THE_OPERATOR, time.time())}
    transport = httpx.ASGITransport(application(served))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", cookies=cookies) as browser:

        async def page(query: str, fragment: str) -> None:
            headers = {"hx-request": fragment}
            answer = await browser.get("/o/default/ann", params={"q": query}, headers=headers)
            assert answer.status_code == 200, answer.text

        def typing(text: str) -> tuple[Call, Call]:
            return partial(page, text, "true"), partial(ann.search, text, limit=20)

        pairs: dict[str, tuple[Call, Call]] = {
            "first page": (partial(page, "", "false"), partial(ann.list, limit=20)),
            **{f"typed {text!r}": typing(text) for text in TYPED},
        }
        for name, (through_page, by_itself) in pairs.items():
            times = [(await milliseconds(through_page), await milliseconds(by_itself)) for _ in range(ROUNDS)]
            of_page, own = (median(each) for each in zip(*times, strict=True))
            sys.stdout.write(f"{name:36} page {of_page:7.1f} ms, library {own:7.1f} ms, ratio {of_page / own:.1f}\n")


async def main(count: int) -> None:
    """Fill a file and measure."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "memory.db") as memory:
            await fill(memory.bind(user="ann"), count)
            await measure(memory)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("memories", nargs="?", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().memories))
