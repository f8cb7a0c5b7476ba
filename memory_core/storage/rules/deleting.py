"""Delete records: whether a source key is forgotten with them, and what becomes of links to them.

What is deleted is what was agreed: the caller passes the versions that somebody has seen, and
either exactly these records go, in one transaction, or none.

The caller of a deletion decides what becomes of the source keys: `forget=True` forgets them, and `False` frees them,
even if they were forgotten before. A record that expires, or that a put removes, leaves its key as it was (`None`).

What was made of the words of a deleted record goes with it (`deriving.py`), except of one that has only expired: what
was made of that keeps its sources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from memory_core.models import DERIVING, Deleted, MemoryRecord, Relation, Scope
from memory_core.records.draft_to_record import insist_on_versions
from memory_core.storage.rules.deriving import (
    expand,
    give_back,
    is_within,
    made_of,
    outdated,
    pass_on,
    say_again,
    says_nothing,
    sources_of,
    stay_read,
)
from memory_core.storage.rules.rows import Head, HidingRows, Row, Rows
from memory_core.storage.shared.merging import owner_of, without_links
from memory_core.where.where import ANY_STATE, Where

BEFORE_EVERYTHING: Final = datetime.min.replace(tzinfo=UTC)
"""Given as the current time, it makes expired records visible."""


def delete(
    rows: Rows,
    scope: Scope,
    where: Where,
    now: datetime,
    *,
    forget: bool | None,
    versions: Mapping[str, int] | None = None,
    keeps_derived: bool = False,
) -> Deleted:
    """Delete the records that satisfy the conditions, and what was made of their words unless `keeps_derived`.

    Args:
        forget: Forget their source keys; see the head of this file.
        versions: By id: what satisfies the conditions must be exactly these records in these versions. A store without
            atomic batches compares all of them first, and then each as it goes.

    Raises:
        ConflictError: It is something else (`draft_to_record.insist_on_versions`); nothing was deleted.
        UnfinishedWriteError: Without atomic batches: a part was deleted, and somebody has changed the rest, or the
            server failed.
    """
    gone = rows.matching(scope, where, now)
    insist_on_versions({head.id: head.version for head in gone}, versions)
    return delete_found(rows, scope, gone, now, forget=forget, keeps_derived=keeps_derived)


def delete_found(
    rows: Rows, scope: Scope, gone: Sequence[Head], now: datetime, *, forget: bool | None, keeps_derived: bool
) -> Deleted:
    """Delete these records; see `delete`."""
    if keeps_derived:
        return Deleted(len(gone), _discard(rows, scope, gone, now, forget=forget))
    return Deleted(len(gone), remove(rows, scope, gone, now, forget=forget))


def sweep(rows: Rows, scope: Scope, now: datetime, new: Sequence[MemoryRecord] = ()) -> int:
    """Delete expired records, as many as one transaction should, so that new ones can have their ids and source keys;
    returns how many."""
    expired = rows.expired(scope, now, new)
    _discard(rows, scope, expired, now, forget=None)
    return len(expired)


def _discard(rows: Rows, scope: Scope, gone: Sequence[Head], now: datetime, *, forget: bool | None) -> int:
    """`discard`, except that what would be left for good goes as well, and what could not name its sources; returns how
    many records that are."""
    hidden = _heads(rows, scope, [*outdated(rows, {head.id for head in gone}), *pass_on(rows, gone, now)])
    discard(rows, gone, forget=forget)
    expand(rows, gone, now)
    return len(hidden) + remove(rows, scope, hidden, now, forget=False)


def discard(rows: Rows, gone: Sequence[Head], *, forget: bool | None) -> None:
    """Delete records whose time is over. What was made of their words stays, with its links to them."""
    if gone:
        _forget(rows, gone, forget)
        rows.remove(gone)
        _unlink(rows, {head.id for head in gone}, keep=DERIVING)


def remove(rows: Rows, scope: Scope, gone: Sequence[Head], now: datetime, *, forget: bool | None) -> int:
    """Delete these records and what was made of their words, forget or free their source keys, and remove links to
    them from those that stay; returns how many derived records have gone with them."""
    if not gone:
        return 0
    hidden = rows.hide_made_of(gone, now) if isinstance(rows, HidingRows) else 0
    derived = () if hidden else _heads(rows, scope, made_of(rows, {head.id for head in gone}))
    _forget(rows, gone, forget)
    take_away(rows, derived, now, gone)
    return hidden or len(derived)


def take_away(rows: Rows, derived: Sequence[Head], now: datetime, gone: Sequence[Head] = ()) -> None:
    """Delete derived records, with their sources `gone` or after them: undo what they had done, and remove links to
    them from the records that stay."""
    _forget(rows, derived, forget=False)
    rows.remove([*gone, *derived])
    stay_read(rows, gone, now)
    say_again(rows, derived, now)
    give_back(rows, [*gone, *derived], now)
    _unlink(rows, {head.id for head in (*gone, *derived)}, keep=())


def erase(rows: Rows, scope: Scope, now: datetime) -> tuple[int, int]:
    """Delete everything in scope, expired records included, and what was made of its words, also of records that had
    expired before; returns how many records there were, and how many derived ones outside of the scope."""
    gone = rows.matching(scope, ANY_STATE, BEFORE_EVERYTHING)
    derived = remove(rows, scope, gone, now, forget=True)
    late = _made_within(rows, scope)
    late += _heads(rows, scope, made_of(rows, {head.id for head in late}))
    if late:
        take_away(rows, late, now)
    return len(gone), derived + len(late)


def _made_within(rows: Rows, scope: Scope) -> list[Head]:
    """The records that were made of the words of an agent, session or collection, also of records that have expired."""
    if scope == owner_of(scope):
        return []
    heads = rows.matching(owner_of(scope), ANY_STATE, BEFORE_EVERYTHING)
    return [head for head in heads if any(is_within(link, scope) for link in sources_of(head.links))]


def _forget(rows: Rows, gone: Sequence[Head], forget: bool | None) -> None:  # noqa: FBT001
    if forget is not None:
        rows.forget([head.source_key for head in gone if head.source_key is not None], forgotten=forget)


def _heads(rows: Rows, scope: Scope, found: Sequence[Row]) -> Sequence[Head]:
    where = replace(ANY_STATE, ids=tuple(row.record.id for row in found))
    return rows.matching(owner_of(scope), where, BEFORE_EVERYTHING) if found else ()


def _unlink(rows: Rows, gone: Collection[str], keep: Collection[Relation]) -> None:
    linked = [(row, without_links(row.record, gone, keep)) for row in rows.linking_to(gone)]
    notes = [row for row, record in linked if says_nothing(row.record, record)]
    kept = [(row, record) for row, record in linked if record is not row.record and row not in notes]
    rows.overwrite(kept)
    if notes:
        owner = Scope(notes[0].record.app, notes[0].record.user)
        rows.remove(_heads(rows, owner, notes))
