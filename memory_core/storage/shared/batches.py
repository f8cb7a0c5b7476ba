"""What adding and putting records comes to where their source keys are known already: pure functions."""

from __future__ import annotations

from dataclasses import replace

from memory_core.errors import DuplicateIdError
from memory_core.models import MemoryRecord, Scope
from memory_core.storage.shared.prepared import Prepared


def insist_on_reach(scope: Scope, record: MemoryRecord) -> None:
    """Refuse a record outside of what the scope reaches; its source key is the owner's all the same."""
    for name in ("agent", "session", "collection"):
        bound = getattr(scope, name)
        if bound is not None and bound != getattr(record, name):
            raise DuplicateIdError(
                f"source key {record.source_key!r} belongs to a record outside of {name} {bound!r}; use another key"
            )


def merged(item: Prepared, later: Prepared) -> Prepared:
    """One source key twice in a batch: the later version counts."""
    record = updated(item.record, later.record)
    return item if record is item.record else item.again(replace(record, rev=1, version=1))


def updated(record: MemoryRecord, later: MemoryRecord) -> MemoryRecord:
    """The record of a source key with what a later version of it says; the same object if that is nothing new.

    A later version that does not know who spoke leaves the role as it is.
    """
    role = later.role or record.role
    said = (later.text, role, later.author, later.data, later.tags)
    if said == (record.text, record.role, record.author, record.data, record.tags):
        return record
    return replace(
        record,
        text=later.text,
        role=role,
        author=later.author,
        data=later.data,
        tags=later.tags,
        rev=record.rev + (record.text != later.text),
        updated_at=later.updated_at,
        version=record.version + 1,
    )


def replacing(before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """What a put writes over the record of its source key: the new one, with what stays the store's to say."""
    return replace(
        after,
        id=before.id,
        created_at=before.created_at,
        accessed_at=before.accessed_at,
        access_count=before.access_count,
        rev=before.rev + (before.text != after.text),
        version=before.version + 1,
    )


def is_searched_differently(before: MemoryRecord, after: MemoryRecord) -> bool:
    """Whether terms, vectors or the order of turns change."""
    return _searched(before) != _searched(after)


def _searched(record: MemoryRecord) -> tuple[object, ...]:
    return record.text, record.author, record.occurred_at, record.session
