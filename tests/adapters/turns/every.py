"""A turn of any length, after a conversation of any length, in every framework."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from mcp import Client
from spade.message import Message
from xaibo.core.models.llm import LLMFunctionCall, LLMMessage, LLMResponse

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, user_says
from memory_core import BoundMemory, Draft
from memory_core.conversation.messages.alignment import LOOK_BACK
from memory_langchain import MemoryChatMessageHistory, MemoryMiddleware, with_memory
from memory_langchain.testing import ScriptedChatModel
from memory_mcp import memory_server, run_hook
from memory_spade import MemoryLLMAgent
from memory_spade.stanzas import MESSAGE_ID
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_xaibo import CoreMemory, MemoryConversation, MemoryLLM
from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain
from tests.adapters.spade.saying import Conversation
from tests.adapters.xaibo.talking import Told

Measure = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]
"""Runs a turn, and measures it."""
Driver = Callable[[BoundMemory, int, int, Measure], Awaitable[None]]
"""A conversation of so many messages, and then a turn of so many, which is measured."""

QUESTION: Final = "Which tea do I like?"
_AT_ONCE: Final = 25
"""Tool calls of one answer: the framework itself copies the whole conversation for each request."""


def numbered(count: int, name: str) -> list[str]:
    """Texts that have no word in common: a question about one of them finds no other."""
    return [f"{name}{number} {name}{number}x" for number in range(count)]


class Talker(BaseAgent):
    """Says one thing after the other."""

    said: list[str]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for text in self.said:
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


class Both(BaseAgent):
    """Lets its agents run one after the other, in one turn."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


def look_up(number: int) -> str:
    """Look something up."""
    return f"result {number}"


class Settling(BasePlugin):
    """Waits for what the memory's plugin writes after each event: how many are written at once would else depend on the
    machine. One at a time costs most."""

    def __init__(self, memory: MemoryPlugin) -> None:
        super().__init__("settling")
        self._memory = memory

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        await self._memory.flush()


async def _adk_turn(handle: BoundMemory, agent: BaseAgent, before: int, measure: Measure) -> None:
    service, plugin, sessions = MemoryService(handle), MemoryPlugin(), InMemorySessionService()
    async with Runner(
        app=App(name="demo", root_agent=agent, plugins=[plugin, Settling(plugin)]),
        session_service=sessions,
        memory_service=service,
    ) as runner:
        session = await sessions.create_session(app_name="demo", user_id="ann", session_id="monday")
        # As many as each write compares its message with: the first one of the turn costs what the last one does.
        for number, text in enumerate(numbered(max(before, LOOK_BACK), "earlier")):
            content = user_says(text)
            said = Event(author="user", content=content, invocation_id=f"turn {number}", timestamp=1e9 + number)
            await sessions.append_event(session, said)
        await service.add_session_to_memory(session)
        greeted = App(name="demo", root_agent=Talker(name="greeter", said=["Hello"]), plugins=[plugin])
        greeter = Runner(app=greeted, session_service=sessions, memory_service=service)
        await ask(greeter, "Hello", user_id="ann", session_id="monday")  # the first turn of a process compares all
        await plugin.flush()

        async def turn() -> None:
            await ask(runner, QUESTION, user_id="ann", session_id="monday")
            await plugin.flush()

        await measure(turn)


