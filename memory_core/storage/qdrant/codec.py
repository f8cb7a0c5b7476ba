"""Records as points and back. Record fields keep their names in the payload; fields of the store start with `_`.

| field | content |
|---|---|
| `_owner` | the owner with its epoch (`owners.py`); points without it are markers |
| `_keys` | every name and value that conditions compare for equality, as `name=value`, in one index |
| `_row` | what the ranking reads, as one short list |
| `_terms` | the analysed terms, separated by spaces |
| `_write`, `_writes` | the token of the write that made this state, and the latest ones |
| `_marker` | what a point without a record stands for: `deleted`, `forgotten` or `owner` |
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple, cast

import numpy as np

from memory_core.models import MemoryRecord, Scope
from memory_core.records.fields import FIELDS, OFFSET
from memory_core.records.kinds import is_message
from memory_core.records.stored_links import link_keys, stored_links, to_links
from memory_core.retrieval.analysis import ANALYSIS
from memory_core.retrieval.bm25 import K1, B
from memory_core.retrieval.features import OTHER_LANGUAGE, features, role_flag, terms_of_record
from memory_core.storage.qdrant.client import models
from memory_core.storage.rules.deriving import loses_source, sources_of
from memory_core.storage.shared.prepared import Prepared
from memory_core.storage.shared.stored_forms import micros
from memory_core.storage.shared.transfer import Carried, Revision, tombstone
from memory_core.storage.shared.versions import REVISIONS_KEPT
from memory_core.values.json_text import encode_json
from memory_core.values.times import at_offset, offset_of
from memory_core.where.conditions import NAME_FIELDS

WORDS: Final = "words"
"""The sparse vector: BM25 weights of the analysed terms, without the IDF, which the server adds at query time."""
AVERAGE_TERMS: Final = 20
"""Length by which the stored BM25 weights are normalised: the server uses them only to select candidates."""
MAX_FLOATS: Final = 1_000_000
"""Maximum number of numbers in the vector of one point. Pieces of a text beyond it are found by words only."""
MAX_REVISION_CHARS: Final = 4_000_000
"""Maximum length of all earlier texts of a record, so that its point fits into a request; the oldest are dropped."""
WRITES_KEPT: Final = 16
"""The number of writers that may change a record between a write and its verification."""
PENDING: Final = "pending"
"""The key of a record whose vectors are pending."""
FORGOTTEN: Final = "forgotten"
"""The key of the marker of a forgotten source key, and of a record that was put over one."""
CLOSING: Final = "closing"
"""The key of a record that another one is about to supersede (`superseding.py`)."""

IN_ANOTHER_LANGUAGE: Final = "another-language"
"""The key of a record whose text is surely in another language than English."""

_NAMES: Final = ("app", "user", *(field.name for field in FIELDS))
NAMES: Final = (*_NAMES, OFFSET)
"""The fields of a payload that a record is made of."""
_TIMES: Final = tuple(field.name for field in FIELDS if field.form == "time")
Payload = dict[str, Any]
"""The JSON payload of a point; values are checked when they become a record."""


class FoundPoint(NamedTuple):
    """A point as it was read, with the fields and the vectors that were asked for, as the client returns them."""

    id: str
    payload: Payload
    vectors: Any = None
    score: float = 0.0

    def rows(self, vector: str | None) -> tuple[bytes, ...]:
        """The float16 rows of one of the vectors; empty without that vector."""
        named = self.vectors
        found = cast("dict[str | None, Any]", named).get(vector) if isinstance(named, dict) else None
        return tuple(np.asarray(row, np.float16).tobytes() for row in found or ())


class Row(NamedTuple):
    """The fields of a record that the ranking reads. Times are microseconds since 1970 UTC."""

    seq: int
    """The time at which it arrived, in microseconds of the writing process's clock; ascending within a process."""
    occurred_at: int
    expires_at: int | None
    active: bool
    offset: int
    flags: int
    words: int
    pieces: int
    importance: float
    session: str | None
    """The session of a turn; `None` for other records."""
    author: str | None
    before: Sequence[int]
    """The arrivals of the two turns before it when it was written, the nearest first."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record with the store's own fields."""

    point: str
    record: MemoryRecord
    seq: int
    before: Sequence[int]
    born: str
    """The write that created the point; a record added again under the same id has another one."""
    write: str = ""
    """The write that changed it last, with which a writer detects that another one was faster; set by `Changes`."""
    is_pending: bool = False
    is_forgotten: bool = False
    """True if its source key was forgotten before it was put, and stays so when the record is gone."""
    spans: Sequence[tuple[int, int]] = ()
    """The pieces of its text, each of which has a vector."""
    writes: Sequence[str] = ()
    """The latest writes, oldest first: a write that was followed by another before its verification is listed here."""
    revisions: Sequence[Revision] = ()
    """Its earlier texts, oldest first."""
    owner: str = ""
    """Its owner with the epoch."""
    closing: Sequence[str] | None = None
    """The point of the record that is about to supersede it, and since when."""

    def has_expired(self, now: datetime) -> bool:
        """True if the record does not exist any more for callers."""
        return self.record.expires_at is not None and self.record.expires_at <= now

    def followed_by(self, record: MemoryRecord) -> Sequence[Revision]:
        """The revisions of the record that replaces this one."""
        if loses_source(self.record, record):
            return ()
        if record.text == self.record.text:
            return self.revisions
        return bounded((*self.revisions, (self.record.rev, self.record.text, record.updated_at)))


