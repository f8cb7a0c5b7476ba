"""A write: one conditional request for each point, and a look whether it held.

A server applies each point on its own, and its reply does not say whether a condition held. So every state of a point
has the token of the write that made it, a change names the token of the state that it replaces, and the tokens are read
back. A batch is not a transaction: a failure in the middle raises `UnfinishedWriteError`, which names what is stored.
Planning starts again if another writer was faster; it finds what this write has stored by its token.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_core.errors import StorageError, UnfinishedWriteError
from memory_core.models import MemoryRecord
from memory_core.storage.qdrant.codec import (
    FORGOTTEN,
    Payload,
    Point,
    Stored,
    analysed,
    payload_of,
    stamp,
    token,
    whole,
)
from memory_core.storage.qdrant.connection import UnansweredError
from memory_core.storage.qdrant.owners import LIFE, Owner
from memory_core.storage.qdrant.points import MAX_POINTS, PAGE, OvertakenError, by
from memory_core.storage.qdrant.where import among, same
from memory_core.storage.shared.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Change:
    """A new state of one point."""

    point: Point
    name: str
    """The id of its record, for errors."""
    was: str | None
    """The token of the state that it replaces; `None` for a point that must not exist."""
    is_whole: bool = True
    """True if it replaces the point; otherwise it sets payload fields, and the vectors stay."""


@dataclass(slots=True)
class Changes:
    """The points that one write changes."""

    owner: Owner
    write: str = field(default_factory=token)
    """The token of the new states."""
    changes: list[Change] = field(default_factory=list[Change])

    def put(self, item: Prepared, known: Stored, was: str | None) -> None:
        """Write a whole point in place of the state `was`, or a new one; vectors of another embedder stay pending."""
        access, known = self.owner.access, replace(known, write=self.write)
        vector = access.vector if item.made_by == access.fingerprint else None
        self.changes.append(Change(whole(self.owner.key, item, known, vector), item.record.id, was))

    def overwrite(self, known: Stored, record: MemoryRecord) -> None:
        """Change a record whose searched fields stay."""
        vector = None if known.is_pending or not known.spans else self.owner.access.vector
        after = replace(known, record=record, write=self.write, revisions=known.followed_by(record))
        payload = payload_of(self.owner.key, analysed(record, known.spans, ()), after, vector)
        self.changes.append(Change(Point(known.point, payload), record.id, known.write, is_whole=False))

    def mark(self, known: Stored, now: datetime, *, forget: bool | None, keeps_derived: bool) -> None:
        """Replace a record by a marker; `forget` and `keeps_derived` are as in `rules.deleting`."""
        names, scope = self.owner.access.names, self.owner.scope
        keys = [] if keeps_derived else [names.gone(scope, known.record.id)]
        is_forgotten = known.is_forgotten if forget is None else forget and known.record.source_key is not None
        rest: Payload = (
            {"_keys": [*keys, FORGOTTEN]} if is_forgotten else {"expires_at": stamp(now + LIFE), "_keys": keys}
        )
        marker = {"_marker": "forgotten" if is_forgotten else "deleted", "_write": self.write, "_writes": [self.write]}
        self.changes.append(Change(Point(known.point, {**marker, **rest}), known.record.id, known.write))

    async def carry_out(self) -> None:
        """Apply all of the changes.

        Raises:
            OvertakenError: Another process was faster with some of them; plan again.
            UnfinishedWriteError: The server failed after some of them, or perhaps did.
            StorageError: The server refused all of them.
        """
        if not self.changes:
            return
        sent: set[str] = set()
        failure: StorageError | None = None
        try:
            await self._send(sent)
        except StorageError as error:
            failure = error
        try:
            stored = await self._stored()
        except StorageError as error:
            unfinished = self._unfinished(failure or error, set(), sent)
            raise unfinished from unfinished.__cause__
        if all(change.point.id in stored for change in self.changes):
            return
        if failure is None:
            raise OvertakenError
        raise self._unfinished(failure, stored, sent if isinstance(failure, UnansweredError) else set())

    async def _send(self, sent: set[str]) -> None:
        points, was = self.owner.points, {change.point.id: change.was or "" for change in self.changes}
        for is_new in (True, False):
            whole_points = [
                change.point for change in self.changes if change.is_whole and (change.was is None) is is_new
            ]
            for some in by(MAX_POINTS, whole_points):
                sent.update(point.id for point in some)
                await points.upsert(some, None if is_new else was)
        for partial in by(PAGE, [change for change in self.changes if not change.is_whole]):
            sent |= {change.point.id for change in partial}
            those = ((change.point, among([change.point.id]), same("_write", change.was or "")) for change in partial)
            await points.write(*(points.set_fields(point.payload, *conditions) for point, *conditions in those))

    async def _stored(self) -> set[str]:
        """The points that this write has changed."""
        records = await self.owner.points.read([change.point.id for change in self.changes], fields=["_writes"])
        return {record.id for record in records if self.write in record.payload.get("_writes", ())}

    def _unfinished(self, failure: StorageError, stored: set[str], unknown: set[str]) -> StorageError:
        """The error for a write of which not everything is stored."""
        by_state: dict[str, dict[str, None]] = {"stored": {}, "missing": {}, "unknown": {}}
        for change in self.changes:
            point = change.point.id
            state = "stored" if point in stored else "unknown" if point in unknown else "missing"
            by_state[state][change.name] = None
        there, missing, lost = map(tuple, by_state.values())
        if not there and not lost:
            return failure
        error = UnfinishedWriteError(
            f"{failure}; {len(there)} of {len(there) + len(missing) + len(lost)} records are written, {len(missing)} "
            f"are not, and of {len(lost)} it is unknown, because the reply was lost; repeating the call with the same "
            "ids or source keys is safe",
            stored=there,
            missing=missing,
            unknown=lost,
        )
        error.__cause__ = failure
        return error
