"""The same six things done through each framework, the way its own users do them.

As a script it is another process, in which every framework has the memory of one user, or of a user of its own name:
`python frameworks.py FILE APP [USER]` reads a JSON list `[framework, method, *arguments]` a line and answers each with
a JSON value.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from langchain_core.messages import HumanMessage, ToolMessage
from mcp import Client
from spade.container import Container
from xaibo import AgentConfig, ConfigOverrides, Xaibo
from xaibo.core.models.response import Response
from xaibo.primitives.modules.llm.mock import MockLLM

from memory_adk import MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, user_says
from memory_core import BoundMemory, Memory, RecallOptions
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, memory_tools
from memory_mcp import memory_server
from memory_spade import MemoryLLMAgent
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer
from memory_xaibo import CoreMemory


class RefusedError(Exception):
    """The framework said no."""


@dataclass(frozen=True)
class Grants:
    """The spaces that are shared with an owner."""

    spaces: Mapping[str, BoundMemory] = field(default_factory=dict[str, BoundMemory])
    writable: Collection[str] = ()

    def with_own(self, own: BoundMemory) -> BoundMemory:
        """The memory of the owner together with what is shared."""
        return own.sharing(self.spaces, writable=self.writable)


NOTHING = Grants()


class Framework(Protocol):
    """The calls that a test makes through any of them."""

    async def write(self, text: str) -> str: ...

    async def find(self, query: str) -> list[str]: ...

    async def update(self, memory_id: str, text: str) -> None: ...

    async def delete(self, memory_id: str) -> None: ...

    async def erase(self) -> None: ...


class Spade:
    """An LLMAgent told by another agent, over XMPP, which of its memory tools to use."""

    def __init__(self, agent: MemoryLLMAgent, peer: Peer) -> None:
        self._agent = agent
        self._peer = peer

    async def write(self, text: str) -> str:
        answer = await self._use("store_memory", content=text, category="fact")
        return _ids(answer)[0]

    async def find(self, query: str) -> list[str]:
        return _ids(await self._use("search_memories", query=query))

    async def update(self, memory_id: str, text: str) -> None:
        await self._use("update_memory", memory_id=memory_id, content=text)

    async def delete(self, memory_id: str) -> None:
        await self._use("forget_memory", memory_id=memory_id)

    async def erase(self) -> None:
        await self._agent.memory.erase()

    async def _use(self, tool: str, **arguments: str) -> str:
        answer = await self._peer.ask(str(self._agent.jid.bare), json.dumps([tool, arguments]), thread="t1")
        text = str(answer.body)
        if " failed: " in text:
            raise RefusedError(text)
        return text


class Adk:
    """The runner's memory service, and the memory tools of an agent in a runner."""

    def __init__(self, handle: BoundMemory, grants: Grants) -> None:
        self._service = MemoryService(grants.with_own(handle), recall=RecallOptions(limit=10))  # as all others search
        self._app = handle.scope.app
        self._user = str(handle.scope.user)

    async def write(self, text: str) -> str:
        entry = MemoryEntry(content=user_says(text), id=str(uuid.uuid4()), author="user")
        await self._service.add_memory(app_name=self._app, user_id=self._user, memories=[entry])
        return str(entry.id)

    async def find(self, query: str) -> list[str]:
        found = await self._service.search_memory(app_name=self._app, user_id=self._user, query=query)
        return [str(entry.id) for entry in found.memories]

    async def update(self, memory_id: str, text: str) -> None:
        model = ScriptedLlm(script=[("update_memory", {"memory_id": memory_id, "content": text}), "Done."])
        agent = LlmAgent(name="helper", model=model, tools=[MemoryToolset(self._service)])
        runner = Runner(
            app=App(name="helper", root_agent=agent),
            session_service=InMemorySessionService(),
            memory_service=self._service,
            auto_create_session=True,
        )
        async with runner:
            said = user_says("that is not right any more")
            events = [e async for e in runner.run_async(user_id=self._user, session_id="s", new_message=said)]
        answers = [response.response for event in events for response in event.get_function_responses()]
        if not answers or (answers[0] or {}).get("status") != "success":
            raise RefusedError(str(answers))

    async def delete(self, memory_id: str) -> None:
        await self._service.delete_memory(app_name=self._app, user_id=self._user, memory_id=memory_id)

    async def erase(self) -> None:
        await self._service.clear_user(app_name=self._app, user_id=self._user)


