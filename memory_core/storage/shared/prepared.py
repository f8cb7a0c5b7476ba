"""What every store writes for a record: its values in their stored form, and everything derived from it.

A `Prepared` record is ready to be written in one transaction. Pure functions at the end say what becomes of a record
when another one has its source key, or when its text changes.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memory_core.checks import is_long
from memory_core.chunking import DEFAULT_CHUNKER, Chunker, pieces_of
from memory_core.errors import (
    DuplicateIdError,
    EmbeddingError,
    FingerprintError,
    InvalidInputError,
    MemoryCoreError,
    reason_for_log,
)
from memory_core.json_values import is_same_json
from memory_core.loop import is_cancelled, off_loop
from memory_core.models import Fingerprint, Link, MemoryRecord, Scope, Version
from memory_core.progress import Progress, ProgressCallback
from memory_core.protocols import Embedder, Familiar, SearchRequest
from memory_core.retrieval.analysis import Features, features
from memory_core.retrieval.question import without_names
from memory_core.threads import yield_now

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_core.retrieval.cosine_scale import Unrelated
    from memory_core.retrieval.ranking import Vector


logger = logging.getLogger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC, exactly (floats would lose the last digits)."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The inverse of `micros`."""
    return _EPOCH + timedelta(0, 0, value)  # by position: twice as fast


def link_keys(links: Iterable[Link]) -> list[str]:
    """Links as strings, indexed like tags."""
    return [f"{link.relation}:{link.id}" for link in links]


def to_links(keys: Iterable[str]) -> tuple[Link, ...]:
    """The inverse of `link_keys`."""
    parts: list[Any] = [key.split(":", 1) for key in keys]
    return tuple(Link(*part) for part in parts)


TEXTS_AT_ONCE: Final = 256
"""Texts embedded between two progress reports: enough to keep all cores busy, for a second or less."""

_unrelated: Final[dict[Fingerprint, Unrelated]] = {}
"""By fingerprint, which determines the vector of each text."""


class Prepared(NamedTuple):
    """Everything that is written for one record. `vectors` is empty while they are pending."""

    record: MemoryRecord
    features: Features
    chunks: Sequence[tuple[int, int]]
    vectors: Sequence[bytes] = ()
    made_by: Fingerprint | None = None
    """The embedder of the vectors; not set for vectors that come from the file itself."""
    chunker: Chunker = DEFAULT_CHUNKER

    def again(self, record: MemoryRecord) -> Prepared:
        """Prepare another record, or a newer version of this one, in the same way; the same text keeps its vectors."""
        made = prepare(record, self.chunker)
        is_same = record.text == self.record.text
        return made._replace(vectors=self.vectors, made_by=self.made_by) if is_same else made

    def embedded(self, vectors: Sequence[bytes], made_by: Fingerprint) -> Prepared:
        """The same with its vectors."""
        return Prepared(self.record, self.features, self.chunks, vectors, made_by, self.chunker)


def prepare(record: MemoryRecord, chunker: Chunker = DEFAULT_CHUNKER) -> Prepared:
    """Analyse a record; its vectors are pending until `texts_to_embed` are embedded."""
    return Prepared(record, features(record), pieces_of(record.text, chunker), chunker=chunker)


async def prepare_all(prepare: Callable[[MemoryRecord], Prepared], records: Sequence[MemoryRecord]) -> list[Prepared]:
    """`prepare` for each record; long work runs in a thread."""

    def prepare_each() -> list[Prepared]:
        batch: list[Prepared] = []
        for record in records:
            batch.append(prepare(record))
            yield_now()
        return batch

    return await off_loop(is_long(*(record.text for record in records)), prepare_each)


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
    vectors = await _answer(embedder, lambda: embedder.embed_documents(texts), wanted)
    return [row.tobytes() for row in vectors.astype(np.float16)]


