"""The table of spade_llm's long-term memories: recognising it, showing it as a view of a store, and exporting it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memory_core import BoundMemory, InvalidInputError, Json, MemoryRecord
from memory_core.adapting import every_record, without_context
from memory_spade.files.names import BASE_COLLECTION

COLUMNS: Final = (
    *("id", "agent_id", "category", "content", "context", "confidence"),
    *("created_at", "last_accessed", "access_count"),
)

ORIGINAL: Final = "spade_llm"
"""Key in a record's data for the values of a row that are invalid in a record, by column."""

_SCHEMA: Final = (
    """
    CREATE TABLE agent_memories (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        category TEXT NOT NULL,
        content TEXT NOT NULL,
        context TEXT,
        confidence REAL DEFAULT 1.0,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        last_accessed TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        access_count INTEGER DEFAULT 0
    )
    """,
    "CREATE INDEX idx_agent_category ON agent_memories (agent_id, category)",
    "CREATE INDEX idx_agent_recent ON agent_memories (agent_id, last_accessed DESC)",
    "CREATE INDEX idx_agent_content ON agent_memories (agent_id, content)",
)

_SUFFIX: Final = "' (context: ' || json_extract(record.data, '$.context') || ')'"
"""The part of a record's text after its content; the same as `with_context` of the core."""
_LENGTH: Final = f"length({_SUFFIX})"

_VIEW: Final = f"""
CREATE VIEW agent_memories ({", ".join(COLUMNS)}) AS
SELECT
    record.id,
    coalesce(record.agent, owner.user),
    record.kind,
    CASE WHEN substr(record.text, -{_LENGTH}) = {_SUFFIX}
        THEN substr(record.text, 1, length(record.text) - {_LENGTH}) ELSE record.text END,
    json_extract(record.data, '$.context'),
    record.confidence,
    strftime('%Y-%m-%dT%H:%M:%S', record.occurred_at / 1000000.0, 'unixepoch')
        || printf('.%06dZ', (record.occurred_at % 1000000 + 1000000) % 1000000),
    strftime('%Y-%m-%dT%H:%M:%S', coalesce(record.accessed_at, record.created_at) / 1000000.0, 'unixepoch')
        || printf('.%06dZ', (coalesce(record.accessed_at, record.created_at) % 1000000 + 1000000) % 1000000),
    record.access_count
FROM record JOIN owner ON owner.id = record.owner
WHERE record.collection = '{BASE_COLLECTION}' AND record.state = 'active'
    AND (record.expires_at IS NULL OR record.expires_at > strftime('%s', 'now') * 1000000)
"""  # noqa: S608  (contains no external value)


def is_stock(db: sqlite3.Connection) -> bool:
    """True if a database contains spade_llm's table and no other table."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables - {"sqlite_sequence", "sqlite_stat1"} != {"agent_memories"}:
        return False
    return tuple(name for _, name, *_ in db.execute("PRAGMA table_info (agent_memories)")) == COLUMNS


def show_agent_memories(path: Path) -> None:
    """Create a view of a store file's long-term memories that looks like the documented table to SQLite readers."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        known = db.execute("SELECT sql FROM sqlite_master WHERE name = 'agent_memories'").fetchone()
        if known is not None and known[0] == _VIEW.strip():
            return
        db.execute("BEGIN IMMEDIATE")
        db.execute("DROP VIEW IF EXISTS agent_memories")
        db.execute(_VIEW)
        db.execute("COMMIT")


async def export_agent_memories(memory: BoundMemory, path: str | os.PathLike[str], *, agent_id: str) -> int:
    """Export the memories of a handle to a database that spade_llm can read and write; return their number.

    Args:
        memory: The handle, such as `agent.memory`.
        path: The new file, created with mode 0600; spade_llm expects `{agent_id with _ for @ and /}_base_memory.db`.
        agent_id: The owner of the memories for spade_llm, in the form the agent will use.

    Raises:
        InvalidInputError: The file already exists. It was not touched.
    """
    rows = [_row(record, agent_id) for record in await every_record(memory)]
    await asyncio.to_thread(_write, Path(path), rows)
    return len(rows)


def _write(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    target = path.expanduser()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(sqlite3.connect(temporary)) as db, db:
            for statement in _SCHEMA:
                db.execute(statement)
            db.executemany("INSERT INTO agent_memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        os.link(temporary, target)  # unlike a rename, it never replaces a file
    except FileExistsError as error:
        raise InvalidInputError(f"there is a file {str(target)!r} already; export to another path") from error
    finally:
        temporary.unlink()


def _row(record: MemoryRecord, agent_id: str) -> tuple[Any, ...]:
    context = record.data.get("context")
    values: dict[str, object] = {
        "id": record.id,
        "agent_id": agent_id,
        "category": record.kind,
        "content": without_context(record.text, context if isinstance(context, str) else None),
        "context": context,
        "confidence": record.confidence,
        "created_at": _local(record.occurred_at),
        "last_accessed": _local(record.accessed_at or record.created_at),
        "access_count": record.access_count,
    }
    original = record.data.get(ORIGINAL)
    if isinstance(original, Mapping):
        kept = {column: original[column] for column in COLUMNS if column in original and column != "agent_id"}
        values.update({column: _from_json(value) for column, value in kept.items()})
    return tuple(values[column] for column in COLUMNS)


def _from_json(value: Json) -> object:
    return bytes.fromhex(str(value["hex"])) if isinstance(value, Mapping) else value


def _local(moment: datetime) -> str:
    """Format a local time without a zone, because spade_llm compares it with its own times as text."""
    return moment.astimezone().replace(tzinfo=None).isoformat()
