"""Where an agent keeps its memories: in a file of its own, which it opens and closes, or in a memory it is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from memory_core import BoundMemory, Memory
from memory_core.adapting import check_path, on_core
from memory_spade import files

ENVIRONMENT: Final = "SPADE_LLM_MEMORY_PATH"
DEFAULT_DIRECTORY: Final = "spade_llm/data/agent_memory"
"""spade_llm's own default, relative to the working directory."""

IN_MEMORY: Final = ":memory:"


def directory(given: str | os.PathLike[str] | None) -> str:
    """The given directory, else that of the environment, else the default; or `":memory:"`.

    Raises:
        InvalidInputError: It is the address of a server.
    """
    named = os.fspath(given) if given is not None else os.environ.get(ENVIRONMENT, "").strip()
    check_path("the directory of an agent's memories", named)
    return named or DEFAULT_DIRECTORY


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
        path, stock = (
            Path(folder, f"{files.safe_name(name)}_base_memory.db").expanduser()
            for name in (files.identity(agent_id), agent_id)
        )
        return cls.of_database(path, stock=stock)

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
