"""Import spade_llm's files through `memory-core import --format spade-llm`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from memory_core import Draft, InvalidInputError
from memory_core.adapting import check_key
from memory_core.formats import (
    Found,
    Refused,
    fields_of,
    file_at,
    foreign_database,
    items_of,
    json_of,
    text_of,
    time_of,
)
from memory_spade.files.names import identity
from memory_spade.files.rows import record_of
from memory_spade.files.tables import COLUMNS, is_stock

KIND: Final = "note"
_ROWS: Final = f"SELECT {', '.join(COLUMNS)} FROM agent_memories ORDER BY agent_id, rowid"  # noqa: S608  (our own names)


async def spade_llm(source: str) -> AsyncIterator[Found | Refused]:
    """A *_base_memory.db or *_interactions.json of spade_llm, or the folder of such files; each agent is a user."""
    for path in _files(source):
        for item in _notes(path) if path.suffix == ".json" else _memories(path):
            yield item


def _files(source: str) -> list[Path]:
    folder = Path(source).expanduser()
    if not folder.is_dir():
        return [file_at(source)]
    found = [path for path in folder.iterdir() if path.name.endswith(("_base_memory.db", "_interactions.json"))]
    if not found:
        raise InvalidInputError(f"{source!r} has no file of spade_llm: no *_base_memory.db and no *_interactions.json")
    return sorted(found)


def _memories(path: Path) -> Iterator[Found | Refused]:
    """The long-term memories of a database of spade_llm."""
    with foreign_database(path, "a database of spade_llm") as db:
        if not is_stock(db):
            raise InvalidInputError(f"{str(path)!r} is not a database of spade_llm; a memory file is no source")
        db.text_factory = _text
        for row in db.execute(_ROWS):
            yield _memory(dict(zip(COLUMNS, row, strict=True)))


def _memory(row: dict[str, object]) -> Found | Refused:
    place = f"memory {row['id']!r}"
    try:
        check_key("agent_id", row["agent_id"])
        record = record_of(row)
    except InvalidInputError as error:
        return Refused(place, str(error))
    draft = Draft(
        record.text,
        kind=record.kind,
        confidence=record.confidence,
        data=record.data,
        occurred_at=record.occurred_at,
        agent=record.agent,
        collection=record.collection,
        source_key=f"spade_llm:{record.agent}:{row['id']}",
    )
    return Found(place, draft, user=record.user)


def _notes(path: Path) -> Iterator[Found | Refused]:
    """The notes about conversations in a JSON file of spade_llm."""
    found = fields_of(json_of(path))
    agent, conversations = text_of(found.get("agent_id")), fields_of(found.get("interactions"))
    if agent is None or "interactions" not in found:
        raise InvalidInputError(
            f"{str(path)!r} is not a file of notes of spade_llm: it has no agent_id or interactions"
        )
    check_key("agent_id", agent)
    for conversation, notes in conversations.items():
        if not isinstance(notes, list):
            yield Refused(f"conversation {conversation!r}", "it is not a list of notes")
        for number, value in enumerate(items_of(notes), 1):
            place, note = f"conversation {conversation!r}, note {number}", fields_of(value)
            said = text_of(note.get("content"))
            if said is None:
                yield Refused(place, "it has no content")
                continue
            key = f"spade_llm:{agent}:{conversation}:{number}"
            at = time_of(note.get("timestamp"))
            draft = Draft(said, kind=KIND, session=conversation, agent=agent, occurred_at=at, source_key=key[:500])
            yield Found(place, draft, user=identity(agent))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
