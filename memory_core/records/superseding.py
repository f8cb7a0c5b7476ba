"""The changes of a record when another one supersedes it: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Final

from memory_core.errors import ConflictError, DuplicateIdError, InvalidInputError, SupersededError
from memory_core.models import Draft, Link, MemoryRecord, Scope
from memory_core.records.draft_to_record import as_draft, insist_on_version
from memory_core.records.fields import check_links

NOT_INHERITED: Final = frozenset({"text", "passages", "id", "source_key", "links", "valid_from", "author", "data"})
"""The fields of `Draft` that a correction does not take from the record that it corrects as they are."""
FRAMEWORK_MESSAGE: Final = "framework_message"
"""In `data`: the message as its framework has it. It repeats the text, so a correction does not have it."""


def correction(old: MemoryRecord, text: str, scope: Scope, now: datetime) -> Draft:
    """The draft of a text that corrects a record now; every surface starts from it.

    It inherits the fields of `Draft` that `NOT_INHERITED` does not name, and `data` without the framework's message.
    A `valid_to` that has passed is of what was true, and is not inherited. Words that somebody has said become those of
    the one who corrects them. What was derived is no longer derived.

    Args:
        scope: Of the handle that corrects.
    """
    inherited = {field.name: getattr(old, field.name) for field in fields(Draft) if field.name not in NOT_INHERITED}
    if old.valid_to is not None and old.valid_to <= now:
        inherited["valid_to"] = None
    return Draft(
        text,
        author=None if old.author is None else scope.agent or scope.user,
        data={name: value for name, value in old.data.items() if name != FRAMEWORK_MESSAGE},
        **inherited,
    )


def superseding(old: MemoryRecord, entry: Draft | str, scope: Scope, now: datetime) -> Draft:
    """The draft that supersedes `old`; a bare text is a `correction`."""
    draft = correction(old, entry, scope, now) if isinstance(entry, str) else as_draft(entry)
    links = (*check_links(draft.links), Link("supersedes", old.id))
    return replace(draft, links=links, valid_from=now if draft.valid_from is None else draft.valid_from)


def insist_on_heir(old: MemoryRecord, known: Sequence[MemoryRecord]) -> None:
    """Refuse a source key that is known: adding it would update its record, and supersede nothing.

    Raises:
        DuplicateIdError: The known record is another one than what superseded `old` in an earlier attempt.
    """
    for record in known:
        if old.id not in superseded_by(record):
            raise DuplicateIdError(
                f"source key {record.source_key!r} belongs to the memory {record.id!r}, which adding it would update; "
                f"supersede {old.id!r} under another key or without one"
            )


def insist_on_seen(id: str, old: MemoryRecord | None, expected: int | None) -> None:  # noqa: A002
    """Refuse to supersede another version of a record than its caller has seen; `None` accepts any.

    Raises:
        ConflictError: The record has another version, or is gone.
    """
    if expected is not None and old is None:
        raise ConflictError(f"the memory {id!r} is gone, so nothing was written")
    if old is not None:
        insist_on_version(old, expected)


def retired(old: MemoryRecord, new: MemoryRecord) -> MemoryRecord:
    """The old record after `new` supersedes it: archived, and valid until `new` becomes valid.

    The same object if it is retired already.
    """
    start = new.occurred_at.astimezone(UTC) if new.valid_from is None else new.valid_from
    end = start if old.valid_to is None else min(start, old.valid_to)
    if (old.state, old.valid_to) == ("archived", end):
        return old
    return replace(
        old,
        state="archived",
        valid_to=end,
        former_state=old.state,
        former_valid_to=old.valid_to,
        updated_at=new.created_at,
        version=old.version + 1,
    )


def reinstated(old: MemoryRecord, now: datetime) -> MemoryRecord:
    """The old record as it was before another one superseded it.

    The same object if nothing has retired it, or if somebody has brought it back since.
    """
    if old.former_state is None or old.state != "archived":
        return old
    return replace(
        old,
        state=old.former_state,
        valid_to=old.former_valid_to,
        former_state=None,
        former_valid_to=None,
        updated_at=now,
        version=old.version + 1,
    )


def retired_within(records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """The batch, in the same order, with every record retired that another record of the batch supersedes.

    Raises:
        SupersededError: Two records supersede the same record.
        InvalidInputError: A record supersedes itself, at once or through others: no read would find any of them.
    """
    heirs: dict[str, MemoryRecord] = {}
    for record in records:
        for old in superseded_by(record):
            if old in heirs:
                raise already_superseded(old)
            heirs[old] = record
    _insist_on_ends(heirs)
    return [retired(record, heirs[record.id]) if record.id in heirs else record for record in records]


def _insist_on_ends(heirs: Mapping[str, MemoryRecord]) -> None:
    """Refuse records that supersede each other in a circle."""
    known: set[str] = set()
    for start in heirs:
        chain, id = set[str](), start  # noqa: A001  (the record's own word)
        while id in heirs and id not in known:
            known.add(id)
            chain.add(id)
            id = heirs[id].id  # noqa: A001
        if id in chain:
            raise InvalidInputError(f"memory {id!r} supersedes itself, so it would never be found; leave out that link")


def superseded_by(record: MemoryRecord) -> list[str]:
    """The ids of the records that this one supersedes."""
    return [link.id for link in record.links if link.relation == "supersedes"]


def already_superseded(id: str) -> SupersededError:  # noqa: A002
    """The error for a second record that supersedes the same record."""
    return SupersededError(f"memory {id!r} has been superseded already; supersede its successor, see history({id!r})")
