"""A generator of files for each importer: items in its format, with fields that are absent, null or of another
type.

A generator writes items, and says which of their fields are optional and by what a report names an item. What must
become of them is the same for all (`test_generated_sources.py`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qdrant_client import QdrantClient, models

Fields = Mapping[str, Any]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Instead of a value: the item does not have the field."""


@dataclass(frozen=True)
class Item:
    """Something that is in a file."""

    number: int
    words: str
    """Of no other item."""
    owner: Any
    """The content of the field of the owner."""
    id: str
    """Perhaps also that of another item."""
    fields: Fields
    """The optional fields."""


@dataclass(frozen=True)
class Generator:
    """The writer of a format."""

    write: Callable[[Path, Sequence[Item]], str]
    """Writes items into a folder; returns the source."""
    optional: Fields
    """Fields that an item may do without, each with what usually stands in it."""
    place: Callable[[Item], str]
    """Stands in the place that a report gives for the item."""
    owners: tuple[str, ...] = ()
    """Owners that a file may name; none if it names none."""
    needs_owner: bool = False
    """An item without an owner is refused."""
    mine: bool = False
    """It is imported with `--one-user`."""


def present(fields: Fields) -> dict[str, Any]:
    """The fields that are there."""
    return {name: value for name, value in fields.items() if value is not ABSENT}


