"""Memories that the lines are measured on."""

from __future__ import annotations

from common import drafts
from memory_core import BoundMemory

AT_ONCE = 1_000


async def fill(handle: BoundMemory, count: int, *, seed: int) -> None:
    """Turns of conversations of 40."""
    texts = drafts(count, seed)
    for start in range(0, count, AT_ONCE):
        await handle.add_many(texts[start : start + AT_ONCE])


def resident() -> int:
    """Bytes of this process in memory, those of files that are mapped into it included."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  (one read, nothing loaded for it)
        return int(file.read().split()[1]) * 4_096
