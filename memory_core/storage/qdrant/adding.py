"""Adding and putting records: survey what is stored, embed, plan, write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from memory_core.drafts import insist_on_version, patched
from memory_core.errors import EmbeddingError, reason_for_log
from memory_core.models import MemoryRecord, Patch
from memory_core.progress import ProgressCallback
from memory_core.protocols import Embedder
from memory_core.retrieval.features import is_turn
from memory_core.storage.qdrant import listing, succession
from memory_core.storage.qdrant.client import models
from memory_core.storage.qdrant.codec import Point, Stored, key, payload_of, to_row, to_stored, without_nulls
from memory_core.storage.qdrant.owners import Owner
from memory_core.storage.qdrant.planning import Plan, Planner, Survey, Update, has_expired
from memory_core.storage.qdrant.removal import delete, of_sources, overwrite
from memory_core.storage.qdrant.vectors import rows_of
from memory_core.storage.qdrant.where import all_of, keyed, owned, up_to
from memory_core.storage.qdrant.writing import Access, Changes, Rewrite, carry_out
from memory_core.storage.shared.prepared import Prepared, embed, embed_reporting, prepare, texts_to_embed
from memory_core.storage.shared.values import micros, moment

logger = logging.getLogger(__name__)

Embedded = Mapping[str, Prepared]
"""Records with vectors, by id."""
Before = Mapping[str, Sequence[int]]
"""The arrivals of the turns before each new one, by the id of the record."""
NEIGHBOURS = 2
"""How many turns before it a turn knows."""


async def survey(access: Access, owner: Owner, batch: Sequence[Prepared], now: datetime) -> Survey:
    """Look up the points and ids of new records."""
    here = list(dict.fromkeys(access.names.point_of(item.record) for item in batch))
    ids = [key("id", item.record.id) for item in batch]
    at_points, with_ids = await asyncio.gather(
        owner.points.read(here), owner.points.having("_keys", ids, owned(owner.key))
    )
    by_point: dict[str, Stored] = {}
    vacant: dict[str, str] = {}
    forgotten: set[str] = set()
    for found in at_points:
        point, payload = str(found.id), found.payload or {}
        known = to_stored(point, payload) if payload.get("_owner") == owner.key else None
        if known is not None and not has_expired(known, now):
            by_point[point] = known
            continue
        vacant[point] = payload["_write"]
        if payload.get("_marker") == "forgotten" or (known is None and payload.get("source_key") is not None):
            forgotten.add(point)  # or it was erased, by a process that died before it could mark it
    there = [to_stored(record.id, record.payload) for record in with_ids]
    return Survey(
        by_id={known.record.id: known for known in there if not has_expired(known, now)},
        by_point=by_point,
        forgotten=frozenset(forgotten),
        vacant=vacant,
        expired=[known for known in there if has_expired(known, now) and known.point not in vacant],
    )


async def with_vectors(
    access: Access,
    owner: Owner,
    batch: Sequence[Prepared],
    embedder: Embedder,
    planner: Planner,
    *,
    is_put: bool,
    progress: ProgressCallback | None,
) -> Embedded:
    """The new and the replacing records of the batch, by id, with vectors.

    Empty if the embedder fails; the vectors are then pending.
    """
    wanted = [item for item in batch if item.chunks]
    if any(item.record.source_key is not None for item in batch):
        seen = await survey(access, owner, batch, planner.now)
        plan = planner.put(batch, seen) if is_put else planner.add(batch, seen)
        kept = {id(item) for item in plan.new} | _replacing(plan, batch)
        wanted = [item for item in (*plan.new, *batch) if item.chunks and id(item) in kept]
        wanted = list({id(item): item for item in wanted}.values())
    if not wanted:
        return {}
    texts = [texts_to_embed(item.record.text, item.chunks) for item in wanted]
    try:
        ends = list(accumulate(map(len, texts)))
        flat = [text for some in texts for text in some]
        blobs = iter(await embed_reporting(embedder, flat, ends, progress))
    except EmbeddingError as error:
        logger.warning("vectors of %d records are pending: %s", len(wanted), reason_for_log(error))
        return {}
    made_by = embedder.fingerprint
    return {item.record.id: item.embedded([next(blobs) for _ in item.chunks], made_by) for item in wanted}


def _replacing(plan: Plan, batch: Sequence[Prepared]) -> set[int]:
    """The items of a put that replace a record with another text."""
    changed = {update.record.source_key for update in plan.updates if update.record.text != update.known.record.text}
    latest = {item.record.source_key: item for item in batch}
    return {id(item) for source, item in latest.items() if source in changed and source is not None}


async def add(
    access: Access, owner: Owner, planner: Planner, batch: Sequence[Prepared], embedded: Embedded
) -> list[MemoryRecord | None]:
    """Write the batch, given the current state of the store.

    Args:
        embedded: From `with_vectors`.

    Raises:
        DuplicateIdError, SupersededError: Nothing of the batch is stored.
        OvertakenError: Another process was faster; plan again.
        UnfinishedWriteError, StorageError: See `carry_out`.
    """
    seen = await survey(access, owner, batch, planner.now)
    plan = planner.add(batch, seen)
    items = {update.known.point: _prepared(access, update, embedded) for update in plan.updates}
    await _write(access, owner, planner, plan, seen, embedded, items)
    return plan.records()


async def put(
    access: Access,
    owner: Owner,
    planner: Planner,
    batch: Sequence[Prepared],
    embedded: Embedded,
    *,
    remove: Collection[str],
) -> list[MemoryRecord]:
    """See `KeyValue.put`; `embedded` is from `with_vectors`. The removals follow the writes."""
    seen = await survey(access, owner, batch, planner.now)
    plan = planner.put(batch, seen)
    latest = {item.record.source_key: item for item in batch}
    items: dict[str, Prepared] = {}
    for update in plan.updates:
        given = latest[update.record.source_key]
        items[update.known.point] = embedded.get(given.record.id, given)._replace(record=update.record)
    await _write(access, owner, planner, plan, seen, embedded, items)
    if remove:
        gone = await of_sources(owner, planner.scope, remove, planner.now)
        await delete(access, owner, gone, forget=False, now=planner.now)
    return [record for record in plan.records() if record is not None]


async def _write(
    access: Access,
    owner: Owner,
    planner: Planner,
    plan: Plan,
    seen: Survey,
    embedded: Embedded,
    items: Mapping[str, Prepared],
) -> None:
    """Write a plan; the records that new ones supersede are claimed before and closed after."""
    if seen.expired:
        await delete(access, owner, seen.expired, forget=False, now=planner.now)
    records = [record for record in plan.records() if record is not None]
    claims = await succession.claim(access, owner, planner, records)
    changes = Changes(planner.write)
    placed = [(item.record, seq) for item, seq in zip(plan.new, access.arrivals.take(len(plan.new)), strict=True)]
    moved = [(update.record, update.known.seq) for update in plan.updates if update.is_searched_differently]
    before = await turns_before(owner, [*placed, *moved])
    for item, (_, seq) in zip(plan.new, placed, strict=True):
        made = embedded.get(item.record.id)
        item = made if made is not None and made.record == item.record else item  # noqa: PLW2901
        known = new_state(access, item.record, seq, before, planner.write)
        _insert(access, owner, changes, item, known, seen.vacant.get(known.point))
    for update in plan.updates:
        await add_update(access, owner, changes, update, items[update.known.point], before)
    await carry_out(owner.points, changes)
    _note_authors(access, owner, records)
    await succession.close(access, owner, planner, claims)


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a caller wants."""

    id: str
    patch: Patch
    expected_version: int | None
    made: Prepared
    """The new state as it would be if the record was not changed meanwhile."""


