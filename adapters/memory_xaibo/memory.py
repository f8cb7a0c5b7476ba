"""A core memory as a module of a Xaibo agent."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Patch,
    RecordNotFoundError,
    ScopeError,
)
from memory_core.adapting import check_count, check_key, cut_query, operations
from memory_xaibo.modules import (
    OWNER,
    Config,
    Conversation,
    bound,
    injects,
    options,
)
from memory_xaibo.protocols import MemoryProtocol, MemorySearchResult

Ranking = Literal["similarity", "relevance"]
Attributes = dict[str, Any]
"""Plain JSON, as tools pass it."""

PAGE: Final = 1_000
"""Memories that are read at a time."""
_SPACE: Final = "space"
"""The attribute of the memories of a space that names it."""


class MemoryList(list[dict[str, Any]]):
    """Memories, with the cursor of the next page if a page was asked for."""

    cursor: str | None = None
    """Pass it to `list_memories` for the next page; `None` on the last page."""


class CoreMemory(MemoryProtocol):
    """The memories of one owner for a Xaibo agent, shared with all other frameworks.

    ```yaml
    - module: memory_xaibo.CoreMemory
      id: memory
      scope: agent
      config: {path: memory.db, user: ann}
    ```

    Attributes are stored as the record's `data`; for records of other frameworks, their `data` is the attributes.

    Args:
        config: `path` of the file and `user`; `app` (`"default"`); `agent` and `collection`, to write and read only
            their memories; `ranking`: `"similarity"` returns the nearest `k`, as the protocol says, and `"relevance"`
            searches like the other frameworks and leaves out irrelevant memories; `session`, the conversation of the
            agent, which `MemoryConversation` and `MemoryLLM` need.
        memory: A handle instead of a path; the caller closes it. The attribute `space` of a memory that is from one of
            its spaces is the label.

    Raises:
        InvalidInputError: An option is unknown or missing.
        ScopeError: No user is named.
    """

    @injects()
    def __init__(self, config: Config | None = None, *, memory: BoundMemory | None = None) -> None:
        given = options(config, "CoreMemory", ("path", *OWNER, "ranking", "session"))
        self._ranking = given.get("ranking", "similarity")
        if self._ranking not in get_args(Ranking):
            raise InvalidInputError(f"ranking is {self._ranking!r}; it must be similarity or relevance")
        place = Memory(given["path"]) if "path" in given else None
        self._handle = bound(memory, place, given)
        session = given.get("session")
        self._session = None if session is None else check_key("session", session)

    @property
    def handle(self) -> BoundMemory:
        """The core's handle on these memories, with all other operations."""
        return self._handle

    @property
    def conversation(self) -> Conversation:
        """The place where `MemoryConversation` and `MemoryLLM` keep the messages of the agent.

        Raises:
            ScopeError: `session` is missing.
        """
        if self._session is None:
            raise ScopeError("the conversation has no session: add `session: monday` to the config of CoreMemory")
        return Conversation(self._handle, self._session)

    async def store_memory(self, text: str, attributes: Attributes | None = None) -> str:
        """Store a memory and return its id once it is on disk.

        What is known already is not stored again: the id is that of the memory with the same text and attributes.

        Raises:
            InvalidInputError: The text is blank or too long, or the attributes are not JSON.
        """
        draft = Draft(insist_on_text(text), session=self._session, data=attributes or {})
        return (await operations.store(self._handle, draft)).record.id

    async def get_memory(self, memory_id: str) -> dict[str, Any] | None:
        """Return the memory with this id as `id`, `content` and `attributes`, or `None` for an unknown id."""
        record = await self._handle.get(memory_id)
        return None if record is None else self._shown(record)

    async def search_memory(self, query: str, k: int = 10) -> list[MemorySearchResult]:
        """Return up to `k` (1 to 10,000) different memories, best first; a blank query finds nothing."""
        asked = checked_query(query, k)
        if not asked:
            return []
        by_relevance = self._ranking == "relevance"
        mode: Literal["hybrid", "vector"] = "hybrid" if by_relevance else "vector"
        groups = await operations.search(
            self._handle.search, asked, limit=k, mode=mode, floor=by_relevance, apart=apart
        )
        return [_result(best, self._shown(best.record)["attributes"]) for best, *_ in groups]

    def _shown(self, record: MemoryRecord) -> dict[str, Any]:
        memory = shown(record)
        if self._handle.spaces:  # its writer may have stored a label of a space
            memory["attributes"].pop(_SPACE, None)
            if (label := self._handle.label_of(record)) is not None:
                memory["attributes"][_SPACE] = label
        return memory

    async def list_memories(self, *, limit: int | None = None, cursor: str | None = None) -> MemoryList:
        """Return all memories, oldest first, or a page of them.

        Args:
            limit: Page size, 1 to 10,000; by default there are no pages.
            cursor: `cursor` of the previous page.
        """
        memories = MemoryList()
        while True:
            page = await self._handle.list(order="oldest", limit=PAGE if limit is None else limit, cursor=cursor)
            memories.extend(map(self._shown, page.records))
            cursor = page.cursor
            if limit is not None or cursor is None:
                break
        memories.cursor = cursor
        return memories

    async def delete_memory(self, memory_id: str) -> bool:
        """Delete a memory permanently; return whether it existed."""
        try:
            await self._handle.delete(memory_id)
        except RecordNotFoundError:
            return False
        return True

    async def update_memory(self, memory_id: str, text: str, attributes: Attributes | None = None) -> bool:
        """Replace the text of a memory, and its attributes if any are given; return whether the memory exists."""
        insist_on_text(text)
        patch = Patch(text=text) if attributes is None else Patch(text=text, data=attributes)
        try:
            await operations.change(self._handle, memory_id, lambda _: patch)
        except RecordNotFoundError:
            return False
        return True

    async def close(self) -> None:
        """Close the memory that `path` opened. A memory that is never closed loses no data either."""
        await self._handle.memory.close()


