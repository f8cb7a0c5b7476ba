"""Vectors of the texts that a store writes, in batches, checked to be vectors.

An embedder may raise anything, and return anything. Vectors that cannot be computed now are pending; no text is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from memory_core.concurrency.foreign import LateAnswerError, NoAnswerError, answer_within
from memory_core.errors import EmbeddingError, MemoryCoreError, reason_for_log
from memory_core.storage.shared.prepared import Prepared
from memory_core.supplied import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


logger = logging.getLogger(__name__)

LONGEST_CALL_SECONDS: Final = 60.0
"""The time that a call of an embedder may take, with one second more for each of its texts: enough to load a model.
Other adds wait behind it."""


def texts_to_embed(text: str, chunks: Sequence[tuple[int, int]]) -> list[str]:
    """The text to embed for each chunk of a record: its own text only."""
    return [text[start:stop] for start, stop in chunks]


async def embed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """The vectors of some texts as float16: half the bytes, and the order of cosines is preserved.

    Raises:
        EmbeddingError: The embedder failed, or returned invalid vectors, with which every later search would fail.
    """
    import numpy as np  # noqa: PLC0415  (only stores that embed need it)

    wanted = (len(texts), embedder.fingerprint.dimensions)
    vectors = await checked_vectors(embedder, lambda: embedder.embed_documents(texts), wanted)
    return [row.tobytes() for row in vectors.astype(np.float16)]


async def embed_pieces(embedder: Embedder, texts: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> list[list[bytes]]:
    """The vectors of the pieces of each text, given with them."""
    pieces = [texts_to_embed(*one) for one in texts]
    flat = [text for some in pieces for text in some]
    blobs = iter(await embed(embedder, flat) if flat else ())
    return [[next(blobs) for _ in some] for some in pieces]


async def with_vectors(
    embedder: Embedder,
    items: Sequence[Prepared],
    *,
    kept: Collection[str] = (),
) -> list[Prepared]:
    """The items with vectors, from one call of the embedder; if it fails, the vectors are pending, and no text is lost.

    Args:
        kept: The ids of records whose text is stored already, and keeps its vectors.
    """
    pieces = [(item.record.text, () if item.record.id in kept else item.chunks) for item in items]
    try:
        vectors = await embed_pieces(embedder, pieces)
    except EmbeddingError as error:
        logger.warning("%d vectors are pending: %s", sum(len(chunks) for _, chunks in pieces), reason_for_log(error))
        return list(items)
    made_by = embedder.fingerprint
    return [item.embedded(rows, made_by) if rows else item for item, rows in zip(items, vectors, strict=True)]


async def checked_vectors(
    embedder: Embedder, ask: Callable[[], Awaitable[object]], wanted: tuple[int, ...]
) -> NDArray[np.float32]:
    """The result of any embedder, checked to be vectors, at unit length.

    Raises:
        EmbeddingError: It failed, returned something else, or did not answer in time.
    """
    import numpy as np  # noqa: PLC0415  (only stores that embed need it)

    from memory_core.retrieval.unit_vectors import is_unit, unit_rows  # noqa: PLC0415

    name = embedder.fingerprint.name
    seconds = LONGEST_CALL_SECONDS + (wanted[0] if len(wanted) > 1 else 1)
    try:
        vectors = np.asarray(await answer_within(seconds, ask), np.float32)
    except LateAnswerError:
        raise EmbeddingError(f"{name} did not answer within {seconds:.0f} s") from None
    except NoAnswerError as error:
        raise EmbeddingError(f"{name} has cancelled its call") from error
    except (GeneratorExit, asyncio.CancelledError, MemoryCoreError):  # of the caller, or said already
        raise
    except BaseException as error:  # it may raise anything, and may succeed next time
        raise EmbeddingError(f"{name} failed: {type(error).__name__}: {error}") from error
    if vectors.shape == wanted and len(wanted) == 1 and is_unit(vectors):  # a query
        return vectors
    if vectors.shape != wanted or not np.isfinite(vectors).all():
        raise EmbeddingError(f"{name} returned an array of shape {vectors.shape}; it must be {wanted} and finite")
    return unit_rows(np.atleast_2d(vectors)).reshape(wanted)
