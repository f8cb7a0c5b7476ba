"""A handle's everyday operations for code without `await`: `handle.sync.search("tea")`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memory_core.loop import run_sync
from memory_core.operations import Operations

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Operations, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemory, P], T]:
    """The same method as a blocking call."""

    @wraps(method)
    def call(view: SyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, Coroutine[Any, Any, T]] = getattr(view.handle, method.__name__)  # `telemetry` may wrap it
        return run_sync(bound, *args, **kwargs)

    return call


class SyncMemory:
    """The synchronous view of a handle: for scripts, Flask, Django, Streamlit and notebooks.

    Each method has the parameters of the handle's method of the same name, blocks until it is done, and returns or
    raises the same. Call other operations with `run_sync(handle.stats)`.

    On a running event loop, as in a notebook, the methods work too, but block that loop meanwhile: in a coroutine,
    write `await handle.search(...)` instead. On the core loop they raise `WrongThreadError`.
    """

    def __init__(self, handle: Operations) -> None:
        self.handle = handle

    def __repr__(self) -> str:
        return f"{self.handle!r}.sync"

    add = _blocking(Operations.add)
    add_many = _blocking(Operations.add_many)
    remember = _blocking(Operations.remember)
    recall = _blocking(Operations.recall)
    search = _blocking(Operations.search)
    list = _blocking(Operations.list)
    get = _blocking(Operations.get)
    update = _blocking(Operations.update)
    supersede = _blocking(Operations.supersede)
    delete = _blocking(Operations.delete)
