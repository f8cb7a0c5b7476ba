"""Adding records: survey the stored state, embed, plan, write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Final

from memory_core.errors import EmbeddingError, reason_for_log
from memory_core.models import STATES, MemoryRecord, Scope
from memory_core.progress import ProgressCallback
from memory_core.protocols import Embedder
from memory_core.storage.qdrant.changes import Changes, Overwrite, Relinked, Rewrite
from memory_core.storage.qdrant.codec import (
    Point,
    Stored,
    owner_key,
    point_of,
    record_fields,
    source_point,
    to_point,
    to_stored,
    token,
)
from memory_core.storage.qdrant.outline import Outline, Survey, Update, moves, new_predecessors, outline, predecessors
from memory_core.storage.qdrant.turns import Place, around, place_of
from memory_core.storage.qdrant.where import all_of, any_of, conditions, owned
from memory_core.storage.qdrant.writing import Access, carry_out, removal
from memory_core.storage.shared.prepared import Prepared, embed_reporting, prepare, texts_to_embed
from memory_core.superseding import already_superseded, retired, superseded_by
from memory_core.where.value import Where

logger = logging.getLogger(__name__)

FAR_FUTURE: Final = 1 << 62
"""The arrival of records that have not arrived yet: after all stored records."""


Sort = Callable[[Scope, Sequence[Prepared], Survey], Outline]
"""Sorts a batch into new and known records."""


@dataclass(frozen=True, slots=True)
class Joining:
    """New records with the turns around them."""

    places: Sequence[Place]
    """Arrivals of the new records, in their order."""
    before: Mapping[str, str | None]
    """The previous point of each new record that is in a session."""
    changed: Mapping[str, str | None]
    """Stored turns that get a new predecessor."""


async def survey(access: Access, scope: Scope, batch: Sequence[Prepared], *, ids: bool = True) -> Survey:
    """Look up ids (if `ids`), source keys, tombstones and the turns around new records."""
    points = access.of(scope)
    sources = {item.record.source_key for item in batch if item.record.source_key is not None}
    spans: dict[str, list[Place]] = {}
    for item in batch:
        if item.record.session is not None:
            spans.setdefault(item.record.session, []).append(place_of(item.record, FAR_FUTURE, ""))
    (found, holders, forgotten), places = await asyncio.gather(
        asyncio.gather(
            points.having("id", [item.record.id for item in batch] if ids else [], owned(scope)),
            points.read([source_point(owner_key(scope), source) for source in sources]),
            access.ledger.forgotten(scope, sources),
        ),
        asyncio.gather(*(around(points, scope, session, min(span), max(span)) for session, span in spans.items())),
    )
    by_id = [to_stored(str(record.id), record.payload) for record in found]
    by_source = [to_stored(str(record.id), record.payload) for record in holders]
    return Survey(
        by_id={known.record.id: known for known in by_id},
        by_source={known.record.source_key or "": known for known in by_source},
        forgotten=frozenset(forgotten),
        places=dict(zip(spans, places, strict=True)),
    )


async def with_vectors(
    access: Access,
    scope: Scope,
    batch: Sequence[Prepared],
    embedder: Embedder,
    now: datetime,
    *,
    sort: Sort = outline,
    progress: ProgressCallback | None = None,
) -> dict[str, Prepared]:
    """The new and the replacing records of the batch, by id, with vectors.

    Empty if the embedder fails; the vectors are then pending.
    """
    seen = (await survey(access, scope, batch, ids=False)).without_expired(now)
    plan = sort(scope, batch, seen)
    wanted = [item for item in plan.new if item.chunks] + plan.replacing(batch)
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
    return {item.record.id: item._replace(vectors=[next(blobs) for _ in item.chunks]) for item in wanted}


async def add(
    access: Access, scope: Scope, batch: Sequence[Prepared], embedded: Mapping[str, Prepared], now: datetime
) -> list[MemoryRecord | None]:
    """Write the batch, given the current state of the store.

    Args:
        embedded: From `with_vectors`.

    Raises:
        DuplicateIdError, SupersededError, ConflictError, StorageError: Nothing of the batch is stored.
    """
    seen = await undisturbed_survey(access, scope, batch, now)
    plan = outline(scope, batch, seen)
    changes = Changes(scope)
    write = token()
    await add_new(access, changes, plan.new, seen, embedded, write)
    for update in plan.updates:
        await add_update(access, changes, update, prepare(update.record, access.chunker), write)
    await retire(access, changes, [item.record for item in plan.new], write)
    await carry_out(access, changes, write)
    return plan.records()


async def undisturbed_survey(access: Access, scope: Scope, batch: Sequence[Prepared], now: datetime) -> Survey:
    """A survey without expired records; conflicting ones are deleted first."""
    seen = await survey(access, scope, batch)
    expired = seen.expired(now)
    if not expired:
        return seen
    await carry_out(access, await removal(access, scope, expired), token())
    return await survey(access, scope, batch)


async def add_new(
    access: Access,
    changes: Changes,
    new: Sequence[Prepared],
    seen: Survey,
    embedded: Mapping[str, Prepared],
    write: str,
) -> None:
    """Add new records to `changes`, with everything that depends on them."""
    scope = changes.scope
    joining = _joining(new, seen, access.arrivals.take(len(new)))
    changes.relinked += [Relinked(point, before) for point, before in joining.changed.items()]
    for item, place in zip(new, joining.places, strict=True):
        changes.inserts.append(_new_point(scope, _checked(item, embedded), place, joining, write))


async def add_update(access: Access, changes: Changes, update: Update, item: Prepared, write: str) -> None:
    """Add the change of a stored record to `changes`, with everything that depends on it.

    Args:
        item: The new state of the record, with vectors unless they are pending.
    """
    known = replace(update.known, write=write, revisions=update.known.followed_by(item.record))
    if not update.is_searched_differently:
        payload = {**record_fields(item.record), "_write": write, "_writes": update.known.written_by(write)}
        changes.overwrites.append(Overwrite(known.point, payload, update.known.write))
        return
    before, follows = known.before, dict[str, str | None]()
    if moves(update):
        before, follows = await moved(access, changes.scope, update)
    changes.relinked += [Relinked(point, other) for point, other in follows.items()]
    point = to_point(changes.scope, item, replace(known, before=before), pending=None if item.vectors else token())
    changes.rewrites.append(Rewrite(point, update.known.write))


async def retire(access: Access, changes: Changes, new: Sequence[MemoryRecord], write: str) -> None:
    """Retire the stored records in scope that the new ones supersede; those within the batch are retired already."""
    scope, ids = changes.scope, {record.id for record in new}
    by_id = {old: record for record in new for old in superseded_by(record) if old not in ids}
    if not by_id:
        return
    points = access.of(scope)
    rivals = [f"supersedes:{id}" for id in by_id]  # noqa: A001
    for rival in await points.all(all_of(owned(scope), any_of("links", rivals))):
        record = to_stored(str(rival.id), rival.payload).record
        if record.id not in ids:
            raise already_superseded(superseded_by(record)[0])
    bound = conditions(scope, Where(states=STATES, ids=tuple(by_id)), None) or []
    for found in await points.all(all_of(*bound)):
        old = to_stored(str(found.id), found.payload)
        after = retired(old.record, by_id[old.record.id])
        if after is not old.record:
            fields = {**record_fields(after), "_write": write, "_writes": old.written_by(write)}
            changes.overwrites.append(Overwrite(old.point, fields, old.write))


async def moved(access: Access, scope: Scope, update: Update) -> tuple[str | None, dict[str, str | None]]:
    """The previous point of a changed record, and the turns whose predecessor changes, with their new predecessors."""
    points, known = access.of(scope), update.known
    old = place_of(known.record, known.seq, known.point)
    new = place_of(update.record, known.seq, known.point)
    left: dict[str, str | None] = {}
    if known.record.session is not None:
        left = new_predecessors(await around(points, scope, known.record.session, old, old), [old.point])
    if update.record.session is None:
        return None, left
    stays = known.record.session == update.record.session  # then its old position may be next to the new one
    span = (min(old, new), max(old, new)) if stays else (new, new)
    stored = await around(points, scope, update.record.session, *span)
    before, follows = predecessors((place for place in stored if place.point != old.point), [new])
    return before[new.point], {**left, **follows}


def _joining(new: Sequence[Prepared], seen: Survey, arrivals: Sequence[int]) -> Joining:
    places = [place_of(item.record, seq, point_of(item.record)) for item, seq in zip(new, arrivals, strict=True)]
    by_session: dict[str, list[Place]] = {}
    for item, place in zip(new, places, strict=True):
        if item.record.session is not None:
            by_session.setdefault(item.record.session, []).append(place)
    before: dict[str, str | None] = {}
    changed: dict[str, str | None] = {}
    for session, joining in by_session.items():
        links, follows = predecessors(seen.places[session], joining)
        before.update(links)
        changed.update(follows)
    return Joining(places, before, changed)


def _checked(item: Prepared, embedded: Mapping[str, Prepared]) -> Prepared:
    """The record with its vectors, if they were made from its current text."""
    made = embedded.get(item.record.id)
    return item if made is None or made.record != item.record else made


def _new_point(scope: Scope, item: Prepared, place: Place, joining: Joining, write: str) -> Point:
    known = Stored(
        point=place.point,
        record=item.record,
        seq=place.seq,
        before=joining.before.get(place.point),
        born=write,
        write=write,
        pending=None,
    )
    return to_point(scope, item, known, pending=None if item.vectors else token())
