"""Error hints for names and arguments from other libraries: each says what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., object])

_ARGUMENTS: Final[Mapping[str, str]] = {
    "agent_id": "agent=",
    "app_id": "app=",
    "app_name": "app=",
    "conversation_id": "session=",
    "filter": "where=Where(...)",
    "filters": "where=Where(...)",
    "k": "limit=",
    "max_results": "limit=",
    "metadata": "Draft(text, data={...})",
    "n_results": "limit=",
    "run_id": "session=",
    "session_id": "session=",
    "tags": "Draft(text, tags=[...])",
    "thread_id": "session=",
    "top_k": "limit=",
    "user_id": "user=",
}
"""Argument names of other libraries, and the names used here."""

_METHODS: Final[Mapping[str, str]] = {
    "add_documents": "add_many",
    "add_messages": "add_many",
    "add_texts": "add_many",
    "delete_all": "erase",
    "get_all": "list",
    "query": "search",
    "reset": "erase",
    "save_context": "add_many",
    "similarity_search": "search",
    "store": "add",
}
"""The same for methods of a handle."""


def hinted(method: Method) -> Method:
    """Make wrong keywords of a method raise errors that name the right form. Type checkers see the method unchanged."""
    known = frozenset([*inspect.signature(method).parameters][1:])

    @functools.wraps(method)
    def call(owner: object, /, *args: Any, **given: Any) -> Any:  # the method's own parameters
        check_keywords(method.__name__, given, known)
        return method(owner, *args, **given)

    return cast("Method", call)  # it takes and returns what the method does


def check_keywords(method: str, given: Iterable[str], known: frozenset[str]) -> None:
    """Raise a `TypeError` for a wrong keyword that has a right form. Python refuses other wrong ones itself."""
    wrong = min(set(given) - known, default=None)
    if wrong is not None and (instead := _argument(wrong, known)):
        raise TypeError(f"{method}() has no argument {wrong!r}; write {instead}")


def no_attribute(owner: object, name: str, operations: Sequence[str]) -> AttributeError:
    """The error for an unknown attribute of a memory or a handle, which names the operation that is meant."""
    return AttributeError(_no_such_name(owner, name, operations), name=name, obj=owner)


def not_a_call(given: object) -> TypeError:
    """The error about `run_sync(handle.add("tea"))`."""
    name = str(getattr(given, "__name__", "method"))
    if isinstance(given, Coroutine):
        given.close()  # else Python warns that it was never awaited
    return TypeError(f"run_sync takes a method and its arguments: run_sync(handle.{name}, ...), not handle.{name}(...)")


def _no_such_name(owner: object, name: str, operations: Sequence[str]) -> str:
    kind = type(owner).__name__
    said = f"{kind!r} object has no attribute {name!r}"
    meant = _METHODS.get(name) or next(iter(get_close_matches(name, operations, 1, 0.8)), None)
    if meant is None or name.startswith("_"):
        return said
    if hasattr(type(owner), meant):
        return f"{said}; write {meant}(...)"
    return f"{said}: memories belong to an owner; write memory.bind(app=..., user=...).{meant}(...)"


def _argument(wrong: str, known: frozenset[str]) -> str | None:
    """What to write instead, if this method has it; for `add`, arguments of a draft."""
    instead = _ARGUMENTS.get(wrong)
    if instead is None:
        close = get_close_matches(wrong, known, 1, 0.8)
        return f"{close[0]}=" if close else None
    if instead.startswith("Draft("):
        return instead if known & {"entry", "entries"} else None
    if instead.partition("=")[0] in known:
        return instead
    return f"memory.bind({instead}...) and use the handle that it returns" if instead in _BOUND else None


_BOUND: Final = ("app=", "user=", "agent=", "session=")