async def embed_reporting(
    embedder: Embedder, texts: Sequence[str], ends: Sequence[int], progress: ProgressCallback | None
) -> list[bytes]:
    """`embed`, in batches if progress is reported.

    Args:
        ends: For each record, the number of texts up to and including its last one.
    """
    if progress is None:
        return await embed(embedder, texts)
    blobs: list[bytes] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        blobs += await embed(embedder, texts[start : start + TEXTS_AT_ONCE])
        progress(Progress(bisect_right(ends, len(blobs)), len(ends)))
    return blobs


async def embed_pieces(
    embedder: Embedder, texts: Sequence[tuple[str, Sequence[tuple[int, int]]]], progress: ProgressCallback | None = None
) -> list[list[bytes]]:
    """The vectors of the pieces of each text, given with them; see `embed_reporting`."""
    pieces = [texts_to_embed(*one) for one in texts]
    ends = list(accumulate(map(len, pieces)))
    flat = [text for some in pieces for text in some]
    blobs = iter(await embed_reporting(embedder, flat, ends, progress) if flat else ())
    return [[next(blobs) for _ in some] for some in pieces]


async def with_vectors(
    embedder: Embedder,
    items: Sequence[Prepared],
    progress: ProgressCallback | None = None,
    *,
    kept: Collection[str] = (),
) -> list[Prepared]:
    """The items with vectors, from one call of the embedder; if it fails, the vectors are pending, and no text is lost.

    Args:
        progress: Called with the number of records whose vectors are computed.
        kept: The ids of records whose text is stored already, and keeps its vectors.
    """
    pieces = [(item.record.text, () if item.record.id in kept else item.chunks) for item in items]
    try:
        vectors = await embed_pieces(embedder, pieces, progress)
    except EmbeddingError as error:
        logger.warning("%d vectors are pending: %s", sum(len(chunks) for _, chunks in pieces), reason_for_log(error))
        return list(items)
    made_by = embedder.fingerprint
    return [item.embedded(rows, made_by) if rows else item for item, rows in zip(items, vectors, strict=True)]


async def embed_query(embedder: Embedder, text: str) -> Vector:
    """The vector of a query, with its familiarity; raises `EmbeddingError` as `embed` does."""
    from memory_core.retrieval.ranking import Vector  # noqa: PLC0415  (only stores that embed need it)

    values = await _answer(embedder, lambda: embedder.embed_query(text), (embedder.fingerprint.dimensions,))
    known = await embedder.familiarity(text) if isinstance(embedder, Familiar) else 1.0
    return Vector(values, await unrelated_to(embedder), known)


async def unrelated_to(embedder: Embedder) -> Unrelated:
    """The embedder's cosines between unrelated texts, computed once per process; raises `EmbeddingError` as `embed`."""
    from memory_core.retrieval.cosine_scale import TEXTS, unrelated  # noqa: PLC0415  (only stores that embed need it)

    fingerprint = embedder.fingerprint
    if fingerprint not in _unrelated:
        wanted = (len(TEXTS), fingerprint.dimensions)
        answer = await _answer(embedder, lambda: embedder.embed_documents(list(TEXTS)), wanted)
        _unrelated[fingerprint] = unrelated(answer)
    return _unrelated[fingerprint]


async def query_vector(embedder: Embedder | None, request: SearchRequest, without: Collection[str]) -> Vector | None:
    """The vector of a search request, if it needs one.

    Raises:
        EmbeddingError: As for `embed`.
        InvalidInputError: The request needs vectors and there is no embedder, or its vector has another dimension.
    """
    from memory_core.retrieval.ranking import Vector  # noqa: PLC0415  (only stores that embed need it)

    if embedder is None and request.mode == "vector":
        raise InvalidInputError(
            "this memory was opened with embedder=None, so there are no vectors for mode='vector' to compare; open "
            "it with an embedder (Memory(path) brings one), or search with mode='lexical' or 'hybrid'"
        )
    if embedder is None or request.mode == "lexical":
        return None
    if request.vector is not None:
        wanted = embedder.fingerprint.dimensions
        if len(request.vector) != wanted:
            raise InvalidInputError(f"the vectors of this memory have {wanted} numbers, not {len(request.vector)}")
        return Vector(request.vector, await unrelated_to(embedder))
    return await embed_query(embedder, without_names(request.text, without)) if request.text.strip() else None


