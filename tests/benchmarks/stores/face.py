"""Memories behind one face: ours, and what the others have in common."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from common import GivenVectors
from memory_core import Memory

Entry = tuple[str, int, str]
"""Owner, number, text."""


class Peer(Protocol):
    """A store of texts by owner."""

    durability: str
    """The state of the disk when an add returns."""
    searches_by: str
    needs: str
    """The module without which it is left out."""

    async def open(self, folder: Path, vectors: GivenVectors) -> None: ...

    async def add(self, owner: str, number: int, text: str) -> None: ...

    async def fill(self, entries: Sequence[Entry]) -> None: ...

    async def search(self, owner: str, query: str) -> object: ...

    async def close(self) -> None: ...


class OneByOne:
    """Filled by adds, 32 at a time."""

    async def add(self, owner: str, number: int, text: str) -> None:
        raise NotImplementedError

    async def fill(self, entries: Sequence[Entry]) -> None:
        for first in range(0, len(entries), 32):
            await asyncio.gather(*(self.add(*entry) for entry in entries[first : first + 32]))


class Ours(OneByOne):
    durability = "synced"
    searches_by = "words, meaning, context"
    needs = "memory_core"

    async def open(self, folder: Path, vectors: GivenVectors) -> None:
        self._memory = await Memory(folder / "ours.db", embedder=vectors).open()

    async def add(self, owner: str, number: int, text: str) -> None:
        await self._memory.bind(app="bench", user=owner).add(text)

    async def fill(self, entries: Sequence[Entry]) -> None:
        for first in range(0, len(entries), 1_000):
            some = sorted(entries[first : first + 1_000])
            for owner, owned in itertools.groupby(some, key=lambda entry: entry[0]):
                await self._memory.bind(app="bench", user=owner).add_many([text for _, _, text in owned])

    async def search(self, owner: str, query: str) -> object:
        return await self._memory.bind(app="bench", user=owner).search(query)

    async def close(self) -> None:
        await self._memory.close()
