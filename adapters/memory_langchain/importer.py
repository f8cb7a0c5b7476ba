"""Import LangGraph's SqliteStore through `memory-core import --format langgraph`; `MemoryStore` finds the items."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

try:
    from langgraph.store.base import InvalidNamespaceError, PutOp
except ImportError as error:
    raise ImportError("`MemoryStore` needs langgraph: pip install 'memory-core[langgraph]'") from error

from memory_core import Draft, InvalidInputError
from memory_core.formats import Found, Refused, fields_of, file_at, foreign_database, text_of, time_of
from memory_langchain.indexing import WHOLE_VALUE
from memory_langchain.items import address_of, draft_of

_OF_PEOPLE: Final = frozenset({"user", "users", "people", "memory", "memories", "profile", "profiles"})
"""Labels beside which a namespace usually has the id of a user: ("memories", "ann"), ("ann", "memories")."""
_SAID: Final = ("text", "content", "memory", "data", "fact")
"""Fields in which items say something, as LangMem and LangGraph's templates name them."""
_LANGMEM: Final = frozenset({"kind", "content"})
"""The fields of LangMem's items: the manager of a store writes both, the tool for memories only the latter."""
_LANGMEM_DEFAULT: Final = "Memory"
"""The name of LangMem's own schema, whose one field is a text."""


async def langgraph(source: str) -> AsyncIterator[Found | Refused]:
    """The file of LangGraph's SqliteStore."""
    with foreign_database(file_at(source), "the file of a SqliteStore") as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info (store)")}
        if not {"prefix", "key", "value"} <= columns:
            raise InvalidInputError(f"{source!r} is not the file of a SqliteStore: it has no table of items")
        for row in db.execute("SELECT * FROM store ORDER BY created_at, rowid"):
            place = f"item {row['key']!r} of {row['prefix']!r}"
            expires = time_of(row["expires_at"]) if "expires_at" in columns else None
            try:
                draft = _draft(row["prefix"], row["key"], row["value"], time_of(row["created_at"]), expires)
                labels = _labels(row["prefix"])
                yield Found(
                    place, draft, given={**fields_of(draft.data.get("value")), **labels}, people=_people(labels)
                )
            except (InvalidInputError, InvalidNamespaceError) as error:
                yield Refused(place, str(error))


def _draft(
    prefix: object, key: object, stored: str | bytes, created: datetime | None, expires: datetime | None
) -> Draft:
    if not isinstance(prefix, str) or not isinstance(key, str):
        raise InvalidInputError("its namespace or its key is not text")
    try:
        found: object = json.loads(stored)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInputError(f"its value is not JSON: {error}") from error
    value = fields_of(found)
    if found != value:
        raise InvalidInputError("its value is not a JSON object")
    namespace = tuple(prefix.split("."))  # a label contains no period
    draft = draft_of(address_of(namespace, key), PutOp(namespace, key, value), WHOLE_VALUE, datetime.now(UTC))
    return replace(draft, text=_readable(value), passages=(), occurred_at=created, expires_at=expires)


def _readable(value: Mapping[str, object]) -> str:
    """An item as text: what it says, or a line for each field; the item itself is in `data`."""
    value = _fields_said(value)
    said = next((text for name in _SAID if (text := text_of(value.get(name))) is not None), None)
    rest = [f"{name}: {_plain(each)}" for name, each in value.items() if each != said or said is None]
    return "\n".join([said, *rest] if said is not None else rest)


def _fields_said(value: Mapping[str, object]) -> Mapping[str, object]:
    """The fields of an item; for one of LangMem those of its content, with the name of the schema if it says more than
    that this is a memory."""
    if "content" not in value or not value.keys() <= _LANGMEM:
        return value
    kind, content = value.get("kind"), value["content"]
    named = {} if kind in (None, _LANGMEM_DEFAULT) else {"kind": kind}
    return {**named, **(fields_of(content) or {"content": content})}


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _labels(prefix: str) -> dict[str, str]:
    """The labels of a namespace, for options such as `--user-from namespace.1`."""
    return {f"namespace.{place}": label for place, label in enumerate(prefix.split("."))}


def _people(labels: Mapping[str, str]) -> list[str]:
    """The keys of the labels that may be users."""
    keys, names = list(labels), [label.casefold() for label in labels.values()]
    return [
        key
        for place, key in enumerate(keys)
        if names[place] not in _OF_PEOPLE and not _OF_PEOPLE.isdisjoint(names[max(place - 1, 0) : place + 2])
    ]
