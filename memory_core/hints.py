"""The names to write instead of those of other libraries: a table, asked when Python has found no such attribute.

No method and no constructor is wrapped for it, so a correct call never comes here. A wrong argument gets Python's own
error, and a misspelt name Python's own "Did you mean".
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Final

_METHODS: Final[Mapping[str, str]] = {
    "add_documents": "add_many",
    "add_messages": "add_many",
    "add_texts": "add_many",
    "all": "list",
    "clear": "erase",
    "count": "stats",
    "delete_all": "erase",
    "find": "search",
    "forget": "delete",
    "get_all": "list",
    "insert": "add",
    "query": "search",
    "remove": "delete",
    "reset": "erase",
    "retrieve": "search",
    "save": "add",
    "save_context": "add_many",
    "similarity_search": "search",
    "store": "add",
}
"""Methods of other libraries, and the operations of a handle that do the same."""
_FIELDS: Final[Mapping[str, str]] = {
    "content": "text",
    "memory": "text",
    "page_content": "text",
    "message": "text",
    "metadata": "data",
    "value": "data",
    "type": "kind",
    "category": "kind",
    "timestamp": "occurred_at",
    "user_id": "user",
    "agent_id": "agent",
    "session_id": "session",
    "thread_id": "session",
    "key": "source_key",
}
"""The same for fields of a record."""


def no_attribute(owner: object, name: str, operations: Collection[str]) -> AttributeError:
    """The error for an unknown attribute of a memory or a handle, which names the operation that is meant."""
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    meant = _METHODS.get(name, name)
    if meant in operations and hasattr(type(owner), meant):
        said = f"{said}; write {meant}(...)"
    elif meant in operations or name == "sync":
        call = "sync" if name == "sync" else f"{meant}(...)"
        said = f"{said}: memories belong to an owner; write memory.bind(app=..., user=...).{call}"
    return AttributeError(said, name=name, obj=owner)


def no_field(owner: object, name: str, fields: Collection[str]) -> AttributeError:
    """The error for an unknown attribute of a value, which names the field that is meant."""
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    meant = _FIELDS.get(name, name)
    if meant in fields and meant != name:
        said = f"{said}; write .{meant}"
    elif "record" in fields and meant not in fields and not name.startswith("_"):
        said = f"{said}; what a hit found is its record: write .record.{meant}"
    return AttributeError(said, name=name, obj=owner)


def no_item(owner: object, key: object, fields: Sequence[str]) -> TypeError:
    """The error about `record["text"]`, and about iterating over one value."""
    kind = type(owner).__name__
    example = f".{key}" if isinstance(key, str) and key in fields else f".{fields[0]}"
    return TypeError(f"a {kind} has attributes, not items: write {example}, or to_dict() for a dictionary")


def not_a_call(given: object) -> TypeError:
    """The error about `run_sync(handle.add("tea"))`."""
    name = str(getattr(given, "__name__", "method"))
    if isinstance(given, Coroutine):
        given.close()  # else Python warns that it was never awaited
    return TypeError(f"run_sync takes a method and its arguments: run_sync(handle.{name}, ...), not handle.{name}(...)")
