"""Chroma's folder: documents and metadata of every collection, with Skynet's metadata as fields of a memory.

The metadata `user_id` names the owner, as in mem0. Skynet's `user` is the person that a memory is about, and stays in
`data`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Draft
from memory_core.transfer.foreign_files import file_at, foreign_database
from memory_core.transfer.foreign_values import first_time, name_of, text_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.checks import check_unit, shown

DATABASE: Final = "chroma.sqlite3"
DOCUMENT: Final = "chroma:document"
_KNOWN: Final = frozenset({DOCUMENT, "type", "importance", "emotion", "tags"})
_ROWS: Final = """
SELECT c.name AS collection, e.embedding_id AS id, m.key, m.string_value, m.int_value, m.float_value, m.bool_value
FROM embeddings e
JOIN segments s ON s.id = e.segment_id AND s.scope = 'METADATA'
JOIN collections c ON c.id = s.collection
LEFT JOIN embedding_metadata m ON m.id = e.id
ORDER BY c.name, e.id
"""


async def chroma(source: str) -> AsyncIterator[Found | Refused]:
    """A folder of Chroma's PersistentClient, or its chroma.sqlite3; each user_id is a user; knows Skynet's metadata."""
    with foreign_database(_file(source), "a database of Chroma") as db:
        for (collection, id_), rows in groupby(db.execute(_ROWS), key=lambda row: (row["collection"], row["id"])):
            place, values = f"{collection}, {id_}", dict(_values(rows))
            try:
                yield Found(place, _draft(collection, id_, values), user=_owner(values.get("user_id")), given=values)
            except InvalidInputError as error:
                yield Refused(place, str(error))


def _owner(value: object) -> str | None:
    found = name_of(value)
    if found is None and value is not None:
        raise InvalidInputError(f"its user_id is {shown(value)}, not the name of a user")
    return found


def _file(source: str) -> Path:
    folder = Path(source).expanduser()
    return file_at(str(folder / DATABASE if folder.is_dir() else folder))


def _values(rows: Iterator[sqlite3.Row]) -> Iterator[tuple[str, Any]]:
    for row in rows:
        if row["key"] is not None:
            found = [row[name] for name in ("string_value", "int_value", "float_value") if row[name] is not None]
            flag = None if row["bool_value"] is None else bool(row["bool_value"])
            yield row["key"], found[0] if found else flag


def _draft(collection: str, id_: str, values: Mapping[str, Any]) -> Draft:
    said = text_of(values.get(DOCUMENT))
    if said is None:
        raise InvalidInputError("it has no document")
    time = first_time(values)
    importance, tags = values.get("importance", 0.5), values.get("tags")
    return Draft(
        said,
        kind=text_of(values.get("type")) or "note",
        importance=check_unit("importance", importance),
        emotion=text_of(values.get("emotion")),
        tags=[tag.strip() for tag in tags.split(",") if tag.strip()] if isinstance(tags, str) else (),
        collection=collection,
        occurred_at=None if time is None else time[1],
        data={
            name: value for name, value in values.items() if name not in _KNOWN and (time is None or name != time[0])
        },
        source_key=f"chroma:{collection}:{id_}",
    )
