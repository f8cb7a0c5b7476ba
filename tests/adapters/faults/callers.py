"""The callers that wait for a memory, in each framework: what is said has to be stored, and a question answered from
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from google.adk.runners import Runner
from google.adk.tools.function_tool import FunctionTool
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from mcp import Client
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from spade.message import Message
from xaibo.core.models.llm import LLMMessage

from memory_adk import BankPlugin, MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import BoundMemory, Draft, Memory, StoreUnavailableError
from memory_core.adapting import SEARCH_MEMORIES
from memory_langchain import (
    BankMiddleware,
    MemoryChatMessageHistory,
    MemoryMiddleware,
    MemoryRetriever,
    memory_tools,
    recall_node,
    remember_node,
    with_memory,
)
from memory_langchain.testing import ScriptedChatModel
from memory_mcp import StaticTokens, memory_server
from memory_mcp.owners import access_of
from memory_spade.stanzas import MESSAGE_ID
from memory_xaibo import CoreMemory, MemoryConversation, MemoryLLM
from tests.adapters.adk.agents import runner_of, said_event, session_with
from tests.adapters.chats.spade import BOT, Hearing, Plain
from tests.adapters.xaibo.talking import Told

APP = "demo"
_MOST_ANSWERS = 1_000


@dataclass(frozen=True)
class World:
    """A memory, and how a caller comes to it."""

    memory: Memory
    owners: Callable[[str], str] | None
    """Says who a caller is; without it the caller's handle is passed."""

    def handle(self, user: str) -> BoundMemory:
        """The memory of a user."""
        return self.memory.bind(app=APP, user=user)

    def made(self, user: str, _context: object = None) -> BoundMemory:
        """As a function of the application makes it."""
        assert self.owners is not None
        named = self.owners(user)
        return self.handle(named) if named == user else cast("Any", named)

    def for_langchain(self, user: str) -> Any:
        """A handle, or the function."""
        return self.handle(user) if self.owners is None else self.made


class Caller(Protocol):
    """One user of a framework.

    Args:
        world: The world that is called.
        user: The caller.
        seconds: The deadline.
    """

    def __init__(self, world: World, user: str, seconds: float) -> None: ...


class Saying(Caller, Protocol):
    """One whose words are stored."""

    async def say(self, text: str) -> None:
        """Return when the framework goes on."""
        ...


class Asking(Caller, Protocol):
    """One who is answered from the memory."""

    async def ask(self, question: str) -> str:
        """All that was found."""
        ...


class Core:
    """The handle itself."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._handle = world.handle(user)

    async def say(self, text: str) -> None:
        await self._handle.add(Draft(text, source_key=text))

    async def ask(self, question: str) -> str:
        return "\n".join(hit.record.text for hit in await self._handle.search(question))


class Xaibo:
    """A module of Xaibo."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._module = CoreMemory({"ranking": "relevance"}, memory=world.handle(user))

    async def say(self, text: str) -> None:
        await self._module.store_memory(text)

    async def ask(self, question: str) -> str:
        return "\n".join(result.content for result in await self._module.search_memory(question))


class XaiboTurn:
    """An agent of Xaibo whose model has a memory."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._handle, self._config = world.handle(user), {"timeout": seconds}
        self._model = Told(lambda _: "fine")
        self._sessions = 0

    async def say(self, text: str) -> None:
        await self._said(text, "s")

    async def ask(self, question: str) -> str:
        self._sessions += 1
        await self._said(question, f"asked {self._sessions}")
        return self._model.shown().removesuffix(question)

    async def _said(self, text: str, session: str) -> None:
        memory = CoreMemory({"session": session}, memory=self._handle)
        model = MemoryLLM(self._model, memory, self._config)
        assert (await model.generate([LLMMessage.user(text)])).content == "fine"


class XaiboHistory:
    """The history of a Xaibo agent, used directly."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        memory = CoreMemory({"session": "s"}, memory=world.handle(user))
        self._history = MemoryConversation(memory, {"timeout": seconds})

    async def say(self, text: str) -> None:
        await self._history.add_message(LLMMessage.user(text))


