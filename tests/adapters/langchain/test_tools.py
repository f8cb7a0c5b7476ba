"""The memory tools of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory_core import BoundMemory, run_sync
from memory_core.adapting import EDITING_TOOLS, LIST_MEMORIES, REMEMBER_INTERACTION_INFO
from memory_langchain import memory_tools

ANN: RunnableConfig = {"configurable": {"user_id": "ann", "thread_id": "monday", "agent_id": "guide"}}
BOB: RunnableConfig = {"configurable": {"user_id": "bob"}}


@pytest.fixture
def tools(open_handle: BoundMemory) -> dict[str, StructuredTool]:
    return {tool.name: tool for tool in memory_tools(open_handle)}


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": "call", "name": name, "args": arguments}


def test_a_model_stores_finds_corrects_and_forgets(tools: dict[str, StructuredTool]) -> None:
    stored = tools["store_memory"].invoke(call("store_memory", content="Ann drinks tea", category="preference"), ANN)
    assert isinstance(stored, ToolMessage)
    memory_id = stored.artifact["id"]
    assert stored.status == "success"
    assert memory_id in stored.text
    tools["update_memory"].invoke({"memory_id": memory_id, "content": "Ann drinks green tea"}, ANN)
    assert "Ann drinks green tea" in tools["search_memories"].invoke({"query": "tea"}, ANN)
    tools["forget_memory"].invoke({"memory_id": memory_id}, ANN)
    assert "No memories" in tools["search_memories"].invoke({"query": "tea"}, ANN)


def test_a_memory_without_a_category_is_a_fact(tools: dict[str, StructuredTool], open_handle: BoundMemory) -> None:
    tools["store_memory"].invoke({"content": "Ann drinks tea"}, ANN)
    (record,) = run_sync(open_handle.bind(user="ann").list).records
    assert (record.text, record.kind) == ("Ann drinks tea", "fact")


async def test_the_async_forms_do_the_same(tools: dict[str, StructuredTool]) -> None:
    await tools["store_memory"].ainvoke({"content": "Ann drinks tea", "category": "preference"}, ANN)
    found = await tools["search_memories"].ainvoke(call("search_memories", query="tea"), ANN)
    assert [memory["text"] for memory in found.artifact["memories"]] == ["Ann drinks tea"]


def test_what_is_stored_tells_who_stored_it_and_where(
    tools: dict[str, StructuredTool], open_handle: BoundMemory
) -> None:
    tools["store_memory"].invoke({"content": "tea", "category": "fact"}, ANN)
    (record,) = run_sync(open_handle.bind(user="ann").list).records
    assert (record.kind, record.author, record.agent, record.session) == ("fact", "guide", "guide", "monday")


@pytest.mark.parametrize("user", [{}, {"user_id": None}, {"user_id": ""}, {"user_id": "  "}])
async def test_without_a_user_every_tool_refuses(tools: dict[str, StructuredTool], user: dict[str, object]) -> None:
    for tool in tools.values():
        with pytest.raises(ValueError, match="user"):
            tool.invoke({"query": "tea"}, {"configurable": user})
        with pytest.raises(ValueError, match="user"):
            await tool.ainvoke({"query": "tea"}, {"configurable": user})


@pytest.mark.parametrize(
    "forged",
    [
        {"user_id": "ann"},
        {"config": {"configurable": {"user_id": "ann"}}},
        {"configurable": {"user_id": "ann"}},
        {"context": {"user_id": "ann"}, "run_manager": None, "callbacks": None},
    ],
)
async def test_a_model_cannot_reach_another_users_memory(
    tools: dict[str, StructuredTool], forged: dict[str, object]
) -> None:
    tools["store_memory"].invoke({"content": "Ann drinks tea", "category": "fact"}, ANN)
    assert "No memories" in tools["search_memories"].invoke({"query": "tea", **forged}, BOB)
    assert "No memories" in await tools["search_memories"].ainvoke({"query": "tea", **forged}, BOB)


def test_another_users_memory_cannot_be_changed_by_its_id(tools: dict[str, StructuredTool]) -> None:
    stored = tools["store_memory"].invoke(call("store_memory", content="tea", category="fact"), ANN)
    for name, arguments in (("forget_memory", {}), ("update_memory", {"content": "coffee"})):
        answer = tools[name].invoke(call(name, memory_id=stored.artifact["id"], **arguments), BOB)
        assert answer.status == "error"
    assert "tea" in tools["search_memories"].invoke({"query": "tea"}, ANN)


def test_the_schemas_hold_what_the_model_may_say_and_no_scope(tools: dict[str, StructuredTool]) -> None:
    fields = {
        name: set(convert_to_openai_tool(tool)["function"]["parameters"]["properties"]) for name, tool in tools.items()
    }
    assert fields == {
        "store_memory": {"content", "category", "context"},
        "search_memories": {"query", "limit", "category"},
        **{tool.name: {*cast("Mapping[str, Any]", tool.parameters["properties"])} for tool in EDITING_TOOLS},
    }
    assert not any("user" in name or "app" in name for names in fields.values() for name in names)


def test_a_model_that_has_to_give_every_argument_can_leave_open_what_is_optional(
    tools: dict[str, StructuredTool], open_handle: BoundMemory
) -> None:
    optional = {"store_memory": {"context"}, "search_memories": {"limit", "category"}, "list_memories": {"category"}}
    for tool in (*tools.values(), *memory_tools(open_handle, tools=[LIST_MEMORIES])):
        strict = convert_to_openai_tool(tool, strict=True)["function"]["parameters"]
        assert set(strict["required"]) == set(strict["properties"])  # as `create_agent(response_format=)` asks OpenAI
        nullable = {name for name, one in strict["properties"].items() if {"type": "null"} in one.get("anyOf", [])}
        assert nullable >= optional.get(tool.name, set())
    tools["store_memory"].invoke({"content": "Ann likes tea", "category": "preference", "context": None}, ANN)
    assert "Ann likes tea" in tools["search_memories"].invoke({"query": "tea", "limit": None, "category": None}, ANN)


async def test_an_unusable_argument_is_told_to_the_model(tools: dict[str, StructuredTool]) -> None:
    wrong = call("store_memory", content="tea", category="colour")
    for answer in (tools["store_memory"].invoke(wrong, ANN), await tools["store_memory"].ainvoke(wrong, ANN)):
        assert answer.status == "error"
        assert "'colour'" in answer.text


def test_other_tools_can_be_chosen(open_handle: BoundMemory) -> None:
    chosen = memory_tools(open_handle, tools=[LIST_MEMORIES, REMEMBER_INTERACTION_INFO])
    assert [tool.name for tool in chosen] == ["list_memories", "remember_interaction_info"]
    chosen[1].invoke({"information": "likes tea"}, ANN)
    assert "likes tea" in chosen[0].invoke({}, ANN)
