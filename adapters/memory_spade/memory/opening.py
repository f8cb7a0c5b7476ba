"""A memory that is opened when it is first used, and again after it was closed."""

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
    """Whoever has this opens and closes one memory, as often as it likes.

    Args:
        name: Of the file, for people.
        make: Makes the memory, which opens nothing yet.
    """

    def __init__(self, name: str, make: Callable[[], Memory]) -> None:
        self.name = name
        self._make = make
        self._memory: Memory | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Self:
        """A file of ours, or `":memory:"`."""
        return cls(os.fspath(path), lambda: Memory(path))

    @classmethod
    def of_database(cls, path: str | os.PathLike[str], *, stock: Path | None = None) -> Self:
        """A file of long-term memories, which may be spade_llm's still (there, or as `stock`); or `":memory:"`."""
        if os.fspath(path) == IN_MEMORY:
            return cls.of_file(IN_MEMORY)
        return cls(os.fspath(path), lambda: files.AgentMemories(Path(path), stock=stock))

    @classmethod
    def of_agent(cls, agent_id: str, memory_path: str | os.PathLike[str] | None) -> Self:
        """The documented file of an agent in a directory; or `":memory:"`."""
        folder = directory(memory_path)
        if folder == IN_MEMORY:
            return cls.of_file(IN_MEMORY)
        return cls.of_database(base_file(folder, files.identity(agent_id)), stock=base_file(folder, agent_id))

    def handle(self) -> BoundMemory:
        """A handle of the memory, which is closed when `close` is called."""
        if self._memory is None:
            self._memory = self._make()
        return self._memory.bind()

    async def open(self) -> None:
        """Open it now."""
        await on_core(self.handle().memory.ready)

    async def close(self) -> None:
        """Let go of files; what was in `":memory:"` is gone. May be called twice."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()


class Borrowed:
    """A memory, or a handle of one, that is somebody else's to close."""

    def __init__(self, memory: Memory | BoundMemory) -> None:
        self._handle = memory if isinstance(memory, BoundMemory) else memory.bind()

    def handle(self) -> BoundMemory:
        """The handle."""
        return self._handle

    async def open(self) -> None:
        """Check that it can be opened."""
        await on_core(self._handle.memory.ready)

    async def close(self) -> None:
        """Leave it open."""
