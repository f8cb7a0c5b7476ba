"""The handle of one owner's memories: applications and adapters do everything through it."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from memory_core.checks import check_key, shown
from memory_core.errors import ScopeError
from memory_core.hints import with_hints
from memory_core.operations import EVERYTHING, Operations
from memory_core.sync import SyncMemory

__all__ = ["EVERYTHING", "BoundMemory"]


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