OPERATIONS: Final[Mapping[str, operations.Operation]] = {
    CoreMemory.store_memory.__name__: operations.store,
    CoreMemory.get_memory.__name__: BoundMemory.get,
    CoreMemory.search_memory.__name__: operations.search,
    CoreMemory.list_memories.__name__: BoundMemory.list,
    CoreMemory.delete_memory.__name__: BoundMemory.delete,
    CoreMemory.update_memory.__name__: operations.change,
}
"""The operation of each method of the protocol. A list is whole, as the protocol says: it has every id, also of
memories that say the same."""


def apart(record: MemoryRecord) -> str:
    """The attributes that tell memories with equal texts apart."""
    return repr(sorted(record.data.items()))


def checked_query(query: object, k: object) -> str:
    """Return the query, cut to the longest one a search accepts; empty if it is blank."""
    check_count("k", k, 1)
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a string, not {type(query).__name__}")
    return cut_query(query) if query.strip() else ""


def insist_on_text(text: object) -> str:
    """Return the text, or raise `InvalidInputError` if it is blank or not a string."""
    if not isinstance(text, str):
        raise InvalidInputError(f"the text of a memory must be a string, not {type(text).__name__}")
    if not text.strip():
        raise InvalidInputError("the text of a memory must not be blank")
    return text


def shown(record: MemoryRecord) -> dict[str, Any]:
    """A record in the protocol's form for memories; the caller may modify it."""
    return {"id": record.id, "content": record.text, "attributes": copy.deepcopy(dict(record.data))}


def _result(hit: Hit, attributes: Attributes) -> MemorySearchResult:
    return MemorySearchResult(
        memory_id=hit.record.id,
        content=hit.record.text,
        similarity_score=hit.similarity or 0.0,
        attributes=attributes,
    )
