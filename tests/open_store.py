"""The store behind a memory, for tests that look behind its operations."""

from __future__ import annotations

from memory_core import BoundMemory, Memory, Store


async def store_of(memory: Memory | BoundMemory) -> Store:
    """Its open store."""
    handle = memory if isinstance(memory, BoundMemory) else memory.bind()
    return await handle.memory.ready()
