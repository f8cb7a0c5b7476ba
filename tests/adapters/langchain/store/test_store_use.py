"""`MemoryStore` in use: loops, threads, graphs, other people's tools, and side by side with LangGraph's store."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory_core import BoundMemory, InvalidInputError, Memory
from memory_langchain import MemoryStore
from memory_langchain.testing import ScriptedChatModel

pytestmark = pytest.mark.uncovered


def script(store: BaseStore) -> list[Any]:
    """The calls about which the references agree, with their results."""
    store.put(("users", "ann"), "one", {"text": "tea", "n": 1})
    store.put(("users", "ann", "old"), "one", {"text": "milk", "n": 2})
    store.put(("users", "bob"), "two", {"text": "coffee", "n": 3})
    store.put(("users", "bob"), "two", {"text": "cocoa"})
    store.put(("docs",), "three", {"text": "manual", "n": 4})
    store.delete(("docs",), "three")
    item = store.get(("users", "bob"), "two")
    return [
        None if item is None else (item.namespace, item.key, item.value),
        store.get(("docs",), "three"),
        store.get(("nobody",), "x"),
        sorted((found.namespace, found.key, str(found.value)) for found in store.search(("users",))),
        sorted(found.namespace for found in store.search(("users", "ann"), filter={"n": {"$gte": 1}})),
        store.list_namespaces(prefix=("users",)),
        store.list_namespaces(prefix=("users",), max_depth=2),
        store.list_namespaces(suffix=("old",)),
        store.list_namespaces(prefix=("*", "bob")),
        store.search(("users",), limit=0),
        len(store.search(("users",), limit=2)),
    ]


def test_the_same_script_gives_the_same_results_as_langgraphs_store(store: MemoryStore) -> None:
    assert script(store) == [*script(InMemoryStore())]


async def test_every_operation_has_an_async_form(store: MemoryStore) -> None:
    await store.aput(("a",), "k", {"text": "tea"})
    item = await store.aget(("a",), "k")
    assert item is not None
    assert item == store.get(("a",), "k")
    assert [found.key for found in await store.asearch(("a",), query="tea")] == ["k"]
    assert await store.alist_namespaces() == [("a",)]
    await store.adelete(("a",), "k")
    assert await store.aget(("a",), "k") is None


async def test_a_synchronous_call_works_inside_a_running_loop(store: MemoryStore) -> None:
    store.put(("a",), "k", {"v": 1})
    assert store.get(("a",), "k") == await store.aget(("a",), "k")


def test_one_store_serves_loops_one_after_another_and_threads_at_once(store: MemoryStore) -> None:
    async def write(name: str) -> None:
        await asyncio.gather(*(store.aput(("a", name), str(n), {"n": n}) for n in range(20)))
        assert len(await store.asearch(("a", name), limit=50)) == 20

    for name in ("first", "second"):
        asyncio.run(write(name))
    threads = [threading.Thread(target=asyncio.run, args=(write(f"thread {n}"),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(("a",), limit=1000)) == 8 * 20


async def test_no_async_call_blocks_its_event_loop(tmp_path: Path) -> None:
    blockbuster: Any = pytest.importorskip("blockbuster")
    memory = Memory(tmp_path / "memory.db", embedder=None)
    store = MemoryStore(memory.bind(user="ann"), mode="lexical")
    with blockbuster.blockbuster_ctx():
        await store.aput(("a",), "k", {"v": 1}, ttl=1)
        assert await store.asearch(("a",), query="v", filter={"v": 1})
        assert await store.aget(("a",), "k")
        assert await store.alist_namespaces()
        await memory.close()


def test_items_outlive_the_process_that_put_them(tmp_path: Path) -> None:
    for expected in (None, {"v": 1}):
        with Memory(tmp_path / "kept.db", embedder=None) as memory:
            store = MemoryStore(memory.bind(user="ann"))
            item = store.get(("a",), "k")
            assert (None if item is None else item.value) == expected
            store.put(("a",), "k", {"v": 1})


def test_a_copied_store_is_the_same_store(store: MemoryStore) -> None:
    assert copy.deepcopy({"store": store})["store"] is store


class State(TypedDict):
    found: list[str]


async def test_a_graph_hands_it_to_its_nodes(store: MemoryStore) -> None:
    def keep(state: State, *, store: BaseStore) -> State:
        store.put(("a",), f"k{len(state['found'])}", {"text": "tea"})
        return {"found": [item.key for item in store.search(("a",))]}

    graph = StateGraph(State).add_node(keep).add_edge(START, "keep").compile(store=store)
    assert graph.invoke({"found": []})["found"] == ["k0"]
    assert sorted((await graph.ainvoke({"found": ["k0"]}))["found"]) == ["k0", "k1"]


def test_langmems_tools_work_on_it(store: MemoryStore) -> None:
    langmem: Any = pytest.importorskip("langmem", reason="langmem is not installed")
    manage = langmem.create_manage_memory_tool(("memories", "ann"), store=store)
    search = langmem.create_search_memory_tool(("memories", "ann"), store=store)
    manage.invoke({"content": "Ann drinks jasmine tea", "action": "create"})
    assert "jasmine" in search.invoke({"query": "jasmine tea"})
    (item,) = store.search(("memories",))
    manage.invoke({"content": "Ann drinks oolong", "action": "update", "id": item.key})
    assert "oolong" in str(store.get(("memories", "ann"), item.key))
    manage.invoke({"action": "delete", "id": item.key})
    assert store.search(("memories",)) == []


def test_deepagents_files_live_in_it(ann: BoundMemory) -> None:
    backends: Any = pytest.importorskip("deepagents.backends", reason="deepagents is not installed")
    store = MemoryStore(ann)
    backend = backends.StoreBackend(store=store, namespace=lambda _: ("files", "ann"))
    backend.write("/notes.md", "jasmine tea")
    assert "jasmine tea" in str(backend.read("/notes.md"))
    backend.edit("/notes.md", "jasmine", "oolong")
    assert "oolong tea" in str(backend.read("/notes.md"))


@pytest.mark.parametrize(("text", "times"), [("日本語 ", 240_000), ("word ", 500_000)])
def test_a_large_result_of_a_tool_becomes_a_file_of_deepagents(ann: BoundMemory, text: str, times: int) -> None:
    deepagents: Any = pytest.importorskip("deepagents", reason="deepagents is not installed")
    backends: Any = pytest.importorskip("deepagents.backends")

    @tool
    def fetch() -> str:
        """Fetch a page."""
        return text * times

    def answer(prompt: Sequence[BaseMessage]) -> str | AIMessage:
        if isinstance(prompt[-1], ToolMessage):
            return "done"
        return AIMessage("", tool_calls=[{"name": "fetch", "args": {}, "id": "1"}])

    store = MemoryStore(ann, mode="lexical")
    backend = backends.StoreBackend(store=store, namespace=lambda _: ("files", "ann"))
    agent = deepagents.create_deep_agent(
        model=ScriptedChatModel(script=answer), tools=[fetch], store=store, backend=backend
    )
    assert agent.invoke({"messages": [("user", "the page")]})["messages"][-1].text == "done"
    assert text * times in [item.value["content"] for item in store.search(("files",))]
    assert store.search(("files",), query=text)


def test_of_a_long_item_the_beginning_is_searched_and_all_of_it_comes_back(ann: BoundMemory) -> None:
    store = MemoryStore(ann, fields=["first", "pages[*]"], mode="lexical")
    value = {"first": "jasmine", "pages": ["tea " * 200_000, "milk " * 100_000, "oolong " * 100_000, "coffee"]}
    store.put(("a",), "k", value)
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == value
    assert [found.key for found in store.search(("a",), query="jasmine milk")] == ["k"]
    with pytest.raises(InvalidInputError, match=r"data has .* bytes as JSON"):
        store.put(("a",), "k", {"text": "x" * 5_000_000})
    assert store.get(("a",), "k") == item
