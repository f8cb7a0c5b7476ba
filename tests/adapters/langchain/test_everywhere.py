"""The rules that hold for every class of the package: any way of calling, any thread and loop, and what may be
pickled."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedStore
from langgraph.store.base import BaseStore

from memory_core import BoundMemory, Scope
from memory_langchain import (
    ConversationMemory,
    MemoryChatMessageHistory,
    MemoryMiddleware,
    MemoryRetriever,
    MemoryStore,
    MemoryVectorStore,
    memory_tools,
    with_memory,
)
from memory_langchain.testing import ScriptedChatModel

MONDAY: RunnableConfig = {"configurable": {"thread_id": "monday"}}
ASKED = {"messages": [("user", "Which tea?")]}


def green() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: "green")


def uses(ann: BoundMemory) -> dict[str, Callable[[], object]]:
    """One synchronous use of each class."""
    save, *_ = memory_tools(ann)
    agent: Any = create_agent(green(), middleware=[MemoryMiddleware(ann)])
    return {
        "history": lambda: MemoryChatMessageHistory(ann, "monday").add_user_message("tea"),
        "chain": lambda: with_memory(green(), ann).invoke("Which tea?", MONDAY),
        "retriever": lambda: MemoryRetriever(memory=ann).invoke("tea"),
        "tool": lambda: save.invoke({"content": "Ann likes tea", "category": "fact"}),
        "agent": lambda: agent.invoke(ASKED, MONDAY),
        "store": lambda: MemoryStore(ann, mode="lexical").put(("a",), "k", {"text": "tea"}),
        "vector store": lambda: MemoryVectorStore(ann, mode="lexical").add_texts(["tea"]),
        "classic": lambda: ConversationMemory(chat_memory=MemoryChatMessageHistory(ann, "monday")).save_context(
            {"i": "a"}, {"o": "b"}
        ),
    }


async def test_each_class_works_synchronously_inside_a_running_loop(ann: BoundMemory) -> None:
    for use in uses(ann).values():
        use()
    assert len(await MemoryChatMessageHistory(ann, "monday").aget_messages()) == 7  # 1, then 2 of each conversation


def test_each_class_works_from_threads_at_the_same_time(ann: BoundMemory) -> None:
    failures: list[BaseException] = []

    def work(use: Callable[[], object]) -> None:
        async def run() -> None:
            use()

        try:
            asyncio.run(run())
            asyncio.run(run())
        except BaseException as failure:  # noqa: BLE001  (reported below, in the test's own thread)
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(use,)) for use in uses(ann).values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(MemoryChatMessageHistory(ann, "monday").messages) == 14


def test_messages_and_documents_can_be_pickled(ann: BoundMemory) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_messages([AIMessage("", tool_calls=[ToolCall(name="look", args={"n": [1]}, id="1")])])
    history.add_user_message("tea")
    found = MemoryRetriever(memory=ann).invoke("tea")
    store = MemoryVectorStore(ann, mode="lexical")
    store.add_texts(["tea"], [{"of": {"page": [4]}}])
    for value in (history.messages, found, store.similarity_search("tea"), MemoryStore(ann).search(())):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_what_holds_a_memory_is_not_pickled_and_says_what_to_do(ann: BoundMemory) -> None:
    holders = [MemoryChatMessageHistory(ann, "monday"), MemoryRetriever(memory=ann), MemoryStore(ann)]
    for holder in (*holders, MemoryVectorStore(ann), MemoryMiddleware(ann, tools=()), ann, ann.memory):
        with pytest.raises(TypeError, match="open it again"):
            pickle.dumps(holder)
        copy.deepcopy(holder)  # shares the memory
    assert copy.copy(ann.memory) is ann.memory


async def test_events_bear_the_name_of_the_run_and_show_what_the_user_gave(ann: BoundMemory) -> None:
    chain: Any = with_memory(green(), ann)
    for run_name in ("MemoryRunnable", "support"):
        config: RunnableConfig = {**MONDAY, "run_name": run_name, "tags": ["mine"], "metadata": {"a": 1}}
        events = [event async for event in chain.astream_events("Which tea?", config, version="v2")]
        (start,) = [event for event in events if event["event"] == "on_chain_start" and not event["parent_ids"]]
        assert (start["name"], start["data"]["input"]) == (run_name, "Which tea?")
        assert {"mine"} <= set(start["tags"])
        assert start["metadata"]["a"] == 1
        (model,) = [event for event in events if event["event"] == "on_chat_model_start"]
        assert model["parent_ids"] == [start["run_id"]]


@pytest.mark.parametrize("name", ["inject", "runtime"])
async def test_tools_of_an_agent_get_the_store(ann: BoundMemory, name: str) -> None:
    @tool
    def inject(text: str, store: Annotated[Any, InjectedStore()]) -> str:
        """Keep a text."""
        return keep(store, text)

    @tool
    def runtime(text: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Keep a text."""
        assert runtime.store is not None
        return keep(runtime.store, text)

    def keep(store: BaseStore, text: str) -> str:
        store.put(("notes",), text, {"text": text})
        return ", ".join(item.key for item in store.search(("notes",)))

    call = AIMessage("", tool_calls=[ToolCall(name=name, args={"text": "tea"}, id="1")])
    store = MemoryStore(ann, mode="lexical")
    for form in ("invoke", "ainvoke"):
        agent: Any = create_agent(ScriptedChatModel(script=[call, "done"]), tools=[inject, runtime], store=store)
        done = agent.invoke(ASKED) if form == "invoke" else await agent.ainvoke(ASKED)
        assert done["messages"][-2].content == "tea"


def test_an_argument_of_a_call_never_names_the_owner_of_what_a_retriever_finds(ann: BoundMemory) -> None:
    bob = BoundMemory(ann.memory, Scope("demo", "bob"))
    MemoryChatMessageHistory(bob, "monday").add_user_message("tea of bob")
    given: list[dict[str, Any]] = [{"scope": bob}, {"memory": bob}, {"user_id": "bob"}]
    for forged in given:
        with pytest.raises(TypeError):
            MemoryRetriever(memory=ann).invoke("tea", None, **forged)
