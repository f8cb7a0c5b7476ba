"""Agents whose tool calls are steps of a bank, in each framework that has one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from google.adk.tools.function_tool import FunctionTool
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from spade.message import Message
from spade_llm.agent import LLMAgent
from spade_llm.tools import LLMTool

from memory_adk import BankPlugin
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import BoundMemory
from memory_langchain import BankMiddleware
from memory_langchain.testing import ScriptedChatModel
from memory_spade import BankProvider
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from tests.adapters.adk.agents import runner_of


def measure(tank: str) -> str:
    """Measure a tank."""
    if tank == "three":
        raise RuntimeError("no such tank")
    return f"{tank} has 900 psi"


class Working(Protocol):
    """An agent with a bank."""

    def __init__(self, memory: BoundMemory | None) -> None:
        """`memory` is for the banks; without one they live as long as the process."""
        ...

    async def work(self, *tanks: str, task: str) -> list[str]:
        """Let the model measure one tank after the other; returns all prompts that it reads meanwhile.

        Raises:
            RuntimeError: A tool has failed, in a framework that ends the run then.
        """
        ...


class Adk:
    """A runner of Google's ADK."""

    def __init__(self, memory: BoundMemory | None) -> None:
        self._plugin = BankPlugin(memory)

    async def work(self, *tanks: str, task: str) -> list[str]:
        calls: list[Any] = [("measure", {"tank": tank}) for tank in tanks]
        model = ScriptedLlm(script=[*calls, "Done."])
        # A runner that is closed closes the memory that its plugin has made.
        runner = runner_of(None, model, FunctionTool(measure), plugins=[self._plugin])
        assert await ask(runner, "Measure", user_id="ann", session_id=task) == "Done."
        return [prompt(request) for request in model.requests]


class LangChain:
    """An agent of LangChain."""

    def __init__(self, memory: BoundMemory | None) -> None:
        self._middleware = BankMiddleware(memory)

    async def work(self, *tanks: str, task: str) -> list[str]:
        calls = [{"name": "measure", "args": {"tank": tank}, "id": f"call-{tank}"} for tank in tanks]
        model = ScriptedChatModel(script=[*(AIMessage("", tool_calls=[call]) for call in calls), "Done."])
        agent: Any = create_agent(model, [measure], middleware=[self._middleware])
        state = await self._run(agent, {"messages": [("user", "Measure")]}, {"configurable": {"thread_id": task}})
        assert state["messages"][-1].text == "Done."
        return ["\n".join(message.text for message in given) for given in model.prompts]

    async def _run(self, agent: Any, given: Any, config: Any) -> Any:
        return await agent.ainvoke(given, config)


class LangChainInAThread(LangChain):
    """The same agent in a program without a loop."""

    async def _run(self, agent: Any, given: Any, config: Any) -> Any:
        return await asyncio.to_thread(agent.invoke, given, config)


class Spade:
    """An agent of spade_llm, driven the way XMPP does, without a server."""

    def __init__(self, memory: BoundMemory | None) -> None:
        self._tanks: tuple[str, ...] = ()
        self._model = ScriptedProvider(self._answer)
        text = {"type": "object", "properties": {"tank": {"type": "string"}}}
        tool = LLMTool("measure", "Measure a tank.", text, measure)
        agent = LLMAgent(
            "bot@localhost", "pw", BankProvider(self._model, memory), system_prompt="Be kind.", tools=[tool]
        )
        behaviour: Any = agent.llm_behaviour
        behaviour.set_agent(agent)
        behaviour.send = self._keep
        self._behaviour = behaviour
        self._answers: list[Message] = []
        self._said: list[Message] = []
        """All messages, kept: spade_llm ignores one at the address of another that it has seen."""

    async def work(self, *tanks: str, task: str) -> list[str]:
        self._tanks, before = tanks, len(self._model.requests)
        metadata = {"message_type": "llm"}
        self._said.append(
            Message(to="bot@localhost", sender="ann@localhost", body="Measure", thread=task, metadata=metadata)
        )
        await self._behaviour.queue.put(self._said[-1])
        await self._behaviour.run()
        assert self._answers[-1].body == "Done."
        requests = self._model.requests[before:]
        assert all(request.system.startswith("Be kind.") for request in requests)
        return ["\n".join(str(message["content"]) for message in request.messages) for request in requests]

    def _answer(self, request: Request) -> str | ToolCall:
        done = len(request.results)
        return ToolCall("measure", {"tank": self._tanks[done]}) if done < len(self._tanks) else "Done."

    async def _keep(self, answer: Message) -> None:
        self._answers.append(answer)


WORKING: Final[Mapping[str, type[Working]]] = {
    "adk": Adk,
    "langchain": LangChain,
    "langchain, sync": LangChainInAThread,
    "spade": Spade,
}
