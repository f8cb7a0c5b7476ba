"""Records as points and back. Record fields keep their names in the payload; fields of the store start with `_`."""

from __future__ import annotations

import json
import threading
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from memory_core.encoding import encode_json
from memory_core.models import MemoryRecord, Scope
from memory_core.retrieval.bm25 import K1, B
from memory_core.retrieval.features import ANALYSIS, Features, features, terms_of_record
from memory_core.storage.qdrant.client import models
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.values import link_keys, to_links
from memory_core.storage.shared.versions import REVISIONS_KEPT

TEXT: Final = "text"
"""The dense vector: one row per piece of the text, so a record is one point; the best row counts."""
WORDS: Final = "words"
"""The sparse vector: BM25 weights of the analysed terms, without the IDF, which the server adds at query time."""

AVERAGE_TERMS: Final = 20
"""Length by which the stored BM25 weights are normalised: the server uses them only to select candidates."""
MAX_FLOATS: Final = 1_000_000
"""Maximum number of numbers in the vector of one point. Pieces of a text beyond it are found by words only."""

NAMESPACE: Final = uuid.UUID("6e1f8f0e-6b5a-5d3b-9c6b-0d5f2f0c1a77")
WRITES_KEPT: Final = 16
"""How many writers may change a record between a write and its verification."""

_TIMES: Final = (
    "created_at",
    "updated_at",
    "accessed_at",
    "occurred_at",
    "expires_at",
    "valid_from",
    "valid_to",
)
NAMES: Final = tuple(field.name for field in fields(MemoryRecord))
"""What `to_record` needs."""

RANKED_FIELDS: Final = (
    "kind",
    "role",
    "session",
    "author",
    "occurred_at",
    "expires_at",
    "state",
    "importance",
    "_terms",
    "_flags",
    "_words",
    "_pieces",
    "_seq",
    "_before",
)
"""The fields of a candidate that the ranking reads."""

_KEPT: Final = ("_seq", "_before", "_born", "_write", "_writes", "_pending", "_pieces", "_spans", "_revisions")
STORED_FIELDS: Final = (*NAMES, *_KEPT)
"""What `to_stored` reads."""

Payload = dict[str, Any]
"""The JSON payload of a point; values are checked when they become a record."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record with the store's own fields."""

    point: str
    record: MemoryRecord
    seq: int
    """When it arrived, in microseconds since 1970 of the writing process's clock; ascending within a process."""
    before: str | None
    """The point of the turn before it in its session."""
    born: str
    """The write that created the point; a record added again under the same id has another one."""
    write: str
    """The write that changed it last, with which a writer detects that another one was faster."""
    pending: str | None
    """Names the reason why its vectors are pending; `None` if they are not."""
    spans: Sequence[tuple[int, int]] = ()
    """The pieces of its text, each of which has a vector."""
    writes: Sequence[str] = ()
    """The latest writes, oldest first: a write that was followed by another before its verification is listed here."""
    revisions: Sequence[Sequence[Any]] = ()
    """Its earlier texts, oldest first: rev, text, and when the next one replaced it, in JSON form."""

    def written_by(self, write: str) -> list[str]:
        """The latest writes, including `write`."""
        return [*self.writes, write][-WRITES_KEPT:]

    def followed_by(self, record: MemoryRecord) -> Sequence[Sequence[Any]]:
        """The revisions of the record that replaces this one."""
        if record.text == self.record.text:
            return self.revisions
        replaced = (self.record.rev, self.record.text, stamp(record.updated_at))
        return (*self.revisions, replaced)[-REVISIONS_KEPT:]


@dataclass(frozen=True, slots=True)
class Point:
    """A point to be written."""

    id: str
    payload: Payload
    vectors: Sequence[bytes] = ()
    """float16 rows; empty while they are pending."""

    def to_struct(self) -> models.PointStruct:
        vector: dict[str, Any] = {WORDS: sparse(self.payload["_terms"])}
        if self.vectors:
            vector[TEXT] = dense(self.vectors)
        return models.PointStruct(id=self.id, payload=self.payload, vector=vector)


class Arrivals:
    """Numbers that ascend in the order in which records arrive."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def take(self, count: int) -> range:
        """As many numbers, in order."""
        with self._lock:
            first = max(self._last + 1, time.time_ns() // 1_000)
            self._last = first + count - 1
        return range(first, first + count)


def owner_key(scope: Scope) -> str:
    """One string for `(app, user)`; no two owners share one."""
    return f"{len(scope.app)}:{scope.app}{scope.user}"


def to_owner(key: str) -> Scope:
    """The inverse of `owner_key`."""
    length, _, names = key.partition(":")
    return Scope(names[: int(length)], names[int(length) :])


def point_of(record: MemoryRecord) -> str:
    """The id of a record's point, derived from its source key or, without one, from its id.

    So the server lets only one of several writers create the record of a source key, and the record of a source key
    never has another one. Keys contain no NUL, so no two records share a point.
    """
    owner = owner_key(Scope(record.app, record.user))
    return named_id(f"{owner}\0{record.id}") if record.source_key is None else source_point(owner, record.source_key)


def source_point(owner: str, source_key: str) -> str:
    """The id of the point of a source key; see `owner_key`."""
    return named_id(f"{owner}\0\0{source_key}")


def named_id(name: str) -> str:
    """The same id for the same name, in every process."""
    return str(uuid.uuid5(NAMESPACE, name))


def token() -> str:
    """A unique name."""
    return uuid.uuid4().hex


def stamp(moment: datetime) -> str:
    """A moment in UTC as Qdrant's datetime index reads it, exact to the microsecond."""
    return moment.isoformat(timespec="microseconds")


