"""A chain with a memory, and a client that keeps the conversation itself and may send all of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory_core import BoundMemory
from memory_langchain import MemoryChatMessageHistory, with_memory
from memory_langchain.testing import Reply, ScriptedChatModel
from tests.adapters.chats.langgraph import OverloadedError

SESSION: Final[Any] = {"configurable": {"session_id": "monday"}}


class Chain:
    """A client that gives its messages ids."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        self._numbers, self._fails = itertools.count(), False
        model = ScriptedChatModel(script=self._answer)
        self._chains: list[Any] = [with_memory(model, handle) for handle in handles]
        self._histories = [MemoryChatMessageHistory(handle, session_id="monday") for handle in handles]
        self._messages: list[BaseMessage] = []

    def _answer(self, prompt: list[BaseMessage]) -> Reply:
        if self._fails:
            return OverloadedError()
        number = next(self._numbers)
        return AIMessage(f"answer {number}", id=f"a{number}")

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        chain, question = self._chains[process], HumanMessage(text, id=f"q{next(self._numbers)}")
        if what in ("again", "at_once"):
            histories = self._histories if what == "at_once" else [self._histories[process]]
            await asyncio.gather(*(each.aadd_messages(self._messages) for each in histories))
            return
        if what == "remove":
            await self._histories[process].aclear()
            self._messages.clear()
        given: list[BaseMessage] = [question]
        if what == "edit" and self._messages:
            at = place % len(self._messages)
            self._messages[at] = self._messages[at].model_copy(update={"content": text})
            question = question.model_copy(update={"content": f"after {text}"})
            given = [*self._messages, question]
        self._fails = what == "interrupt"
        self._messages.append(question)
        with suppress(OverloadedError):
            self._messages.append(await chain.ainvoke(given, SESSION))
        self._fails = False

    async def shown(self) -> list[str]:
        return [message.text for message in self._messages]
