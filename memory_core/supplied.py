"""The protocols of what a user may supply beside a store: embedders, rerankers and language models.

`memory_core.testing` has a contract for embedders and one for rerankers: a test class to subclass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypedDict, TypeGuard

from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """Shape (n, dimensions), unit rows."""
    Vector = NDArray[np.float32]
    """Shape (dimensions,), unit length."""

Clock = Callable[[], datetime]
"""Returns the current time as an aware datetime."""


class Embedder(Protocol):
    """Turns text into unit vectors. Documents and queries may be embedded differently."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Stored with every vector; a store refuses to mix two fingerprints."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row of float32 per text, in the order given; raises `EmbeddingError`."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The unit vector of a query; raises `EmbeddingError`."""
        ...

    async def close(self) -> None:
        """Release models and threads; may be called twice."""
        ...


class Familiar(Protocol):
    """Optional for an embedder: it reports whether it knows the language of a text."""

    async def familiarity(self, text: str) -> float:
        """The familiarity of the words of a query, from 0 (none) to 1, which is the weight of cosines. It is called
        after `embed_query` with the same text."""
        ...


async def familiarity(embedder: object, text: str) -> float:
    """`Familiar.familiarity`, or 1 if the embedder does not report it."""
    return await embedder.familiarity(text) if _is_familiar(embedder) else 1.0


def _is_familiar(embedder: object) -> TypeGuard[Familiar]:
    """Asked for every query; `isinstance` would take 8 µs for a protocol."""
    return hasattr(embedder, "familiarity")


class Weights(NamedTuple):
    """The weight of each number of a query's vector, shape `(dimensions,)`, from 0, not all 0."""

    english: Vector
    """For its comparison with a text in English, or whose language is not sure."""
    other: Vector
    """For its comparison with a text in another language."""


class Leaning(Protocol):
    """Optional for an embedder whose vectors are made of parts: it knows which part to trust with two texts.

    A ranking by words and meaning compares the texts with the query's vector so weighted. What a hit shows, and what a
    search by vectors alone compares, is the cosine with the vector as it is.
    """

    async def leaning(self, text: str) -> Weights:
        """The weights for a query. Called after `embed_query` with the same text."""
        ...


def is_leaning(embedder: object) -> TypeGuard[Leaning]:
    """True if an embedder knows which part of its vectors to trust; asked for every query, as `_is_familiar`."""
    return hasattr(embedder, "leaning")


class Reranker(Protocol):
    """Judges how well texts answer a query, usually with a model that reads both together (a cross-encoder)."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A finite number for each text, in the order given; the higher, the better it answers the query.

        It runs on the loop of the library: await requests, and run a local model in a thread (`asyncio.to_thread`).
        """
        ...


class Summarizer(Protocol):
    """Summarises several texts, usually with a model; this library never calls a model by itself."""

    async def summarize(self, texts: Sequence[str]) -> str:
        """One text instead of many, given in order. An exception reaches the caller, and nothing has changed then."""
        ...


class ChatMessage(TypedDict):
    """One message to a chat model, in the form of OpenAI's API, which most clients accept as it is."""

    role: Literal["system", "user"]
    content: str


class ChatModel(Protocol):
    """A language model of the caller; this library never calls one by itself."""

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """The text of the answer. An exception of any kind means that the model has not answered."""
        ...