async def update(access: Access, owner: Owner, planner: Planner, change: Change) -> MemoryRecord:
    """See `Records.update`; the write goes through only if what it read is still current."""
    current = await listing.existing(owner, planner.scope, change.id, planner.now)
    if planner.write in current.writes:  # an earlier attempt was stored after all
        return current.record
    insist_on_version(current.record, change.expected_version)
    record = patched(current.record, change.patch, planner.now)
    if record is current.record:
        return record
    wanted, changes = Update(current, record), Changes(planner.write)
    before = await turns_before(owner, [(record, current.seq)] if wanted.is_searched_differently else [])
    item = change.made if record == change.made.record else change.made.again(record)
    await add_update(access, owner, changes, wanted, item, before)
    await carry_out(owner.points, changes)
    return record


def _prepared(access: Access, update: Update, embedded: Embedded) -> Prepared:
    """A known record as it is after an add, with vectors if they were made from its text."""
    made = prepare(update.record, access.chunker)
    same = next((item for item in embedded.values() if item.record.text == update.record.text), None)
    return made if same is None else made._replace(vectors=same.vectors, made_by=same.made_by)


def new_state(access: Access, record: MemoryRecord, seq: int, before: Before, write: str) -> Stored:
    """The state of a new record."""
    return Stored(
        point=access.names.point_of(record),
        record=record,
        seq=seq,
        before=before.get(record.id, ()),
        born=write,
        write=write,
    )


