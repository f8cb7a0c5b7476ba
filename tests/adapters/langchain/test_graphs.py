"""Chains with a memory inside LangChain's larger constructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from memory_core import BoundMemory
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, with_memory
from memory_langchain.testing import ScriptedChatModel

MONDAY: RunnableConfig = {"configurable": {"thread_id": "monday"}}


@dataclass
class Context:
    user_id: str


class State(TypedDict):
    question: str
    answer: str
    found: list[str]


def echo() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: f"you said {prompt[-1].text}")


def saved(memory: BoundMemory, user: str) -> list[str]:
    return [message.text for message in MemoryChatMessageHistory(memory, "monday", user_id=user).messages]


@pytest.mark.parametrize("explicit", [True, False])
async def test_inside_a_graph_the_context_of_the_run_decides(open_handle: BoundMemory, *, explicit: bool) -> None:
    chain, retriever = with_memory(echo(), open_handle), MemoryRetriever(memory=open_handle)

    def node(state: State, config: RunnableConfig) -> dict[str, Any]:
        given = config if explicit else None
        answer = chain.invoke(state["question"], given).text
        return {"answer": answer, "found": [document.page_content for document in retriever.invoke("tea", given)]}

    async def anode(state: State, config: RunnableConfig) -> dict[str, Any]:
        given = config if explicit else None
        answer = (await chain.ainvoke(state["question"], given)).text
        return {
            "answer": answer,
            "found": [document.page_content for document in await retriever.ainvoke("tea", given)],
        }

    builder: Any = StateGraph(State, context_schema=Context)
    builder.add_node("sync", node)
    builder.add_node("async", anode)
    builder.add_edge(START, "sync")
    builder.add_edge("sync", "async")
    builder.add_edge("async", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    for user in ("ann", "bob"):
        state = await graph.ainvoke({"question": f"{user} likes tea"}, MONDAY, context=Context(user))
        assert state["answer"] == f"you said {user} likes tea"
        assert all(user in text for text in state["found"])
        assert saved(open_handle, user) == [f"{user} likes tea", f"you said {user} likes tea"] * 2


async def test_events_show_the_model_inside_and_the_turn_is_saved_once(ann: BoundMemory) -> None:
    chain = with_memory(echo(), ann)
    events = [event async for event in chain.astream_events("hello", MONDAY, version="v2")]
    streamed = "".join(event["data"]["chunk"].text for event in events if event["event"] == "on_chat_model_stream")
    assert streamed == "you said hello"
    assert events[-1]["event"] == "on_chain_end"
    assert saved(ann, "ann") == ["hello", "you said hello"]


def test_a_retry_inside_keeps_the_question_once(ann: BoundMemory) -> None:
    model = ScriptedChatModel(script=[RuntimeError("overloaded"), "hi"])
    chain = with_memory(model.with_retry(wait_exponential_jitter=False), ann)
    chain.invoke("hello", MONDAY)
    assert saved(ann, "ann") == ["hello", "hi"]


def test_a_retry_around_it_keeps_a_question_with_an_id_once(ann: BoundMemory) -> None:
    model = ScriptedChatModel(script=[RuntimeError("overloaded"), "hi"])
    chain = with_memory(model, ann).with_retry(wait_exponential_jitter=False)
    chain.invoke(HumanMessage("hello", id="1"), MONDAY)
    assert saved(ann, "ann") == ["hello", "hi"]


def test_a_batch_returns_errors_where_it_is_asked_to(ann: BoundMemory) -> None:
    chain = with_memory(ScriptedChatModel(script=[RuntimeError("overloaded")]), ann)
    (failure,) = chain.batch(["hello"], MONDAY, return_exceptions=True)
    assert isinstance(failure, RuntimeError)


def test_a_fallback_answers_where_the_first_model_fails(ann: BoundMemory) -> None:
    broken = ScriptedChatModel(script=[RuntimeError("overloaded")])
    with_memory(broken.with_fallbacks([echo()]), ann).invoke("hello", MONDAY)
    assert saved(ann, "ann") == ["hello", "you said hello"]
