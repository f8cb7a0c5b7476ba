"""Import spade_llm's files through `memory-core import --format spade-llm`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, cast

from memory_core import Draft, InvalidInputError
from memory_core.adapting import Found, Refused, database, file_at, json_of, time_of, word
from memory_spade.files.adoption import record_of
from memory_spade.files.names import identity
from memory_spade.files.tables import COLUMNS, is_stock

KIND: Final = "note"
_ROWS: Final = f"SELECT {', '.join(COLUMNS)} FROM agent_memories ORDER BY agent_id, rowid"  # noqa: S608  (our own names)


async def spade_llm(source: str) -> AsyncIterator[Found | Refused]:
    """A *_base_memory.db or *_interactions.json of spade_llm, or the folder of such files; each agent is a user."""
    folder = Path(source).expanduser()
    files = sorted(path for path in folder.iterdir() if _is_known(path)) if folder.is_dir() else [file_at(source)]
    if not files:
        raise InvalidInputError(f"{source!r} has no file of spade_llm: no *_base_memory.db and no *_interactions.json")
    for path in files:
        for item in _notes(path) if path.suffix == ".json" else _memories(path):
            yield item


def _is_known(path: Path) -> bool:
    return path.name.endswith(("_base_memory.db", "_interactions.json"))


def _memories(path: Path) -> Iterator[Found | Refused]:
    """The long-term memories of a database of spade_llm."""
    with database(path, "a database of spade_llm") as db:
        if not is_stock(db):
            raise InvalidInputError(f"{str(path)!r} is not a database of spade_llm; a memory file is no source")
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for row in db.execute(_ROWS):
            yield _memory(dict(zip(COLUMNS, row, strict=True)))


def _memory(row: dict[str, object]) -> Found | Refused:
    place = f"memory {row['id']!r}"
    try:
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
    found = json_of(path)
    agent = word(found.get("agent_id")) if isinstance(found, dict) else None
    conversations = found.get("interactions") if isinstance(found, dict) else None
    if agent is None or not isinstance(conversations, dict):
        raise InvalidInputError(
            f"{str(path)!r} is not a file of notes of spade_llm: it has no agent_id or interactions"
        )
    for conversation, notes in cast("dict[str, Any]", conversations).items():
        for number, note in enumerate(notes if isinstance(notes, list) else [None], 1):
            place = f"conversation {conversation!r}, note {number}"
            said = word(note.get("content")) if isinstance(note, dict) else None
            if said is None:
                yield Refused(place, "it has no content")
                continue
            key = f"spade_llm:{agent}:{conversation}:{number}"
            at = time_of(note.get("timestamp"))
            draft = Draft(said, kind=KIND, session=conversation, agent=agent, occurred_at=at, source_key=key[:500])
            yield Found(place, draft, user=identity(agent))
