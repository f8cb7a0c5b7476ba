"""An agent of Xaibo, whose conversation is in the memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress

from xaibo.core.models.llm import LLMMessage

from memory_core import BoundMemory
from memory_xaibo import CoreMemory, MemoryConversation
from tests.adapters.chats.langgraph import OverloadedError
from tests.adapters.xaibo.talking import Reply, Talk, Told


class XaiboTalk:
    """A conversation that goes on in several processes, with an agent made for each message."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        self._answers, self._fails = itertools.count(), False
        self._memories = [CoreMemory({"session": "monday"}, memory=handle) for handle in handles]
        self._talks = [Talk(memory, Told(self._answer)) for memory in self._memories]
        self._messages: list[str] = []

    def _answer(self, _prompt: Sequence[LLMMessage]) -> Reply:
        return OverloadedError() if self._fails else f"answer {next(self._answers)}"

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        if what == "at_once":
            await asyncio.gather(*(self._say(each, f"{text} in {number}") for number, each in enumerate(self._talks)))
            return
        if what == "remove":
            await MemoryConversation(self._memories[process]).clear_history()
            self._messages.clear()
        self._fails = what == "interrupt"
        await self._say(self._talks[process], text)
        self._fails = False

    async def shown(self) -> list[str]:
        return self._messages

    async def _say(self, talk: Talk, text: str) -> None:
        self._messages.append(text)
        with suppress(OverloadedError):
            self._messages.append(await talk.say(text))
