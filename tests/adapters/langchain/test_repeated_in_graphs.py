"""A person who repeats a run of a graph brings none of its words, also if only the context of the runs names their
people."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from memory_core import Memory
from memory_langchain import MemoryMiddleware
from tests.adapters.langchain.test_following import active, numbered
from tests.adapters.langchain.test_unstored import as_user
from tests.adapters.langchain.threads.watching import Durability

THREAD: RunnableConfig = {"configurable": {"thread_id": "monday"}}


@dataclass
class Context:
    user_id: str


class Stopping(AgentMiddleware[Any, Any, Any]):
    """Stands behind the memory, and stops a run before its first model call."""

    def __init__(self, saver: InMemorySaver) -> None:
        super().__init__()
        self.mode, self.saver = "", saver
        self.storage: dict[str, Any] = {}
        """The content of the checkpointer when the run was stopped."""

    def before_model(self, state: Any, runtime: Any) -> None:
        self.storage = {name: deepcopy(dict(getattr(self.saver, name))) for name in ("storage", "writes", "blobs")}
        if self.mode == "fail":
            raise ConnectionError("429")
        if self.mode == "ask":
            interrupt("ok?")


def graph_of(memory: Memory, stopping: Stopping, saver: InMemorySaver, *, checkpointer: Any = False) -> Any:
    """An agent behind a node, which fails or waits before its model is called."""
    middleware = [MemoryMiddleware(memory, tools=()), stopping]
    agent = create_agent(numbered(), middleware=middleware, context_schema=Context, checkpointer=checkpointer)
    builder: Any = StateGraph(MessagesState, context_schema=Context)
    builder.add_node("gate", lambda _: {}).add_node("agent", agent)
    return builder.add_edge(START, "gate").add_edge("gate", "agent").compile(checkpointer=saver)


def ask(graph: Any, config: RunnableConfig = THREAD, durability: Durability = "async") -> None:
    given = {"messages": [HumanMessage("Ann's words")]}
    graph.invoke(given, config, context=Context("ann"), durability=durability)


@pytest.mark.parametrize("checkpointer", [None, False])
@pytest.mark.parametrize("mode", ["fail", "ask"])
def test_a_run_inside_a_graph_that_somebody_else_repeats_brings_none_of_their_words(
    memory: Memory, mode: str, checkpointer: Any
) -> None:
    saver = InMemorySaver()
    stopping = Stopping(saver)
    graph = graph_of(memory, stopping, saver, checkpointer=checkpointer)
    stopping.mode = mode
    if mode == "fail":
        with pytest.raises(ConnectionError):
            ask(graph)
    else:
        ask(graph)
    stopping.mode = ""
    graph.invoke(None if mode == "fail" else Command(resume=True), THREAD, context=Context("ben"))
    assert active(memory.bind(user="ben")) == ["answer 0"]
    graph.invoke({"messages": [HumanMessage("Ann's question")]}, THREAD, context=Context("ann"))
    assert active(memory.bind(user="ann")) == ["Ann's words", "Ann's question", "answer 1"]


def repeated_after_a_kill(
    memory: Memory, first: RunnableConfig, again: RunnableConfig, *, checkpointer: Any = False
) -> list[str]:
    """The texts that are stored for the person who repeats the run of a process that was killed before its model was
    called."""
    saver, later = InMemorySaver(), InMemorySaver()
    stopping = Stopping(saver)
    durability: Durability = "async" if checkpointer is False else "sync"
    ask(graph_of(memory, stopping, saver, checkpointer=checkpointer), first, durability)
    for name, value in stopping.storage.items():
        getattr(later, name).update(value)
    graph = graph_of(memory, Stopping(later), later, checkpointer=checkpointer)
    graph.invoke(None, again, context=Context("ben"))
    return active(memory.bind(user="ben"))


def test_of_a_run_that_was_killed_nothing_tells_an_agent_without_checkpoints_whose_words_it_has(memory: Memory) -> None:
    assert repeated_after_a_kill(memory, THREAD, THREAD) == ["Ann's words", "answer 0"]


def test_a_user_in_the_configuration_tells_whose_words_a_run_has_that_was_killed(memory: Memory) -> None:
    assert repeated_after_a_kill(memory, as_user("ann"), as_user("ben")) == ["answer 0"]


def test_the_checkpoints_of_an_agent_inside_a_graph_tell_that_a_killed_run_is_repeated(memory: Memory) -> None:
    assert repeated_after_a_kill(memory, THREAD, THREAD, checkpointer=None) == ["answer 0"]
