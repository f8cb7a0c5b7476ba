"""Error hints for names and arguments from other libraries: each says what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, Final, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., object])
Class = TypeVar("Class", bound=type[object])

_ARGUMENTS: Final[Mapping[str, str]] = {
    "agent_id": "agent=",
    "app_id": "app=",
    "app_name": "app=",
    "category": "kind=",
    "categories": "kinds=",
    "content": "text=",
    "conversation_id": "session=",
    "created_at": "occurred_at=",
    "embedding": "embedder=",
    "embeddings": "embedder=",
    "filter": "where=Where(...)",
    "filters": "where=Where(...)",
    "k": "limit=",
    "max_results": "limit=",
    "memory_type": "kind=",
    "message": "text=",
    "metadata": "data=",
    "n_results": "limit=",
    "name": "author=",
    "page_content": "text=",
    "path": "store=",
    "run_id": "session=",
    "session_id": "session=",
    "speaker": "author=",
    "thread_id": "session=",
    "timestamp": "occurred_at=",
    "top_k": "limit=",
    "type": "kind=",
    "user_id": "user=",
}
"""Argument names of other libraries, and the names used here."""
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
"""The same for methods of a handle."""
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
_BOUND: Final = ("app=", "user=", "agent=", "session=")
_CONDITIONS: Final[Mapping[str, str]] = {
    **{name: f"{name}s=[...]" for name in ("role", "kind", "tier", "id", "source_key", "keyword")},
    "tags": "tags_any=[...]",
    "tag": "tags_any=[...]",
    "text": "keywords=[...]",
}
"""Fields of a record, and the conditions on them that go by another name."""


def hinted(method: Method) -> Method:
    """Make wrong arguments of a method raise errors with the right form. Type checkers see the method unchanged."""
    name = method.__qualname__.partition(".")[0] if method.__name__ == "__init__" else None
    check = argument_check(method, name)

    @functools.wraps(method)
    def call(owner: object, /, *args: Any, **given: Any) -> Any:  # the method's own parameters
        try:
            return method(owner, *args, **given)
        except TypeError:
            check(args, given)
            raise

    return cast("Method", call)  # it takes and returns what the method does


def hinted_fields(of: Class) -> Class:
    """Make wrong arguments of a dataclass raise errors with the right form."""
    made_by = cast("Any", of).__init__
    check = argument_check(made_by, of.__name__)

    @functools.wraps(made_by)
    def made(self: object, /, *args: Any, **given: Any) -> None:  # the fields of the class
        try:
            made_by(self, *args, **given)
        except TypeError:
            check(args, given)
            raise

    cast("Any", of).__init__ = made
    return of


def argument_check(
    method: Callable[..., object], name: str | None = None, of_draft: frozenset[str] = frozenset()
) -> Callable[[Sequence[object], Mapping[str, object]], None]:
    """A check of the arguments of a call, which refuses wrong ones that have a right form; Python refuses the others.

    Args:
        name: Of the method; by default its own.
        of_draft: What a draft says about a text, by the names of its fields.
    """
    parameters = [*inspect.signature(method).parameters.values()][1:]
    called, known = name or method.__name__, frozenset(each.name for each in parameters)
    in_order = [each.name for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]

    def check(args: Sequence[object], given: Mapping[str, object]) -> None:
        if len(args) > len(in_order):
            raise TypeError(f"{called}() {_taken(called, in_order, sorted(known), args[len(in_order)])}")
        if given and not given.keys() <= known:
            wrong = min(given.keys() - known)
            if instead := _argument(called, wrong, known, of_draft):
                raise TypeError(f"{called}() has no argument {wrong!r}; write {instead}")

    return check


def no_attribute(owner: object, name: str, operations: Sequence[str]) -> AttributeError:
    """The error for an unknown attribute of a memory or a handle, which names the operation that is meant."""
    return AttributeError(_no_such_name(owner, name, operations), name=name, obj=owner)


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


def _taken(called: str, in_order: Sequence[str], known: Sequence[str], value: object) -> str:
    """What a method takes without a name, after it was given one value too many."""
    taken = f"only {' and '.join(in_order)}" if in_order else "nothing"
    by_name = [f"{name}=" for name in known if name not in in_order]
    if called == "add":
        return (
            f"takes one entry, and got {_BRIEF.repr(value)} as well; write Draft(text, kind=...) for more than a text"
        )
    if not by_name:
        return f"takes {taken}, and got {_BRIEF.repr(value)} as well"
    return f"takes {taken} without a name, and got {_BRIEF.repr(value)} as well; the others are {', '.join(by_name)}"


def _no_such_name(owner: object, name: str, operations: Sequence[str]) -> str:
    kind = type(owner).__name__
    said = f"{kind!r} object has no attribute {name!r}"
    if name == "sync":
        return f"{said}: memories belong to an owner; write memory.bind(app=..., user=...).sync"
    if name.startswith("_"):
        return said
    meant = _METHODS.get(name) or next(iter(get_close_matches(name, operations, 1, 0.8)), None)
    if meant is None:
        return said
    if hasattr(type(owner), meant):
        return f"{said}; write {meant}(...)"
    return f"{said}: memories belong to an owner; write memory.bind(app=..., user=...).{meant}(...)"


def _argument(called: str, wrong: str, known: frozenset[str], of_draft: frozenset[str]) -> str | None:
    """What to write instead, if this method has it; for `add`, arguments of a draft."""
    instead = _ARGUMENTS.get(wrong, f"{wrong}=")
    name = instead.partition("=")[0]
    if name in known:
        return instead
    if known & {"entry", "entries"} and name in of_draft:
        return f"Draft(text, {name}=...)"
    if "patch" in known and name in of_draft | {"text"}:
        return f"Patch({name}=...)"
    condition = _CONDITIONS.get(name, f"{name}=")
    if called == "Where" and condition.partition("=")[0] in known:
        return condition
    if "where" in known and called != "Where" and (name in _CONDITIONS or name in of_draft):
        return f"where=Where({condition if name in _CONDITIONS else f'{name}=...'})"
    if instead in _BOUND:
        return f"memory.bind({instead}...) and use the handle that it returns"
    close = get_close_matches(wrong, known, 1, 0.8)
    return f"{close[0]}=" if close else None


_BRIEF: Final = Repr()
