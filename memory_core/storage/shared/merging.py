"""The fate of a record when another one has its source key, when its text changes, or when one is deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from memory_core.errors import DuplicateIdError
from memory_core.models import MemoryRecord, Relation, Scope
from memory_core.records.restating import are_same_links, is_same, restated_links
from memory_core.storage.shared.prepared import Prepared
from memory_core.values.times import offset_of

_BOUNDS: Final = ("agent", "session", "collection")


def owner_of(scope: Scope) -> Scope:
    """The scope of the whole owner."""
    return Scope(scope.app, scope.user)


def reaches(scope: Scope, record: MemoryRecord) -> bool:
    """True if a record of the owner is in scope."""
    return all(getattr(scope, name) in (None, getattr(record, name)) for name in _BOUNDS)


def insist_on_reach(scope: Scope, record: MemoryRecord) -> None:
    """Refuse a record outside the scope; source keys are unique within the owner."""
    for name in _BOUNDS:
        bound = getattr(scope, name)
        if bound is not None and bound != getattr(record, name):
            raise DuplicateIdError(
                f"source key {record.source_key!r} belongs to a record outside {name} {bound!r}; use another key"
            )


def id_is_taken(id: str) -> DuplicateIdError:  # noqa: A002  (the record's own word)
    """The error for a new record whose id another one has."""
    return DuplicateIdError(f"there is a record of id {id!r} already; update it, or leave the id out")


def merged(item: Prepared, later: Prepared) -> Prepared:
    """Merge two records of a batch with the same source key: the later one wins."""
    record = updated(item.record, later.record)
    return item if record is item.record else later.again(replace(record, rev=1, version=1))


def updated(record: MemoryRecord, later: MemoryRecord) -> MemoryRecord:
    """The record of a source key, updated from a later version; the same object if nothing differs.

    A later version without a role leaves the role unchanged.
    """
    links = restated_links(record, later)
    if is_same(record, later) and are_same_links(links, record.links):
        return record
    return replace(
        record,
        text=later.text,
        role=later.role or record.role,
        author=later.author,
        data=later.data,
        tags=later.tags,
        links=links,
        rev=record.rev + (record.text != later.text),
        updated_at=later.updated_at,
        version=record.version + 1,
    )


def replacing(before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """The record that a put writes over an existing one: the new one, with the fields that the store keeps."""
    return replace(
        after,
        id=before.id,
        created_at=before.created_at,
        accessed_at=before.accessed_at,
        access_count=before.access_count,
        rev=before.rev + (before.text != after.text),
        version=before.version + 1,
    )


def without_links(record: MemoryRecord, gone: Collection[str], keep: Collection[Relation] = ()) -> MemoryRecord:
    """The record without its links to deleted ones, but those of the relations to keep; itself if it has none."""
    left = tuple(link for link in record.links if link.id not in gone or link.relation in keep)
    return record if left == record.links else replace(record, links=left, version=record.version + 1)


def is_searched_differently(before: MemoryRecord, after: MemoryRecord) -> bool:
    """True if a search may find the changed record by other words or vectors, or elsewhere among the turns."""
    return _searched(before) != _searched(after)


def _searched(record: MemoryRecord) -> tuple[object, ...]:
    return record.text, record.author, record.occurred_at, offset_of(record.occurred_at), record.session