@dataclass(frozen=True, slots=True)
class Point:
    """A point to be written."""

    id: str
    payload: Payload
    vectors: Sequence[bytes] = ()
    """float16 rows of `vector`; empty while they are pending."""
    vector: str | None = None

    def to_struct(self) -> models.PointStruct:
        words = {WORDS: sparse(self.payload["_terms"])} if self.payload.get("_terms") else {}
        pieces = named_vectors(self.vector, self.vectors) if self.vectors and self.vector is not None else {}
        return models.PointStruct(id=self.id, payload=self.payload, vector={**words, **pieces})

    @property
    def size(self) -> int:
        """About how many bytes it takes in a request."""
        return 3 * len(str(self.payload)) + 6 * sum(map(len, self.vectors))


@dataclass(frozen=True, slots=True)
class Names:
    """The ids of points: keyed hashes, from which nobody can read or guess an owner, an id or a source key.

    So the server lets only one of several writers create the record of a source key, and what is forgotten leaves
    nothing readable.
    """

    secret: bytes

    def of(self, owner: Scope, source_key: str) -> str:
        """The point of a source key, named by its tombstone."""
        return str(uuid.UUID(bytes=tombstone(self.secret, owner, source_key)))

    def point_of(self, record: MemoryRecord) -> str:
        """The point of a record: of its source key or, without one, of its id."""
        source = f"\0{record.id}" if record.source_key is None else record.source_key
        return self.of(Scope(record.app, record.user), source)

    def gone(self, owner: Scope, id: str) -> str:  # noqa: A002
        """The key of the marker of a record that was deleted with what was made of its words."""
        return key("gone", self.of(owner, f"\0{id}"))

    def owner(self, owner: Scope) -> str:
        """The point of an owner's epoch."""
        return self.of(owner, "\0\0")


def named_id(name: str) -> str:
    """The same point id for the same name in every store: for points that hold nothing private."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"memory-core {name}"))


def token() -> str:
    """A unique name."""
    return uuid.uuid4().hex


def stamp(moment: datetime) -> str:
    """A moment as Qdrant's datetime index reads it and as texts sort by it: in UTC, exact to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def bounded(revisions: Sequence[Revision]) -> Sequence[Revision]:
    """The latest of these revisions, as many as a store keeps and a point can hold."""
    kept = list(revisions[-REVISIONS_KEPT:])
    while sum(len(text) for _, text, _ in kept) > MAX_REVISION_CHARS:
        kept.pop(0)
    return kept


