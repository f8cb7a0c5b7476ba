"""A memory of the core as a module of a Xaibo agent."""

from __future__ import annotations

import copy
from typing import Any, Final, Literal, get_args

from memory_core import BoundMemory, Draft, Hit, InvalidInputError, Memory, MemoryRecord, Patch, RecordNotFoundError
from memory_core.adapting import cut_query
from memory_xaibo.modules import OWNER, Config, bound, injects, options
from memory_xaibo.protocols import MemoryProtocol, MemorySearchResult

Ranking = Literal["similarity", "relevance"]
Attributes = dict[str, Any]
"""Plain JSON, as tools hand it over."""

MAX_RESULTS: Final = 10_000
"""Of one search."""
PAGE: Final = 1_000
"""Memories that `list_memories` returns at once."""


class MemoryList(list[dict[str, Any]]):
    """A list of memories, and where the next one begins."""

    cursor: str | None = None
    """Give it to `list_memories` for the memories after these; `None` at the end."""


class CoreMemory(MemoryProtocol):
    """The memories of one owner for an agent, stored, searched and shared as those of every other framework.

    ```yaml
    - module: memory_xaibo.CoreMemory
      id: memory
      scope: agent
      config: {path: memory.db, user: ann}
    ```

    What is stored has its attributes as the record's `data`. Attributes of what other frameworks stored are their data.

    Args:
        config: `path` of the file and `user`; `app` (`"default"`); `agent` and `collection`, if only memories of these
            are written and read; `ranking`: `"similarity"` returns the nearest `k`, as the protocol says, and
            `"relevance"` searches as other frameworks do and leaves out what does not answer.
        memory: A handle in the place of a path; it is the caller's to close.

    Raises:
        InvalidInputError: An option is unknown or missing.
        ScopeError: Nothing says whose memories they are.
    """

    @injects()
    def __init__(self, config: Config | None = None, *, memory: BoundMemory | None = None) -> None:
        given = options(config, "CoreMemory", ("path", *OWNER, "ranking"))
        self._ranking = given.get("ranking", "similarity")
        if self._ranking not in get_args(Ranking):
            raise InvalidInputError(f"ranking is {self._ranking!r}; it can be similarity or relevance")
        self._handle = bound(memory, Memory(given["path"]) if "path" in given else None, given)

    @property
    def handle(self) -> BoundMemory:
        """Everything else that the core can do with these memories."""
        return self._handle

    async def store_memory(self, text: str, attributes: Attributes | None = None) -> str:
        """Store a memory and return its id; it is on disk then.

        Raises:
            InvalidInputError: The text is blank or too long, or the attributes are not JSON.
        """
        return (await self._handle.add(Draft(insist_on_text(text), data=attributes or {}))).id

    async def get_memory(self, memory_id: str) -> dict[str, Any] | None:
        """The memory of this id, with `id`, `content` and `attributes`, or `None`."""
        record = await self._handle.get(memory_id)
        return None if record is None else shown(record)

    async def search_memory(self, query: str, k: int = 10) -> list[MemorySearchResult]:
        """Up to `k` (1 to 10,000) different memories, best first; a blank query finds nothing."""
        asked = checked_query(query, k)
        if not asked:
            return []
        by_relevance = self._ranking == "relevance"
        mode: Literal["hybrid", "vector"] = "hybrid" if by_relevance else "vector"
        hits = await self._handle.search(asked, limit=k, mode=mode, floor=by_relevance)
        return [_result(hit) for hit in hits]

    async def list_memories(self, *, limit: int = PAGE, cursor: str | None = None) -> MemoryList:
        """Memories in the order of their age, oldest first; of a large memory the first 1,000.

        Args:
            limit: At most this many, 1 to 10,000.
            cursor: `cursor` of the list before.
        """
        page = await self._handle.list(order="oldest", limit=limit, cursor=cursor)
        memories = MemoryList(map(shown, page.records))
        memories.cursor = page.cursor
        return memories

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory for good; whether there was one."""
        try:
            await self._handle.delete(memory_id)
        except RecordNotFoundError:
            return False
        return True

    async def update_memory(self, memory_id: str, text: str, attributes: Attributes | None = None) -> bool:
        """Give a memory another text, and other attributes if any are given; whether there is such a memory."""
        insist_on_text(text)
        patch = Patch(text=text) if attributes is None else Patch(text=text, data=attributes)
        try:
            await self._handle.update(memory_id, patch)
        except RecordNotFoundError:
            return False
        return True

    async def close(self) -> None:
        """Close the memory that `path` opened; also one that nobody closes loses nothing."""
        await self._handle.memory.close()


def checked_query(query: object, k: object) -> str:
    """What to search for, no longer than a search takes; empty if it is blank."""
    insist_on_k(k)
    if not isinstance(query, str):
        raise InvalidInputError(f"a query must be a text, not {type(query).__name__}")
    return cut_query(query) if query.strip() else ""


def insist_on_k(k: object) -> None:
    """Refuse a number of results that no search can return."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_RESULTS:
        raise InvalidInputError(f"k must be a whole number from 1 to {MAX_RESULTS}, not {k!r}")


def insist_on_text(text: object) -> str:
    """Refuse a text that no search could find."""
    if not isinstance(text, str):
        raise InvalidInputError(f"a memory needs a text, not {type(text).__name__}")
    if not text.strip():
        raise InvalidInputError("a memory needs a text, and this one is blank")
    return text


def shown(record: MemoryRecord) -> dict[str, Any]:
    """A record as the protocol describes a memory: the caller's to change."""
    return {"id": record.id, "content": record.text, "attributes": copy.deepcopy(dict(record.data))}


def _result(hit: Hit) -> MemorySearchResult:
    attributes = copy.deepcopy(dict(hit.record.data))
    return MemorySearchResult(
        memory_id=hit.record.id,
        content=hit.record.text,
        similarity_score=hit.similarity or 0.0,
        attributes=attributes,
    )