def to_point(scope: Scope, item: Prepared, known: Stored, *, pending: str | None) -> Point:
    """The point of a record.

    Args:
        known: Its position in the store; its record is not used.
        pending: Names the reason if vectors are pending.
    """
    payload = {**record_fields(item.record), **derived_fields(item)}
    payload.update(
        _owner=owner_key(scope),
        _seq=known.seq,
        _before=known.before,
        _born=known.born,
        _write=known.write,
        _writes=known.written_by(known.write),
        _pending=pending if item.chunks else None,
        _revisions=list(known.revisions),
    )
    # A new point has no field to clear, and a third of the fields are empty.
    return Point(known.point, {name: value for name, value in payload.items() if value is not None}, item.vectors)


def derived_fields(item: Prepared) -> Payload:
    """The payload fields that follow from text, author and time."""
    return {
        **searched_fields(item.record, item.features),
        "_pieces": len(item.chunks),
        "_spans": [list(span) for span in item.chunks] if len(item.chunks) > 1 else [],
    }


def searched_fields(record: MemoryRecord, found: Features | None = None) -> Payload:
    """The payload fields that searches by words read, as this version of the analysis makes them."""
    found = found or features(record)
    return {
        "_terms": " ".join(terms_of_record(record)),
        "_flags": found.flags,
        "_words": found.words,
        "_analysis": ANALYSIS,
    }


def record_fields(record: MemoryRecord) -> Payload:
    """The payload fields that depend only on the record's own fields."""
    payload: Payload = {name: getattr(record, name) for name in NAMES}
    for name in _TIMES:
        value = payload[name]
        payload[name] = None if value is None else stamp(value)
    payload["data"] = encode_json(record.data)  # as text: JSON transport would lose digits and lone surrogates
    payload["tags"] = list(record.tags)
    payload["links"] = link_keys(record.links)
    payload["_data"] = [data_key(name, value) for name, value in record.data.items() if is_plain(value)]
    payload["_under"] = [] if record.collection is None else paths(record.collection)
    payload["_seen_at"] = payload["accessed_at"] or payload["created_at"]
    return payload


def paths(collection: str) -> list[str]:
    """The collection as a path, and all of its parent paths."""
    return [*(collection[:n] for n, character in enumerate(collection) if character == "/"), collection]


def to_stored(point: str, payload: Mapping[str, Any] | None) -> Stored:
    """The inverse of `to_point`."""
    raw = payload or {}
    return Stored(
        point=point,
        record=to_record(raw),
        seq=raw["_seq"],
        before=raw.get("_before"),
        born=raw["_born"],
        write=raw["_write"],
        writes=raw.get("_writes") or (),
        pending=raw.get("_pending"),
        spans=_spans(raw),
        revisions=raw.get("_revisions") or (),
    )


def to_record(raw: Mapping[str, Any]) -> MemoryRecord:
    """The record in a payload."""
    values: dict[str, Any] = {name: raw.get(name) for name in NAMES}
    for name in _TIMES:
        value = values[name]
        values[name] = None if value is None else datetime.fromisoformat(value)
    values["data"] = json.loads(values["data"])
    values["tags"] = tuple(values["tags"])
    values["links"] = to_links(values["links"] or ())
    values["importance"] = float(values["importance"])  # a server may return a whole number as an integer
    values["confidence"] = float(values["confidence"])
    return MemoryRecord(**values)


def _spans(raw: Mapping[str, Any]) -> list[tuple[int, int]]:
    if not raw.get("_pieces"):
        return []
    return [(start, stop) for start, stop in raw.get("_spans") or [(0, len(raw["text"]))]]


def read_revisions(raw: Sequence[Sequence[Any]]) -> list[tuple[int, str, datetime]]:
    """The revisions of `Stored` as they were before they became JSON."""
    return [(rev, text, datetime.fromisoformat(until)) for rev, text, until in raw]


def is_plain(value: object) -> bool:
    """Whether a value of `data` can be used in a filter."""
    return value is None or isinstance(value, str | int | float)


def data_key(name: str, value: object) -> str:
    """The index key of one pair of `data`; equal numbers share a key, `True` and `1` do not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return blake2b(encode_json([name, value]).encode(), digest_size=16).hexdigest()


def sparse(terms: str) -> models.SparseVector:
    """BM25 weights by hashed term; terms with the same hash share a dimension, which affects candidates, not ranks."""
    counts = Counter(zlib.crc32(term.encode()) for term in terms.split())
    norm = K1 * (1 - B + B * sum(counts.values()) / AVERAGE_TERMS)
    indices = sorted(counts)
    return models.SparseVector(
        indices=indices, values=[(K1 + 1) * counts[index] / (counts[index] + norm) for index in indices]
    )


def sparse_query(terms: Sequence[str]) -> models.SparseVector:
    """The same dimensions for the distinct terms of a query."""
    indices = sorted({zlib.crc32(term.encode()) for term in terms})
    return models.SparseVector(indices=indices, values=[1.0] * len(indices))


def dense(vectors: Sequence[bytes]) -> list[list[float]]:
    """Rows of numbers, as many as fit into one point."""
    rows = np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1).astype(np.float32)
    kept: list[list[float]] = rows[: max(MAX_FLOATS // rows.shape[1], 1)].tolist()
    return kept