def whole(owner: str, item: Prepared, known: Stored, vector: str | None) -> Point:
    """The whole point of a record; see `payload_of`. Without vectors, they are pending."""
    vector = vector if item.vectors else None
    there = {name: value for name, value in payload_of(owner, item, known, vector).items() if value is not None}
    return Point(known.point, there, item.vectors if vector else (), vector)


def payload_of(owner: str, item: Prepared, known: Stored, vector: str | None) -> Payload:
    """The complete payload of a record, with the fields of the store from `known`; unset fields are `None`, and so is
    `vector`, the name of the vector that the point has or is about to have, while vectors are pending."""
    record, found = item.record, item.features
    flags = {PENDING: item.chunks and vector is None, CLOSING: known.closing, FORGOTTEN: known.is_forgotten}
    flags |= {IN_ANOTHER_LANGUAGE: found.flags & OTHER_LANGUAGE > 0}
    row = Row(
        seq=known.seq,
        occurred_at=micros(record.occurred_at),
        expires_at=None if record.expires_at is None else micros(record.expires_at),
        active=record.state == "active",
        offset=offset_of(record.occurred_at),
        flags=found.flags | role_flag(record.role),
        words=found.words,
        pieces=len(item.chunks),
        importance=record.importance,
        session=record.session if is_message(record.kind) else None,
        author=record.author,
        before=known.before,
    )
    return {
        **{name: getattr(record, name) for name in _NAMES},
        **{name: None if (value := getattr(record, name)) is None else stamp(value) for name in _TIMES},
        OFFSET: offset_of(record.occurred_at),
        "data": encode_json(record.data),  # as text: JSON transport would lose digits and lone surrogates
        "tags": list(record.tags),
        "links": stored_links(record.links),
        "_seen_at": stamp(record.accessed_at or record.created_at),
        "_seq": known.seq,
        "_before": list(known.before),
        "_terms": " ".join(terms_of_record(record)),
        "_row": list(row),
        "_analysis": ANALYSIS,
        "_keys": [*keys_of(record), *(name for name, is_set in flags.items() if is_set)],
        "_spans": [list(span) for span in item.chunks],
        "_owner": owner,
        "_born": known.born,
        **next_state(known.writes, known.write),
        "_revisions": [[rev, text, stamp(until)] for rev, text, until in known.revisions],
        "_closing": None if known.closing is None else list(known.closing),
    }


def next_state(writes: Sequence[str], write: str) -> Payload:
    """The fields of the state that a write makes, after these writes."""
    return {"_write": write, "_writes": [*writes, write][-WRITES_KEPT:]}


def to_carried(raw: Mapping[str, Any]) -> Carried:
    """The record in a payload with everything that cannot be recomputed, without its vectors."""
    return Carried(to_record(raw), to_row(raw).seq, _revisions(raw))


def keys_of(record: MemoryRecord) -> list[str]:
    """Everything that conditions compare for equality: `name=value`, and `name` alone for a value that is set."""
    named = {name: getattr(record, name) for name in (*NAME_FIELDS, "state")}
    there = {name: value for name, value in named.items() if value is not None}
    path = record.collection or ""
    above = [path[:n] for n, character in enumerate(path) if character == "/"]
    return [
        *(key(name, value) for name, value in there.items()),
        *there,
        *(key("tags", tag) for tag in record.tags),
        *(["tags"] if record.tags else []),
        *(["left"] if record.left else []),
        *(key("links", link) for link in link_keys(record.links)),
        *_origins(record),
        *(key("under", one) for one in (() if record.collection is None else (*above, path))),
        *(data_key(name, value) for name, value in record.data.items() if is_plain(value)),
    ]


def _origins(record: MemoryRecord) -> Iterator[str]:
    """From which agents, sessions and collections the words are that a record was made of."""
    for link in sources_of(record.links):
        for name in ("agent", "session", "collection"):
            if (value := getattr(link, name)) is not None:
                yield key(f"made_of_{name}", value)


