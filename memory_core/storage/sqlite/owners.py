"""Owners: the table that maps `(app, user)` to numbers and counts what each stores, and their quotas."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from memory_core.errors import QuotaExceededError
from memory_core.models import MemoryRecord, Quota, Scope
from memory_core.records.size import bytes_of
from memory_core.storage.sqlite.damage import explaining, unreadable

T = TypeVar("T")

SIZE: Final = "(length(CAST(text AS BLOB)) + length(data) + length(tags) + length(links))"
"""`bytes_of` a row of `record`. All columns but `text` are ASCII."""


class Usage(NamedTuple):
    """The amount that an owner stores, or a change of it."""

    records: int = 0
    bytes: int = 0


UNCHANGED: Final = Usage()


def usage_of(records: Iterable[MemoryRecord]) -> Usage:
    """The usage of some records, with bytes as in `SIZE`."""
    count = size = 0
    for record in records:
        count += 1
        size += bytes_of(record)
    return Usage(count, size)


def used(db: sqlite3.Connection, scope: Scope) -> Usage:
    """The usage of a scope's owner."""
    row = db.execute("SELECT records, bytes FROM owner WHERE app = ? AND user = ?", (scope.app, scope.user)).fetchone()
    return Usage(*row) if row else Usage()


def within(
    quota: Quota | None, scope: Scope, work: Callable[[sqlite3.Connection], T]
) -> Callable[[sqlite3.Connection], T]:
    """Wrap `work` so that it raises, and is rolled back, if it takes the owner's usage further beyond the quota."""
    if quota is None:
        return work

    def guarded(db: sqlite3.Connection) -> T:
        before = used(db, scope)
        result = work(db)
        _check_quota(quota, scope, before, used(db, scope))
        return result

    return guarded


def _check_quota(quota: Quota, scope: Scope, before: Usage, after: Usage) -> None:
    for unit, most, held, wanted in (
        ("records", quota.records, before.records, after.records),
        ("bytes", quota.bytes, before.bytes, after.bytes),
    ):
        if most is not None and wanted > most and wanted > held:
            raise QuotaExceededError(
                f"{scope.app}/{scope.user} holds {held:,} of {most:,} {unit} and would hold {wanted:,}; delete some "
                "memories, or open the memory with a larger Quota"
            )


_OWNERS: Final = (
    "SELECT app, user FROM owner WHERE EXISTS (SELECT 1 FROM record WHERE record.owner = owner.id) ORDER BY app, user"
)

_HIDES: Final = "EXISTS (SELECT 1 FROM hidden)"

OUTBOX_KEPT: Final = 50_000
"""Changes kept for followers; a follower that is further behind reloads the owner."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner's row: `next` is the seq of its next record; `version` counts changes other than appends."""

    id: int
    next: int
    version: int
    hides: bool = False
    """True if the file has hidden rows (`hidden.py`), which readers leave out."""


def find(db: sqlite3.Connection, scope: Scope) -> Owner | None:
    """The owner of a scope, or `None` before its first write."""
    row = db.execute(
        f"SELECT id, next, version, {_HIDES} FROM owner WHERE app = ? AND user = ?", (scope.app, scope.user)
    ).fetchone()
    return None if row is None else _owner(row)


Reached = tuple[tuple[Owner, Scope], ...]
"""The owners that a search reads, each with the scope that bounds it; usually one."""


def find_all(db: sqlite3.Connection, scopes: Sequence[Scope]) -> Reached:
    """The owners of these scopes, without those before their first write."""
    found = ((find(db, scope), scope) for scope in scopes)
    return tuple((owner, scope) for owner, scope in found if owner is not None)


def owners(db: sqlite3.Connection) -> list[Scope]:
    """All owners that have a record."""
    with explaining("the name of an owner"):
        return [Scope(app, user) for app, user in db.execute(_OWNERS)]


def owner_names(db: sqlite3.Connection, owner: int) -> tuple[str, str]:
    """The app and the user of an owner's number."""
    row = db.execute("SELECT app, user FROM owner WHERE id = ?", (owner,)).fetchone()
    return ("", "") if row is None else row


def _owner(row: Sequence[object]) -> Owner:
    id, following, version, hides = row  # noqa: A001
    if not (isinstance(id, int) and isinstance(following, int) and isinstance(version, int)):
        raise unreadable("the row of an owner")
    return Owner(id, following, version, bool(hides))


def find_or_add(db: sqlite3.Connection, scope: Scope) -> Owner:
    """The owner of a scope, created if missing; call it inside a write transaction."""
    found = find(db, scope)
    if found is None:
        db.execute("INSERT INTO owner (app, user) VALUES (?, ?)", (scope.app, scope.user))
        found = find(db, scope)
    assert found is not None  # noqa: S101  (inserted above, in this transaction)
    return found


def take_keys(db: sqlite3.Connection, owner: int, new: Usage) -> None:
    """Count new records and reserve their keys, from `next` on."""
    db.execute(
        "UPDATE owner SET next = next + ?, records = records + ?, bytes = bytes + ? WHERE id = ?",
        (new.records, *new, owner),
    )


def note_changes(db: sqlite3.Connection, owner: int, keys: list[int], grown: Usage = UNCHANGED) -> None:
    """Notify followers that these records changed or were deleted: one new version, one outbox row each.

    Args:
        grown: Change in the owner's usage; negative if it shrank.
    """
    if not keys:
        return
    (version,) = db.execute(
        "UPDATE owner SET version = version + 1, records = records + ?, bytes = bytes + ? WHERE id = ? "
        "RETURNING version",
        (*grown, owner),
    ).fetchone()
    db.executemany("INSERT INTO outbox (owner, version, key) VALUES (?, ?, ?)", [(owner, version, k) for k in keys])
    _forget_oldest_changes(db)


def _forget_oldest_changes(db: sqlite3.Connection) -> None:
    """Trim the outbox to about `OUTBOX_KEPT` rows when it has twice as many.

    The outbox has all rows of a version or none, which is what its followers rely on. The rows of a version are
    neighbours, since one transaction wrote them; so what goes ends where a version ends.
    """
    first, last = db.execute("SELECT (SELECT min(seq) FROM outbox), (SELECT max(seq) FROM outbox)").fetchone()
    if last - first > 2 * OUTBOX_KEPT:
        db.execute(_FORGET, (last - OUTBOX_KEPT,))


_FORGET: Final = (
    "DELETE FROM outbox WHERE seq <= (SELECT max(seq) FROM outbox WHERE (owner, version) = "
    "(SELECT owner, version FROM outbox WHERE seq <= ? ORDER BY seq DESC LIMIT 1))"
)


def pending_in_all(db: sqlite3.Connection) -> int:
    """The number of pending vectors, all owners together."""
    (count,) = db.execute("SELECT count(*) FROM chunk WHERE vector IS NULL").fetchone()
    return int(count)


class Unfinished(NamedTuple):
    """The work that a commit has left to the background."""

    lacks_vectors: bool = False
    """True if any vector is missing in the file."""
    hides: bool = False
    """True if the file has hidden rows (`hidden.py`)."""


def unfinished(db: sqlite3.Connection) -> Unfinished:
    """The work that is left to do in a file."""
    found = db.execute(f"SELECT EXISTS (SELECT 1 FROM chunk WHERE vector IS NULL), {_HIDES}").fetchone()
    return Unfinished(*map(bool, found))