async def _answer(
    embedder: Embedder, ask: Callable[[], Awaitable[object]], wanted: tuple[int, ...]
) -> NDArray[np.float32]:
    """The result of any embedder, checked to be vectors."""
    import numpy as np  # noqa: PLC0415  (only stores that embed need it)

    name = embedder.fingerprint.name
    try:
        vectors = np.asarray(await ask(), np.float32)
    except (MemoryCoreError, GeneratorExit):
        raise
    except BaseException as error:  # it may raise anything, and may succeed next time
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise EmbeddingError(f"{name} failed: {type(error).__name__}: {error}") from error
    if vectors.shape != wanted or not np.isfinite(vectors).all():
        raise EmbeddingError(f"{name} returned an array of shape {vectors.shape}; it must be {wanted} and finite")
    return vectors


def insist_on_embedder(found: Fingerprint | None, asked: Fingerprint | None) -> None:
    """Refuse vectors of another embedder than the one of a store's vectors; `None` for no embedder.

    Raises:
        FingerprintError: The vectors in the store were made by another embedder.
    """
    if found is not None and asked is not None and found != asked:
        raise FingerprintError(
            f"the vectors of this store were made by {found.name} {found.revision} ({found.dimensions} dimensions), "
            f"not by {asked.name} {asked.revision} ({asked.dimensions}); open it with that embedder, or "
            "recompute them: open it with embedder=None and call `await memory.reembed(embedder)`"
        )


def insist_on_reach(scope: Scope, record: MemoryRecord) -> None:
    """Refuse a record outside the scope; source keys are unique within the owner."""
    for name in ("agent", "session", "collection"):
        bound = getattr(scope, name)
        if bound is not None and bound != getattr(record, name):
            raise DuplicateIdError(
                f"source key {record.source_key!r} belongs to a record outside {name} {bound!r}; use another key"
            )


def merged(item: Prepared, later: Prepared) -> Prepared:
    """Merge two records of a batch with the same source key: the later one wins."""
    record = updated(item.record, later.record)
    return item if record is item.record else later.again(replace(record, rev=1, version=1))


def updated(record: MemoryRecord, later: MemoryRecord) -> MemoryRecord:
    """The record of a source key, updated from a later version; the same object if nothing differs.

    A later version without a role leaves the role unchanged.
    """
    role = later.role or record.role
    said = (later.text, role, later.author, later.tags)
    if said == (record.text, record.role, record.author, record.tags) and is_same_json(later.data, record.data):
        return record
    return replace(
        record,
        text=later.text,
        role=role,
        author=later.author,
        data=later.data,
        tags=later.tags,
        rev=record.rev + (record.text != later.text),
        updated_at=later.updated_at,
        version=record.version + 1,
    )


def replacing(before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """The record that a put writes over an existing one: the new one, with the fields that the store keeps."""
    return replace(
        after,
        id=before.id,
        created_at=before.created_at,
        accessed_at=before.accessed_at,
        access_count=before.access_count,
        rev=before.rev + (before.text != after.text),
        version=before.version + 1,
    )


def is_searched_differently(before: MemoryRecord, after: MemoryRecord) -> bool:
    """Whether terms, vectors or the order of turns change."""
    return _searched(before) != _searched(after)


def _searched(record: MemoryRecord) -> tuple[object, ...]:
    return record.text, record.author, record.occurred_at, record.session


REVISIONS_KEPT: Final = 20
"""How many of the latest earlier texts of a record are kept."""


def versions_of(record: MemoryRecord, earlier: Sequence[tuple[int, str, datetime]]) -> list[Version]:
    """The versions of a record, oldest first: its earlier texts (rev, text, until) and the current one."""
    since = record.created_at
    found: list[Version] = []
    for rev, text, until in earlier:
        found.append(Version(record.id, rev, text, since, until))
        since = until
    return [*found, Version(record.id, record.rev, record.text, since, None)]
