"""A behaviour that remembers received and sent messages, for agents with or without a language model."""

from __future__ import annotations

try:
    from spade.behaviour import CyclicBehaviour, FSMBehaviour
    from spade.message import Message
except ImportError as error:
    raise ImportError("`memory_spade` needs SPADE: pip install 'memory-core[spade]'") from error

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from memory_core import BoundMemory, Draft, Recalled, utc_now
from memory_core.adapting import MAX_TEXT_CHARS, Asked
from memory_spade.conversation import author_of, session_of_message
from memory_spade.memory.messages import keep
from memory_spade.mixin import MemoryMixin
from memory_spade.recalling import recalled
from memory_spade.stanzas import MESSAGE_ID, arrival_of, identified, is_of_room

CONVERSATION_ID: Final = "conversation-id"
"""FIPA's metadata key for the conversation of a message."""


class MemoryBehaviour(CyclicBehaviour):
    """Remembers every message it receives or sends; `await self.recall(message)` returns relevant memories.

    On its own it only listens: `agent.add_behaviour(MemoryBehaviour(), template)` remembers the messages that match
    the template. To do more, override `run` as in any behaviour. To combine it with another behaviour, put it first:
    `class Report(MemoryBehaviour, PeriodicBehaviour)`; the `run` of a behaviour of your own stays. In a state machine,
    put it before `FSMBehaviour`, through which all states receive their messages. The agent must have `MemoryMixin`.

    The author of a record is the bare JID of the sender, its role is `assistant` for the agent itself and `user` for
    any other sender, its session is the thread, else FIPA's conversation id, else `peer:<bare JID>`. In a room, the
    author is the nick and the session `room:<JID of the room>`. Its `data["metadata"]` is the metadata of the message,
    its `data["receivers"]` names the agents that received it. Errors of the memory are logged: they delay no message
    and end no behaviour, only the call of `run` in which they were raised. A memory that hangs delays a message by the
    agent's `memory_timeout`; it is remembered later, when the memory answers again.
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
        message = await super().receive(timeout)
        if message is not None:
            peer = self._owner().peer_of(message)
            await self._remember(message, peer=peer, author=author_of(message, peer))
        return message

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

    async def _remember(self, message: Message, *, peer: str | None, author: str | None) -> None:
        self._peer, agent, arrival = peer, self._owner(), arrival_of(message)
        if not (message.body or "").strip() or (arrival is not None and arrival.is_error):
            return
        is_sent = author == agent.address and not is_of_room(message)
        receiver = peer if is_sent and peer else agent.address
        with agent.home.deadline.spared("an agent goes on without remembering a message"):
            draft = _draft(
                message, agent=agent.address, peer=peer, author=author, is_own=is_sent or agent.is_own_nick(message)
            )
            message_id = message.get_metadata(MESSAGE_ID) or ""  # now, because an agent in this process may change it

            async def store() -> None:
                memory = await agent.home.reached(agent.home.base, peer)
                if isinstance(memory, BoundMemory):
                    await keep(memory.own, draft, receiver=receiver, message_id=message_id)
                else:
                    await memory.add(draft)

            await agent.home.deadline.write("remembering a message", store)


def _draft(message: Message, *, agent: str, peer: str | None, author: str | None, is_own: bool) -> Draft:
    metadata: dict[str, str] = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
    metadata.pop(MESSAGE_ID, None)
    arrival = arrival_of(message)
    return Draft(
        str(message.body)[:MAX_TEXT_CHARS],  # so that no message is too long to be remembered
        role="assistant" if is_own else "user",
        kind="message",
        author=author,
        agent=agent,
        session=session_of_message(message, message.thread or metadata.get(CONVERSATION_ID), peer),
        occurred_at=(arrival and arrival.said_at) or utc_now(),
        data={"metadata": metadata} if metadata else {},
    )


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
