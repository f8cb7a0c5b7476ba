"""The memory as a retriever."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.utils import ConfigurableField
from langchain_core.tools import create_retriever_tool

from memory_core import BoundMemory, Draft, Memory, RecallOptions, ScopeError, Where, run_sync
from memory_langchain import MemoryRetriever

ANN: RunnableConfig = {"configurable": {"user_id": "ann"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}


@pytest.fixture
def retriever(open_handle: BoundMemory) -> MemoryRetriever:
    ann, bob = open_handle.bind(user="ann"), open_handle.bind(user="bob")
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    draft = Draft(
        "Ann drinks jasmine tea", kind="preference", author="ann", tags=["drinks"], data={"n": 1}, occurred_at=noon
    )
    run_sync(ann.add, draft)
    run_sync(ann.add, "Ann has tea at noon")
    run_sync(bob.add, "Bob drinks black tea")
    return MemoryRetriever(memory=open_handle)


def test_a_document_tells_what_the_record_says_and_why_it_is_here(retriever: MemoryRetriever) -> None:
    first, second = retriever.invoke("jasmine tea", ANN)
    assert (first.page_content, second.page_content) == ("Ann drinks jasmine tea", "Ann has tea at noon")
    assert first.id is not None
    assert first.metadata.pop("score") > second.metadata["score"]
    assert first.metadata == {
        "similarity": None,
        "kind": "preference",
        "author": "ann",
        "agent": None,
        "session": None,
        "occurred_at": "2026-05-01T12:00:00+00:00",
        "tags": ["drinks"],
        "data": {"n": 1},
    }


async def test_every_form_of_call_finds_the_same(retriever: MemoryRetriever) -> None:
    found = retriever.invoke("tea", ANN)
    assert len(found) == 2
    assert await retriever.ainvoke("tea", ANN) == found
    assert retriever.batch(["tea"], ANN) == [found]
    assert await retriever.abatch(["tea", "tea"], ANN) == [found, found]
    assert list(retriever.stream("tea", ANN)) == [found]
    assert [documents async for documents in retriever.astream("tea", ANN)] == [found]


def test_each_user_finds_only_what_is_theirs(retriever: MemoryRetriever) -> None:
    assert [document.page_content for document in retriever.invoke("tea", BOB)] == ["Bob drinks black tea"]


@pytest.mark.parametrize("user", [{}, {"user_id": None}, {"user_id": ""}, {"user_id": "  "}])
async def test_without_a_user_it_refuses(retriever: MemoryRetriever, user: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="user"):
        retriever.invoke("tea", {"configurable": user})
    with pytest.raises(ValueError, match="user"):
        await retriever.ainvoke("tea", {"configurable": user})


def test_a_bound_handle_needs_no_user_and_accepts_no_other(memory: Memory, retriever: MemoryRetriever) -> None:
    bound = MemoryRetriever(memory=memory.bind(app="demo", user="ann"))
    assert bound.invoke("jasmine") == retriever.invoke("jasmine", ANN)
    with pytest.raises(ScopeError, match="bob"):
        bound.invoke("jasmine", BOB)


def test_k_is_given_to_the_constructor_or_the_call(retriever: MemoryRetriever, open_handle: BoundMemory) -> None:
    assert len(MemoryRetriever(memory=open_handle, k=1).invoke("tea", ANN)) == 1
    assert len(retriever.invoke("tea", ANN, k=1)) == 1
    with pytest.raises(ValueError, match="k"):
        MemoryRetriever(memory=open_handle, k=-1)
    assert MemoryRetriever(memory=open_handle, k=0).invoke("tea", ANN) == []
    assert retriever.invoke("tea", ANN, k=0) == []
    with pytest.raises(ValueError, match="k says how many"):
        MemoryRetriever(memory=open_handle, recall=RecallOptions(limit=3))


def test_conditions_apply_before_the_limit(retriever: MemoryRetriever, open_handle: BoundMemory) -> None:
    only = MemoryRetriever(memory=open_handle, k=1, recall=RecallOptions(where=Where(kinds=("note",))))
    assert [document.page_content for document in only.invoke("jasmine tea", ANN)] == ["Ann has tea at noon"]


async def test_inside_a_chain_and_a_tool_it_sees_the_config_of_the_run(retriever: MemoryRetriever) -> None:
    chain = {"documents": retriever, "question": RunnablePassthrough()} | RunnableLambda(
        lambda given: given["documents"][0].page_content
    )
    assert chain.invoke("jasmine", ANN) == "Ann drinks jasmine tea"
    assert await chain.ainvoke("black", BOB) == "Bob drinks black tea"
    tool = create_retriever_tool(retriever, "search", "Searches.")
    assert "Bob drinks" in tool.invoke({"query": "tea"}, BOB)
    assert "Bob drinks" in await tool.ainvoke({"query": "tea"}, BOB)


def test_k_can_be_a_field_of_the_configuration(retriever: MemoryRetriever) -> None:
    flexible: Any = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(flexible.invoke("tea", {"configurable": {"user_id": "ann", "k": 1}})) == 1
    assert len(flexible.invoke("tea", ANN)) == 2


def test_it_is_serialised_without_the_memory_behind_it(retriever: MemoryRetriever) -> None:
    assert "memory=" not in repr(retriever)
    assert "demo" not in dumps(retriever)
    assert set(retriever.model_dump()) & {"memory", "where"} == set()


def test_two_loops_and_a_thread_use_one_retriever(retriever: MemoryRetriever) -> None:
    async def find() -> int:
        return len(await retriever.ainvoke("tea", ANN))

    assert [asyncio.run(find()), asyncio.run(find())] == [2, 2]


def test_something_that_is_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="memory"):
        MemoryRetriever(memory="memory.db")  # type: ignore[arg-type]


async def test_a_refused_search_ends_for_its_tracers(open_handle: BoundMemory) -> None:
    seen: list[str] = []

    class Tracer(BaseCallbackHandler):
        def on_retriever_start(self, *_: Any, **__: Any) -> None:
            seen.append("start")

        def on_retriever_error(self, error: BaseException, **_: Any) -> None:
            seen.append(type(error).__name__)

    retriever, config = MemoryRetriever(memory=open_handle), RunnableConfig(callbacks=[Tracer()])
    with pytest.raises(ScopeError, match="no user is named"):
        retriever.invoke("tea", config)
    with pytest.raises(ScopeError, match="no user is named"):
        await retriever.ainvoke("tea", config)
    assert seen == ["start", "ScopeError"] * 2
