"""Three agents of three frameworks, each in its framework's usual style, with one shared memory.

Only the language models are scripted: they decide by rules what a hosted model would decide itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.load_memory_tool import load_memory_tool
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate

from memory_adk import MemoryService
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import BoundMemory
from memory_langchain import with_memory
from memory_langchain.testing import ScriptedChatModel
from memory_spade import MemoryLLMAgent
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer


def quote(read: str, facts: Sequence[str]) -> str:
    """The rule of the scripted models: repeat the first known fact that the prompt contains."""
    found = [text for text in facts if text in read]
    return f"You once said: {min(found, key=read.index)}." if found else "I do not know."


def note_taker(request: Request) -> str | ToolCall:
    """The SPADE agent's model: stores each message, then confirms it or reports the error."""
    if request.results:
        return "Noted." if request.results[-1].startswith("Stored") else request.results[-1]
    category = "preference" if "prefer" in request.said else "fact"
    return ToolCall("store_memory", {"content": request.said, "category": category})


async def tell_spade(memory: BoundMemory, server: XmppServer, messages: Sequence[str]) -> list[str]:
    """Ann's phone sends messages to her SPADE agent over XMPP; returns the agent's answers."""
    secretary = MemoryLLMAgent(
        server.jid("secretary"), "secret", ScriptedProvider(note_taker), memory=memory, agent_base_memory=True
    )
    phone = Peer(server.jid("ann"))
    await server.start(secretary)
    await server.start(phone)
    return [str((await phone.ask(server.jid("secretary"), text, thread="breakfast")).body) for text in messages]


async def ask_adk(memory: BoundMemory, question: str, facts: Sequence[str]) -> str:
    """An ADK runner with the stock `load_memory` tool, in a new session."""

    def answer(request: LlmRequest) -> str:
        return quote(prompt(request), facts)

    agent = LlmAgent(
        name="travel_agent",
        model=ScriptedLlm(script=[("load_memory", {"query": question}), answer]),
        tools=[load_memory_tool],
    )
    runner = Runner(
        app=App(name="travel", root_agent=agent),
        session_service=InMemorySessionService(),
        memory_service=MemoryService(memory),
        auto_create_session=True,
    )
    async with runner:
        return await ask(runner, question, user_id="ann", session_id="noon")


async def ask_langchain(memory: BoundMemory, question: str, facts: Sequence[str]) -> str:
    """A LangChain chain with recalled memories in its prompt."""

    def answer(messages: list[BaseMessage]) -> str:
        return quote(messages[0].text, facts)

    template = ChatPromptTemplate([("system", "{memories}"), ("placeholder", "{history}"), ("human", "{question}")])
    chain = with_memory(
        template | ScriptedChatModel(script=answer),
        memory,
        input_key="question",
        history_key="history",
        memories_key="memories",
    )
    reply = await chain.ainvoke(
        {"question": question}, {"configurable": {"user_id": "ann", "session_id": "two o'clock"}}
    )
    return str(reply.text)
