"""The memory as a retriever."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import Field, InstanceOf, field_validator
from typing_extensions import override

from memory_core import BoundMemory, Hit, Memory, RecallOptions, run_sync
from memory_core.adapting import MESSAGE_KIND, Asked, Deadline, block_for, limits
from memory_langchain.scope import MemoryOf, ScopeResolver

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

_NO_BUDGET: Final = 100_000_000
"""Character budget that never limits the number of documents; the text block itself is not used."""
_Count = Annotated[int, Field(ge=0, le=10_000)]


class MemoryRetriever(BaseRetriever):
    """Retrieves memories of the user whom a call names, best first.

    ```python
    retriever = MemoryRetriever(memory=memory.bind(app="support"), k=3)
    retriever.invoke("Which tea does she drink?", {"configurable": {"user_id": "ann"}})
    ```

    A document has the record's id and text; its metadata are `score` (higher is better, comparable within one call),
    `similarity` (cosine clamped to 0..1, or `None`), `kind`, `author`, `agent`, `session`, `occurred_at` (ISO 8601,
    UTC) and `tags`, `data` for records that are not turns of a conversation, and with a handle that has spaces also
    `space`, the label of the space it is from.
    """

    memory: InstanceOf[BoundMemory] | InstanceOf[Memory] | MemoryOf = Field(exclude=True, repr=False)
    """A handle or a memory; a call may name the user. It may also be a function from user and context to a handle."""
    k: _Count = 4
    """Most documents to return, 0 for none; `invoke(query, k=...)` overrides it for one call."""
    recall: InstanceOf[RecallOptions] = Field(default=RecallOptions(), exclude=True, repr=False)
    """Search options, such as `RecallOptions(where=Where(kinds=("preference",)), floor=False)`. Each text is returned
    once, and bare questions similar to the query are left out. The budget does not count, and `k` is the limit."""
    timeout: float = Field(default=limits.EXPLICIT_SECONDS, gt=0)
    """The seconds that a call may take before it is an error."""

    @field_validator("recall")
    @classmethod
    def _has_no_limit(cls, recall: RecallOptions) -> RecallOptions:
        if recall.limit is not None:
            raise ValueError("k says how many documents to return; leave out the limit of the recall options")
        return recall

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Search the memories of the user named by the context or by `config`.

        Raises:
            ScopeError: The user is missing or empty, or is not the user of the handle.
        """
        return super().invoke(input, config, **kwargs, called=ensure_config(config))

    @override
    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """As `invoke`."""
        return await super().ainvoke(input, config, **kwargs, called=ensure_config(config))

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        called: RunnableConfig | None = None,
        k: int | None = None,
    ) -> list[Document]:
        return run_sync(self._retrieved, query, called, k)

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        called: RunnableConfig | None = None,
        k: int | None = None,
    ) -> list[Document]:
        return await self._retrieved(query, called, k)

    async def _retrieved(self, query: str, config: RunnableConfig | None, k: int | None) -> list[Document]:
        most = self.k if k is None else k
        deadline = Deadline(self.timeout, "a retriever")
        memory = (await ScopeResolver(self.memory).resolved(deadline, config)).reach
        if most == 0:
            return []
        options = replace(
            self.recall,
            max_chars=_NO_BUDGET,
            max_tokens=None,
            count_tokens=None,
            limit=most,
            neighbors=False,
        )
        asked = Asked(query, shows_query=False)
        found = await deadline.read("retrieving documents", lambda: block_for(memory, asked, options))
        return [to_document(hit, space=memory.space_of(hit.record) if memory.spaces else None) for hit in found.hits]


def to_document(hit: Hit, *, space: str | None = None) -> Document:
    """Convert a hit to a document; see `MemoryRetriever` for its metadata."""
    record = hit.record
    metadata: dict[str, Any] = {
        "score": hit.score,
        "similarity": hit.similarity,
        "kind": record.kind,
        "author": record.author,
        "agent": record.agent,
        "session": record.session,
        "occurred_at": record.occurred_at.isoformat(),
        "tags": list(record.tags),
    }
    if space is not None:
        metadata["space"] = space
    if record.kind != MESSAGE_KIND:
        metadata["data"] = dict(record.data)
    return Document(id=record.id, page_content=record.text, metadata=metadata)
