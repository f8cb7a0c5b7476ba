"""Conversations in each framework, with a memory that captures and recalls, and without one.

Models answer from a script at once, so what is measured is everything but the model. A turn has ended when its
messages are stored.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from common import drafts
from memory_core import BoundMemory

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

Turn = Callable[[int], Awaitable[object]]
"""A turn of a conversation, by number."""
Talk = Callable[[BoundMemory | None], AbstractAsyncContextManager[Turn]]

SAID: Final = [draft.text for draft in drafts(2_000, 11)]
"""A question and an answer in turn."""


def said(number: int) -> tuple[str, str]:
    """The question and the answer of a turn."""
    return SAID[2 * number % len(SAID)], SAID[(2 * number + 1) % len(SAID)]


@asynccontextmanager
async def adk(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """A runner, with `MemoryPlugin`."""
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService

    from memory_adk import MemoryPlugin, MemoryService
    from memory_adk.testing import ScriptedLlm, ask

    agent = LlmAgent(name="helper", model=ScriptedLlm(script=[said(number)[1] for number in range(1_000)]))
    sessions, plugin = InMemorySessionService(), MemoryPlugin()
    user = "ann" if handle is None else str(handle.scope.user)
    service = None if handle is None else MemoryService(handle)
    app = App(name="bench", root_agent=agent, plugins=[] if handle is None else [plugin])
    async with Runner(app=app, session_service=sessions, memory_service=service) as runner:
        await sessions.create_session(app_name="bench", user_id=user, session_id="monday")

        async def turn(number: int) -> None:
            await ask(runner, said(number)[0], user_id=user, session_id="monday")
            if handle is not None:
                await plugin.flush()

        yield turn


@asynccontextmanager
async def langgraph(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """An agent of LangChain that keeps its thread, with `MemoryMiddleware`."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from memory_langchain import MemoryMiddleware
    from memory_langchain.testing import ScriptedChatModel

    model = ScriptedChatModel(script=[said(number)[1] for number in range(1_100)])
    middleware = [] if handle is None else [MemoryMiddleware(handle, tools=())]
    agent: Any = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "monday"}}
    yield lambda number: agent.ainvoke({"messages": [{"role": "user", "content": said(number)[0]}]}, config)


