"""Agents that are parts of a graph: the memory has what the graph's conversation shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from memory_core import BoundMemory, run_sync
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel

pytestmark = pytest.mark.uncovered

THREAD: RunnableConfig = {"configurable": {"thread_id": "monday"}}


def agent(memory: BoundMemory, name: str) -> Any:
    """Never answers the same."""
    count = iter(range(1_000))
    model = ScriptedChatModel(script=lambda prompt: f"{name} {next(count)}")
    return create_agent(model, middleware=[MemoryMiddleware(memory, tools=())], name=name)


def built(builder: Any) -> Any:
    return builder.compile(checkpointer=InMemorySaver())


def say(graph: Any, text: str, config: RunnableConfig = THREAD) -> list[str]:
    return texts(graph.invoke({"messages": [HumanMessage(text)]}, config)["messages"])


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def active(memory: BoundMemory) -> list[str]:
    return [record.text for record in run_sync(memory.list, order="oldest").records]


def test_what_one_agent_says_stays_when_another_is_asked_the_same_question_alone(ann: BoundMemory) -> None:
    def asking(name: str) -> Any:
        asked = agent(ann, name)

        def node(state: MessagesState) -> dict[str, list[BaseMessage]]:
            question = [message for message in state["messages"] if message.type == "human"][-1]
            return {"messages": asked.invoke({"messages": [question]})["messages"][1:]}

        return node

    graph = built(
        StateGraph(MessagesState)
        .add_node("cook", asking("cook"))
        .add_node("waiter", asking("waiter"))
        .add_edge(START, "cook")
        .add_edge("cook", "waiter")
    )
    for question in ("one", "two"):
        visible = say(graph, question)
        assert active(ann) == visible
    assert len(visible) == 6


def test_agents_at_once_keep_what_each_says_and_nobodys_tasks(ann: BoundMemory) -> None:
    def tasks(state: MessagesState) -> list[Send]:
        return [Send("cook", {"messages": [*state["messages"], HumanMessage(f"task {n}")]}) for n in range(3)]

    graph = built(
        StateGraph(MessagesState).add_node("cook", agent(ann, "cook")).add_conditional_edges(START, tasks, ["cook"])
    )
    for question in ("one", "two"):
        visible = say(graph, question)
        assert sorted(active(ann)) == sorted(text for text in visible if not text.startswith("task"))
    assert len(visible) == 14


@pytest.mark.parametrize("several", [False, True])
def test_the_branch_that_a_graph_has_left_is_left(ann: BoundMemory, *, several: bool) -> None:
    builder = StateGraph(MessagesState).add_node("cook", agent(ann, "cook")).add_edge(START, "cook")
    if several:
        builder.add_node("waiter", agent(ann, "waiter")).add_edge("cook", "waiter")
    graph = built(builder)
    say(graph, "one")
    say(graph, "two")
    second = next(state for state in graph.get_state_history(THREAD) if len(state.values["messages"]) == 2 + several)
    visible = say(graph, "three", second.config)
    assert active(ann) == visible
    assert "two" not in visible


def test_a_message_that_is_removed_from_a_graph_is_left(ann: BoundMemory) -> None:
    graph = built(StateGraph(MessagesState).add_node("cook", agent(ann, "cook")).add_edge(START, "cook"))
    say(graph, "one")
    say(graph, "my code is 1234")
    (secret,) = [one for one in graph.get_state(THREAD).values["messages"] if "1234" in one.text]
    graph.update_state(THREAD, {"messages": [RemoveMessage(id=secret.id)]})
    visible = say(graph, "three")
    assert active(ann) == visible
    assert "my code is 1234" not in visible
