"""Recalling and remembering as nodes of a graph of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph, add_messages

from memory_core import BoundMemory, Draft, RecallOptions, ScopeError, Where, run_sync
from memory_langchain import MemoryChatMessageHistory, recall_node, remember_node
from memory_langchain.testing import ScriptedChatModel

THREAD: RunnableConfig = {"configurable": {"thread_id": "monday", "user_id": "ann"}}


class State(MessagesState):
    memories: Annotated[str, UntrackedValue(str)]


@dataclass
class Typed:
    """A state that is not a mapping."""

    talk: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    known: str = ""


def graph_of(memory: BoundMemory, model: ScriptedChatModel, saver: Any = None, **options: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("recall", recall_node(memory, **options)).add_node("remember", remember_node(memory))
    builder.add_node("answer", lambda state: {"messages": [model.invoke([*state["messages"]])]})
    builder.add_edge(START, "recall").add_edge("recall", "answer").add_edge("answer", "remember")
    return builder.compile(checkpointer=saver)


def saved(memory: BoundMemory, session: str = "monday") -> list[str]:
    return [message.text for message in MemoryChatMessageHistory(memory, session).messages]


@pytest.mark.parametrize("runs_async", [False, True], ids=["sync", "async"])
async def test_a_graph_recalls_and_remembers_each_message_once(
    open_handle: BoundMemory, ann: BoundMemory, *, runs_async: bool
) -> None:
    run_sync(ann.add, Draft("Ann drinks jasmine tea", author="ann"))
    saver = InMemorySaver()
    graph = graph_of(open_handle, ScriptedChatModel(script=lambda prompt: f"re {prompt[-1].text}"), saver)
    for question in ("Which tea?", "Thanks!"):
        given = {"messages": [HumanMessage(question)]}
        state = await graph.ainvoke(given, THREAD) if runs_async else graph.invoke(given, THREAD)
        assert ("jasmine" in state["memories"]) is (question == "Which tea?")
    assert saved(ann) == ["Which tea?", "re Which tea?", "Thanks!", "re Thanks!"]
    assert "jasmine" not in str(list(saver.storage.values())) + str(list(saver.blobs.values()))


def test_what_the_thread_shows_is_not_recalled_and_options_apply(ann: BoundMemory) -> None:
    graph = graph_of(
        ann,
        ScriptedChatModel(script=lambda _: "ok"),
        InMemorySaver(),
        recall=RecallOptions(where=Where(kinds=("preference",))),
    )
    run_sync(ann.add, "Ann drinks tea at noon")
    run_sync(ann.add, Draft("Ann likes tea with milk", kind="preference"))
    for text in ("I drink green tea", "Which tea?"):
        state = graph.invoke({"messages": [HumanMessage(text)]}, THREAD)
    assert "milk" in state["memories"]
    assert "green" not in state["memories"]
    assert "noon" not in state["memories"]


def test_keys_and_classes_of_the_state_are_the_callers(ann: BoundMemory) -> None:
    run_sync(ann.add, "Ann drinks jasmine tea")
    builder: Any = StateGraph(Typed)
    builder.add_node("recall", recall_node(ann, messages_key="talk", memories_key="known"))
    builder.add_node("remember", remember_node(ann, messages_key="talk"))
    graph = builder.add_edge(START, "recall").add_edge("recall", "remember").compile()
    state = graph.invoke(Typed([HumanMessage("Which tea?")]), THREAD)
    assert "jasmine" in state["known"]
    assert saved(ann) == ["Which tea?"]


def test_a_state_without_messages_and_a_run_without_a_user_are_refused(open_handle: BoundMemory) -> None:
    with pytest.raises(KeyError, match="messages_key="):
        recall_node(open_handle).invoke({"talk": []}, THREAD)
    with pytest.raises(ScopeError, match="user"):
        recall_node(open_handle).invoke({"messages": [HumanMessage("hello")]})
    with pytest.raises(ScopeError, match="conversation"):
        remember_node(open_handle).invoke({"messages": []}, {"configurable": {"user_id": "ann"}})
