"""Count what is read, so that what nobody reads can fade."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, Protocol, TypeGuard

from memory_core.errors import reason_for_log
from memory_core.models import Hit, MemoryRecord, Page, Scope
from memory_core.open_store import OpenStore
from memory_core.recall.keys import key_of
from memory_core.requests import ListRequest
from memory_core.values.attributes import has
from memory_core.values.times import start_of_day
from memory_core.where.conditions import FieldCondition, NoneOf
from memory_core.where.where import ANY_STATE

logger = logging.getLogger(__name__)

BEST_READ: Final = 5
"""Lines of a block among so many best hits count as read; the others only fill the room."""


class _OfOneOwner(Protocol):
    """A handle, of whose own records the reads are counted."""

    @property
    def memory(self) -> OpenStore: ...

    @property
    def scope(self) -> Scope: ...


def _is_of_one_owner(memory: object) -> TypeGuard[_OfOneOwner]:
    return has(memory, "memory") and has(memory, "scope")


def count_reads(memory: object, records: Sequence[MemoryRecord]) -> None:
    """Count a read of each of the owner's own records, once a day (UTC), in `accessed_at` and `access_count`.

    The caller does not wait for it; `Memory.close`, `maintain` and lists in the order of reads do. Neither the version
    of a record nor what other processes know of the owner changes. A failure is logged, because the read itself
    succeeded. A memory of somebody else's counts in its own way.
    """
    if not _is_of_one_owner(memory):
        return
    scope, today = memory.scope, start_of_day(memory.memory.clock())
    unread = [
        record.id
        for record in records
        if (record.app, record.user) == (scope.app, scope.user)
        and (record.accessed_at is None or record.accessed_at < today)
    ]
    if unread:
        read_today = FieldCondition("accessed_at", "gte", today)  # or about to be, by a recall that has not counted yet
        where = replace(ANY_STATE, ids=unread, matching=(NoneOf((read_today,)),))
        request = ListRequest(where=where, order="newest", limit=len(unread), cursor=None, touch=True)
        memory.memory.touch_later(scope, request).add_done_callback(_say_if_it_failed)


def _say_if_it_failed(counted: Future[Page]) -> None:
    if not counted.cancelled() and (error := counted.exception()) is not None:
        logger.warning("reads are not counted: %s", reason_for_log(error))


def read_in_block(best_first: Sequence[Hit], shown: Sequence[Hit]) -> list[MemoryRecord]:
    """The records of the shown hits that are among the best ones."""
    best = {key_of(hit.record) for hit in best_first[:BEST_READ]}
    return [hit.record for hit in shown if key_of(hit.record) in best]
