"""The common parts of derived records: ids by which nothing is derived twice, links to their sources, and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypedDict

from memory_core.lifecycle.values import Change, Reason, Step
from memory_core.models import Draft, Json, Link, MemoryRecord, Patch, Relation, State
from memory_core.retrieval.hits import EXTRACTION

SUMMARY: Final = "summary"
INSIGHT: Final = "insight"
CONFIDENCE: Final = 0.9
"""Of derived statements: what somebody said, as it was understood."""


class Identity(TypedDict):
    """The fields by which a store recognises a record."""

    id: str
    source_key: str


def identity(kind: str, *parts: str) -> Identity:
    """The same id and source key for the same derivation, by any process and any number of times."""
    found = derived_id(kind, *parts)
    return {"id": found, "source_key": found.replace("-", ":", 1)}


def derived_id(kind: str, *parts: str) -> str:
    """The same id for the same derivation."""
    digest = hashlib.sha256("\0".join([kind, *parts]).encode()).hexdigest()[:32]
    return f"{kind}-{digest}"


def linked_to(relation: Relation, records: Sequence[MemoryRecord]) -> tuple[Link, ...]:
    """Links of one relation to records as they were read."""
    return tuple(Link(relation, each.id, each.rev, each.session, each.collection, each.agent) for each in records)


def reading(turn: MemoryRecord) -> tuple[str, ...]:
    """The identity of a record as it reads now: an edited one is read again."""
    return (turn.id,) if turn.rev == 1 else (turn.id, str(turn.rev))


def read_by(notes: Iterable[MemoryRecord], by: str) -> set[tuple[str, ...]]:
    """The readings of somebody, as `reading` identifies them.

    Args:
        notes: Among records of any kind.
        by: As given to `noted`.
    """
    return {
        (link.id,) if link.rev in (None, 1) else (link.id, str(link.rev))
        for note in notes
        if note.kind == EXTRACTION and note.data.get("by") == by
        for link in note.links
        if link.relation == "read"
    }


def changed(id: str, version: int, state: State) -> Change:  # noqa: A002  (the record's own word)
    """The change of an active record to another state."""
    return Change(id=id, version=version, patch=Patch(state=state), undo=Patch(state="active"))


def noted(  # noqa: PLR0913  (the parts of a step)
    kind: str,
    note: str,
    by: str,
    reason: Reason,
    drafts: Sequence[Draft],
    read: Sequence[MemoryRecord],
    *,
    changes: tuple[Change, ...] = (),
    data: Mapping[str, Json] | None = None,
    made: Sequence[str] = (),
) -> Step:
    """A step that adds drafts in one transaction with a note of what was read, which is then archived.

    The note has an id and no source key: a second run that read the same adds nothing, whatever it found.

    Args:
        kind: Of the note.
        note: Its id.
        by: The reader.
        reason: Of the step.
        drafts: The drafts that were found.
        read: The records that were read.
        changes: Further changes, made last.
        data: Further data of the note.
        made: The ids of those drafts that were made of several of the records, and of known records that one of them
            confirms: if such a record goes with a source, the store lets the others be read again.
    """
    links = (*linked_to("read", read), *(Link("made", id_) for id_ in made))
    return Step(
        reason=reason,
        kept="\n".join(draft.text for draft in drafts),
        gone=(),
        changes=(changed(note, 1, "archived"), *changes),
        added=(*drafts, Draft(kind=kind, data={"by": by, **(data or {})}, links=links, id=note)),
    )
