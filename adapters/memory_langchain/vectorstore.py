"""The memory as a LangChain vector store."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, Self, cast

from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Where,
    data_conditions,
    run_sync,
)
from memory_core.adapting import covered, cut_query
from memory_langchain.embedding import LangChainEmbedder
from memory_langchain.recall import SearchMode
from memory_langchain.scope import of_one_owner

try:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import VectorStore
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.embeddings import Embeddings

DOCUMENT_KIND: Final = "document"
"""Kind of the records that are documents of a vector store."""

_PAGE: Final = 10_000

# LangChain's interface has `**kwargs` everywhere; unknown ones are refused here, so that a misspelt `filter` does not
# silently return everything.


class MemoryVectorStore(VectorStore):
    """The documents of one handle, for code that takes a `VectorStore`: loaders, indexing, retrieval chains.

    ```python
    manuals = MemoryVectorStore(memory.bind(app="support", user="everyone", collection="manuals"))
    manuals.add_texts(["Press both buttons to reset"], [{"page": 4}], ids=["reset"])
    manuals.similarity_search("How do I reset it?", k=1, filter={"page": {"$lt": 10}})
    ```

    Documents are records of the kind `"document"`, which the other classes find too; this class returns only documents
    in the scope of its handle. Ids are unique within the handle: adding an id again replaces its document, and an id
    can be reused after deletion. A call writes all or nothing.

    The memory's embedder computes the vectors (`LangChainEmbedder` wraps LangChain's `Embeddings`). Maximal marginal
    relevance compares documents by the words they share, as the memory itself does; it needs no vectors.

    Args:
        memory: A handle that is bound to a user.
        mode: The ranking of queries: `vector`, `hybrid` or `lexical` (the only one without an embedder).

    Raises:
        ScopeError: The handle is not bound to a user.
    """

    def __init__(self, memory: BoundMemory, *, mode: SearchMode = "vector") -> None:
        self._memory = of_one_owner(memory, "MemoryVectorStore(memory.bind(app='support', user='ann'))")
        self._mode: SearchMode = mode

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
        return run_sync(self.aadd_texts, texts, metadatas, ids=ids, batch_size=batch_size, **kwargs)

    @override
    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As `add_texts`."""
        _refuse(kwargs)
        listed = list(texts)
        named = [identity or str(uuid.uuid4()) for identity in ids or [None] * len(listed)]
        described: list[dict[str, Any]] = metadatas or [{} for _ in listed]
        if not len(listed) == len(named) == len(described):
            raise InvalidInputError(
                f"{len(listed)} texts have {len(described)} metadatas and {len(named)} ids; pass one of each per text"
            )
        await self._memory.put_many(
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
        return run_sync(self.adelete, ids, filter=filter, **kwargs)

    @override
    async def adelete(
        self, ids: Sequence[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool:
        """As `delete`."""
        _refuse(kwargs)
        if ids is not None and filter is not None:
            raise InvalidInputError("delete takes ids or a filter, not both")
        if ids is None:
            await self._memory.delete_where(_where(filter), forget=False)
        else:
            await self._memory.put_many([], remove={self._key(identity) for identity in ids})
        return True

    @override
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in no particular order; unknown ids are left out."""
        return run_sync(self.aget_by_ids, ids)

    @override
    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As `get_by_ids`."""
        keys = sorted({self._key(identity) for identity in ids})
        documents: list[Document] = []
        for start in range(0, len(keys), _PAGE):
            some = keys[start : start + _PAGE]
            page = await self._memory.list(where=Where(kinds=(DOCUMENT_KIND,), source_keys=some), limit=len(some))
            documents += map(_document, page.records)
        return documents

    @override
    def similarity_search(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that match a query best, best first.

        Args:
            query: A question. A blank one, which other stores also accept, lists the documents, newest first.
            k: At most this many; 0 for none.
            filter: Conditions on the metadata, as for `MemoryStore`: `{"page": {"$lt": 10}, "lang": "en"}`.
        """
        return run_sync(self.asimilarity_search, query, k, filter=filter, **kwargs)

    @override
    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """As `similarity_search`."""
        return [_document(hit.record) for hit in await self._found(query, k, filter, kwargs)]

    @override
    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Like `similarity_search`, with a score for each document, from 0 to 1.

        It is the cosine (0 if the document has no vector), and in the mode `lexical` the share of the question's words,
        rare ones counting more, that the document has.
        """
        return run_sync(self.asimilarity_search_with_score, query, k, filter=filter, **kwargs)

    @override
    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As `similarity_search_with_score`."""
        hits = await self._found(query, k, filter, kwargs)
        is_lexical = self._mode == "lexical"
        return [(_document(hit.record), covered(hit) if is_lexical else hit.similarity or 0.0) for hit in hits]

    @override
    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents nearest to a vector, best first.

        Args:
            embedding: A vector of the memory's embedding model.
            k: At most this many.
            filter: See `similarity_search`.

        Raises:
            InvalidInputError: The vector's dimensions differ from those of the memory, or it has no direction.
        """
        return run_sync(self.asimilarity_search_by_vector, embedding, k, filter=filter, **kwargs)

    @override
    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """As `similarity_search_by_vector`."""
        return [_document(hit.record) for hit in await self._found(embedding, k, filter, kwargs)]

    @override
    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
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
        return run_sync(self.amax_marginal_relevance_search, query, k, fetch_k, lambda_mult, filter=filter, **kwargs)

    @override
    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`."""
        hits = await self._found(query, k, filter, kwargs, diversity=_diversity(lambda_mult), candidates=fetch_k)
        return [_document(hit.record) for hit in hits]

    @override
    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Like `max_marginal_relevance_search`, for a vector as in `similarity_search_by_vector`."""
        return run_sync(
            self.amax_marginal_relevance_search_by_vector, embedding, k, fetch_k, lambda_mult, filter=filter, **kwargs
        )

    @override
    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search_by_vector`."""
        hits = await self._found(embedding, k, filter, kwargs, diversity=_diversity(lambda_mult), candidates=fetch_k)
        return [_document(hit.record) for hit in hits]

    @override
    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float  # the score is the relevance

    @classmethod
    @override
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        memory: BoundMemory | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store with these documents: `MemoryVectorStore.from_texts(texts, memory=handle)`.

        Like LangChain's own stores, it also takes an `embedding` instead of a memory, and then keeps the documents in
        the memory of the process: for examples, trials and example selectors.

        Raises:
            InvalidInputError: Both are given; a memory has its own embedder.
            ScopeError: Neither is given, or the handle is not bound to a user.
        """
        return run_sync(cls.afrom_texts, texts, embedding, metadatas, ids=ids, memory=memory, **kwargs)

    @classmethod
    @override
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        memory: BoundMemory | None = None,
        **kwargs: Any,
    ) -> Self:
        """As `from_texts`."""
        store = await cls._made(embedding, memory)
        await store.aadd_texts(texts, metadatas, ids=ids, **kwargs)
        return store

    @classmethod
    @override
    def from_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        memory: BoundMemory | None = None,
        **kwargs: Any,
    ) -> Self:
        """`from_texts` for documents, with their ids: `MemoryVectorStore.from_documents(documents, memory=handle)`."""
        return run_sync(cls.afrom_documents, documents, embedding, memory=memory, **kwargs)

    @classmethod
    @override
    async def afrom_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        memory: BoundMemory | None = None,
        **kwargs: Any,
    ) -> Self:
        """As `from_documents`."""
        store = await cls._made(embedding, memory)
        await store.aadd_documents(documents, **kwargs)
        return store

    @classmethod
    async def _made(cls, embedding: Embeddings | None, memory: BoundMemory | None) -> Self:
        if embedding is None:
            return cls(cast("BoundMemory", memory))
        if memory is not None:
            raise InvalidInputError(
                "the memory computes the vectors: pass embedding=None here and give the memory an embedder, "
                "Memory(..., embedder=LangChainEmbedder(embeddings, name=..., dimensions=...))"
            )
        dimensions = len(await embedding.aembed_query("the length of a vector"))
        embedder = LangChainEmbedder(embedding, name=type(embedding).__qualname__, dimensions=dimensions)
        return cls(Memory(":memory:", embedder=embedder).bind(user="everyone"))

    async def _found(
        self,
        query: str | Sequence[float],
        k: int,
        wanted: Mapping[str, Any] | None,
        unknown: Mapping[str, object],
        *,
        diversity: float = 0.0,
        candidates: int | None = None,
    ) -> list[Hit]:
        """The best documents for a text or a vector."""
        _refuse(unknown)
        if k == 0:
            return []
        where = _where(wanted)
        if not isinstance(query, str):
            return await self._memory.search_by_vector(
                query, limit=k, where=where, floor=False, diversity=diversity, candidates=candidates
            )
        if not query.strip():
            return [Hit(record, 0.0, None) for record in (await self._memory.list(where=where, limit=k)).records]
        text = cut_query(query)
        return await self._memory.search(
            text,
            limit=k,
            where=where,
            mode=self._mode,
            floor=False,
            explain=self._mode == "lexical",
            diversity=diversity,
            candidates=candidates,
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


def _diversity(lambda_mult: object) -> float:
    if isinstance(lambda_mult, bool) or not isinstance(lambda_mult, int | float) or not 0 <= lambda_mult <= 1:
        raise InvalidInputError(f"lambda_mult must be a number from 0 to 1, not {lambda_mult!r}")
    return 1.0 - lambda_mult


def _refuse(unknown: Mapping[str, object]) -> None:
    if unknown:
        raise InvalidInputError(f"a vector store has no option {', '.join(sorted(unknown))}; remove or correct it")
