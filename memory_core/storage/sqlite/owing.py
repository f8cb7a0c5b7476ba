"""Which vectors have to be made anew: those of turns whose turn before changed, went or came late."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memory_core.storage.sqlite.prepared import Before, Prepared
from memory_core.storage.sqlite.rows import micros


def owe_appended(db: sqlite3.Connection, owner: int, keys: Sequence[int], items: Sequence[Prepared]) -> list[int]:
    """After new records came in: owe first vectors that saw another turn than the one now before them.

    Returns the keys of older records among them.
    """
    sessions: dict[str, list[tuple[int, Prepared]]] = {}
    for key, item in zip(keys, items, strict=True):
        if item.record.session is not None:
            sessions.setdefault(item.record.session, []).append((key, item))
    changed: list[int] = []
    for session, turns in sessions.items():
        turns.sort(key=lambda turn: turn[1].record.occurred_at)  # stable: equal times stay as they arrived
        last = _last_turn(db, owner, session, keys[0])
        if last is None or last.occurred_at <= micros(turns[0][1].record.occurred_at):
            _owe_at_the_end(db, turns, last)
        else:
            changed += owe_around(db, owner, turns)
    return changed


def _owe_at_the_end(db: sqlite3.Connection, turns: Sequence[tuple[int, Prepared]], before: Before | None) -> None:
    """The usual case, new turns after all the others, is decided without looking each of them up."""
    for key, item in turns:
        if item.vectors and (before.turn if before else None) != item.seen:
            _owe(db, key)
        before = Before.of(item.record)


def owe_around(db: sqlite3.Connection, owner: int, turns: Sequence[tuple[int, Prepared]]) -> list[int]:
    """Owe first vectors of these and of the turns after them, wherever they are; returns the keys of the latter."""
    for key, item in turns:
        if item.vectors and item.record.session is not None:
            before = previous_turn(db, owner, item.record.session, micros(item.record.occurred_at), key)
            if (before.turn if before else None) != item.seen:
                _owe(db, key)
    return owe_turns_after(db, owner, [key for key, _ in turns])


def _last_turn(db: sqlite3.Connection, owner: int, session: str, first_new: int) -> Before | None:
    """The last turn of a session among records older than this key."""
    row = db.execute(
        "SELECT occurred_at, author, text FROM record "
        "WHERE owner = ? AND session = ? AND key < ? ORDER BY occurred_at DESC, key DESC LIMIT 1",
        (owner, session, first_new),
    ).fetchone()
    return None if row is None else Before(row[0], (row[1], row[2]))


def previous_turn(db: sqlite3.Connection, owner: int, session: str, occurred_at: int, key: int) -> Before | None:
    """The last turn of a session before this time, or at this time with a smaller key."""
    row = db.execute(
        "SELECT occurred_at, author, text FROM record "
        "WHERE owner = ? AND session = ? AND (occurred_at, key) < (?, ?) ORDER BY occurred_at DESC, key DESC LIMIT 1",
        (owner, session, occurred_at, key),
    ).fetchone()
    return None if row is None else Before(row[0], (row[1], row[2]))


def owe_turns_after(db: sqlite3.Connection, owner: int, keys: Sequence[int]) -> list[int]:
    """The turns after these saw them: their first vectors are owed again. Turns among `keys` are left alone."""
    among = set(keys)
    after = {key for this in keys if (key := _next_turn(db, owner, this)) is not None and key not in among}
    for key in after:
        _owe(db, key)
    return sorted(after)


def _next_turn(db: sqlite3.Connection, owner: int, key: int) -> int | None:
    row = db.execute(
        "SELECT after.key FROM record AS this JOIN record AS after ON after.owner = this.owner "
        "AND after.session = this.session AND (after.occurred_at, after.key) > (this.occurred_at, this.key) "
        "WHERE this.key = ? AND this.owner = ? ORDER BY after.occurred_at, after.key LIMIT 1",
        (key, owner),
    ).fetchone()
    return None if row is None else int(row[0])


def _owe(db: sqlite3.Connection, key: int) -> None:
    db.execute("UPDATE chunk SET vector = NULL, vector_digest = NULL WHERE record = ? AND n = 0", (key,))
