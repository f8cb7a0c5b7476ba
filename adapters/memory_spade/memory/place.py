"""A place of memories: what makes handles of one memory, and closes it if it has made the memory, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memory_core import BoundMemory, ClosedError, Memory
from memory_core.adapting import check_path, on_core
from memory_spade import files

ENVIRONMENT: Final = "SPADE_LLM_MEMORY_PATH"
DEFAULT_DIRECTORY: Final = "spade_llm/data/agent_memory"
"""spade_llm's own default, relative to the working directory."""

IN_MEMORY: Final = ":memory:"
StrPath = str | os.PathLike[str]


class Place:
    """A handle factory and a close; both may be called any number of times.

    Args:
        source: A handle of a memory that the application closes, or a function that makes one without opening it.
    """

    def __init__(self, source: BoundMemory | Callable[[], Memory]) -> None:
        self._source = source
        self._made: Memory | None = None
        self._closed: str | None = None

    @property
    def given(self) -> BoundMemory | None:
        """The handle of the application; `None` for a memory that is made here."""
        return self._source if isinstance(self._source, BoundMemory) else None

    def use(self, handle: BoundMemory) -> None:
        """Give this handle of the application from now on."""
        self._source = handle

    def handle(self) -> BoundMemory:
        """Return a handle. A memory that is made here opens on first use, also after `close`.

        Raises:
            ClosedError: It was closed with a reason and not opened since.
        """
        if isinstance(self._source, BoundMemory):
            return self._source
        if self._closed is not None:
            raise ClosedError(self._closed)
        if self._made is None:
            self._made = self._source()
        return self._made.bind()

    async def open(self) -> None:
        """Open the memory now, or check that the application's can be opened."""
        self._closed = None
        await on_core(self.handle().memory.ready)

    async def close(self, reason: str | None = None) -> None:
        """Close the memory if it was made here; with a reason, `handle` raises it until `open` is called."""
        self._closed = reason
        memory, self._made = self._made, None
        if memory is not None:
            await memory.close()


def in_database(path: StrPath, *, stock: Path | None = None) -> Place:
    """A file of long-term memories, not spade_llm's (which may be at `path` or at `stock`); or `":memory:"`."""
    if os.fspath(path) == IN_MEMORY:
        return Place(lambda: Memory(IN_MEMORY))
    return Place(lambda: files.agent_memories(Path(path), stock=stock))


def in_directory(agent_id: str, memory_path: StrPath | None) -> Place:
    """The documented file of an agent in a directory; or `":memory:"`."""
    folder = directory(memory_path)
    if folder == IN_MEMORY:
        return in_database(folder)
    path, stock = (
        Path(folder, f"{files.safe_name(name)}_base_memory.db").expanduser()
        for name in (files.identity(agent_id), agent_id)
    )
    return in_database(path, stock=stock)


def directory(given: StrPath | None) -> str:
    """The given directory, else that of the environment, else the default; or `":memory:"`.

    Raises:
        InvalidInputError: It is the address of a server.
    """
    named = os.fspath(given) if given is not None else os.environ.get(ENVIRONMENT, "").strip()
    check_path("the directory of an agent's memories", named)
    return named or DEFAULT_DIRECTORY
