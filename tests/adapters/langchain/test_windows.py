"""Windows of a history: however it is cut, a provider accepts it."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from memory_core import BoundMemory, RecallOptions
from memory_langchain import MemoryChatMessageHistory, with_memory
from memory_langchain.testing import ScriptedChatModel

pytestmark = pytest.mark.uncovered

NOTHING = RecallOptions(limit=0)


@tool
def look(query: str) -> str:
    """Look something up."""
    return f"found {query}"


def reply(prompt: list[BaseMessage]) -> AIMessage:
    if isinstance(prompt[-1], HumanMessage):
        calls = [{"name": "look", "args": {"query": prompt[-1].text}, "id": f"{prompt[-1].text} {n}"} for n in range(2)]
        return AIMessage("", tool_calls=calls)
    return AIMessage(f"answer {prompt[-1].text}")


def check(prompt: list[BaseMessage]) -> None:
    """Check that every answer has its question and every result its call."""
    shown = [message for message in prompt if message.type != "system"]
    assert shown[0].type == "human"
    called = {call["id"] for message in shown if isinstance(message, AIMessage) for call in message.tool_calls}
    assert {message.tool_call_id for message in shown if isinstance(message, ToolMessage)} <= called


@pytest.mark.parametrize("limit", range(12))
def test_a_window_begins_with_a_question(ann: BoundMemory, limit: int) -> None:
    model = ScriptedChatModel(script=reply)
    chain = with_memory(create_agent(model, [look]), ann, input_key="messages", history_limit=limit, recall=NOTHING)
    for question in "abcdef":
        chain.invoke({"messages": [("user", question)]}, {"configurable": {"session_id": "s"}})
    for prompt in model.prompts:
        check(prompt)
    before = [message for message in model.prompts[-2] if message.type != "system"][:-1]
    assert len(before) <= limit
    if limit >= 5:
        assert len(before) >= 5  # at least the last turn


def test_a_history_that_fits_is_shown_from_its_first_message_whoever_wrote_it(ann: BoundMemory) -> None:
    MemoryChatMessageHistory(ann, "s").add_messages([AIMessage("Welcome!"), HumanMessage("hello")])
    model = ScriptedChatModel(script=["fine"])
    with_memory(model, ann, history_limit=2, recall=NOTHING).invoke(
        "How are you?", {"configurable": {"session_id": "s"}}
    )
    assert [message.text for message in model.prompts[0]] == ["Welcome!", "hello", "How are you?"]
