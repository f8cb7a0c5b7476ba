"""Owners: the numbers behind `(app, user)`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from memory_core.models import Scope

OUTBOX_KEPT: Final = 50_000
"""Changes kept for followers; one that fell further behind reads its owner anew."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner's row: `next` is the seq of its next record; `version` counts changes that are no appends."""

    id: int
    next: int
    version: int


def find(db: sqlite3.Connection, scope: Scope) -> Owner | None:
    """The owner of a scope, if it ever wrote anything."""
    row = db.execute(
        "SELECT id, next, version FROM owner WHERE app = ? AND user = ?", (scope.app, scope.user)
    ).fetchone()
    return None if row is None else Owner(*row)


def find_or_add(db: sqlite3.Connection, scope: Scope) -> Owner:
    """The owner of a scope, made if there is none; inside a write transaction."""
    found = find(db, scope)
    if found is None:
        db.execute("INSERT INTO owner (app, user) VALUES (?, ?)", (scope.app, scope.user))
        found = find(db, scope)
    assert found is not None  # noqa: S101  (inserted above, in this transaction)
    return found


def note_changes(db: sqlite3.Connection, owner: int, keys: list[int]) -> None:
    """Tell followers that these records changed or went: one new version, one outbox row each."""
    if not keys:
        return
    (version,) = db.execute(
        "UPDATE owner SET version = version + 1 WHERE id = ? RETURNING version", (owner,)
    ).fetchone()
    db.executemany("INSERT INTO outbox (owner, version, key) VALUES (?, ?, ?)", [(owner, version, k) for k in keys])


def trim_outbox(db: sqlite3.Connection, kept: int) -> None:
    """Forget the oldest changes once there are twice as many as are kept."""
    first, last = db.execute("SELECT (SELECT min(seq) FROM outbox), (SELECT max(seq) FROM outbox)").fetchone()
    if last is not None and last - first > 2 * kept:
        db.execute("DELETE FROM outbox WHERE seq <= ?", (last - kept,))