def _lines(folder: Path, lines: Sequence[Fields]) -> str:
    (folder / "source.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder / "source.jsonl")


def _conversations(folder: Path, items: Sequence[Fields]) -> str:
    (folder / "conversations.json").write_text(json.dumps(list(items)))
    return str(folder)


def _part(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """Fields that belong to another object; they are taken out."""
    return {name: fields.pop(name) for name in names if name in fields}


HIDDEN: Final = "is_visually_hidden_from_conversation"


def _chatgpt(folder: Path, items: Sequence[Item]) -> str:
    made: list[Fields] = []
    for item in items:
        fields = present(item.fields)
        if fields.get(HIDDEN) is True:  # is left out, as the page leaves it out
            del fields[HIDDEN]
        of_node = _part(fields, "parent")
        content = {**_part(fields, "content_type"), "parts": [item.words]}
        metadata = _part(fields, HIDDEN, "attachments")
        author = {"role": "user", **_part(fields, "name")}
        of_message = _part(fields, "id", "status")
        if "message_time" in fields:
            of_message["create_time"] = fields.pop("message_time")
        message = {**of_message, "author": author, "content": content, "metadata": metadata}
        made.append({"conversation_id": item.id, **fields, "mapping": {"n": {**of_node, "message": message}}})
    return _conversations(folder, made)


def _claude(folder: Path, items: Sequence[Item]) -> str:
    made: list[Fields] = []
    for item in items:
        fields = present(item.fields)
        of_conversation = _part(fields, "name", "summary", "account")
        if "conversation_time" in fields:
            of_conversation["created_at"] = fields.pop("conversation_time")
        content = [{**_part(fields, "type", "citations"), "text": item.words}]
        message = {"uuid": "m", "sender": "human", **fields, "content": content}
        made.append({"uuid": item.id, **of_conversation, "chat_messages": [message]})
    return _conversations(folder, made)


def _jsonl(folder: Path, items: Sequence[Item]) -> str:
    return _lines(folder, [present({"id": it.id, "text": it.words, "user_id": it.owner, **it.fields}) for it in items])


def _conversation(folder: Path, items: Sequence[Item]) -> str:
    return _lines(folder, [present({"text": item.words, **item.fields}) for item in items])


def _messages(folder: Path, items: Sequence[Item]) -> str:
    return _lines(folder, [present({"content": item.words, **item.fields}) for item in items])


def _document(folder: Path, items: Sequence[Item]) -> str:
    (folder / "source.txt").write_text("\n\n".join(item.words for item in items))
    return str(folder / "source.txt")


def _markdown(folder: Path, items: Sequence[Item]) -> str:
    for item in items:
        lines = [
            f"{name}: {value if isinstance(value, str) else json.dumps(value)}\n"
            for name, value in present(item.fields).items()
        ]
        (folder / f"note{item.number}.md").write_text(
            f"---\n{''.join(lines)}---\n# Boat\n\n{item.words}\n", "utf-8", "surrogatepass"
        )
    return str(folder)


CHROMA: Final = """
CREATE TABLE collections (id, name); CREATE TABLE segments (id, scope, collection);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id, embedding_id);
CREATE TABLE embedding_metadata (id, key, string_value, int_value, float_value, bool_value);
INSERT INTO collections VALUES ('c', 'memories'); INSERT INTO segments VALUES ('s', 'METADATA', 'c');
"""
_COLUMNS: Final[Mapping[type, int]] = {str: 0, int: 1, float: 2, bool: 3}


def _chroma(folder: Path, items: Sequence[Item]) -> str:
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as db, db:
        db.executescript(CHROMA)
        for item in items:
            db.execute("INSERT INTO embeddings VALUES (?, 's', ?)", (item.number, f"e{item.number}"))
            fields = {"chroma:document": item.words, "user_id": item.owner, **item.fields}
            for name, value in present(fields).items():
                cells: list[Any] = [None] * 4
                if type(value) in _COLUMNS:
                    cells[_COLUMNS[type(value)]] = _cell(value)
                row = (item.number, name, *cells)
                db.execute("INSERT INTO embedding_metadata VALUES (?, ?, ?, ?, ?, ?)", row)
    return str(folder)


def _cell(value: Any) -> Any:
    """A value as a database may hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return json.dumps(value) if isinstance(value, list | dict) else value


def _insert(folder: Path, table: str, columns: str, rows: Sequence[Fields]) -> str:
    """A database with rows whose columns are not as they should be."""
    with closing(sqlite3.connect(folder / "source.db")) as db, db:
        db.execute(f"CREATE TABLE {table} ({columns})")
        for row in rows:
            names, marks = ", ".join(row), ", ".join("?" for _ in row)
            db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [_cell(value) for value in row.values()])
    return str(folder / "source.db")


def _mem0_history(folder: Path, items: Sequence[Item]) -> str:
    columns = "id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role"
    rows = [present({"memory_id": f"m{item.number}", "new_memory": item.words, **item.fields}) for item in items]
    rows = [row | {"is_deleted": 0} if row.get("is_deleted") is True else row for row in rows]  # all are there
    return _insert(folder, "history", columns, rows)


def _mem0_points(folder: Path, items: Sequence[Item]) -> str:
    client = QdrantClient(path=str(folder / "qdrant"))
    client.create_collection("mem0", models.VectorParams(size=1, distance=models.Distance.DOT))
    client.upsert("mem0", [_point(item, data=item.words, user_id=item.owner) for item in items])
    client.close()
    return str(folder)


def _point(item: Item, **more: Any) -> models.PointStruct:
    payload = json.loads(json.dumps(present({**more, **item.fields})))
    return models.PointStruct(id=item.number, vector=[1.0], payload=payload)


def radbot_points(items: Sequence[Item]) -> list[models.PointStruct]:
    """The points of a collection of RadBot, which are on a server."""
    return [_point(item, text=item.words, user_id=item.owner) for item in items]


def _langgraph(folder: Path, items: Sequence[Item]) -> str:
    columns = "prefix, key, value, created_at, updated_at, expires_at, ttl_minutes"
    rows: list[Fields] = []
    for item in items:
        fields = present(item.fields)
        columns_of_row = _part(fields, "created_at", "updated_at", "ttl_minutes")
        value = json.dumps({"text": item.words, **fields})
        rows.append({"prefix": "notes", "key": f"k{item.number}", "value": value, **columns_of_row})
    return _insert(folder, "store", columns, rows)


def _adk_memory(folder: Path, items: Sequence[Item]) -> str:
    columns = "id, app_name, user_id, session_id, event_id, author, timestamp, content_json, search_text"
    rows: list[Fields] = []
    for item in items:
        fields = present(item.fields)
        content = {**_part(fields, "role"), "parts": [{"text": item.words}]}
        own = {"app_name": "default", "user_id": item.owner, "event_id": item.id, "content_json": json.dumps(content)}
        rows.append({**present(own), **fields})
    return _insert(folder, "memory_events", columns, rows)


def _adk_sessions(folder: Path, items: Sequence[Item]) -> str:
    rows: list[Fields] = []
    for item in items:
        fields = present(item.fields)
        content = {**_part(fields, "role"), "parts": [{"text": item.words}]}
        event = {"id": item.id, "author": "user", **fields, "content": content}
        own = {"app_name": "default", "user_id": item.owner, "session_id": "s", "id": item.id, "timestamp": 1.7e9}
        rows.append({**present(own), "event_data": json.dumps(event)})
    return _insert(folder, "events", "id, app_name, user_id, session_id, invocation_id, timestamp, event_data", rows)


def _spade_memories(folder: Path, items: Sequence[Item]) -> str:
    columns = "id, agent_id, category, content, context, confidence, created_at, last_accessed, access_count"
    rows = [present({"id": it.id, "agent_id": it.owner, "content": it.words, **it.fields}) for it in items]
    return _insert(folder, "agent_memories", columns, rows)


def _spade_notes(folder: Path, items: Sequence[Item]) -> str:
    talks = {f"talk {item.number}": [{"content": item.words, **present(item.fields)}] for item in items}
    whole = {"agent_id": "tom", "interactions": talks}
    (folder / "tom_interactions.json").write_text(json.dumps(whole))
    return str(folder)


TIME: Final = "2026-03-01T10:00:00Z"
PEOPLE: Final = ("tom", "eve")


def _conversation_number(item: Item) -> str:
    return f"conversation {item.number}"


def _line_number(item: Item) -> str:
    return f"line {item.number}"


GENERATORS: Final[Mapping[str, Generator]] = {
    "adk": Generator(
        _adk_memory,
        {"session_id": "s", "author": "user", "timestamp": 1.7e9, "role": "user"},
        lambda item: item.id,
        PEOPLE,
        needs_owner=True,
    ),
    "adk, sessions": Generator(
        _adk_sessions,
        {"timestamp": 1.7e9, "invocation_id": "i", "role": "user", "actions": {}, "custom_metadata": {"a": 1}},
        lambda item: item.id,
        PEOPLE,
        needs_owner=True,
    ),
    "chatgpt": Generator(
        _chatgpt,
        {
            "title": "Keys",
            "create_time": 1.7e9,
            "current_node": "n",
            "parent": None,
            "id": "n",
            "message_time": 1.7e9,
            "name": None,
            "status": "finished_successfully",
            "content_type": "text",
            HIDDEN: False,
            "attachments": [],
        },
        _conversation_number,
    ),
    "chroma": Generator(
        _chroma,
        {"created_at": "2026-03-01", "type": "note", "importance": 0.5, "emotion": "joy", "tags": "a,b", "x": 1},
        lambda item: f"e{item.number}",
        PEOPLE,
    ),
    "claude": Generator(
        _claude,
        {
            "name": "Keys",
            "summary": "",
            "account": {"uuid": "a"},
            "conversation_time": TIME,
            "uuid": "m",
            "created_at": TIME,
            "text": "",
            "type": "text",
            "citations": [],
            "attachments": [],
        },
        _conversation_number,
    ),
    "conversation": Generator(
        _conversation, {"at": TIME, "session": "monday", "author": "Ann", "role": "user", "x": 1}, _line_number
    ),
    "conversation, messages": Generator(_messages, {"role": "user", "name": "ann", "x": 1}, _line_number),
    "document": Generator(_document, {}, lambda item: "source.txt"),
    "jsonl": Generator(
        _jsonl,
        {
            "session": "s",
            "at": TIME,
            "kind": "note",
            "role": "user",
            "tags": ["a"],
            "author": "Ann",
            "metadata": {"x": 1},
        },
        _line_number,
        PEOPLE,
    ),
    "langgraph": Generator(
        _langgraph,
        {"created_at": "2026-03-01 10:00:00", "updated_at": None, "ttl_minutes": None, "n": 1, "kind": "note"},
        lambda item: f"k{item.number}",
    ),
    "markdown": Generator(
        _markdown,
        {"date": "2026-03-01", "type": "note", "author": "Ann", "tags": ["a"], "aliases": ["b"]},
        lambda item: f"note{item.number}.md",
    ),
    "mem0": Generator(
        _mem0_history,
        {"event": "ADD", "created_at": TIME, "updated_at": None, "is_deleted": 0, "actor_id": "ann", "role": "user"},
        lambda item: f"m{item.number}",
        mine=True,
    ),
    "mem0, folder": Generator(
        _mem0_points,
        {
            "agent_id": "a",
            "run_id": "r",
            "role": "user",
            "actor_id": "ann",
            "created_at": TIME,
            "hash": "h",
            "x": {"y": 1},
        },
        lambda item: f"point {item.number}",
        PEOPLE,
    ),
    "spade-llm": Generator(
        _spade_memories,
        {
            "category": "fact",
            "context": None,
            "confidence": 1.0,
            "created_at": TIME,
            "last_accessed": TIME,
            "access_count": 0,
        },
        lambda item: item.id,
        PEOPLE,
        needs_owner=True,
    ),
    "spade-llm, notes": Generator(
        _spade_notes,
        {"timestamp": TIME, "x": 1},
        lambda item: f"talk {item.number}",
        ("tom",),
        needs_owner=True,
    ),
}
"""By format, and by what else the format may be."""
RADBOT: Final = Generator(
    lambda _folder, _items: "",
    {"timestamp": TIME, "memory_type": "note", "session_id": "s", "tags": ["a"], "x": {"y": 1}},
    lambda item: f"point {item.number}",
    PEOPLE,
    needs_owner=True,
)
"""Its points are put on a server."""
