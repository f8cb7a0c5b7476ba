"""A prompt that shows a long conversation makes no recall longer: what it shows is not fetched again and again."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from xaibo.core.models.llm import LLMMessage

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, user_says
from memory_core import BoundMemory, Draft, Hit, Memory, Scope
from memory_core.adapting import before_prompt
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.storing import SearchRequest
from memory_langchain import MemoryChatMessageHistory, MemoryMiddleware, recall_node, with_memory
from memory_langchain.testing import ScriptedChatModel
from memory_xaibo import CoreMemory, MemoryConversation, MemoryLLM
from tests.adapters.xaibo.talking import Told

LENGTHS: Final = (20, 200, 400)
_SYLLABLES: Final = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "ar", "en")]
_WORDS: Final = [a + b for a in _SYLLABLES for b in _SYLLABLES][::5]


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of twelve made-up words."""
    dice = random.Random(seed)
    return [" ".join(dice.choices(_WORDS, k=12)).capitalize() + "." for _ in range(count)]


QUESTION: Final = sentences(1, 99)[0]


class CountingStore(SqliteStore):
    """Counts the hits that it returns, each of which is a record that it reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, embedder=HashingEmbedder(dimensions=64), clock=lambda: datetime.now(UTC))
        self.returned = 0

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        found = await super().search(scopes, request)
        self.returned += len(found)
        return found


async def chain(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """A chain that shows its model the whole conversation."""
    messages = [(HumanMessage, AIMessage)[n % 2](text) for n, text in enumerate(said)]
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(messages)
    wrapped = with_memory(RunnableLambda(lambda _: AIMessage("Noted.")), handle).with_config(
        configurable={"session_id": "monday"}
    )
    return lambda: wrapped.ainvoke(QUESTION)


async def adk(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """An agent whose requests have the whole session."""
    service, sessions = MemoryService(handle), InMemorySessionService()
    session = await sessions.create_session(app_name="demo", user_id="ann", session_id="monday")
    for number, text in enumerate(said):
        author = ("user", "helper")[number % 2]
        event = Event(author=author, content=user_says(text), invocation_id=f"{number // 2}", timestamp=1e9 + number)
        await sessions.append_event(session, event)
    await service.add_session_to_memory(session)
    app = App(
        name="demo",
        root_agent=LlmAgent(name="helper", model=ScriptedLlm(script=["Noted."])),
        plugins=[MemoryPlugin(capture=False, recall_seconds=600)],
    )

    async def turn() -> None:
        async with Runner(app=app, session_service=sessions, memory_service=service) as runner:
            await ask(runner, QUESTION, user_id="ann", session_id="monday")

    return turn


async def xaibo(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """An agent that shows its model the whole conversation."""
    memory = CoreMemory({"session": "monday"}, memory=handle)
    history = MemoryConversation(memory, {"max_history": 1_000})
    for n, text in enumerate(said):
        await history.add_message((LLMMessage.user, LLMMessage.assistant)[n % 2](text))
    model = MemoryLLM(Told(lambda _: "Noted."), memory, {"timeout": 600})

    async def turn() -> None:
        await model.generate([*await history.get_history(), LLMMessage.user(QUESTION)])

    return turn


async def agent(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """An agent of LangGraph, whose checkpointer keeps the whole thread."""
    made: Any = create_agent(
        ScriptedChatModel(script=lambda _: "Noted."),
        middleware=[MemoryMiddleware(handle, tools=())],
        checkpointer=InMemorySaver(),
    )
    thread: Any = {"configurable": {"thread_id": "monday"}}
    messages = [(HumanMessage, AIMessage)[n % 2](text) for n, text in enumerate(said)]
    await made.aupdate_state(thread, {"messages": messages}, as_node="model")
    await made.ainvoke({"messages": [("user", "Hello!")]}, thread)  # stores all of it
    return lambda: made.ainvoke({"messages": [("user", QUESTION)]}, thread)


async def tool_loop(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """An agent that is shown a whole thread that it does not store, and calls tools."""
    messages = [(HumanMessage, AIMessage)[n % 2](text, id=f"{n}") for n, text in enumerate(said)]
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(messages)
    calls = iter([AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": f"{n}"}]) for n in range(2)])

    def clock() -> str:
        """Tell the time."""
        return "noon"

    made: Any = create_agent(
        ScriptedChatModel(script=lambda _: next(calls, "Noted.")),
        [clock],
        middleware=[MemoryMiddleware(handle, tools=(), capture=False)],
    )
    thread: Any = {"configurable": {"thread_id": "monday"}}
    return lambda: made.ainvoke({"messages": [*messages, ("user", QUESTION)]}, thread)


async def node(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """A node of a graph, whose state has the whole conversation."""
    messages = [(HumanMessage, AIMessage)[n % 2](text, id=f"{n}") for n, text in enumerate(said)]
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(messages)
    recalling = recall_node(handle)
    thread: Any = {"configurable": {"thread_id": "monday"}}
    return lambda: recalling.ainvoke({"messages": [*messages, HumanMessage(QUESTION)]}, thread)


async def hook(handle: BoundMemory, said: list[str]) -> Callable[[], Awaitable[object]]:
    """A client of which only the name of the conversation is known."""
    await handle.add_many([Draft(text, role="user", kind="message", session="monday") for text in said])
    return lambda: before_prompt(handle, QUESTION, "monday")


CALLERS: Final = (chain, agent, tool_loop, node, adk, xaibo, hook)


@pytest.mark.slow
@pytest.mark.parametrize("begin", CALLERS, ids=lambda begin: begin.__name__)
async def test_a_recall_fetches_no_more_in_a_long_conversation(
    begin: Callable[[BoundMemory, list[str]], Awaitable[Callable[[], Awaitable[object]]]], tmp_path: Path
) -> None:
    fetched: dict[int, int] = {}
    for length in LENGTHS:
        store = CountingStore(tmp_path / f"{length}.db")
        async with Memory(store) as memory:
            handle = memory.bind(app="demo", user="ann")
            elsewhere = [
                Draft(text, session=f"day {n // 20}", kind="message") for n, text in enumerate(sentences(60, 3))
            ]
            await handle.add_many(elsewhere)
            turn = await begin(handle, sentences(length, 7))
            store.returned = 0
            await turn()
            fetched[length] = store.returned
    assert fetched[LENGTHS[0]] > 0
    assert max(fetched.values()) <= 2 * fetched[LENGTHS[0]], fetched
