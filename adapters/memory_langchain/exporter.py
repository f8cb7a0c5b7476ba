"""Export to LangGraph's SqliteStore through `memory-core export --format langgraph`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memory_core import InvalidInputError, MemoryRecord
from memory_core.adapting import Carried, fields_of
from memory_langchain.items import ITEM_KIND
from memory_langchain.namespaces import Namespace, from_path, namespace_label

NAMESPACE: Final = "memories"
"""First label of the namespace of memories that are no items; the app and the user follow."""
_SCHEMA: Final = """
CREATE TABLE store_migrations (v INTEGER PRIMARY KEY);
CREATE TABLE store (
    prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key)
);
CREATE INDEX store_prefix_idx ON store (prefix);
CREATE INDEX idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL;
INSERT INTO store_migrations VALUES (0), (1), (2), (3), (4);
"""
"""The tables of langgraph-checkpoint-sqlite 3.1 after its five migrations, without vectors."""
_ELSEWHERE: Final = frozenset(
    {"id", "app", "user", "created_at", "updated_at", "accessed_at", "expires_at", "access_count"}
    | {"state", "tier", "confidence", "rev", "version"}
)
"""Fields of a record that are not part of its item's value."""


@contextmanager
def langgraph(path: Path) -> Generator[Callable[[Sequence[Carried]], object]]:
    """A file of LangGraph's SqliteStore; items keep their namespace and key, it computes vectors when they are put."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as db:
        db.executescript(_SCHEMA)
        yield lambda batch: _put(db, batch)


def _put(db: sqlite3.Connection, batch: Sequence[Carried]) -> None:
    for item in batch:
        row = _row(item.record)
        try:
            db.execute("INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError as error:
            raise InvalidInputError(
                f"two owners have an item {row[1]!r} in the namespace {row[0]!r}; export each with --only-owner"
            ) from error
    db.commit()


def _row(record: MemoryRecord) -> tuple[object, ...]:
    namespace, key, value = _item(record)
    times = [record.created_at, record.updated_at, record.expires_at]
    ttl = record.data.get("ttl") if record.kind == ITEM_KIND else None
    return ".".join(namespace), key, json.dumps(value), *map(_time, times), ttl


def _item(record: MemoryRecord) -> tuple[Namespace, str, dict[str, Any]]:
    if record.kind == ITEM_KIND:
        return from_path(record.collection or ""), str(record.data["key"]), fields_of(record.data["value"])
    namespace = (NAMESPACE, namespace_label(record.app), namespace_label(record.user))
    value = {name: value for name, value in record.to_dict().items() if name not in _ELSEWHERE}
    return namespace, record.id, {name: value for name, value in value.items() if value not in (None, [], {})}


def _time(moment: datetime | None) -> str | None:
    """As SQLite's CURRENT_TIMESTAMP, which it is compared with."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
