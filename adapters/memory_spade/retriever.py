"""A memory as the source of spade_llm's `RetrievalAgent`, which other agents ask with a `RetrievalTool`."""

from __future__ import annotations

try:
    from spade_llm.rag import BaseRetriever, Document
except ImportError as error:
    raise ImportError(
        "`MemoryRetriever` needs spade_llm 0.3, which runs on Python 3.11 and 3.12; there: "
        "pip install 'memory-core[spade-llm]'"
    ) from error

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from memory_core import BoundMemory, DataCondition, FieldCondition, MemoryRecord, UnsupportedError, Where
from memory_core.adapting import EVERYTHING, cut_query

_FIELDS: Final[tuple[Literal["author", "kind", "session"], ...]] = ("author", "kind", "session")


class MemoryRetriever(BaseRetriever):
    """Finds records by meaning and words: `RetrievalAgent(jid, password, MemoryRetriever(handle))`.

    **Everybody who may write to the agent can read what the handle reads.**

    Args:
        memory: A handle, bound to whom the records belong.
        where: Only records that satisfy these conditions.
    """

    def __init__(self, memory: BoundMemory, where: Where = EVERYTHING) -> None:
        self._memory, self._where = memory, where

    async def retrieve(  # type: ignore[override]  # spade_llm gives no other keywords
        self, query: str, k: int = 4, *, search_type: str = "similarity", filters: Mapping[str, object] | None = None
    ) -> list[Document]:
        """Return the best `k` records as documents.

        Args:
            query: A question or words; a blank one finds nothing.
            k: Most documents.
            search_type: `similarity`; a memory has no other.
            filters: Values of the documents' metadata.

        Raises:
            UnsupportedError: Another `search_type`.
            InvalidInputError: `k` is below 1, or a filter is no JSON value.
        """
        if search_type != "similarity":
            raise UnsupportedError(f"a memory is searched by similarity, not by {search_type!r}")
        conditions = [_condition(key, value) for key, value in (filters or {}).items()]
        where = replace(self._where, matching=(*(self._where.matching or ()), *conditions))
        hits = await self._memory.search(cut_query(query), limit=k, where=where) if query.strip() else []
        return [_document(hit.record) for hit in hits]


def _condition(key: str, value: object) -> FieldCondition | DataCondition:
    for field in _FIELDS:
        if key == field:
            return FieldCondition(field, "eq", value)
    return DataCondition((key,), "eq", value)


def _document(record: MemoryRecord) -> Document:
    """The text of a record; its metadata are the keys of its data, and who said it, where and when."""
    said: dict[str, object] = {"author": record.author, "kind": record.kind, "session": record.session}
    known = {name: value for name, value in said.items() if value is not None}
    return Document(record.text, {**record.data, **known, "occurred_at": record.occurred_at.isoformat()}, record.id)
