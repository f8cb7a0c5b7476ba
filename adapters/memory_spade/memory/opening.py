"""A memory that is opened when it is first used, and again after it was closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from memory_core import Memory, portability
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
        return cls(os.fspath(path), lambda: portability.AgentMemories(Path(path), stock=stock))

    @classmethod
    def of_agent(cls, agent_id: str, memory_path: str | os.PathLike[str] | None) -> Self:
        """The documented file of an agent in a directory; or `":memory:"`."""
        folder = directory(memory_path)
        if folder == IN_MEMORY:
            return cls.of_file(IN_MEMORY)
        return cls.of_database(base_file(folder, portability.identity(agent_id)), stock=base_file(folder, agent_id))

    def memory(self) -> Memory:
        """The memory; closed when `close` is called."""
        if self._memory is None:
            self._memory = self._make()
        return self._memory

    async def open(self) -> None:
        """Open it now."""
        await self.memory().open()

    async def close(self) -> None:
        """Let go of files; what was in `":memory:"` is gone. May be called twice."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()
