"""Which turn comes before which: what the first vector of a record gets to see."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from memory_core.models import Scope
from memory_core.storage.sqlite.owing import previous_turn
from memory_core.storage.sqlite.owners import find
from memory_core.storage.sqlite.prepared import Before, Prepared
from memory_core.storage.sqlite.rows import micros
from memory_core.storage.sqlite.writing import by_source

NEW: Final = (1 << 63) - 1
"""Stands for the key of a record that has none yet: it comes after all that are stored."""


def is_placed(item: Prepared) -> bool:
    """Whether what is stored can matter to a new record's vectors: a turn before it, or an older version of it."""
    return item.record.session is not None or item.record.source_key is not None


def turns_before(
    db: sqlite3.Connection, scope: Scope, batch: Sequence[Prepared], key: int = NEW
) -> dict[str, Before | None]:
    """For each record that needs vectors (by id) the turn before it, in the file or in the batch.

    Left out are records without text and those that are stored already, word for word.

    Args:
        key: Of the one record of the batch, if it is stored already and about to change.
    """
    owner = find(db, scope)
    may_be_known = owner if key == NEW else None
    wanted = [
        item for item in batch if item.chunks and not (may_be_known and _is_known(db, scope, may_be_known.id, item))
    ]
    befores: dict[str, Before | None] = {}
    for item, earlier in _in_order(wanted):
        record = item.record
        stored: Before | None = None
        if owner is not None and record.session is not None:
            stored = previous_turn(db, owner.id, record.session, micros(record.occurred_at), key)
        befores[record.id] = _later(stored, earlier)
    return befores


def _is_known(db: sqlite3.Connection, scope: Scope, owner: int, item: Prepared) -> bool:
    source = item.record.source_key
    known = None if source is None else by_source(db, scope, owner, source)
    return known is not None and (known[1].text, known[1].author) == (item.record.text, item.record.author)


def _in_order(batch: Sequence[Prepared]) -> Iterable[tuple[Prepared, Before | None]]:
    """Each record with the turn before it in the batch."""
    last: dict[str, Prepared] = {}
    for item in sorted(batch, key=lambda item: item.record.occurred_at):  # stable: equal times stay as they arrived
        session = item.record.session
        earlier = None if session is None else last.get(session)
        yield item, None if earlier is None else Before.of(earlier.record)
        if session is not None:
            last[session] = item


def _later(stored: Before | None, earlier: Before | None) -> Before | None:
    """The later of two turns; of equals the one in the batch, which arrives after what is stored."""
    if stored is None or earlier is None:
        return stored or earlier
    return stored if stored.occurred_at > earlier.occurred_at else earlier
