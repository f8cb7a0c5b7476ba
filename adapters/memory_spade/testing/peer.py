"""A plain agent that says things to other agents and waits for their answers, one line each."""

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
"""What spade_llm listens to."""


class Peer(Agent):
    """Somebody an agent talks to: `answer = await peer.ask("bot@localhost", "What do I drink?")`.

    Questions may run side by side in threads of their own; those without a thread are answered in the order asked.
    """

    def __init__(self, jid: str, password: str = "secret") -> None:  # noqa: S107  (any will do on a test server)
        super().__init__(jid, password)
        self._mailbox: CyclicBehaviour | None = None
        self._waiting: defaultdict[str | None, deque[asyncio.Future[Message]]] = defaultdict(deque)

    async def setup(self) -> None:
        """Listen; called by spade."""
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
        """Say something to an agent, unless `metadata` says otherwise one with a language model; return its answer.

        Raises:
            TimeoutError: No answer came within so many seconds.
            RuntimeError: This agent was not started.
        """
        if self._mailbox is None:
            raise RuntimeError(f"{self.jid} cannot ask anything before it is started")
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[thread].append(answer)
        # SPADE sends the thread only along with some metadata.
        message = Message(to=to, body=text, thread=thread, metadata=dict(metadata))
        await self._mailbox.send(message)
        try:
            return await asyncio.wait_for(answer, seconds)
        finally:
            if answer in self._waiting[thread]:
                self._waiting[thread].remove(answer)

    def heard(self, message: Message) -> None:
        """Hand an answer to whoever waits for it; what nobody waits for is dropped."""
        waiting = self._waiting[message.thread if self._waiting.get(message.thread) else None]
        if waiting:
            waiting.popleft().set_result(message)


class _Mailbox(CyclicBehaviour):
    async def run(self) -> None:
        message = await self.receive(timeout=10)
        if message is not None and isinstance(self.agent, Peer):
            self.agent.heard(message)
