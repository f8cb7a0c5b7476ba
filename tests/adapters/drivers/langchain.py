"""The ways in which LangChain and LangGraph put a model and a memory together."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memory_core import PUSHED, BoundMemory
from memory_langchain import (
    ConversationMemory,
    MemoryChatMessageHistory,
    MemoryMiddleware,
    recall_node,
    remember_node,
    with_memory,
)
from memory_langchain.testing import ScriptedChatModel
from tests.adapters.drivers.driver import Setting, embedded


class _LangChain:
    """A scripted model, and the memory that it has."""

    person = None

    def __init__(self, setting: Setting) -> None:
        self._memory: BoundMemory = setting.memory
        self._answer = setting.answer
        self._seconds = setting.seconds
        self._model = ScriptedChatModel(script=lambda prompt: self._answer(str(prompt[-1].text)))

    def prompt(self) -> str:
        return _text(self._model.prompts[-1])

    async def settled(self) -> None:
        await embedded(self._memory)


def _text(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.text) for message in messages)


def _config(conversation: str) -> Any:
    return {"configurable": {"thread_id": conversation, "session_id": conversation}}


class Agent(_LangChain):
    """An agent with the middleware, and a checkpointer that keeps its threads."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        middleware = MemoryMiddleware(self._memory, recall=PUSHED, timeout=self._seconds)
        self._agent: Any = create_agent(self._model, middleware=[middleware], checkpointer=InMemorySaver())

    async def say(self, text: str, conversation: str = "monday") -> str:
        state = await self._agent.ainvoke({"messages": [HumanMessage(text)]}, _config(conversation))
        return str(state["messages"][-1].text)


class Chain(_LangChain):
    """A chain with a memory."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._chain: Any = with_memory(self._model, self._memory, recall=PUSHED, timeout=self._seconds)

    async def say(self, text: str, conversation: str = "monday") -> str:
        return str((await self._chain.ainvoke(text, _config(conversation))).text)


class _State(MessagesState):
    memories: Annotated[str, UntrackedValue(str)]


class Nodes(_LangChain):
    """A graph with a node before the model that recalls, and one after it that stores."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        builder: Any = StateGraph(_State)
        builder.add_node("recall", recall_node(self._memory, recall=PUSHED, timeout=self._seconds))
        builder.add_node("remember", remember_node(self._memory, timeout=self._seconds)).add_node("model", self._call)
        builder.add_edge(START, "recall").add_edge("recall", "model").add_edge("model", "remember")
        self._graph = builder.compile(checkpointer=InMemorySaver())

    async def say(self, text: str, conversation: str = "monday") -> str:
        state = await self._graph.ainvoke({"messages": [HumanMessage(text)]}, _config(conversation))
        return str(state["messages"][-1].text)

    async def _call(self, state: _State) -> dict[str, Any]:
        return {"messages": [await self._model.ainvoke([SystemMessage(state["memories"]), *state["messages"]])]}


class Classic(_LangChain):
    """The memory of the chains of old, which a program asks before the model and tells the answer."""

    _shown = ""

    async def say(self, text: str, conversation: str = "monday") -> str:
        history = MemoryChatMessageHistory(self._memory, conversation, timeout=self._seconds)
        memory = ConversationMemory(chat_memory=history, recall=PUSHED)
        self._shown = str((await memory.aload_memory_variables({"input": text}))["memories"])
        answer = self._answer(text)
        await memory.asave_context({"input": text}, {"output": answer})
        return answer

    def prompt(self) -> str:
        return self._shown
