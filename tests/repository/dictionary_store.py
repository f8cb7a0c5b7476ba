"""A store as somebody else would write one: records in dictionaries, and every search a walk over an owner's.

It uses what a store may share with ours: what conditions mean, what superseding does to a record, and the ranking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from memory_core import (
    Component,
    DuplicateIdError,
    ErasureReceipt,
    Hit,
    InvalidInputError,
    MemoryRecord,
    Page,
    Patch,
    RecordNotFoundError,
    Scope,
    Version,
    Where,
    utc_now,
)
from memory_core.chunking import DEFAULT_CHUNKER, pieces_of
from memory_core.models import STATES, Order
from memory_core.protocols import Clock, ListRequest, SearchRequest
from memory_core.records.draft_to_record import insist_on_version, patched
from memory_core.records.kinds import is_message
from memory_core.records.superseding import already_superseded, retired, superseded_by
from memory_core.retrieval.features import features, role_flag
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.passages import best_passage
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import rank
from memory_core.where.meaning import folded, satisfies

Texts = list[tuple[int, str, datetime]]
"""Rev, text, until."""
Hits = list[Hit]
Rows = list[int]
Records = list[MemoryRecord]
Scopes = list[Scope]
Strings = list[str]
Versions = list[Version]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ANY_STATE = Where(states=STATES)
KEPT_TEXTS = 20
CURSOR = re.compile(r"(\w+)/(-?[0-9]+(?:\.[0-9]+)?(?:e-[0-9]+)?)/([0-9]+)")


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@dataclass
class Owned:
    """What one owner has."""

    records: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    arrivals: dict[str, int] = field(default_factory=dict[str, int])
    earlier: dict[str, Texts] = field(default_factory=dict[str, Texts])
    """By id the texts before."""
    forgotten: set[str] = field(default_factory=set[str])
    next: int = 0

    def insert(self, record: MemoryRecord) -> None:
        if record.id in self.records:
            raise DuplicateIdError(f"there is a record with id {record.id!r} already")
        self.records[record.id] = record
        self.arrivals[record.id] = self.next
        self.next += 1

    def write(self, record: MemoryRecord) -> None:
        """Put a newer state in the place of a record."""
        old = self.records[record.id]
        if old.text != record.text:
            kept = [*self.earlier.get(old.id, []), (old.rev, old.text, record.updated_at)]
            self.earlier[old.id] = kept[-KEPT_TEXTS:]
        self.records[record.id] = record

    def remove(self, ids: Collection[str]) -> None:
        for held in (self.records, self.arrivals, self.earlier):
            for gone in ids:
                held.pop(gone, None)
        for record in self.records.values():
            left = tuple(link for link in record.links if link.id not in ids)
            if left != record.links:
                self.records[record.id] = replace(record, links=left)

    def of_source(self, scope: Scope, source: str | None) -> MemoryRecord | None:
        """The record of a source key, refused if the scope does not reach it."""
        known = next((record for record in self.records.values() if source and record.source_key == source), None)
        if known is not None and not reaches(scope, known):
            raise DuplicateIdError(f"source key {source!r} belongs to a record outside {scope}")
        return known

    def matching(self, scope: Scope, where: Where, now: datetime) -> list[MemoryRecord]:
        return [record for record in self.records.values() if reaches(scope, record) and satisfies(record, where, now)]

    def retire(self, scope: Scope, new: Sequence[MemoryRecord]) -> None:
        """Let what the new records supersede give way to them."""
        ids = {record.id for record in new}
        heirs = {old: record for record in new for old in superseded_by(record) if old not in ids}
        for record in self.records.values():
            for old in superseded_by(record) if record.id not in ids else ():
                if old in heirs:
                    raise already_superseded(old)
        for old, heir in heirs.items():
            if old in self.records and reaches(scope, self.records[old]):
                self.records[old] = retired(self.records[old], heir)


def reaches(scope: Scope, record: MemoryRecord) -> bool:
    return all(getattr(scope, name) in (None, getattr(record, name)) for name in ("agent", "session", "collection"))


def copied(record: MemoryRecord) -> MemoryRecord:
    return replace(record, data=deepcopy(record.data))


class DictionaryStore:
    """Records of this process, found by their words."""

    def __init__(self, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._owners: dict[Scope, Owned] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        progress: object = None,
    ) -> list[MemoryRecord | None]:
        results: list[str | None] = []
        with self._writing(scope) as owned:
            new: list[MemoryRecord] = []
            for record in records:
                known = owned.of_source(scope, record.source_key)
                if known is None and record.source_key in owned.forgotten:
                    results.append(None)
                    continue
                if known is None:
                    owned.insert(record)
                    new.append(record)
                elif any(known.id == fresh.id for fresh in new):
                    owned.records[known.id] = replace(updated(known, record), rev=1, version=1)
                else:
                    owned.write(updated(known, record))
                results.append(record.id if known is None else known.id)
            owned.retire(scope, new)
            return [None if id_ is None else copied(owned.records[id_]) for id_ in results]

    async def search(self, scope: Scope, request: SearchRequest) -> Hits:
        if request.mode == "vector":
            raise InvalidInputError(
                "a owned always has embedder=None and no vectors; search with mode='lexical' or 'hybrid'"
            )
        owned, now = self._shelf(scope), self._clock()
        if not request.text.strip():
            return []
        if request.mode == "substring":
            needle = folded(request.text)
            found = [item for item in owned.matching(scope, request.where, now) if needle in folded(item.text)]
            found.sort(key=lambda item: (item.occurred_at, owned.arrivals[item.id]), reverse=True)
            reason = {"substring": Component(1.0, 1.0)} if request.explain else None
            reach = len(needle) - 1
            return [self._hit(item, 1.0, reason, [needle], reach) for item in found[: request.limit]]
        return self._ranked(owned, scope, request, now)

    def _ranked(self, owned: Owned, scope: Scope, request: SearchRequest, now: datetime) -> Hits:
        records = list(owned.records.values())
        corpus = OwnerIndex(None)
        corpus.extend([entry(key, record) for key, record in enumerate(records)], [])
        chosen = {record.id for record in owned.matching(scope, request.where, now)}
        allowed = np.array([key for key, record in enumerate(records) if record.id in chosen], np.int64)
        importances = np.array([record.importance for record in records], np.float32)
        query = parse(request.text)
        found = rank(corpus, query, None, request, now=micros(now), allowed=allowed, importances=importances)
        reasons: Sequence[Mapping[str, Component] | None] = found.components or [None] * len(found.rows)
        rows: Rows = found.rows.tolist()
        return [
            self._hit(records[row], float(score), reason, query.terms, 0)
            for row, score, reason in zip(rows, found.scores, reasons, strict=True)
        ]

    @staticmethod
    def _hit(
        record: MemoryRecord, score: float, reason: Mapping[str, Component] | None, needles: Sequence[str], reach: int
    ) -> Hit:
        part = best_passage(record.text, pieces_of(record.text, DEFAULT_CHUNKER), needles, None, reach=reach)
        return Hit(copied(record), score, None, reason, part)

    async def list(self, scope: Scope, request: ListRequest) -> Page:
        owned, now, order = self._shelf(scope), self._clock(), request.order
        after = None if request.cursor is None else place_told_by(request.cursor, order)
        places = {(*place(record, order), owned.arrivals[record.id]): record for record in owned.records.values()}
        found = {record.id for record in owned.matching(scope, request.where, now)}
        down = order != "oldest"
        rest = [
            held
            for held in sorted(places, reverse=down)
            if places[held].id in found and (after is None or (held < after if down else held > after))
        ]
        shown = [places[held] for held in rest[: request.limit]]
        if request.touch:
            for record in shown:
                owned.records[record.id] = replace(record, accessed_at=now, access_count=record.access_count + 1)
        cursor = None
        if len(rest) > len(shown):
            value, arrival = rest[len(shown) - 1]
            cursor = f"{order}/{value!r}/{arrival}"
        return Page(tuple(copied(owned.records[record.id]) for record in shown), cursor)

    async def update(self, scope: Scope, id: str, patch: Patch, *, expected_version: int | None) -> MemoryRecord:  # noqa: A002
        with self._writing(scope) as owned:
            found = owned.matching(scope, replace(ANY_STATE, ids=(id,)), self._clock())
            if not found:
                raise RecordNotFoundError(f"there is no memory {id!r}")
            insist_on_version(found[0], expected_version)
            record = patched(found[0], patch, self._clock())
            owned.write(record)
            return copied(record)

    async def delete(self, scope: Scope, where: Where, *, forget: bool) -> int:
        with self._writing(scope, sweep=False) as owned:
            going = owned.matching(scope, where, self._clock())
            owned.remove({record.id for record in going})
            if forget:
                owned.forgotten |= {record.source_key for record in going if record.source_key}
            return len(going)

    async def erase(self, scope: Scope) -> ErasureReceipt:
        with self._writing(scope, sweep=False) as owned:
            going = [record for record in owned.records.values() if reaches(scope, record)]
            owned.remove({record.id for record in going})
            owned.forgotten |= {record.source_key for record in going if record.source_key}
            sessions = {record.session for record in going} - {None}
            return ErasureReceipt(len(going), len(sessions), self._clock(), files_clean=True)

    def _shelf(self, scope: Scope) -> Owned:
        return self._owners.get(Scope(scope.app, scope.user)) or Owned()

    @contextmanager
    def _writing(self, scope: Scope, *, sweep: bool = True) -> Generator[Owned]:
        """A copy to work on, which counts if nothing is raised: all of a write happens or none of it."""
        held = self._shelf(scope)
        texts = {id_: list(earlier) for id_, earlier in held.earlier.items()}
        owned = Owned(dict(held.records), dict(held.arrivals), texts, set(held.forgotten), held.next)
        if sweep:
            self._swept(owned, Scope(scope.app, scope.user))
        yield owned
        self._owners[Scope(scope.app, scope.user)] = owned

    def _swept(self, owned: Owned, scope: Scope) -> int:
        now = self._clock()
        gone = {
            record.id
            for record in owned.records.values()
            if record.expires_at is not None and record.expires_at <= now and reaches(scope, record)
        }
        owned.remove(gone)
        return len(gone)


def updated(known: MemoryRecord, later: MemoryRecord) -> MemoryRecord:
    """A known source key added again."""
    said: Any = {name: getattr(later, name) for name in ("text", "author", "data", "tags")}
    said["role"] = known.role if later.role is None else later.role
    if repr([getattr(known, name) for name in said]) == repr([*said.values()]):  # 1, 1.0 and True are equal
        return known
    return replace(
        known,
        **said,
        rev=known.rev + (known.text != later.text),
        updated_at=later.updated_at,
        version=known.version + 1,
    )


def entry(key: int, record: MemoryRecord) -> Entry:
    """What the ranking sees of a record."""
    found = features(record)
    return Entry(
        key=key,
        terms=found.packed,
        flags=found.flags | role_flag(record.role),
        words=found.words,
        session=record.session if is_message(record.kind) else None,
        author=record.author,
        occurred_at=micros(record.occurred_at),
        expires_at=None if record.expires_at is None else micros(record.expires_at),
        active=record.state == "active",
    )


def place(record: MemoryRecord, order: Order) -> tuple[float]:
    """What a page is sorted by."""
    if order == "importance":
        return (record.importance,)
    moment = (record.accessed_at or record.created_at) if order == "accessed" else record.occurred_at
    return (micros(moment),)


def place_told_by(cursor: object, order: Order) -> tuple[float, int]:
    found = CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None or found[1] != order:
        raise InvalidInputError(f"cursor {cursor!r:.80} is not from a page in the order {order!r}; pass `Page.cursor`")
    return json.loads(found[2]), int(found[3])
