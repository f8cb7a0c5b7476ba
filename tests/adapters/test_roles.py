"""Every way of writing to the memory says who spoke: a person, the model, a tool, the application, or nobody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from frameworks import obey, own_container
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_toolset import BaseToolset
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from spade.agent import Agent
from xaibo.core.models.llm import LLMMessage

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.radbot import QdrantMemoryService, create_enhanced_memory_agent
from memory_adk.testing import Said, ScriptedLlm, ask, user_says
from memory_core import BoundMemory, Memory, Role, Where
from memory_langchain import (
    ConversationMemory,
    MemoryChatMessageHistory,
    MemoryMiddleware,
    MemoryStore,
    MemoryVectorStore,
    with_memory,
)
from memory_langchain.testing import ScriptedChatModel
from memory_spade import MemoryBehaviour, MemoryLLMAgent, MemoryMixin
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import ScriptedProvider
from memory_spade.testing.xmpp import xmpp_server
from memory_xaibo import CoreMemory, MemoryConversation
from tests.adapters.xaibo.talking import Talk, Told

Writer = Callable[[BoundMemory], Awaitable[None]]
Stored = tuple[Role | None, str, str]
"""Role, kind and text of a record."""

USER = "ann"
MONDAY: RunnableConfig = {"configurable": {"session_id": "monday", "thread_id": "monday"}}
SAID, ANSWERED, STATED = "My boat is the Heron", "A fine boat.", "Ann sails in June"
TURN: Sequence[Stored] = [("user", "message", SAID), ("assistant", "message", ANSWERED)]


def adk_runner(
    service: BaseMemoryService, *script: Said, plugins: Sequence[BasePlugin] = (), tools: Sequence[BaseToolset] = ()
) -> Runner:
    agent = LlmAgent(name="helper", model=ScriptedLlm(script=list(script)), tools=list(tools))
    return Runner(
        app=App(name="demo", root_agent=agent, plugins=list(plugins)),
        session_service=InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )


async def adk_plugin_and_tools(handle: BoundMemory) -> None:
    service = MemoryService(handle)
    store: Said = ("store_important_information", {"information": STATED})
    runner = adk_runner(service, store, ANSWERED, plugins=[MemoryPlugin()], tools=[MemoryToolset(service)])
    async with runner:
        await ask(runner, SAID, user_id=USER, session_id="s1")


async def adk_service(handle: BoundMemory) -> None:
    service = MemoryService(handle)
    async with adk_runner(service, ANSWERED) as runner:
        await ask(runner, SAID, user_id=USER, session_id="s1")
        session = await runner.session_service.get_session(app_name="demo", user_id=USER, session_id="s1")
        assert session is not None
        await service.add_session_to_memory(session)
    entry = MemoryEntry(content=user_says(STATED), author="user")
    await service.add_memory(app_name="demo", user_id=USER, memories=[entry])


async def adk_radbot(handle: BoundMemory) -> None:
    service = QdrantMemoryService(memory=handle)
    model = ScriptedLlm(script=[ANSWERED])
    async with create_enhanced_memory_agent(name="bot", model=model, memory_service=service) as agent:
        await agent.aprocess_message(USER, f"remember: {STATED}")
    service.add_memory("Ann is called Ann", USER)


async def langchain_history(handle: BoundMemory) -> None:
    calls = [{"name": "weather", "args": {}, "id": "1"}]
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(
        [
            SystemMessage("Be brief"),
            HumanMessage(SAID),
            AIMessage("Let me see.", tool_calls=calls),
            ToolMessage("rain", tool_call_id="1"),
            FunctionMessage(content="rain", name="weather"),
            AIMessage(ANSWERED),
            ChatMessage(content="Do answer", role="Developer"),
            ChatMessage(content="Hear, hear", role="chorus"),
        ]
    )


async def langchain_chain(handle: BoundMemory) -> None:
    await with_memory(ScriptedChatModel(script=[ANSWERED]), handle).ainvoke(SAID, MONDAY)


async def langchain_agent(handle: BoundMemory) -> None:
    arguments = {"content": STATED, "category": "fact"}
    store = AIMessage("", tool_calls=[{"name": "store_memory", "args": arguments, "id": "1"}])
    model = ScriptedChatModel(script=[store, ANSWERED])
    agent = create_agent(model, middleware=[MemoryMiddleware(handle)])
    await agent.ainvoke({"messages": [HumanMessage(SAID)]}, MONDAY)


async def langchain_classic(handle: BoundMemory) -> None:
    classic = ConversationMemory(chat_memory=MemoryChatMessageHistory(handle, "monday"))
    await classic.asave_context({"input": SAID}, {"output": ANSWERED})


async def langchain_documents(handle: BoundMemory) -> None:
    await MemoryStore(handle).aput(("boats",), "heron", {"text": SAID})
    await MemoryVectorStore(handle).aadd_texts([STATED])


class Answering(MemoryBehaviour):
    """Says the same to everybody."""

    async def run(self) -> None:
        if message := await self.receive(timeout=10):
            answer = message.make_reply()
            answer.body = ANSWERED
            await self.send(answer)


class Office(MemoryMixin, Agent):
    """An agent without a model."""

    async def setup(self) -> None:
        self.add_behaviour(Answering())


async def spade_behaviour(handle: BoundMemory) -> None:
    async with xmpp_server() as server:
        peer = Peer(server.jid("peer"))
        for agent in (Office(server.jid("office"), "secret", memory=handle), peer):
            await server.start(agent)
        await peer.ask(server.jid("office"), SAID)


async def spade_tools(handle: BoundMemory) -> None:
    calls = [
        ("store_memory", {"content": STATED, "category": "fact"}),
        ("remember_interaction_info", {"information": SAID}),
    ]
    async with xmpp_server() as server:
        peer = Peer(server.jid("peer"))
        bot = MemoryLLMAgent(
            server.jid("bot"),
            "secret",
            ScriptedProvider(obey),
            memory=handle,
            agent_base_memory=True,
            interaction_memory=True,
        )
        for agent in (bot, peer):
            await server.start(agent)
        for call in calls:
            answer = await peer.ask(server.jid("bot"), json.dumps(call), thread="t1")
            assert "failed" not in str(answer.body)


async def xaibo_agent(handle: BoundMemory) -> None:
    memory = CoreMemory({"session": "monday"}, memory=handle)
    await memory.store_memory(STATED)
    await Talk(memory, Told(lambda _: ANSWERED)).say(SAID)


async def xaibo_history(handle: BoundMemory) -> None:
    history = MemoryConversation(CoreMemory({"session": "monday"}, memory=handle))
    for message in (
        LLMMessage.system("Be brief"),
        LLMMessage.user(SAID),
        LLMMessage.function("1", "weather", {}),
        LLMMessage.function_result("1", "weather", "rain"),
        LLMMessage.assistant(ANSWERED),
    ):
        await history.add_message(message)


WRITERS: dict[str, tuple[Writer, Sequence[Stored]]] = {
    "ADK: the plugin, and a tool": (adk_plugin_and_tools, [*TURN, (None, "important_fact", STATED)]),
    "ADK: a session, and an explicit memory": (adk_service, [*TURN, (None, "fact", STATED)]),
    "ADK: RadBot": (
        adk_radbot,
        [
            ("user", "important_fact", f"remember: {STATED}"),
            ("assistant", "message", ANSWERED),
            (None, "important_fact", "Ann is called Ann"),
        ],
    ),
    "LangChain: a history": (
        langchain_history,
        [
            *TURN,
            ("assistant", "message", "Let me see."),
            ("system", "message", ""),
            ("system", "message", "Do answer"),
            ("tool", "message", ""),
            ("tool", "message", ""),
            (None, "message", "Hear, hear"),
        ],
    ),
    "LangChain: a chain": (langchain_chain, TURN),
    "LangChain: an agent, and a tool": (langchain_agent, [*TURN, (None, "fact", STATED)]),
    "LangChain: a classic memory": (langchain_classic, TURN),
    "LangChain: a store and a vector store": (
        langchain_documents,
        [(None, "langgraph_item", json.dumps({"text": SAID})), (None, "document", STATED)],
    ),
    "Xaibo: an agent, and an explicit memory": (xaibo_agent, [*TURN, (None, "note", STATED)]),
    "Xaibo: a history": (
        xaibo_history,
        [*TURN, ("system", "message", ""), ("tool", "message", ""), ("tool", "message", "")],
    ),
    "SPADE: a behaviour": (spade_behaviour, TURN),
    "SPADE: the tools of an agent with a model": (spade_tools, [(None, "fact", STATED), (None, "note", SAID)]),
}


@pytest_asyncio.fixture
async def handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BoundMemory]:
    monkeypatch.chdir(tmp_path)
    async with Memory("memory.db", embedder=None) as memory:
        yield memory.bind(app="demo", user=USER)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
async def test_every_record_says_who_spoke_if_somebody_did(handle: BoundMemory, name: str) -> None:
    write, expected = WRITERS[name]
    with own_container():
        await write(handle)
    records = (await handle.list(where=Where(states=("active", "archived")))).records
    stored = [(record.role, record.kind, record.text) for record in records]
    assert sorted(stored, key=repr) == sorted(expected, key=repr)