class LangChain:
    """A chat message history, a retriever, and the tools, on the handle."""

    def __init__(self, handle: BoundMemory, grants: Grants) -> None:
        self._handle, reached = handle, grants.with_own(handle)
        self._history = MemoryChatMessageHistory(handle, session_id="s1")
        self._retriever = MemoryRetriever(memory=reached, k=10)
        self._tools = {tool.name: tool for tool in memory_tools(reached)}

    async def write(self, text: str) -> str:
        before = {record.id for record in (await self._handle.list(limit=1000)).records}
        await self._history.aadd_messages([HumanMessage(text, id=str(uuid.uuid4()))])
        after = (await self._handle.list(limit=1000)).records
        (new,) = [record.id for record in after if record.id not in before and record.text == text]  # others write, too
        return new

    async def find(self, query: str) -> list[str]:
        return [str(document.id) for document in await self._retriever.ainvoke(query)]

    async def update(self, memory_id: str, text: str) -> None:
        await self._use("update_memory", {"memory_id": memory_id, "content": text})

    async def delete(self, memory_id: str) -> None:
        await self._use("forget_memory", {"memory_id": memory_id})

    async def erase(self) -> None:
        await self._handle.erase()

    async def _use(self, tool: str, arguments: Mapping[str, str]) -> None:
        call = {"type": "tool_call", "id": "1", "name": tool, "args": dict(arguments)}
        answer: ToolMessage = await self._tools[tool].ainvoke(call)
        if answer.status == "error":
            raise RefusedError(str(answer.content))


class Mcp:
    """A client of the MCP SDK, connected anew for each thing it does."""

    def __init__(self, handle: BoundMemory, grants: Grants) -> None:
        self._handle = handle
        self._server = memory_server(grants.with_own(handle), tools="all")

    async def write(self, text: str) -> str:
        return str((await self._use("memory_store", content=text, metadata={"type": "fact"}))["id"])

    async def find(self, query: str) -> list[str]:
        found = await self._use("memory_search", query=query, collection="*", ranking="relevance", nResults=10)
        return [result["id"] for result in found["results"]]

    async def update(self, memory_id: str, text: str) -> None:
        await self._use("memory_update", id=memory_id, content=text)

    async def delete(self, memory_id: str) -> None:
        await self._use("memory_delete", id=memory_id)

    async def erase(self) -> None:
        await self._handle.erase()

    async def _use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        async with Client(self._server) as client:
            result = await client.call_tool(tool, arguments)
        if result.is_error:
            raise RefusedError(str(result.content))
        return dict(result.structured_content or {})


class XaiboAgent:
    """An agent made of YAML, whose scripted model calls the memory tools that Xaibo has."""

    MODULES = """
id: helper
modules:
  - {module: memory_xaibo.CoreMemory, id: memory}
  - {module: xaibo.primitives.modules.memory.MemoryToolProvider, id: tools}
  - {module: xaibo.primitives.modules.conversation.SimpleConversation, id: history}
  - {module: xaibo.primitives.modules.llm.MockLLM, id: llm}
  - {module: xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator, id: orchestrator}
"""

    def __init__(self, handle: BoundMemory, grants: Grants) -> None:
        self._handle = handle
        self._memory = CoreMemory({"ranking": "relevance"}, memory=grants.with_own(handle))
        self._xaibo = Xaibo()
        self._xaibo.register_agent(AgentConfig.from_yaml(self.MODULES))

    async def write(self, text: str) -> str:
        return str((await self._use("store_memory", text=text))["memory_id"])

    async def find(self, query: str) -> list[str]:
        return [result["memory_id"] for result in await self._use("search_memory", query=query)]

    async def update(self, memory_id: str, text: str) -> None:
        await self._use("update_memory", memory_id=memory_id, text=text)

    async def delete(self, memory_id: str) -> None:
        await self._use("delete_memory", memory_id=memory_id)

    async def erase(self) -> None:
        await self._handle.erase()

    async def _use(self, tool: str, **arguments: str) -> Any:
        call = {"content": "", "tool_calls": [{"id": "1", "name": tool, "arguments": arguments}]}
        instances = {"memory": self._memory, "llm": MockLLM({"responses": [call, {"content": "Done."}]})}
        agent = self._xaibo.get_agent_with("helper", ConfigOverrides(instances=instances))
        response: Response = await agent.handle_text("use your memory")
        (result,) = [event for event in response.events if event.type == "tool_result"]
        if not result.success:
            raise RefusedError(str(result.error))
        return result.result


