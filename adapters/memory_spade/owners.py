"""The owner of the memories of a conversation, if a function of the application says it.

The function is asked once for each message of a peer, when its memory is first needed, and never on the event loop.
Until the peer's next message, everything that needs the owner has the same answer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

from memory_core import ScopeError
from memory_core.adapting import call_in_thread

OwnerFunction = Callable[[str], str | Awaitable[str]]
"""Returns the user of a peer, whose bare JID it gets; an `async def` runs on the agent's loop, any other in a
thread."""

MAX_PEERS: Final = 1_000
"""Most peers whose answers are kept; another peer is asked for again."""


class Owners:
    """The answers of an owner function."""

    def __init__(self, function: OwnerFunction) -> None:
        self._function = function
        self._asked: dict[str, asyncio.Task[None]] = {}
        """For the last message of each peer."""
        self._answers: dict[str, str | ScopeError] = {}

    def heard(self, peer: str) -> None:
        """A message of this peer has arrived: the next that needs its owner asks."""
        self._asked.pop(peer, None)

    async def ask(self, peer: str) -> None:
        """Return when the owner is known; what the function raises is kept, and raised by `user`."""
        asked = self._asked.get(peer)
        if asked is None:
            asked = self._asked[peer] = asyncio.create_task(self._answer(peer), name="memory-core owner")
            _bound(self._asked)
        await asyncio.shield(asked)  # others wait for it, too

    def user(self, peer: str) -> str:
        """The last answer for a peer.

        Raises:
            ScopeError: The function has not answered yet, or it has raised.
        """
        if peer not in self._answers:
            raise ScopeError(
                f"the owner of the memories of {peer!r} is not known yet; `await agent.memory_of(message)`"
            )
        answer = self._answers[peer]
        if isinstance(answer, ScopeError):
            raise ScopeError(str(answer)) from answer.__cause__
        return answer

    async def _answer(self, peer: str) -> None:
        answer = await self._result(peer)
        if self._asked.get(peer) in (None, asyncio.current_task()):  # a later message has not been answered meanwhile
            self._answers.pop(peer, None)
            self._answers[peer] = answer
            _bound(self._answers)

    async def _result(self, peer: str) -> str | ScopeError:
        """The owner that the function returns; whatever it raises costs this message its memory and nothing else."""
        try:
            if inspect.iscoroutinefunction(self._function):
                return await self._function(peer)  # type: ignore[no-any-return]  # checked by `owned_by`
            answer = await call_in_thread("asking the owner function", lambda: self._function(peer))
            return await answer if inspect.isawaitable(answer) else answer
        except LookupError as error:
            return _because(
                f"the owner function has no user for {peer!r}; add one to let this peer use memories", error
            )
        except Exception as error:  # noqa: BLE001  (a function of the application may raise anything)
            return _because(f"the owner function raised {type(error).__name__} for {peer!r}: {error}", error)


def _because(problem: str, error: Exception) -> ScopeError:
    refused = ScopeError(problem)
    refused.__cause__ = error
    return refused


def _bound(kept: dict[str, Any]) -> None:
    while len(kept) > MAX_PEERS:
        del kept[next(iter(kept))]