async def adk_events(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """An agent that says many things in one turn."""
    await _adk_turn(handle, Talker(name="talker", said=numbered(during - 1, "step")), before, measure)


async def adk_tools(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """An agent that says many things, and then a model that calls as many tools, some at a time."""
    await handle.add(Draft("Ann's favourite tea is jasmine", session="friday"))
    calls = [
        types.Part(function_call=types.FunctionCall(name="look_up", args={"number": number}))
        for number in range(during // 2)
    ]
    rounds = [calls[start : start + _AT_ONCE] for start in range(0, len(calls), _AT_ONCE)]
    asker = LlmAgent(name="asker", model=ScriptedLlm(script=[*rounds, "Jasmine."]), tools=[look_up])
    talker = Talker(name="talker", said=numbered(during // 2, "step"))
    await _adk_turn(handle, Both(name="both", sub_agents=[talker, asker]), before, measure)


@tool
def find(number: int) -> str:
    """Find something."""
    return f"result {number}"


def _call(number: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "find", "args": {"number": number}, "id": f"c{number}"}])


def _earlier(count: int) -> list[AnyMessage]:
    return [
        HumanMessage(text, id=f"e{number}") if number % 2 == 0 else AIMessage(text, id=f"e{number}")
        for number, text in enumerate(numbered(count, "earlier"))
    ]


async def _langgraph(handle: BoundMemory, before: int, during: int, measure: Measure, *, keeps: bool) -> None:
    calls = during // 2
    replies = [AIMessage("noted"), *map(_call, range(calls)), AIMessage("Jasmine.")]
    model = ScriptedChatModel(script=replies)
    saver = InMemorySaver() if keeps else None
    middleware = MemoryMiddleware(handle, tools=(), timeout=600)
    agent: Any = create_agent(model, tools=[find], middleware=[middleware], checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "monday"}, "recursion_limit": 10 * during + 100}
    earlier = [*_earlier(before), HumanMessage("hello", id="hello")]
    state = await agent.ainvoke({"messages": earlier}, config)
    question = HumanMessage(QUESTION, id="question")
    given = [question] if keeps else [*state["messages"], question]
    await measure(lambda: agent.ainvoke({"messages": given}, config))


async def langgraph(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """An agent that calls one tool after the other; its client keeps the thread."""
    await _langgraph(handle, before, during, measure, keeps=False)


async def langgraph_thread(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """The same with a checkpointer."""
    await _langgraph(handle, before, during, measure, keeps=True)


async def chain(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A chain whose answer is all that an agent did."""
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(_earlier(before))
    done: list[AnyMessage] = []
    for number in range((during - 1) // 2):
        call = _call(number)
        done += [call, ToolMessage(f"result {number}", tool_call_id=f"c{number}")]
    wrapped = with_memory(RunnableLambda(lambda _: done), handle, history_limit=20)
    await measure(lambda: wrapped.ainvoke(QUESTION, {"configurable": {"session_id": "monday"}}))


async def chain_that_sends_all(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A client that sends the conversation, without ids."""
    history = [message.model_copy(update={"id": None}) for message in _earlier(before)]
    await MemoryChatMessageHistory(handle, "monday").aadd_messages(history)
    done = [AIMessage(text) for text in numbered(during - 1, "step")]
    wrapped = with_memory(RunnableLambda(lambda _: done), handle, history_limit=20)
    given = [*history, HumanMessage(QUESTION)]
    await measure(lambda: wrapped.ainvoke(given, {"configurable": {"session_id": "monday"}}))


async def history(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A history to which messages are added one by one."""
    kept = MemoryChatMessageHistory(handle, "monday")
    await kept.aadd_messages(_earlier(before))

    async def turn() -> None:
        for number, text in enumerate(numbered(during, "step")):
            await kept.aadd_messages([AIMessage(text, id=f"s{number}")])

    await measure(turn)


async def hook(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """The hook of a coding client, which is run at the end of a turn."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.jsonl"

        def event(entries: Sequence[Mapping[str, object]]) -> str:
            file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
            return json.dumps({"hook_event_name": "Stop", "session_id": "s", "transcript_path": str(file)})

        entries: list[dict[str, object]] = []
        for number, text in enumerate([*numbered(before, "earlier"), QUESTION, *numbered(during - 1, "step")]):
            role = "user" if text == QUESTION or (number < before and number % 2 == 0) else "assistant"
            parent = f"e{number - 1}" if number else None
            said = {"role": role, "content": text}
            entries.append({"type": role, "uuid": f"e{number}", "parentUuid": parent, "message": said})
        if before:
            await run_hook(handle, event(entries[:before]))
        whole = event(entries)
        await measure(lambda: run_hook(handle, whole))


async def _without_ids(handle: BoundMemory, texts: Sequence[str], before: int, measure: Measure) -> None:
    def event(count: int) -> str:
        roles = ["user" if at == before or (at < before and at % 2 == 0) else "assistant" for at in range(count)]
        said = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        return json.dumps({"session_id": "s", "messages": said})

    if before:
        await run_hook(handle, event(before))
    await measure(lambda: run_hook(handle, event(len(texts))))


async def hook_without_ids(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A hook that is given the messages, without ids."""
    texts = [*numbered(before, "earlier"), QUESTION, *numbered(during - 1, "step")]
    await _without_ids(handle, texts, before, measure)


async def hook_of_equal_words(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """The same, if everybody always says the same."""
    await _without_ids(handle, ["go on"] * (before + during), before, measure)


async def mcp(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A client that hands over a conversation in parts of the largest size."""
    async with Client(memory_server(handle, tools="all")) as client:

        async def remember(name: str, count: int) -> None:
            said = [{"role": "assistant", "content": text, "id": text} for text in numbered(count, name)]
            for start in range(0, count, 100):
                given = {"messages": said[start : start + 100], "session": "s"}
                result = await client.call_tool("memory_remember", given)
                assert not result.is_error, result.content

        await remember("earlier", before)
        await measure(lambda: remember("step", during))


async def mcp_store(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A model that stores one memory after the other."""
    async with Client(memory_server(handle, tools="all")) as client:

        async def store(name: str, count: int) -> None:
            for text in numbered(count, name):
                result = await client.call_tool("memory_store", {"content": text})
                assert not result.is_error, result.content

        await store("earlier", before)
        await measure(lambda: store("step", during))


async def spade(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """An agent that hears and says many messages of one thread."""
    agent, behaviour = Plain(BOT, "secret", memory=handle), Hearing()
    behaviour.set_agent(agent)

    async def talk(name: str, count: int) -> None:
        for number, text in enumerate(numbered(count, name)):
            if number % 2:
                await behaviour.send(Message(to=PERSON, body=text, thread="monday", metadata={MESSAGE_ID: text}))
                continue
            assert behaviour.queue is not None
            sender, metadata = f"{PERSON}/phone", {MESSAGE_ID: text}  # every stanza has an id
            await behaviour.queue.put(Message(to=BOT, sender=sender, body=text, thread="monday", metadata=metadata))
            await behaviour.receive()

    await talk("earlier", before)
    await measure(lambda: talk("step", during))


async def spade_tools(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A model that calls many tools in one turn."""

    def script(request: Request) -> str | list[ToolCall]:
        if request.results or request.said != QUESTION:
            return "noted"
        return [ToolCall("store_memory", {"content": text, "category": "fact"}) for text in numbered(during, "fact")]

    agent = MemoryLLMAgent(BOT, "secret", ScriptedProvider(script), memory=handle, memory_timeout=600)
    talk = Conversation(agent, "monday")
    for text in numbered(before // 2, "earlier"):
        await talk.say(text)
    await measure(lambda: talk.say(QUESTION))


async def xaibo(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A module that stores one memory after the other."""
    module = CoreMemory(memory=handle)

    async def store(name: str, count: int) -> None:
        for text in numbered(count, name):
            await module.store_memory(text)

    await store("earlier", before)
    await measure(lambda: store("step", during))


async def xaibo_tools(handle: BoundMemory, before: int, during: int, measure: Measure) -> None:
    """A model that calls one tool after the other; a server sends the conversation."""
    earlier = [
        LLMMessage.user(text) if number % 2 == 0 else LLMMessage.assistant(text)
        for number, text in enumerate(numbered(before, "earlier"))
    ]
    memory = CoreMemory({"session": "monday"}, memory=handle)
    history = MemoryConversation(memory)
    for message in earlier:
        await history.add_message(message)
    calls = [
        LLMResponse(content="", tool_calls=[LLMFunctionCall(id=f"c{number}", name="find", arguments={})])
        for number in range(during // 2)
    ]
    replies = iter([*calls, LLMResponse(content="Jasmine.")])
    model = MemoryLLM(Told(lambda _: next(replies)), memory, {"timeout": 600})

    async def turn() -> None:
        messages = [*earlier, LLMMessage.user(QUESTION)]
        while calls := (await model.generate(messages)).tool_calls:
            messages.append(LLMMessage.function(calls[0].id, "find", {}))
            messages.append(LLMMessage.function_result(calls[0].id, "find", "result"))

    await measure(turn)


TURNS: Final[Mapping[str, Driver]] = {
    "adk": adk_events,
    "adk tools": adk_tools,
    "langgraph": langgraph,
    "langgraph thread": langgraph_thread,
    "chain": chain,
    "chain that sends all": chain_that_sends_all,
    "history": history,
    "hook": hook,
    "hook without ids": hook_without_ids,
    "hook of equal words": hook_of_equal_words,
    "mcp": mcp,
    "mcp store": mcp_store,
    "spade": spade,
    "spade tools": spade_tools,
    "xaibo": xaibo,
    "xaibo tools": xaibo_tools,
}
