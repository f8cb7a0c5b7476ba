"""Take maintenance back, for good."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from memory_core.errors import ConflictError, RecordNotFoundError
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory, whole_owner
from memory_core.lifecycle.values import REFLECTION, Change, Maintenance, Step
from memory_core.models import STATES, Draft, MemoryRecord, Patch, Scope
from memory_core.records.draft_to_record import complete
from memory_core.records.undone import UNDONE, noted_reason, notes_of
from memory_core.retrieval.hits import EXTRACTION
from memory_core.where.where import Where

_COMPARED: Final = (
    *("text", "kind", "author", "data", "tags", "importance", "confidence", "valid_to", "state", "left", "links"),
)
"""Fields that somebody may have changed since a record was added."""


async def undo_maintenance(handle: BoundMemory, maintenance: Maintenance) -> tuple[Change, ...]:
    """Revert what `maintain` did, the last step first; returns the changes that were not reverted because their records
    have been changed since. Records that it added are deleted, unless they have been changed since. Of several runs,
    take back the last one first.

    No later run repeats or proposes a step that was taken back: its records stay apart, active or without the summary,
    and the turns that it read stay read. To take back some steps only, pass `Maintenance(steps=...)` with these.
    """
    handle, steps = handle.own, (*maintenance.steps, *maintenance.skipped)
    await _note(handle, maintenance)
    versions: dict[str, int] = {}
    left: list[Change] = []
    for step in reversed(steps):
        kept = {str(draft.id) for draft in step.added if _says_what_was_read(draft)}
        for change in reversed([change for change in step.changes if change.id not in kept]):
            expected = versions.get(change.id, change.version + 1)
            try:
                record = await handle.update(change.id, change.undo, expected_version=expected)
            except (ConflictError, RecordNotFoundError):
                left.append(change)
            else:
                versions[change.id] = record.version
        for draft in step.added:
            added = None if draft.id in kept else await handle.get(str(draft.id))
            if added is not None and _is_as_added(added, draft, handle.scope):
                with suppress(ConflictError):  # changed at this moment
                    await handle.delete_exactly({added.id: added.version}, forget=False)
    return tuple(left)


def _is_as_added(record: MemoryRecord, draft: Draft, scope: Scope) -> bool:
    """True if a record is as it was added, also if a later run has changed it and was taken back before."""
    added = complete(draft, scope, record.created_at)
    return all(getattr(record, name) == getattr(added, name) for name in _COMPARED)


async def _note(handle: BoundMemory, maintenance: Maintenance) -> None:
    """Remember the steps before anything is reverted, so that an interrupted call repeats none of them, either."""
    owner = whole_owner(handle)
    known = await every_record(owner, Where(kinds=[UNDONE], states=STATES))
    for draft in notes_of(map(_said_of, (*maintenance.steps, *maintenance.skipped)), known):
        note = await owner.add(draft)
        await owner.update(note.id, Patch(state="archived"))


def _says_what_was_read(draft: Draft) -> bool:
    return draft.kind in {EXTRACTION, REFLECTION} and not draft.text


def _said_of(step: Step) -> tuple[str, ...]:
    """The reason of a step and the ids of its records. One that extracted facts or wrote a summary needs none: its note
    of what was read stays."""
    if step.reason == "reflection":
        return ("insight", *sorted(str(draft.id) for draft in step.added if draft.text))
    if step.added:
        return ()
    return (noted_reason(step.reason), *sorted({change.id for change in step.changes}))
