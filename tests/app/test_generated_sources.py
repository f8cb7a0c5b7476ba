"""Files of each format with every optional field absent, null, doubled or of another type: every item is stored or
refused by name, and none changes its owner."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from memory_core.app.sources.chatgpt import chatgpt
from memory_core.app.sources.chroma import chroma
from memory_core.app.sources.claude import claude
from memory_core.app.sources.jsonl import jsonl
from memory_core.app.sources.mem0 import mem0
from memory_core.errors import InvalidInputError
from memory_core.records.draft_to_record import check_draft
from memory_core.transfer.formats import Found, Importer, Refused

WORDS: Final = "The spare key is with Mrs Okafor"
OTHERS: Final[tuple[Any, ...]] = (None, "", 7, 1.5, True, [], ["x", "y"], {}, {"a": 1}, "x" * 2_000, float("inf"))
"""What may stand in a field beside what belongs there."""
Fields = dict[str, Any]


def variants(fields: Mapping[str, Any], optional: tuple[str, ...]) -> Iterator[Fields]:
    """An item as it is, and with each optional field absent or of another value."""
    yield dict(fields)
    for name in optional:
        yield {key: value for key, value in fields.items() if key != name}
        yield from ({**fields, name: other} for other in OTHERS)


def read(importer: Importer, source: Path) -> list[Found | Refused]:
    async def items() -> list[Found | Refused]:
        return [item async for item in importer(str(source))]

    return asyncio.run(items())


def insist_on_everything(found: list[Found | Refused], count: int, owner: str | None) -> None:
    """Every item is found with its words and its owner, or refused with a place and a reason."""
    assert len(found) >= count
    keys = [item.draft.source_key for item in found if isinstance(item, Found)]
    assert len(set(keys)) == len(keys)
    for item in found:
        if isinstance(item, Refused):
            assert item.place
            assert item.reason
            continue
        assert WORDS in item.draft.text
        assert item.user == owner
        with suppress(InvalidInputError):  # refused by what stores it, which names the place as well
            check_draft(item.draft)


def chatgpt_file(folder: Path) -> tuple[Path, int]:
    message = {"id": "m", "author": {"role": "user"}, "create_time": 1.7e9, "metadata": {}}
    content = {"content_type": "text", "parts": [WORDS]}
    made: list[Fields] = []
    for each in variants({**message, "content": content}, ("id", "author", "create_time", "metadata")):
        made.append({"id": f"c{len(made)}", "mapping": {"n": {"message": each, "parent": None}}, "current_node": "n"})
    node = {"n": {"message": {**message, "content": content}, "parent": None}}
    whole = {"title": "Keys", "create_time": 1.7e9, "mapping": node, "current_node": "n"}
    for each in variants(whole, ("title", "create_time", "current_node")):
        made.append({"id": f"c{len(made)}", **each})
    made += [{"id": "last", **whole, "mapping": other} for other in OTHERS if other != {"a": 1}]  # without a message
    file = folder / "conversations.json"
    file.write_text(json.dumps(made))
    return file, len(made)


def claude_file(folder: Path) -> tuple[Path, int]:
    parts = [{"type": "text", "text": WORDS}]
    message = {"uuid": "m", "sender": "human", "created_at": "2026-03-01T10:00:00Z", "text": WORDS, "content": parts}
    made: list[Fields] = []
    for each in variants(message, ("uuid", "sender", "created_at")):
        made.append({"uuid": f"c{len(made)}", "name": "Keys", "chat_messages": [each, {**each}]})
    whole = {"name": "Keys", "created_at": "2026-03-01T10:00:00Z", "chat_messages": [message]}
    for each in variants(whole, ("name", "created_at")):
        made.append({"uuid": f"c{len(made)}", **each})
    file = folder / "conversations.json"
    file.write_text(json.dumps(made))
    return file, len(made)


def jsonl_file(folder: Path) -> tuple[Path, int]:
    line = {
        "text": WORDS,
        "user_id": "ann",
        "session": "s",
        "at": "2026-03-01T10:00:00Z",
        "kind": "note",
        "role": "user",
    }
    optional = ("session", "at", "kind", "role", "tags", "author", "metadata")
    lines = [json.dumps(each) for each in variants(line, optional)]
    lines += [json.dumps({**line, "user_id": other}) for other in OTHERS if other not in (None, "", 7, "x" * 2_000)]
    lines.append(json.dumps(line)[:-1] + ', "user_id": "tom"}')
    file = folder / "memories.jsonl"
    file.write_text("\n".join(lines))
    return file, len(lines)


def chroma_file(folder: Path) -> tuple[Path, int]:
    file = folder / "chroma.sqlite3"
    fields = {"chroma:document": WORDS, "user_id": "ann", "created_at": "2026-03-01", "type": "note", "tags": "a,b"}
    made = list(variants(fields, ("created_at", "type", "importance", "emotion", "tags")))
    kinds: Mapping[type, str] = {str: "string_value", int: "int_value", float: "float_value", bool: "bool_value"}
    with closing(sqlite3.connect(file)) as db, db:
        db.executescript(
            "CREATE TABLE collections (id, name); CREATE TABLE segments (id, scope, collection);"
            "CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id, embedding_id);"
            "CREATE TABLE embedding_metadata (id, key, string_value, int_value, float_value, bool_value);"
            "INSERT INTO collections VALUES ('c', 'memories'); INSERT INTO segments VALUES ('s', 'METADATA', 'c');"
        )
        for number, each in enumerate(made):
            db.execute("INSERT INTO embeddings VALUES (?, 's', ?)", (number, f"e{number}"))
            for key, value in each.items():
                column = next((name for kind, name in kinds.items() if type(value) is kind), None)
                names, values = (f", {column}", ", ?") if column else ("", "")
                given = (number, key, *([value] if column else []))
                db.execute(f"INSERT INTO embedding_metadata (id, key{names}) VALUES (?, ?{values})", given)
    return file, len(made)


def mem0_file(folder: Path) -> tuple[Path, int]:
    file = folder / "history.db"
    fields = {"created_at": "2026-03-01T10:00:00Z", "actor_id": "ann", "role": "user"}
    plain = (str, int, float, type(None))
    made = [
        each for each in variants(fields, tuple(fields)) if all(isinstance(value, plain) for value in each.values())
    ]
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE history (memory_id, new_memory, event, created_at, is_deleted, actor_id, role)")
        for number, each in enumerate(made):
            row = (f"m{number}", WORDS, "ADD", each.get("created_at"), 0, each.get("actor_id"), each.get("role"))
            db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return file, len(made)


FORMATS: Final[Mapping[str, tuple[Importer, Callable[[Path], tuple[Path, int]], str | None]]] = {
    "chatgpt": (chatgpt, chatgpt_file, None),
    "claude": (claude, claude_file, None),
    "jsonl": (jsonl, jsonl_file, "ann"),
    "chroma": (chroma, chroma_file, "ann"),
    "mem0": (mem0, mem0_file, None),
}


@pytest.mark.parametrize("name", FORMATS)
def test_no_item_is_lost_and_none_changes_its_owner(tmp_path: Path, name: str) -> None:
    importer, write, owner = FORMATS[name]
    source, count = write(tmp_path)
    insist_on_everything(read(importer, source), count, owner)
