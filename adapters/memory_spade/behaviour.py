"""A behaviour that remembers received and sent messages, for agents with or without a language model."""

from __future__ import annotations

try:
    from spade.behaviour import CyclicBehaviour, FSMBehaviour
    from spade.message import Message
except ImportError as error:
    raise ImportError("`memory_spade` needs SPADE: pip install 'memory-core[spade]'") from error

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from memory_core import BoundMemory, Recalled
from memory_core.adapting import Asked
from memory_spade.conversation import author_of
from memory_spade.messages import tell, told
from memory_spade.mixin import MemoryMixin
from memory_spade.recalling import recalled
from memory_spade.stanzas import arrival_of, identified, is_of_room


class MemoryBehaviour(CyclicBehaviour):
    """Remembers every message it receives or sends; `await self.recall(message)` returns relevant memories.

    On its own it only listens: `agent.add_behaviour(MemoryBehaviour(), template)` remembers the messages that match
    the template. To do more, override `run` as in any behaviour. To combine it with another behaviour, put it first:
    `class Report(MemoryBehaviour, PeriodicBehaviour)`; the `run` of a behaviour of your own stays. In a state machine,
    put it before `FSMBehaviour`, through which all states receive their messages. The agent must have `MemoryMixin`.

    The author of a record is the bare JID of the sender, its role is `assistant` for the agent itself and `user` for
    any other sender, its session is the thread, else FIPA's conversation id, else `peer:<bare JID>`. In a room, the
    author is the nick and the session `room:<JID of the room>`. Its `data["metadata"]` is the metadata of the message,
    its `data["receiver"]` the bare JID that it was sent to. A correction (XEP-0308) by the author edits the record, a
    retraction (XEP-0424) deletes it; `receive` does not return retractions. Errors of the memory are logged: they delay
    no message and end no behaviour, only the call of `run` in which they were raised. A memory that hangs delays a
    message by the agent's `memory_timeout`; it is remembered later, when the memory answers again.
    """

    agent: Any  # of the application's own class, which SPADE sets

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        run = vars(cls).get("run") or _run_behind(cls)
        if run is not None:
            cls.run = _without_memory_errors(run)  # type: ignore[assignment]  # a method, as before

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # arguments of the behaviour class behind it
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]  # spade's have no annotations
        self._peer: str | None = None

    @property
    def memory(self) -> BoundMemory:
        """The memories available in the conversation with the peer of the last received or sent message.

        Raises:
            ScopeError: The agent has no long-term memories, or they belong to peers and there was no message yet.
        """
        return self._owner().home.handle(self._peer)

    async def recall(self, message: Message) -> Recalled:
        """Recall memories for the answer to a message, with the agent's `recall=` options; `str` of it is the block.

        The message itself and earlier questions similar to it are left out. Errors are logged, and nothing is recalled.
        """
        agent = self._owner()
        home, peer = agent.home, agent.peer_of(message)
        return await recalled(lambda: home.reached(home.base, peer), Asked(message.body or ""), agent, peer)

    async def run(self) -> None:
        """Listen."""
        await self.receive(timeout=10)

    async def receive(self, timeout: float | None = None) -> Message | None:  # noqa: ASYNC109  (spade's signature)
        """See `CyclicBehaviour.receive`; the message is in the memory when this returns, unless the memory hangs."""
        while (message := await super().receive(timeout)) is not None:
            await self._heard(message)
            arrival = arrival_of(message)
            if arrival is None or arrival.retracts is None:
                return message
        return None

    async def remember_waiting(self) -> None:
        """Remember the messages that wait to be received; called when the agent stops, which discards them."""
        queue: Any = self.queue  # of the loop on which the behaviour was made
        waiting: list[Message] = []
        while not queue.empty():
            waiting.append(queue.get_nowait())
        await asyncio.gather(*map(self._heard, waiting))

    async def send(self, msg: Message) -> None:
        """See `CyclicBehaviour.send`; the message is in the memory before it is sent, unless the memory hangs."""
        await self._send_by(super().send, msg)

    async def _run(self) -> None:  # SPADE's own hook for behaviours of behaviours
        if isinstance(self, FSMBehaviour):
            self._listen_to(self.get_state(self.current_state))
        await super()._run()

    def _listen_to(self, state: Any) -> None:  # spade does not annotate its states
        """Let a state send through this behaviour, as it receives through it."""
        if not isinstance(state, MemoryBehaviour) and "send" not in vars(state):
            state.send = functools.partial(self._send_by, state.send)

    async def _send_by(self, send: Callable[[Message], Awaitable[None]], msg: Message) -> None:
        sent = identified(msg, self._owner().address)
        # First, so that no answer can be older than what it answers.
        await self._remember(sent, peer=self._owner().peer_at(msg.to), author=self._owner().address)
        await send(sent)
        msg.sender, msg.sent = sent.sender, sent.sent

    def _owner(self) -> MemoryMixin:
        if not isinstance(self.agent, MemoryMixin):
            raise TypeError(f"{type(self).__name__} needs an agent with MemoryMixin, not {type(self.agent).__name__}")
        return self.agent

    async def _heard(self, message: Message) -> None:
        peer = self._owner().peer_of(message)
        await self._remember(message, peer=peer, author=author_of(message, peer))

    async def _remember(self, message: Message, *, peer: str | None, author: str | None) -> None:
        self._peer, agent = peer, self._owner()
        is_own = agent.is_own_nick(message) if is_of_room(message) else author == agent.address
        said = told(message, agent=agent.address, peer=peer, author=author, is_own=is_own)
        if said is None:
            return

        async def store() -> None:
            memory = await agent.home.reached(agent.home.base, peer)
            if isinstance(memory, BoundMemory):
                await tell(memory, said)
            else:
                await memory.add(said.draft)

        with agent.home.deadline.spared("an agent goes on without remembering a message"):
            await agent.home.deadline.write("remembering a message", store)


def _run_behind(cls: type[MemoryBehaviour]) -> Any:
    """The `run` of a behaviour of the application that `MemoryBehaviour` was put before, and which it would hide."""
    if cls.run is not MemoryBehaviour.run:
        return None
    behind = cls.__mro__[cls.__mro__.index(MemoryBehaviour) + 1 :]
    own = (
        vars(base)["run"] for base in behind if "run" in vars(base) and base.__module__ != CyclicBehaviour.__module__
    )
    return next(own, None)


def _without_memory_errors(
    run: Callable[[Any], Coroutine[Any, Any, None]],
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """A `run` that logs errors of the memory, because SPADE ends a behaviour that raises."""

    @functools.wraps(run)
    async def guarded(self: Any) -> None:
        with self._owner().home.deadline.spared("a behaviour's run ended early"):
            await run(self)

    return guarded