class AdkService:
    """ADK's memory service, called outside of a runner."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._user = user
        memory_of = None if world.owners is None else lambda _app, user: world.made(user)
        self.service = MemoryService(world.memory, memory_of=memory_of, timeout=seconds)

    async def say(self, text: str) -> None:
        await self.service.add_session_to_memory(session_with(said_event(text, id=text), user=self._user))

    async def ask(self, question: str) -> str:
        found = await self.service.search_memory(app_name=APP, user_id=self._user, query=question)
        return str(found.memories)


class AdkPlugin(AdkService):
    """A runner with the plugin."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        super().__init__(world, user, seconds)
        self._model = ScriptedLlm(script=["fine"] * _MOST_ANSWERS)
        plugin = MemoryPlugin(recall_seconds=seconds)
        self._runner: Runner = runner_of(self.service, self._model, plugins=[plugin])
        self._sessions = 0

    async def say(self, text: str) -> None:
        assert await ask(self._runner, text, user_id=self._user, session_id="said") == "fine"

    async def ask(self, question: str) -> str:
        self._sessions += 1
        asked = {"user_id": self._user, "session_id": f"asked {self._sessions}"}
        assert await ask(self._runner, question, **asked) == "fine"
        return prompt(self._model.requests[-1])


class AdkTool(AdkService):
    """The tool of an agent."""

    async def ask(self, question: str) -> str:
        model = ScriptedLlm(script=[("search_past_conversations", {"query": question}), "fine"])
        runner = runner_of(self.service, model, MemoryToolset())
        assert await ask(runner, question, user_id=self._user, session_id="s") == "fine"
        return prompt(model.requests[-1]).removeprefix(question)


class AdkBank:
    """A runner whose tool calls are steps of a bank."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._user, self._bank = user, BankPlugin(world.handle(user), timeout=seconds)

    async def say(self, text: str) -> None:
        model = ScriptedLlm(script=[("note", {"text": text}), "fine"])
        runner = runner_of(None, model, FunctionTool(note), plugins=[self._bank])
        assert await ask(runner, "Note it", user_id=self._user, session_id="s") == "fine"


class History:
    """LangChain's history of a conversation, used directly."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._history = MemoryChatMessageHistory(world.handle(user), "s", timeout=seconds)

    async def say(self, text: str) -> None:
        await self._history.aadd_messages([HumanMessage(text, id=text)])


class Chain:
    """A chain with a memory."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._config: Any = {"user_id": user}
        self._chain = with_memory(RunnableLambda(_before_last), world.for_langchain(user), timeout=seconds)
        self._sessions = 0

    async def say(self, text: str) -> None:
        await self._said(text, "s")

    async def ask(self, question: str) -> str:
        self._sessions += 1
        return str(await self._said(question, f"asked {self._sessions}"))

    async def _said(self, text: str, session: str) -> object:
        config: Any = {"configurable": {**self._config, "session_id": session}}
        return await self._chain.ainvoke([HumanMessage(text, id=f"{session} {text}")], config)


def note(text: str) -> str:
    """Note a text."""
    return "noted"


def _before_last(given: list[BaseMessage]) -> str:
    """The part of a prompt before the question."""
    return "\n".join(str(message.text) for message in given[:-1])


class Agent:
    """An agent of LangGraph with the middleware."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._user, self._model = user, ScriptedChatModel(script=lambda _: "fine")
        middleware = MemoryMiddleware(world.for_langchain(user), timeout=seconds, tools=())
        self._agent: Any = create_agent(self._model, middleware=[middleware], checkpointer=InMemorySaver())
        self._threads = 0

    async def say(self, text: str) -> None:
        await self._said(text, "s")

    async def ask(self, question: str) -> str:
        self._threads += 1
        await self._said(question, f"asked {self._threads}")
        return _before_last(self._model.prompts[-1])

    async def _said(self, text: str, thread: str) -> None:
        config = {"configurable": {"thread_id": thread, "user_id": self._user}}
        state = await self._agent.ainvoke({"messages": [HumanMessage(text, id=f"{thread} {text}")]}, config)
        assert state["messages"][-1].text == "fine"


