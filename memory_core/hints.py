"""Error hints for names and arguments from other libraries: each says what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")

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

HANDLE_METHODS: Final = (
    *("add", "add_many", "collections", "delete", "delete_where", "erase", "get", "history", "list", "postpone"),
    *("put_many", "recall", "remember", "search", "search_by_vector", "stats", "supersede", "sweep", "update"),
)
"""The methods of a handle except `bind`; a test compares them."""


def with_hints(*names: str) -> Callable[[type[T]], type[T]]:
    """Make wrong keywords of these methods, and unknown attributes of the class, raise errors that name the right form.

    Type checkers see the class unchanged, because its methods keep their signatures.
    """

    def decorate(kind: type[T]) -> type[T]:
        for name in names:
            setattr(kind, name, _hinted(getattr(kind, name)))
        vars_of: Any = kind
        vars_of.__getattr__ = _refuse
        return kind

    return decorate


def not_a_call(given: object) -> TypeError:
    """The error about `run_sync(handle.add("tea"))`."""
    name = str(getattr(given, "__name__", "method"))
    if isinstance(given, Coroutine):
        given.close()  # else Python warns that it was never awaited
    return TypeError(f"run_sync takes a method and its arguments: run_sync(handle.{name}, ...), not handle.{name}(...)")


def _refuse(self: object, name: str) -> NoReturn:
    raise AttributeError(_no_such_name(self, name), name=name, obj=self)


def _hinted(method: Callable[..., Any]) -> Callable[..., Any]:
    known = set(inspect.signature(method).parameters)

    def check(given: Mapping[str, object]) -> None:
        if not given.keys() <= known:
            wrong = min(given.keys() - known)
            if instead := _argument(wrong, known):
                raise TypeError(f"{method.__name__}() has no argument {wrong!r}; write {instead}")

    @functools.wraps(method)
    async def awaited(*args: Any, **given: Any) -> Any:
        check(given)
        return await method(*args, **given)

    @functools.wraps(method)
    def called(*args: Any, **given: Any) -> Any:
        check(given)
        return method(*args, **given)

    return awaited if inspect.iscoroutinefunction(method) else called


def _no_such_name(owner: object, name: str) -> str:
    kind = type(owner).__name__
    said = f"{kind!r} object has no attribute {name!r}"
    meant = _METHODS.get(name) or next(iter(get_close_matches(name, HANDLE_METHODS, 1, 0.8)), None)
    if meant is None or name.startswith("_"):
        return said
    if hasattr(type(owner), meant):
        return f"{said}; write {meant}(...)"
    return f"{said}: memories belong to an owner; write memory.bind(app=..., user=...).{meant}(...)"


def _argument(wrong: str, known: set[str]) -> str | None:
    """What to write instead, if this method has it; for `add`, arguments of a draft."""
    instead = _ARGUMENTS.get(wrong)
    if instead is None:
        close = get_close_matches(wrong, known - {"self"}, 1, 0.8)
        return f"{close[0]}=" if close else None
    if instead.startswith("Draft("):
        return instead if known & {"entry", "entries"} else None
    if instead.partition("=")[0] in known:
        return instead
    return f"memory.bind({instead}...) and use the handle that it returns" if instead in _BOUND else None


_BOUND: Final = ("app=", "user=", "agent=", "session=")
