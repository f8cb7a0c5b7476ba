"""A memory that is opened on first use and can be reopened after it was closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from memory_core import BoundMemory, Memory
from memory_core.adapting import on_core
from memory_spade import files
from memory_spade.memory.paths import IN_MEMORY, base_file, directory


class Opening:
    """Opens and closes one memory any number of times.

    Args:
        name: Name of the file for messages.
        make: Creates the memory without opening it.
    """

    def __init__(self, name: str, make: Callable[[], Memory]) -> None:
        self.name = name
        self._make = make
        self._memory: Memory | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Self:
        """A core store file, or `":memory:"`."""
        return cls(os.fspath(path), lambda: Memory(path))

    @classmethod
    def of_database(cls, path: str | os.PathLike[str], *, stock: Path | None = None) -> Self:
        """A file of long-term memories, not spade_llm's (which may be at `path` or at `stock`); or `":memory:"`."""
        if os.fspath(path) == IN_MEMORY:
            return cls.of_file(IN_MEMORY)
        return cls(os.fspath(path), lambda: files.agent_memories(Path(path), stock=stock))

    @classmethod
    def of_agent(cls, agent_id: str, memory_path: str | os.PathLike[str] | None) -> Self:
        """The documented file of an agent in a directory; or `":memory:"`."""
        folder = directory(memory_path)
        if folder == IN_MEMORY:
            return cls.of_file(IN_MEMORY)
        return cls.of_database(base_file(folder, files.identity(agent_id)), stock=base_file(folder, agent_id))

    def handle(self) -> BoundMemory:
        """Return a handle of the memory, which `close` closes."""
        if self._memory is None:
            self._memory = self._make()
        return self._memory.bind()

    def partition(self, agent: str) -> BoundMemory:
        """The long-term memories in this file of the agent with an `identity`."""
        return self.handle().bind(user=agent, collection=files.BASE_COLLECTION)

    async def open(self) -> None:
        """Open the memory now."""
        await on_core(self.handle().memory.ready)

    async def close(self) -> None:
        """Close the memory; contents of `":memory:"` are lost. May be called twice."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()


class Borrowed:
    """A memory, or a handle of one, that the application closes."""

    def __init__(self, memory: Memory | BoundMemory) -> None:
        self._handle = memory if isinstance(memory, BoundMemory) else memory.bind()

    def handle(self) -> BoundMemory:
        """The handle."""
        return self._handle

    async def open(self) -> None:
        """Check that the memory can be opened."""
        await on_core(self._handle.memory.ready)

    async def close(self) -> None:
        """Do nothing; the application closes the memory."""
