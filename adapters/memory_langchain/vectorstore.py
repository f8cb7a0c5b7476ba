"""The memory as a LangChain vector store."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, Self, cast

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Where,
    data_conditions,
)
from memory_core.adapting import Mode, check_unit, cut_query, share_of_words
from memory_langchain.embedding import LangChainEmbedder
from memory_langchain.scope import of_one_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.embeddings import Embeddings

DOCUMENT_KIND: Final = "document"
"""Kind of the records that are documents of a vector store."""


class MemoryVectorStore(VectorStore):
    """The documents of one handle, for code that takes a `VectorStore`: loaders, indexing, retrieval chains.

    ```python
    manuals = MemoryVectorStore(memory.bind(app="support", user="everyone", collection="manuals"))
    manuals.add_texts(["Press both buttons to reset"], [{"page": 4}], ids=["reset"])
    manuals.similarity_search("How do I reset it?", k=1, filter={"page": {"$lt": 10}})
    ```

    Documents are records of the kind `"document"`, which the other classes find too; this class returns only documents
    in the scope of its handle. Ids are unique within the handle: adding an id again replaces its document, and an id
    can be reused after deletion. A call writes all or nothing. The methods raise `TypeError` for an option that they do
    not have, so that a misspelt `filter` does not return everything.

    The memory's embedder computes the vectors (`LangChainEmbedder` wraps LangChain's `Embeddings`). Maximal marginal
    relevance compares documents by the words they share, as the memory itself does; it needs no vectors.

    Args:
        memory: A handle that is bound to a user.
        mode: The ranking of queries: `vector`, `hybrid` or `lexical` (the only one without an embedder).

    Raises:
        ScopeError: The handle is not bound to a user.
    """

    def __init__(self, memory: BoundMemory, *, mode: Mode = "vector") -> None:
        self._memory = of_one_owner(memory, "MemoryVectorStore(memory.bind(app='support', user='ann'))")
        self._mode: Mode = mode

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @override
    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add or replace documents: all of them or, on an error, none.

        Args:
            texts: The searched texts.
            metadatas: JSON objects, one per text; they are returned unchanged. Of what loaders add, times become their
                ISO 8601 text, tuples and arrays lists, and numbers of numpy plain numbers.
            ids: One per text; `None` generates a new id.
            batch_size: Passed by LangChain's indexing and ignored; all documents are written in one transaction.

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: The numbers differ, or a value cannot be stored; nothing was written.
        """
        _no_options(**kwargs)
        listed = list(texts)
        named = [identity or str(uuid.uuid4()) for identity in ids or [None] * len(listed)]
        described: list[dict[str, Any]] = metadatas or [{} for _ in listed]
        if not len(listed) == len(named) == len(described):
            raise InvalidInputError(
                f"{len(listed)} texts have {len(described)} metadatas and {len(named)} ids; pass one of each per text"
            )
        self._memory.sync.put_many(
            [self._draft(text, data, name) for text, data, name in zip(listed, described, named, strict=True)]
        )
        return named

    @override
    def delete(
        self, ids: Sequence[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool:
        """Delete the documents with these ids or those that satisfy a filter, else all documents of the handle.

        Args:
            ids: Unknown ids are ignored.
            filter: See `similarity_search`.

        Raises:
            InvalidInputError: Both are given.
        """
        _no_options(**kwargs)
        if ids is not None and filter is not None:
            raise InvalidInputError("delete takes ids or a filter, not both")
        if ids is None:
            self._memory.sync.delete_where(_where(filter), forget=False)
        else:
            self._memory.sync.put_many([], remove={self._key(identity) for identity in ids})
        return True

    @override
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, at most 10,000, in no particular order; unknown ids are left out."""
        keys = sorted({self._key(identity) for identity in ids})
        where = Where(kinds=(DOCUMENT_KIND,), source_keys=keys)
        return [_document(record) for record in self._memory.sync.list(where=where, limit=max(len(keys), 1)).records]

    @override
    def similarity_search(
        self, query: str, k: int = 4, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that match a query best, best first.

        Args:
            query: A question. A blank one, which other stores also accept, lists the documents, newest first.
            k: At most this many; 0 for none.
            filter: Conditions on the metadata, as for `MemoryStore`: `{"page": {"$lt": 10}, "lang": "en"}`.
        """
        return [_document(hit.record) for hit in self._found(query, k, filter, **kwargs)]

    @override
    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Like `similarity_search`, with a score for each document, from 0 to 1.

        It is the cosine (0 if the document has no vector), and in the mode `lexical` the share of the question's words,
        rare ones counting more, that the document has.
        """
        hits, is_lexical = self._found(query, k, filter, **kwargs), self._mode == "lexical"
        return [(_document(hit.record), share_of_words(hit) if is_lexical else hit.similarity or 0.0) for hit in hits]

    @override
    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Like `similarity_search`, for a vector of the memory's embedding model.

        Raises:
            InvalidInputError: The vector's dimensions differ from those of the memory, or it has no direction.
        """
        _no_options(**kwargs)
        if k == 0:
            return []
        hits = self._memory.sync.search_by_vector(embedding, limit=k, where=_where(filter), floor=False)
        return [_document(hit.record) for hit in hits]

    @override
    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are relevant to a question and different from each other; the first is the best.

        Args:
            query: A question.
            k: At most this many, up to 100.
            fetch_k: Number of best documents to choose from, 1 to 10,000.
            lambda_mult: Weight of relevance, from 1 (relevance only) to 0 (diversity only).
            filter: See `similarity_search`.
        """
        return [_document(hit.record) for hit in self._found(query, k, filter, lambda_mult, fetch_k, **kwargs)]

    @override
    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float  # the score is the relevance

    @classmethod
    @override
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store that keeps these documents as long as the process lives, as LangChain's example selectors do.

        For documents that last, and for a memory with its own embedder: `MemoryVectorStore(handle).add_texts(texts)`.
        """
        dimensions = len(embedding.embed_query("the length of a vector"))
        embedder = LangChainEmbedder(embedding, name=type(embedding).__qualname__, dimensions=dimensions)
        store = cls(Memory(":memory:", embedder=embedder).bind(user="everyone"))
        store.add_texts(texts, metadatas, ids=ids, **kwargs)
        return store

    def _found(
        self,
        query: str,
        k: int,
        wanted: Mapping[str, Any] | None,
        lambda_mult: float = 1.0,
        fetch_k: int | None = None,
        /,
    ) -> list[Hit]:
        """The best documents for a text."""
        if k == 0:
            return []
        where, diversity = _where(wanted), 1 - check_unit("lambda_mult", lambda_mult)
        if not query.strip():
            return [Hit(record, 0.0, None) for record in self._memory.sync.list(where=where, limit=k).records]
        return self._memory.sync.search(
            cut_query(query),
            limit=k,
            where=where,
            mode=self._mode,
            floor=False,
            explain=self._mode == "lexical",
            diversity=diversity,
            candidates=fetch_k,
        )

    def _draft(self, text: str, metadata: Mapping[str, Any], identity: str) -> Draft:
        data: dict[str, Any] = {"id": identity, "metadata": {name: _plain(value) for name, value in metadata.items()}}
        return Draft(text, kind=DOCUMENT_KIND, data=data, source_key=self._key(identity))

    def _key(self, identity: str) -> str:
        """The source key of an id, unique per id and handle."""
        scope = self._memory.scope
        name = json.dumps([scope.agent, scope.session, scope.collection, identity])
        return f"document:{hashlib.sha256(name.encode()).hexdigest()}"


def _document(record: MemoryRecord) -> Document:
    data: Any = record.data
    return Document(id=data["id"], page_content=record.text, metadata=dict(data["metadata"]))


def _plain(value: object) -> object:
    """A value of a loader as JSON: times, tuples, and scalars and arrays of numpy. Others are as they were."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {name: _plain(item) for name, item in pairs.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    to_list = getattr(value, "tolist", None)
    return _plain(to_list()) if callable(to_list) else value


def _where(wanted: Mapping[str, Any] | None) -> Where:
    return Where(kinds=(DOCUMENT_KIND,), matching=data_conditions(wanted, ("metadata",)))


def _no_options() -> None:
    """Raise `TypeError` for an option of a caller, because it has none."""