class AgentBank:
    """An agent of LangGraph whose tool calls are steps of a bank."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._bank = BankMiddleware(world.handle(user), timeout=seconds)

    async def say(self, text: str) -> None:
        call = {"type": "tool_call", "id": "1", "name": "note", "args": {"text": text}}
        model = ScriptedChatModel(script=[AIMessage("", tool_calls=[call]), "fine"])
        agent: Any = create_agent(model, tools=[note], middleware=[self._bank])
        config = {"configurable": {"thread_id": "s"}}
        state = await agent.ainvoke({"messages": [HumanMessage("Note it")]}, config)
        assert state["messages"][-1].text == "fine"


class Node:
    """Nodes of a graph."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._config: Any = {"configurable": {"thread_id": "s", "user_id": user}}
        self._remember = remember_node(world.for_langchain(user), timeout=seconds)
        self._recall = recall_node(world.for_langchain(user), timeout=seconds)

    async def say(self, text: str) -> None:
        await self._remember.ainvoke({"messages": [HumanMessage(text, id=text)]}, self._config)

    async def ask(self, question: str) -> str:
        config: Any = {"configurable": {**self._config["configurable"], "thread_id": "asked"}}
        return str(await self._recall.ainvoke({"messages": [HumanMessage(question)]}, config))


class Tool:
    """A tool of LangChain."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._config: Any = {"configurable": {"user_id": user}}
        (self._search,) = memory_tools(world.for_langchain(user), tools=[SEARCH_MEMORIES], timeout=seconds)

    async def ask(self, question: str) -> str:
        call = {"type": "tool_call", "id": "1", "name": self._search.name, "args": {"query": question}}
        answer = await self._search.ainvoke(call, self._config)
        return str(answer.text)


class Retriever:
    """A retriever of LangChain."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._config: Any = {"configurable": {"user_id": user}}
        self._retriever = MemoryRetriever(memory=world.for_langchain(user), timeout=seconds)

    async def ask(self, question: str) -> str:
        return str(await self._retriever.ainvoke(question, self._config))


class Mcp:
    """A client of the MCP server."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._user = user
        if world.owners is None:
            self._server: MCPServer = memory_server(world.handle(user), tools="all", timeout=seconds)
        else:
            tokens = StaticTokens({user: f"the token of {user} for the tests"})
            self._server = memory_server(world.made, tools="all", timeout=seconds, tokens=tokens)

    async def say(self, text: str) -> None:
        messages = [{"role": "user", "content": text, "id": text}]
        await self._answer("memory_remember", {"messages": messages, "session": "s"})

    async def ask(self, question: str) -> str:
        return await self._answer("memory_search", {"query": question})

    async def _answer(self, tool: str, arguments: dict[str, Any]) -> str:
        self._sign_in()
        async with Client(self._server) as client:
            result = await client.call_tool(tool, arguments)
        if result.is_error:
            raise StoreUnavailableError(str(result.content))
        return str(result.structured_content)

    def _sign_in(self) -> None:
        access = access_of(self._user)
        assert access is not None
        auth_context_var.set(AuthenticatedUser(access))


class McpPrompt(Mcp):
    """A client that reads the prompt, for which no tool is called."""

    async def ask(self, question: str) -> str:
        self._sign_in()
        failures: list[MCPError] = []  # the client would put one that leaves it into groups
        async with Client(self._server) as client:
            try:
                return str((await client.get_prompt("what_is_known", {"topic": question})).messages)
            except MCPError as failure:
                failures.append(failure)
        raise StoreUnavailableError(str(failures))


class Spade:
    """A behaviour of a SPADE agent."""

    def __init__(self, world: World, user: str, seconds: float) -> None:
        self._user, owners = user, world.owners
        memory = world.handle(user) if owners is None else world.memory.bind(app=APP)
        by_function: Any = "agent" if owners is None else lambda peer: owners(peer.split("@")[0])
        self._agent = Plain(BOT, "secret", memory=memory, owner=by_function, memory_timeout=seconds)
        self._hearing = Hearing()
        self._hearing.set_agent(self._agent)

    async def say(self, text: str) -> None:
        await self._agent.home.begin()
        assert self._hearing.queue is not None
        await self._hearing.queue.put(self._message(text))
        await self._hearing.receive()

    async def ask(self, question: str) -> str:
        self._agent.home.heard(f"{self._user}@localhost")  # a message: its owner is asked for
        return (await self._hearing.recall(self._message(question))).text

    def _message(self, text: str) -> Message:
        sender = f"{self._user}@localhost/phone"
        return Message(to=BOT, sender=sender, body=text, thread="s", metadata={MESSAGE_ID: text})