def key(name: str, value: object) -> str:
    """The index key of one value of a field."""
    return f"{name}={value}"


def to_row(payload: Mapping[str, Any]) -> Row:
    """The fields of a payload that the ranking reads."""
    return Row(*payload["_row"])


def to_stored(found: FoundPoint) -> Stored:
    """The record of a point."""
    raw, row = found.payload, to_row(found.payload)
    return Stored(
        point=found.id,
        record=to_record(raw),
        seq=row.seq,
        before=row.before,
        born=raw["_born"],
        write=raw["_write"],
        is_pending=PENDING in raw["_keys"],
        is_forgotten=FORGOTTEN in raw["_keys"],
        spans=[(start, stop) for start, stop in raw["_spans"]],
        writes=raw["_writes"],
        revisions=_revisions(raw),
        owner=raw["_owner"],
        closing=raw.get("_closing"),
    )


def to_record(raw: Mapping[str, Any]) -> MemoryRecord:
    """The record in a payload."""
    values: dict[str, Any] = {name: raw.get(name) for name in _NAMES}
    for name in _TIMES:
        values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
    values["occurred_at"] = at_offset(values["occurred_at"], raw[OFFSET])
    values["data"] = json.loads(values["data"])
    values["tags"] = tuple(values["tags"])
    values["links"] = to_links(values["links"] or ())
    values["importance"] = float(values["importance"])  # a server may return a whole number as an integer
    values["confidence"] = float(values["confidence"])
    return MemoryRecord(**values)


def _revisions(raw: Mapping[str, Any]) -> tuple[Revision, ...]:
    return tuple((rev, text, datetime.fromisoformat(until)) for rev, text, until in raw.get("_revisions") or ())


def is_plain(value: object) -> bool:
    """True if a value of `data` can be used in a filter."""
    return value is None or isinstance(value, str | int | float)


def data_key(name: str, value: object) -> str:
    """The index key of one pair of `data`; equal numbers share a key, `True` and `1` do not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return key("data", blake2b(encode_json([name, value]).encode(), digest_size=16).hexdigest())


def analysed(record: MemoryRecord, spans: Sequence[tuple[int, int]], vectors: Sequence[bytes]) -> Prepared:
    """A stored record with its pieces as they are, analysed by this version."""
    return Prepared(record, features(record), spans, vectors)


def sparse(terms: str) -> models.SparseVector:
    """BM25 weights by hashed term; terms with the same hash share a dimension, which affects candidates, not ranks."""
    counts = Counter(zlib.crc32(term.encode()) for term in terms.split())
    norm = K1 * (1 - B + B * sum(counts.values()) / AVERAGE_TERMS)
    indices = sorted(counts)
    weights = [round((K1 + 1) * counts[index] / (counts[index] + norm), 4) for index in indices]
    return models.SparseVector(indices=indices, values=weights)


def sparse_query(terms: Sequence[str]) -> models.SparseVector:
    """The same dimensions for the distinct terms of a query."""
    indices = sorted({zlib.crc32(term.encode()) for term in terms})
    return models.SparseVector(indices=indices, values=[1.0] * len(indices))


def head_of(vector: str) -> str:
    """The name of the vector of the first piece alone. Only texts of several pieces have it, because the ranking
    compares their first piece as it is and the others with a handicap (`retrieval/dense.py`)."""
    return f"{vector}-first"


def named_vectors(vector: str, rows: Sequence[bytes]) -> dict[str, Any]:
    """The vectors of a text by name: as many of its pieces as fit into one point, and the first of several."""
    numbers = np.frombuffer(b"".join(rows), np.float16).reshape(len(rows), -1).astype(np.float64)
    kept: list[list[float]] = np.round(numbers[: max(MAX_FLOATS // numbers.shape[1], 1)], 7).tolist()
    return {vector: kept, **({head_of(vector): kept[0]} if len(rows) > 1 else {})}
