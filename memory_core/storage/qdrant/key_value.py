"""Expiry in a key-value store (`protocols.KeyValue`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from memory_core.models import STATES, Scope
from memory_core.storage.qdrant.codec import STORED_FIELDS, to_stored, token
from memory_core.storage.qdrant.owners import Owner
from memory_core.storage.qdrant.removal import delete, matching, overwrite
from memory_core.storage.qdrant.where import EVERYTHING, all_of, conditions, up_to
from memory_core.storage.qdrant.writing import Access, Changes, carry_out
from memory_core.where.value import Where


async def postpone(
    access: Access, owner: Owner, scope: Scope, expiries: Mapping[str, datetime | None], now: datetime
) -> None:
    """See `KeyValue.postpone`."""
    changes = Changes(token())
    for item in await matching(owner, scope, Where(states=STATES, ids=tuple(expiries)), now):
        record, expires = item.record, expiries[item.record.id]
        if expires != record.expires_at:
            after = replace(record, expires_at=expires, version=record.version + 1)
            overwrite(access, owner, changes, item, after)
    await carry_out(owner.points, changes)


async def sweep(access: Access, owner: Owner, scope: Scope, now: datetime) -> int:
    """See `KeyValue.sweep`."""
    found = conditions(owner.key, scope, EVERYTHING, None) or []
    records = await owner.points.all(all_of(*found, up_to("expires_at", now)), fields=STORED_FIELDS)
    expired = [to_stored(record.id, record.payload) for record in records]
    await delete(access, owner, expired, forget=False, now=now)
    return len(expired)