def _insert(access: Access, owner: Owner, changes: Changes, item: Prepared, known: Stored, was: str | None) -> None:
    point = to_point(access, owner, item, known)
    changes.named[point.id] = item.record.id
    if was is None:
        changes.inserts.append(point)
    else:
        changes.rewrites.append(Rewrite(point, was))


def to_point(access: Access, owner: Owner, item: Prepared, known: Stored) -> Point:
    """The whole point of a record; vectors of another embedder than the present one are left out, and pending."""
    vector = access.vector if item.vectors and item.made_by == access.fingerprint else None
    vectors = () if vector is None else item.vectors
    return Point(known.point, without_nulls(payload_of(owner.key, item, known, vector)), vectors, vector)


async def add_update(
    access: Access, owner: Owner, changes: Changes, update: Update, item: Prepared, before: Before
) -> None:
    """Add the change of a stored record to `changes`.

    Args:
        item: The new state of the record, with vectors unless they are pending or the text is the same.
    """
    was = update.known
    known = replace(was, record=update.record, write=changes.write, revisions=was.followed_by(update.record))
    changes.named[was.point] = update.record.id
    if not update.is_searched_differently:
        overwrite(access, owner, changes, was, update.record)
        return
    if not item.vectors and update.record.text == was.record.text and not was.is_pending:
        item = await _with_stored_vectors(access, owner, item, was)
    known = replace(known, before=before.get(update.record.id, known.before))
    changes.rewrites.append(Rewrite(to_point(access, owner, item, known), was.write))


async def _with_stored_vectors(access: Access, owner: Owner, item: Prepared, known: Stored) -> Prepared:
    """A new state with the vectors of a text that stays."""
    made_by, vector = access.fingerprint, access.vector
    if vector is None:
        return item
    found = await owner.points.read([known.point], fields=["_write"], vectors=[vector])
    vectors = next((rows_of(record.vector, vector) for record in found), ())
    return item._replace(chunks=known.spans, vectors=vectors, made_by=made_by)


async def turns_before(owner: Owner, placed: Sequence[tuple[MemoryRecord, int]]) -> Before:
    """The arrivals of the turns before these records, with which a search fetches neighbours (`searching.py`).

    They are hints: a turn that arrives later and was said earlier does not change them.

    Args:
        placed: Records with their own arrivals.
    """
    by_session: dict[str, list[tuple[int, int, str]]] = {}
    for record, seq in placed:
        if record.session is not None and is_turn(record.kind, record.role):
            by_session.setdefault(record.session, []).append((micros(record.occurred_at), seq, record.id))
    requests = [_latest(owner, session, moment(min(turns)[0])) for session, turns in by_session.items()]
    before: dict[str, Sequence[int]] = {}
    for turns, found in zip(by_session.values(), await owner.points.query(requests), strict=True):
        new = {seq for _, seq, _ in turns}
        rows = [to_row(row.payload or {}) for row in found]
        stored = [(row.occurred_at, row.seq, "") for row in rows if row.seq not in new]
        last: list[int] = []
        for _, seq, given in sorted([*stored, *turns]):
            before[given] = last[::-1]
            last = [*last, seq][-NEIGHBOURS:]
    return before


def _latest(owner: Owner, session: str, until: datetime) -> models.QueryRequest:
    return models.QueryRequest(
        query=models.OrderByQuery(order_by=models.OrderBy(key="occurred_at", direction=models.Direction.DESC)),
        filter=all_of(owned(owner.key), keyed("session", session), up_to("occurred_at", until)),
        limit=NEIGHBOURS + 1,
        with_payload=["_row"],
    )


async def embedded_or_pending(embedder: Embedder | None, item: Prepared) -> Prepared:
    """A changed record with vectors, or with pending ones if the embedder fails."""
    if embedder is None or not item.chunks:
        return item
    try:
        blobs = await embed(embedder, texts_to_embed(item.record.text, item.chunks))
        return item.embedded(blobs, embedder.fingerprint)
    except EmbeddingError as error:
        logger.warning("the vectors of a changed record are pending: %s", reason_for_log(error))
        return item


def _note_authors(access: Access, owner: Owner, records: Sequence[MemoryRecord]) -> None:
    """Forget the cached authors of the owner if there is a new one."""
    cached = access.owners.authors.get(owner.scope)
    if cached is not None and any(record.author and record.author not in cached[1] for record in records):
        access.owners.authors.pop(owner.scope, None)
