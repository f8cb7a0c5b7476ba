"""The private names of LangGraph are there; where one is not, there is no record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite, interrupt

from memory_langchain.langgraph_record import Stored, applied, messages_in, run_of
from memory_langchain.run_start import start_of
from tests.adapters.langchain.threads.watching import THREAD, numbered


class Looking(AgentMiddleware[Any, Any, Any]):
    """Keeps the configuration of its hook."""

    def __init__(self, *, asks: bool = False) -> None:
        super().__init__()
        self.configs: list[RunnableConfig] = []
        self.asks = asks

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.configs.append(get_config())
        if self.asks:
            interrupt("ok?")


def looked(looking: Looking, saver: InMemorySaver, **options: Any) -> RunnableConfig:
    agent = create_agent(numbered(), middleware=[looking], checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("one")]}, THREAD, **options)
    return looking.configs[-1]


def newest(saver: InMemorySaver) -> list[Stored]:
    return [Stored(entry) for entry in saver.list({"configurable": {"thread_id": "monday", "checkpoint_ns": ""}})]


def test_a_run_has_its_checkpointer_its_checkpoint_and_its_step() -> None:
    saver = InMemorySaver()
    run = run_of(looked(Looking(), saver, durability="sync"))
    assert run is not None
    reached, given = newest(saver)[-2:]
    assert (run.saver, run.thread, run.checkpoint, run.step) == (saver, "monday", reached.id, reached.step)
    assert (reached.source, reached.parent, given.source, given.parent) == ("loop", given.id, "input", None)
    assert (run.named, run.namespace, run.is_resuming, run.is_stored_at_once) == (None, "", False, True)


def test_a_run_that_stores_nothing_until_its_end_says_so() -> None:
    run = run_of(looked(Looking(), InMemorySaver(), durability="exit"))
    assert run is not None
    assert not run.is_stored_at_once


def test_a_run_knows_the_checkpoint_that_the_caller_named() -> None:
    looking, saver = Looking(), InMemorySaver()
    looked(looking, saver)
    head = newest(saver)[0]
    named: Any = {"configurable": {"thread_id": "monday", "checkpoint_id": head.id}}
    agent = create_agent(numbered(), middleware=[looking], checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("two")]}, named)
    run = run_of(looking.configs[-1])
    assert run is not None
    assert run.named == head.id
    assert head.is_finished


def test_a_run_that_is_resumed_says_so_and_its_record_too() -> None:
    looking, saver = Looking(asks=True), InMemorySaver()
    agent = create_agent(numbered(), middleware=[looking], checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("one")]}, THREAD)
    assert not newest(saver)[0].is_finished
    assert not newest(saver)[0].resumed_at
    at = newest(saver)[0].versions
    agent.invoke(Command(resume=True), THREAD)
    run = run_of(looking.configs[-1])
    assert run is not None
    assert run.is_resuming
    assert newest(saver)[0].resumed_at == at
    agent.invoke({"messages": [HumanMessage("two")]}, THREAD)
    assert not newest(saver)[0].resumed_at


def test_an_agent_inside_a_graph_has_its_namespace() -> None:
    looking = Looking()
    sub = create_agent(numbered(), middleware=[looking], checkpointer=True)

    def node(state: MessagesState) -> dict[str, Any]:
        sub.invoke({"messages": [HumanMessage("task")]})
        return {}

    builder: Any = StateGraph(MessagesState).add_node("agent", create_agent(numbered(), middleware=[looking]))
    builder.add_node("node", node).add_edge(START, "agent").add_edge("agent", "node")
    builder.compile(checkpointer=InMemorySaver()).invoke({"messages": [HumanMessage("one")]}, THREAD)
    first, second = (run_of(config) for config in looking.configs)
    assert first is not None
    assert second is not None
    assert first.namespace.startswith("agent:")
    assert (first.has_history, second.has_history) == (False, True)
    assert first.own_checkpoint is not None
    assert first.step is None


@pytest.mark.parametrize("name", ["__pregel_checkpointer", "checkpoint_map", "thread_id"])
def test_without_one_of_the_names_there_is_no_record(name: str) -> None:
    config = looked(Looking(), InMemorySaver())
    assert run_of(config) is not None
    del config["configurable"][name]
    assert run_of(config) is None
    assert start_of(config) is None


def test_a_delta_channel_is_known_and_its_writes_are_read() -> None:
    deepagents = pytest.importorskip("deepagents")
    saver = InMemorySaver()
    agent = deepagents.create_deep_agent(numbered(), checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("one")]}, THREAD)
    agent.invoke({"messages": [HumanMessage("two")]}, THREAD)
    head = newest(saver)[0]
    assert "messages" in head.delta_channels
    assert not head.values


class Unlisted(InMemorySaver):
    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        raise NotImplementedError


def test_a_checkpointer_that_cannot_list_has_no_record() -> None:
    seen: list[Any] = []

    class Asking(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            seen.append(start_of(get_config()))

    agent = create_agent(numbered(), middleware=[Asking()], checkpointer=Unlisted())
    agent.invoke({"messages": [HumanMessage("one")]}, THREAD)
    assert seen == [None]


def test_messages_are_found_in_lists_mappings_and_previous_values() -> None:
    one, two = HumanMessage("one"), AIMessage("two")
    found: list[object] = [one, [one], (one,), {"messages": [one]}, {"last": one}]
    assert [messages_in(value) for value in found] == [[one]] * len(found)
    assert messages_in({"a": [one], "b": [two, 3, "text"]}) == [one, two]
    other: list[object] = [None, "text", 3, ["text"], {"a": {"b": [one]}}]
    assert not any(messages_in(value) for value in other)


def test_writes_are_applied_by_id() -> None:
    def said(text: str, key: str) -> BaseMessage:
        return HumanMessage(text, id=key)

    start = [said("one", "1"), said("two", "2")]
    cases: list[tuple[list[object], list[str]]] = [
        ([[said("three", "3")]], ["one", "two", "three"]),
        ([said("one, edited", "1")], ["one, edited", "two"]),
        ([[RemoveMessage(id="1")], [RemoveMessage(id="unknown")]], ["two"]),
        ([[RemoveMessage(id=REMOVE_ALL_MESSAGES), said("three", "3")]], ["three"]),
        ([[said("three", "3")], Overwrite([said("four", "4")]), [said("five", "5")]], ["four", "five"]),
    ]
    for writes, expected in cases:
        assert [message.text for message in applied(start, writes)] == expected
