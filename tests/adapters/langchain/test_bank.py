"""The bank of a thread, if its tools wait for people, and if it has several users."""

# LangChain's own types leave parameters of `create_agent` open.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from memory_core import BoundMemory, Memory, MemoryBank, run_sync
from memory_langchain import BankMiddleware
from memory_langchain.testing import ScriptedChatModel


@dataclass
class Context:
    user_id: str


MONDAY: RunnableConfig = {"configurable": {"thread_id": "monday"}}
ASKED: Any = {"messages": [HumanMessage("Measure both tanks")]}


@tool
def ask_person(question: str) -> str:
    """Ask the person."""
    return str(interrupt(question))


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_waits_for_a_person_is_one_step_when_it_is_answered(
    ann: BoundMemory, *, is_async: bool
) -> None:
    asking = AIMessage("", tool_calls=[{"name": "ask_person", "args": {"question": "ok?"}, "id": "1"}])
    model = ScriptedChatModel(script=[asking, "Done."])
    agent: Any = create_agent(model, [ask_person], middleware=[BankMiddleware(ann)], checkpointer=InMemorySaver())
    inputs: list[Any] = [ASKED, Command(resume="yes")]
    for given in inputs:
        await agent.ainvoke(given, MONDAY) if is_async else agent.invoke(given, MONDAY)
    (entry,) = MemoryBank(memory=ann, task="monday").get_all_memories()
    assert (entry.result, entry.tags) == ("yes", [])


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_user_of_a_context_has_a_bank_which_tools_reach(memory: Memory, *, is_async: bool) -> None:
    middleware, seen = BankMiddleware(memory), list[int]()

    @tool
    def look_back() -> str:
        """Look at the last steps."""
        seen.append(len(run_sync(middleware.bank().get_recent_entries)))
        return "done"

    for user in ("ann", "bob", "ann"):
        calls = [{"name": "look_back", "args": {}, "id": str(len(seen))}]
        model = ScriptedChatModel(script=[AIMessage("", tool_calls=calls), "Done."])
        agent: Any = create_agent(model, [look_back], middleware=[middleware], context_schema=Context)
        run = {"context": Context(user_id=user)}
        await agent.ainvoke(ASKED, MONDAY, **run) if is_async else agent.invoke(ASKED, MONDAY, **run)
    assert seen == [0, 0, 1]
