"""The memory of a Xaibo agent: stored, updated and deleted by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_core import BoundMemory
from memory_xaibo import CoreMemory


class XaiboAgent:
    """The modules of one agent in several processes."""

    def __init__(self, handles: Sequence[BoundMemory], **options: Any) -> None:
        self._modules = [CoreMemory(options or None, memory=handle) for handle in handles]
        self._stored: dict[str, str] = {}

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        module, names = self._modules[process], list(self._stored)
        chosen = names[place % len(names)] if names else ""
        if what == "edit" and chosen:
            assert await module.update_memory(chosen, text)
            self._stored[chosen] = text
        elif what == "remove" and chosen:
            assert await module.delete_memory(chosen)
            del self._stored[chosen]
        else:
            self._stored[await module.store_memory(text)] = text

    async def shown(self) -> list[str]:
        return list(self._stored.values())