@asynccontextmanager
async def chain(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """A chain of LangChain, with the ten newest messages and what is recalled."""
    from langchain_core.prompts import ChatPromptTemplate

    from memory_langchain import with_memory
    from memory_langchain.testing import ScriptedChatModel

    model = ScriptedChatModel(script=[said(number)[1] for number in range(1_000)])
    prompt = ChatPromptTemplate([("system", "{memories}"), ("placeholder", "{history}"), ("human", "{q}")])
    bare: Any = prompt.partial(memories="") | model
    if handle is not None:
        bare = with_memory(
            prompt | model,
            handle,
            input_key="q",
            history_key="history",
            memories_key="memories",
            history_limit=10,
        ).with_config(configurable={"session_id": "monday"})
    yield lambda number: bare.ainvoke({"q": said(number)[0]})


@asynccontextmanager
async def spade(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """A behaviour of SPADE that hears, recalls and answers."""
    from spade.agent import Agent
    from spade.message import Message

    from memory_spade.stanzas import MESSAGE_ID
    from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain, Silent

    class Deaf(Silent):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]  # spade's have no annotations

        async def run(self) -> None: ...

    behaviour: Any = Deaf() if handle is None else Hearing()  # spade's have no annotations
    behaviour.set_agent(Agent(BOT, "secret") if handle is None else Plain(BOT, "secret", memory=handle))

    async def turn(number: int) -> None:
        question, answer = said(number)
        message = Message(to=BOT, sender=f"{PERSON}/phone", body=question, thread="monday")
        message.set_metadata(MESSAGE_ID, f"stanza {number}")
        await behaviour.queue.put(message)
        await behaviour.receive()
        if handle is not None:
            await behaviour.recall(message)
        await behaviour.send(Message(to=PERSON, body=answer, thread="monday"))

    yield turn


@asynccontextmanager
async def spade_llm(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """An agent whose model stores what it heard: `MemoryLLMAgent`; or spade_llm's own, whose tool does nothing."""
    from spade_llm.agent.llm_agent import LLMAgent
    from spade_llm.tools import LLMTool

    from memory_spade import MemoryLLMAgent
    from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
    from tests.adapters.spade.saying import Conversation

    def script(request: Request) -> str | ToolCall:
        return "Noted." if request.results else ToolCall("store_memory", {"content": request.said, "category": "fact"})

    async def store_memory(content: str, category: str) -> str:
        return f"{category} {len(content)}"

    named, model = ("bot@localhost", "secret"), ScriptedProvider(script)
    agent: Any = None
    if handle is None:
        parts = {name: {"type": "string"} for name in ("content", "category")}
        schema = {"type": "object", "properties": parts, "required": [*parts]}
        agent = LLMAgent(*named, model, tools=[LLMTool("store_memory", "Store a fact", schema, store_memory)])
    else:
        agent = MemoryLLMAgent(*named, model, memory=handle)
    talk = Conversation(agent, "monday")
    yield lambda number: talk.say(said(number)[0])


@asynccontextmanager
async def mcp(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """A client that asks before each turn and hands it over after it; without a memory, the tools do nothing."""
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    from memory_mcp import memory_server

    async def memory_recall(query: str) -> str:
        return query

    async def memory_remember(messages: list[dict[str, str]], session: str) -> str:
        return f"{session} {len(messages)}"

    server: Any = MCPServer("bare") if handle is None else memory_server(handle, tools="all")
    for tool in (memory_recall, memory_remember) if handle is None else ():
        server.tool()(tool)
    async with Client(server) as client:

        async def turn(number: int) -> None:
            question, answer = said(number)
            messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            recalled = await client.call_tool("memory_recall", {"query": question})
            stored = await client.call_tool("memory_remember", {"messages": messages, "session": "monday"})
            assert not recalled.is_error, recalled.content
            assert not stored.is_error, stored.content

        yield turn


class NoMemory:
    """A module that Xaibo's tools can call, which keeps nothing."""

    async def store_memory(self, text: str, attributes: Mapping[str, Any] | None = None) -> str:
        return "1"

    async def search_memory(self, query: str, k: int = 10) -> list[Any]:
        return []


@asynccontextmanager
async def xaibo(handle: BoundMemory | None) -> AsyncIterator[Turn]:
    """An agent of Xaibo whose model searches and stores; without a memory, its module does nothing."""
    from xaibo import AgentConfig, ConfigOverrides, Xaibo

    from memory_xaibo import CoreMemory
    from tests.adapters.xaibo.foreign_parts import HELPER, calling

    parts = "  - {module: memory_xaibo.CoreMemory, id: memory, config: {path: unused.db, user: ann}}\n"
    parts += "  - {module: xaibo.primitives.modules.llm.MockLLM, id: llm, config: {responses: [{content: x}]}}\n"
    running, memory = Xaibo(), NoMemory() if handle is None else CoreMemory(memory=handle)
    running.register_agent(AgentConfig.from_yaml(HELPER + parts))

    async def turn(number: int) -> None:
        question, answer = said(number)
        model = calling(("search_memory", {"query": question}), ("store_memory", {"text": answer}))
        agent = running.get_agent_with("helper", ConfigOverrides(instances={"llm": model, "memory": memory}))
        await agent.handle_text(question)

    yield turn


TALKS: Final[Mapping[str, tuple[str, Talk]]] = {
    "SPADE": ("spade", spade),
    "spade_llm": ("spade_llm", spade_llm),
    "ADK": ("google.adk", adk),
    "LangChain, agent": ("langchain", langgraph),
    "LangChain, chain": ("langchain_core", chain),
    "MCP": ("mcp", mcp),
    "Xaibo": ("xaibo", xaibo),
}
"""By name the package that has to be installed, and the conversation."""