FRAMEWORKS = ("spade", "adk", "langchain", "mcp", "xaibo")


@contextmanager
def own_container() -> Iterator[None]:
    """SPADE keeps the agents of a process in a singleton that belongs to the loop it was made in."""
    policy = asyncio.get_event_loop_policy()
    singleton: Any = Container()
    _empty(singleton)
    yield
    _empty(singleton)
    asyncio.set_event_loop_policy(policy)


def _empty(container: Any) -> None:
    """Empty a container; it makes a loop each time, and closes none."""
    before = container.loop
    container.reset()
    if not before.is_running():
        before.close()


@asynccontextmanager
async def opened(
    name: str, handle: BoundMemory, server: XmppServer | None = None, grants: Grants = NOTHING
) -> AsyncIterator[Framework]:
    """One framework on a handle; agents live on `server`."""
    if name == "adk":
        yield Adk(handle, grants)
    elif name == "langchain":
        yield LangChain(handle, grants)
    elif name == "mcp":
        yield Mcp(handle, grants)
    elif name == "xaibo":
        yield XaiboAgent(handle, grants)
    else:
        assert server is not None
        number = uuid.uuid4().hex[:8]
        agent = MemoryLLMAgent(
            server.jid(f"bot-{number}"),
            "secret",
            ScriptedProvider(obey),
            memory=grants.with_own(handle),
            agent_base_memory=True,
            memory_editing=True,
        )
        peer = Peer(server.jid(f"ann-{number}"))
        await server.start(agent)
        await server.start(peer)
        try:
            yield Spade(agent, peer)
        finally:
            await server.stop(peer)
            await server.stop(agent)


def obey(request: Request) -> str | ToolCall:
    """Use the tool that a message names, and answer what it answers."""
    if request.results:
        return request.results[-1]
    tool, arguments = json.loads(request.said)
    return ToolCall(tool, arguments)


def _ids(text: str) -> list[str]:
    return re.findall(r"\bID ([\w-]+)", text)


async def serve(path: str, app: str, user: str | None = None) -> None:
    """Do what standard input says, in this process."""
    async with Memory(path, embedder=None) as memory, XmppServer() as server, AsyncExitStack() as stack:
        handles = {name: memory.bind(app=app, user=user or name) for name in FRAMEWORKS}
        await _obey_stdin(
            {name: await stack.enter_async_context(opened(name, handle, server)) for name, handle in handles.items()}
        )


class Elsewhere:
    """The frameworks in another process."""

    def __init__(self, path: Path, *owner: str) -> None:
        command = [sys.executable, __file__, str(path), *owner]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() == "ready"

    def do(self, *call: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self._process.communicate(timeout=300)
        assert self._process.returncode == 0

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError):  # frameworks print things of their own
                return json.loads(line)
        raise AssertionError("the other process ended")


async def _obey_stdin(frameworks: Mapping[str, Framework]) -> None:
    sys.stdout.write(json.dumps("ready") + "\n")
    sys.stdout.flush()
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, method, *arguments = json.loads(line)
        result: Any = await getattr(frameworks[name], method)(*arguments)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
