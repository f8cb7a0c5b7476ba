"""One turn of a conversation in each framework, after a short conversation and after a long one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from memory_core import BoundMemory
from tests.budget.counting import Counter
from tests.budget.measuring import Counted, Measuring, Work, opened
from tests.budget.operations import sentences

LENGTHS: Final = (20, 200)
"""Messages of the conversation before the turn."""


class Client(Protocol):
    """A conversation in a framework."""

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        """What one turn consists of, in order."""
        ...


class Spade:
    """An agent without a server: what it receives is put into its queue."""

    def __init__(self, handle: BoundMemory) -> None:
        from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain

        self._bot, self._person, self._number = BOT, PERSON, 0
        self._behaviour = Hearing()
        self._behaviour.set_agent(Plain(BOT, "secret", memory=handle))

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        from spade.message import Message

        from memory_spade.conversation import MESSAGE_ID

        self._number += 1
        message = Message(to=self._bot, sender=f"{self._person}/phone", body=question, thread="monday")
        message.set_metadata(MESSAGE_ID, f"stanza {self._number}")

        async def receive() -> None:
            assert self._behaviour.queue is not None
            await self._behaviour.queue.put(message)
            assert await self._behaviour.receive() is not None

        async def send() -> None:
            await self._behaviour.send(Message(to=self._person, body=answer, thread="monday"))

        return {"receive": receive, "recall": lambda: self._behaviour.recall(message), "send": send}


class Adk:
    """The service gets the events of each turn, and the whole session from a client that adds it again."""

    def __init__(self, handle: BoundMemory) -> None:
        from google.adk.events.event import Event

        from memory_adk import MemoryService

        self._service = MemoryService(handle)
        self._events: list[Event] = []

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        from google.adk.events.event import Event
        from google.genai import types

        new = [
            Event(
                id=f"event {len(self._events) + n}",
                invocation_id=f"turn {len(self._events) // 2}",
                author=author,
                timestamp=1_700_000_000.0 + len(self._events) + n,
                content=types.Content(role=role, parts=[types.Part(text=text)]),
            )
            for n, (author, role, text) in enumerate((("user", "user", question), ("helper", "model", answer)))
        ]
        self._events += new
        of = {"app_name": "budget", "user_id": "ann"}
        return {
            "search": lambda: self._service.search_memory(**of, query=question),
            "add events": lambda: self._service.add_events_to_memory(**of, session_id="monday", events=new),
        }

    def again(self) -> Work:
        """Add the whole session, nothing of which is new."""
        from google.adk.sessions.session import Session

        session = Session(id="monday", app_name="budget", user_id="ann", events=list(self._events))
        return lambda: self._service.add_session_to_memory(session)


class Chain:
    """A chain with a memory."""

    def __init__(self, handle: BoundMemory, **options: Any) -> None:
        from memory_langchain import with_memory
        from memory_langchain.testing import ScriptedChatModel

        self._answer = ""
        model = ScriptedChatModel(script=lambda _: self._answer)
        self._chain = with_memory(model, handle, session_id="monday", **options)

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        self._answer = answer
        return {"invoke": lambda: self._chain.ainvoke(question)}


class Window(Chain):
    """A chain that shows its model the newest messages only."""

    def __init__(self, handle: BoundMemory) -> None:
        super().__init__(handle, history_limit=10)


class History:
    """The history of LangChain, as a chain of one's own uses it."""

    def __init__(self, handle: BoundMemory) -> None:
        from memory_langchain import MemoryChatMessageHistory

        self._history = MemoryChatMessageHistory(handle, session_id="monday")

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        from langchain_core.messages import AIMessage, HumanMessage

        messages = [HumanMessage(question), AIMessage(answer)]
        return {"read": self._history.aget_messages, "add": lambda: self._history.aadd_messages(messages)}


class Mcp:
    """A client that hands over each turn."""

    def __init__(self, handle: BoundMemory) -> None:
        from memory_mcp import memory_server

        self._server = memory_server(handle)

    def parts(self, question: str, answer: str) -> dict[str, Work]:
        said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return {
            "recall": lambda: self._call("memory_recall", query=question),
            "remember": lambda: self._call("memory_remember", messages=said, session="monday"),
        }

    async def _call(self, tool: str, **arguments: Any) -> None:
        from mcp import Client

        async with Client(self._server) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content


CLIENTS = {"spade": Spade, "adk": Adk, "chain": Chain, "window": Window, "history": History, "mcp": Mcp}


async def count_turns(counter: Counter, folder: Path, lengths=LENGTHS) -> dict[str, Counted]:
    found: dict[str, Counted] = {}
    for name, make in CLIENTS.items():
        path = folder / f"{name}.db"
        async with opened(path) as memory:
            measuring = Measuring(counter, memory, path)
            client = make(memory.bind(app="budget", user="ann"))
            said = sentences(max(lengths) + 2, 7)
            for at in range(0, len(said), 2):
                parts = client.parts(said[at], said[at + 1])
                counting = at in lengths
                for part, work in parts.items():
                    if counting:
                        found[f"{name} {part} {at}"] = await measuring.count(work)
                    else:
                        await work()
                if at in lengths and isinstance(client, Adk):
                    found[f"{name} again {at}"] = await measuring.count(client.again())
    return found
