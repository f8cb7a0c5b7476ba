"""The protocol of a memory that recall, tools and prompts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from memory_core.models import Deleted, Draft, Hit, MemoryRecord, Mode, Order, Page, Patch
from memory_core.where.where import Where


class Searching(Protocol):
    """The reads of a memory: what `recall` needs of it."""

    async def search(  # noqa: PLR0913  (as the core's)
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = ...,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,
        apart: bool = False,
        most_bytes: int | None = None,
    ) -> list[Hit]:
        """See `BoundMemory.search`."""
        ...

    async def list(self, *, where: Where = ..., order: Order = "newest", limit: int = 50) -> Page:
        """See `BoundMemory.list`."""
        ...


class AgentMemory(Searching, Protocol):
    """The methods of a memory that an agent's tools and prompts use. A `BoundMemory` is one.

    Another one may raise `UnsupportedError` for conditions and options that it does not have; it never ignores them.
    """

    @property
    def spaces(self) -> Mapping[str, Literal["read", "write"]]:
        """See `BoundMemory.spaces`; empty for a memory that has none."""
        ...

    def label_of(self, record: MemoryRecord) -> str | None:
        """See `BoundMemory.label_of`."""
        ...

    async def add(
        self, entry: str | Draft, *, embed: Literal["now", "later"] = "now", space: str = ...
    ) -> MemoryRecord:
        """See `BoundMemory.add`."""
        ...

    async def update(self, id: str, patch: Patch) -> MemoryRecord:  # noqa: A002  (the record's own word)
        """See `BoundMemory.update`."""
        ...

    async def delete(self, id: str) -> Deleted | None:  # noqa: A002
        """See `BoundMemory.delete`; `None` if it is not counted what went with the record."""
        ...
