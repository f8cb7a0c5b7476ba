"""The handle of one owner's memories, and its synchronous view: applications and adapters do everything through it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from memory_core.checks import check_key, shown
from memory_core.errors import EmbeddingError, ScopeError
from memory_core.hints import with_hints
from memory_core.operations import EVERYTHING, Operations
from memory_core.sync import run_sync

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["EVERYTHING", "BoundMemory"]

_FIRST_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.5


@with_hints("add", "add_many", "bind", "list", "search")
class BoundMemory(Operations):
    """The memories of one owner, or of one agent, session or collection of that owner.

    All methods except `bind` are coroutines that can be awaited on any event loop. Synchronous code calls
    `handle.sync.search("tea")`, or `run_sync(handle.stats)` for an operation that `sync` does not have.
    """

    @property
    def sync(self) -> SyncMemory:
        """The everyday operations for code without `await`: `handle.sync.search("tea")`."""
        return SyncMemory(self)

    def __repr__(self) -> str:
        return f"BoundMemory({self.scope})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def bind(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        collection: str | None = None,
    ) -> BoundMemory:
        """A narrower handle. A key that is bound already accepts only the same value.

        Raises:
            ScopeError: A key is bound to another value.
        """
        given = {"user": user, "agent": agent, "session": session, "collection": collection}
        narrower = {name: value for name, value in given.items() if value is not None}
        for name, value in narrower.items():
            if (bound := getattr(self.scope, name)) not in (None, value):
                raise ScopeError(
                    f"this memory belongs to {name} {bound!r}; it cannot be used for {name} {shown(value)}"
                )
        return BoundMemory(self.memory, replace(self.scope, **narrower)) if narrower else self


def owned_by(handle: BoundMemory, user: object) -> BoundMemory:
    """The handle for the user that a framework names on this call.

    An open handle takes that user; a bound handle accepts only its own user, so a shared handle never mixes two users.

    Raises:
        ScopeError: The framework named no user (missing, empty, not a string), or another user.
    """
    return handle.bind(user=check_key("user", user, ScopeError))


async def settled(handle: BoundMemory, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the error says how many are left)
    """Return once no record in the scope of a handle waits for a vector.

    Records added with `embed="later"`, or while the embedder failed, are found by their words at once and by meaning
    once this has returned.

    Args:
        handle: Its scope says whose records to wait for.
        timeout: Seconds to wait at most; by default there is no limit, and an embedder that keeps failing is retried.

    Raises:
        EmbeddingError: Vectors are still pending after that time. They are computed later, and nothing is lost.
    """
    end = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE_SECONDS
    while pending := (await handle.stats()).vectors_pending:
        if end is not None and time.monotonic() >= end:
            raise EmbeddingError(
                f"vectors still pending after {timeout:g} s: {pending}; they are computed later, and until then their "
                "records are found by their words only"
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


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
