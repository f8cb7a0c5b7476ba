"""A behaviour that remembers received and sent messages, for agents with or without a language model."""

from __future__ import annotations

try:
    from spade.behaviour import CyclicBehaviour
    from spade.message import Message
except ImportError as error:
    raise ImportError("`memory_spade` needs SPADE: pip install 'memory-core[spade]'") from error

import logging
from typing import Any, Final

from memory_core import BoundMemory, Draft, MemoryCoreError, Recalled
from memory_core.adapting import append_drafts, reason_for_log, recall_with
from memory_spade.conversation import MESSAGE_ID, identified, sender_of, session_of, source_key_of
from memory_spade.mixin import MemoryMixin

logger = logging.getLogger(__name__)

CONVERSATION_ID: Final = "conversation-id"
"""FIPA's metadata key for the conversation of a message."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Longer bodies are cut, so that no message is too long to be remembered."""


class MemoryBehaviour(CyclicBehaviour):
    """Remembers every message it receives or sends; `await self.recall(message)` returns relevant memories.

    On its own it only listens: `agent.add_behaviour(MemoryBehaviour(), template)` remembers the messages that match
    the template. To do more, override `run` as in any behaviour. To combine it with another type of behaviour, put it
    first: `class Report(MemoryBehaviour, PeriodicBehaviour)`. In a state machine, put it before `FSMBehaviour`, through
    which all states receive their messages. The agent must have `MemoryMixin`.

    The author of a record is the bare JID of the sender, its role is `assistant` for the agent itself and `user` for
    any other sender, its session is the thread, else FIPA's conversation id, else `peer:<bare JID>`, and its
    `data["metadata"]` is the metadata of the message. Errors of the memory are logged and do not delay messages.
    """

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

        The message itself and earlier questions similar to it are left out.
        """
        options = self._owner().recall_options
        return await recall_with(self._owner().home.base(sender_of(message)), message.body or "", options)

    async def run(self) -> None:
        """Listen."""
        await self.receive(timeout=10)

    async def receive(self, timeout: float | None = None) -> Message | None:  # noqa: ASYNC109  (spade's signature)
        """See `CyclicBehaviour.receive`; the message is in the memory when this returns."""
        message = await super().receive(timeout)
        if message is not None:
            await self._remember(message, peer=sender_of(message), author=sender_of(message))
        return message

    async def send(self, msg: Message) -> None:
        """See `CyclicBehaviour.send`; what was sent is in the memory when this returns."""
        sent = identified(msg)
        await super().send(sent)
        msg.sender, msg.sent = sent.sender, sent.sent
        await self._remember(sent, peer=str(msg.to.bare), author=self._owner().address)

    def _owner(self) -> MemoryMixin:
        if not isinstance(self.agent, MemoryMixin):
            raise TypeError(f"{type(self).__name__} needs an agent with MemoryMixin, not {type(self.agent).__name__}")
        return self.agent

    async def _remember(self, message: Message, *, peer: str | None, author: str | None) -> None:
        self._peer, agent = peer, self._owner()
        if not (message.body or "").strip():
            return
        metadata: dict[str, str] = dict(message._metadata)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only single keys are public)
        session = session_of(message.thread or metadata.get(CONVERSATION_ID), peer)
        metadata.pop(MESSAGE_ID, None)
        draft = Draft(
            str(message.body)[:MAX_TEXT_CHARS],
            role="assistant" if author == agent.address else "user",
            kind="message",
            author=author,
            agent=agent.address,
            session=session,
            source_key=source_key_of(message, author, session),
            data={"metadata": metadata} if metadata else {},
        )
        try:
            kept = agent.home.base(peer)
            if isinstance(kept, BoundMemory):
                await append_drafts(kept, [draft], embed="later")
            else:
                await kept.add(draft)
        except MemoryCoreError as error:
            reason = reason_for_log(error)  # without the traceback, whose messages may quote
            logger.error("an agent goes on without remembering a message: %s", reason)  # noqa: TRY400
