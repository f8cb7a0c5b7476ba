"""A plain agent that sends messages to other agents and waits for their answers, in one line each."""

from __future__ import annotations

try:
    from spade.agent import Agent
    from spade.behaviour import CyclicBehaviour
    from spade.message import Message
except ImportError as error:
    raise ImportError("`Peer` needs SPADE: pip install 'memory-core[spade]'") from error

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ANSWER_SECONDS: Final = 60.0
FOR_MODELS: Final = MappingProxyType({"message_type": "llm"})
"""The metadata of messages that spade_llm receives."""


class Peer(Agent):
    """A conversation partner for an agent: `answer = await peer.ask("bot@localhost", "What do I drink?")`.

    Questions in different threads may run concurrently; those without a thread are answered in the order asked. For a
    server on another port than 5222, set `xmpp_port` before the start; `XmppServer.start` does so.
    """

    def __init__(self, jid: str, password: str = "secret") -> None:  # noqa: S107  (a test server accepts any)
        super().__init__(jid, password)
        self._mailbox: CyclicBehaviour | None = None
        self._waiting: defaultdict[str | None, deque[asyncio.Future[Message]]] = defaultdict(deque)

    async def setup(self) -> None:
        """Start listening; called by SPADE."""
        self._mailbox = _Mailbox()  # type: ignore[no-untyped-call]  # spade does not annotate its constructor
        self.add_behaviour(self._mailbox)

    async def ask(
        self,
        to: str,
        text: str,
        *,
        thread: str | None = None,
        metadata: Mapping[str, str] = FOR_MODELS,
        seconds: float = ANSWER_SECONDS,
    ) -> Message:
        """Send a text to an agent and return its answer. The default `metadata` addresses a language model.

        Raises:
            TimeoutError: No answer arrived within `seconds`.
            RuntimeError: This agent was not started.
        """
        if self._mailbox is None:
            raise RuntimeError(f"{self.jid} is not started; start it before asking")
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[thread].append(answer)
        # SPADE sends the thread only together with metadata.
        message = Message(to=to, body=text, thread=thread, metadata=dict(metadata))
        await self._mailbox.send(message)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            if answer in self._waiting[thread]:
                self._waiting[thread].remove(answer)

    def heard(self, message: Message) -> None:
        """Pass an answer to the waiting caller; answers without a waiting caller are dropped."""
        waiting = self._waiting[message.thread if self._waiting.get(message.thread) else None]
        while waiting:
            answer = waiting.popleft()
            # A cancelled question stays here until its task runs again.
            if not answer.done():
                answer.set_result(message)
                return


class _Mailbox(CyclicBehaviour):
    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None and isinstance(self.agent, Peer):
            self.agent.heard(message)
