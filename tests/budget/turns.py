"""One turn of a conversation in each framework, after a short conversation and after a long one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from memory_core import BoundMemory
from tests.budget.counting import Counter, Work
from tests.budget.measuring import Measuring, Operation, opened
from tests.budget.operations import sentences

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session as AdkSession

LENGTHS: Final = (20, 200, 400)
"""Messages of the conversation before the turn."""
_BATCH: Final = 90
"""Messages handed over at once; an MCP client may hand over 100."""


class Client(Protocol):
    """A conversation in a framework."""

    async def go_on(self, said: Sequence[str]) -> None:
        """Go on with a question and an answer in turn, in as few calls as possible."""
        ...

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        """What one turn consists of, in order."""
        ...


class Spade:
    """An agent without a server: what it receives is put into its queue."""

    def __init__(self, handle: BoundMemory) -> None:
        from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain

        self._bot, self._person, self._number = BOT, PERSON, 0
        self._behaviour: Any = Hearing()  # spade's have no annotations
        self._behaviour.set_agent(Plain(BOT, "secret", memory=handle))

    async def go_on(self, said: Sequence[str]) -> None:
        for question, answer in pairs(said):
            works = self.turn(question, answer)
            await works["receive"]()
            await works["send"]()

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        from spade.message import Message

        from memory_spade.stanzas import MESSAGE_ID

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
    """The service, which gets the events of each turn."""

    def __init__(self, handle: BoundMemory) -> None:
        from memory_adk import MemoryService

        self._service = MemoryService(handle)
        self._number = 0

    async def go_on(self, said: Sequence[str]) -> None:
        await self._add(said)

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        return {
            "search": lambda: self._service.search_memory(app_name="budget", user_id="ann", query=question),
            "add events": lambda: self._add([question, answer]),
        }

    async def _add(self, said: Sequence[str]) -> None:
        await self._service.add_events_to_memory(
            app_name="budget", user_id="ann", session_id="monday", events=[self._event(text) for text in said]
        )

    def _event(self, text: str) -> Event:
        from google.adk.events.event import Event
        from google.genai import types

        number, self._number = self._number, self._number + 1
        author, role = (("user", "user"), ("helper", "model"))[number % 2]
        return Event(
            id=f"event {number}",
            invocation_id=f"turn {number // 2}",
            author=author,
            timestamp=1_700_000_000.0 + number,
            content=types.Content(role=role, parts=[types.Part(text=text)]),
        )


class Session(Adk):
    """The service, which gets the whole session of a runner again and again."""

    def __init__(self, handle: BoundMemory) -> None:
        super().__init__(handle)
        self._events: list[Event] = []

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        return {"add the session": lambda: self._add([question, answer])}

    async def _add(self, said: Sequence[str]) -> None:
        from google.adk.sessions import session

        self._events += [self._event(text) for text in said]
        await self._service.add_session_to_memory(
            session.Session(id="monday", app_name="budget", user_id="ann", events=self._events)
        )


class Running:
    """A runner that recalls in every turn, and what its tools search. The service stores what was said afterwards: what
    is captured while it is said depends on how fast the machine is."""

    def __init__(self, handle: BoundMemory) -> None:
        from google.adk.agents import LlmAgent
        from google.adk.apps import App
        from google.adk.runners import Runner
        from google.adk.sessions import InMemorySessionService

        from memory_adk import MemoryPlugin, MemoryService
        from memory_adk.testing import ScriptedLlm

        self._service, self._model = MemoryService(handle), ScriptedLlm()
        agent, plugin = LlmAgent(name="helper", model=self._model), MemoryPlugin(capture=False, recall_seconds=60)
        self._runner = Runner(
            app=App(name="budget", root_agent=agent, plugins=[plugin]),
            session_service=InMemorySessionService(),
            memory_service=self._service,
            auto_create_session=True,
        )

    async def go_on(self, said: Sequence[str]) -> None:
        for question, answer in pairs(said):
            await self._ask(question, answer)
        await self._service.add_session_to_memory(await self._session())

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        return {
            "recall": lambda: self._ask(question, answer),
            "search in a tool": lambda: self._search(question),
            "add the last message": self._add_last,
        }

    async def _ask(self, question: str, answer: str) -> None:
        from memory_adk.testing import ask

        self._model.script.append(answer)
        await ask(self._runner, question, user_id="ann", session_id="monday")

    async def _search(self, question: str) -> None:
        from memory_adk.shown import Shown, in_conversation

        session = await self._session()
        before = in_conversation.set(Shown(session=session.id, find=lambda: session.events))
        await self._service.search_memory(app_name="budget", user_id="ann", query=question)
        in_conversation.reset(before)

    async def _add_last(self) -> None:
        session = await self._session()
        await self._service.add_events_to_memory(
            app_name="budget", user_id="ann", session_id="monday", events=session.events[-1:]
        )

    async def _session(self) -> AdkSession:
        found = await self._runner.session_service.get_session(app_name="budget", user_id="ann", session_id="monday")
        assert found is not None
        return found


class History:
    """The history of LangChain, as a chain of one's own uses it."""

    def __init__(self, handle: BoundMemory) -> None:
        from memory_langchain import MemoryChatMessageHistory

        self._history = MemoryChatMessageHistory(handle, session_id="monday")

    async def go_on(self, said: Sequence[str]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        await self._history.aadd_messages([(HumanMessage, AIMessage)[n % 2](text) for n, text in enumerate(said)])

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        return {"read": self._history.aget_messages, "add": lambda: self.go_on([question, answer])}


class Chain(History):
    """A chain of LangChain that shows its model the whole conversation."""

    def __init__(self, handle: BoundMemory, history_limit: int | None = None) -> None:
        from memory_langchain import with_memory
        from memory_langchain.testing import ScriptedChatModel

        super().__init__(handle)
        self._answer = ""
        model = ScriptedChatModel(script=lambda _: self._answer)
        self._chain = with_memory(model, handle, session_id="monday", history_limit=history_limit)

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        self._answer = answer
        return {"invoke": lambda: self._chain.ainvoke(question)}


class Window(Chain):
    """A chain that shows its model the newest messages only."""

    def __init__(self, handle: BoundMemory) -> None:
        super().__init__(handle, history_limit=10)


class Agent:
    """An agent of LangGraph, whose checkpointer keeps the whole conversation."""

    def __init__(self, handle: BoundMemory) -> None:
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from memory_langchain import MemoryMiddleware
        from memory_langchain.testing import ScriptedChatModel

        self._answer = ""
        self._thread: Any = {"configurable": {"thread_id": "monday"}}
        self._agent: Any = create_agent(
            ScriptedChatModel(script=lambda _: self._answer),
            middleware=[MemoryMiddleware(handle, tools=())],
            checkpointer=InMemorySaver(),
        )

    async def go_on(self, said: Sequence[str]) -> None:
        """Extend the thread; the next run stores all of it."""
        from langchain_core.messages import AIMessage, HumanMessage

        messages = [(HumanMessage, AIMessage)[n % 2](text) for n, text in enumerate(said)]
        await self._agent.aupdate_state(self._thread, {"messages": messages}, as_node="model")

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        self._answer = answer
        return {"invoke": lambda: self._agent.ainvoke({"messages": [("user", question)]}, self._thread)}


class Mcp:
    """A client that hands over each turn."""

    def __init__(self, handle: BoundMemory) -> None:
        from memory_mcp import memory_server

        self._server = memory_server(handle)

    async def go_on(self, said: Sequence[str]) -> None:
        messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
        await self._call("memory_remember", messages=messages, session="monday")

    def turn(self, question: str, answer: str) -> dict[str, Operation]:
        return {
            "recall": lambda: self._call("memory_recall", query=question),
            "remember": lambda: self.go_on([question, answer]),
        }

    async def _call(self, tool: str, **arguments: Any) -> None:
        from mcp import Client

        async with Client(self._server) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content


CLIENTS: Final[Mapping[str, tuple[str, Callable[[BoundMemory], Client]]]] = {
    "SPADE": ("spade", Spade),
    "ADK": ("google.adk", Adk),
    "ADK session": ("google.adk", Session),
    "ADK runner": ("google.adk", Running),
    "LangChain history": ("langchain_core", History),
    "LangChain chain": ("langchain_core", Chain),
    "LangChain chain with a window": ("langchain_core", Window),
    "LangGraph agent": ("langgraph", Agent),
    "MCP": ("mcp", Mcp),
}
"""By name the package that has to be installed, and the client."""


async def count_turns(counter: Counter, folder: Path, lengths: Sequence[int] = LENGTHS) -> dict[str, Work]:
    """By name the work of each part of a turn after so many messages, in every framework that is installed."""
    found: dict[str, Work] = {}
    for name, (package, make) in CLIENTS.items():
        if not _is_installed(package):
            continue
        path = folder / f"{name}.db"
        async with opened(path) as memory:
            with counter.unseen():  # importing a framework
                measuring, client = Measuring(counter, memory, path), make(memory.bind(app="budget", user="ann"))
            gc.freeze()  # so that the many objects of frameworks are not searched at every count
            said, stored = sentences(max(lengths) + 2, 7), 0
            for length in lengths:
                with counter.unseen():
                    for start in range(stored, length - 2, _BATCH):
                        await client.go_on(said[start : min(start + _BATCH, length - 2)])
                await _turn(measuring, client, said[length - 2 : length])  # brings everything up to date
                parts = await _turn(measuring, client, said[length : length + 2])
                found |= {f"{name}: {part}, after {length} messages": each for part, each in parts.items()}
                stored = length + 2
    return found


async def _turn(measuring: Measuring, client: Client, said: Sequence[str]) -> dict[str, Work]:
    ((question, answer),) = pairs(said)
    return {part: await measuring.count(work) for part, work in client.turn(question, answer).items()}


def pairs(said: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each question with its answer."""
    return zip(said[::2], said[1::2], strict=True)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
