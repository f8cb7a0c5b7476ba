"""The words that a run has brought are stored with the next model call of its person there, whatever became of the
run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from memory_core import BoundMemory, Memory, run_sync
from memory_langchain import MemoryMiddleware
from tests.adapters.langchain.test_following import THREAD, active, agent_with, numbered, say


def as_user(user: str) -> RunnableConfig:
    return {"configurable": {"thread_id": "monday", "user_id": user}}


class Guard(AgentMiddleware[Any, Any, Any]):
    """Stands behind the memory, and stops a run before its first model call."""

    mode = ""

    def before_model(self, state: Any, runtime: Any) -> None:
        if self.mode == "fail":
            raise ConnectionError("429")
        if self.mode == "ask":
            interrupt("ok?")


def guarded(memory: Memory | BoundMemory, guard: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    options.setdefault("checkpointer", InMemorySaver())
    return create_agent(numbered(), middleware=[MemoryMiddleware(memory, tools=()), guard], **options)


def test_the_question_of_a_run_that_fails_before_its_first_model_call_is_stored_with_the_next_one(
    ann: BoundMemory,
) -> None:
    guard = Guard()
    agent = guarded(ann, guard)
    guard.mode = "fail"
    with pytest.raises(ConnectionError):
        say(agent, "I am allergic to nuts")
    assert not active(ann)
    guard.mode = ""
    say(agent, "What may I eat?")
    assert active(ann) == ["I am allergic to nuts", "What may I eat?", "answer 0"]


def test_the_question_of_a_run_that_fails_inside_a_graph_is_stored_with_the_next_one(ann: BoundMemory) -> None:
    guard = Guard()
    builder: Any = StateGraph(MessagesState).add_node("agent", guarded(ann, guard, checkpointer=None))
    graph = builder.add_edge(START, "agent").compile(checkpointer=InMemorySaver())
    guard.mode = "fail"
    with pytest.raises(ConnectionError):
        say(graph, "I am allergic to nuts")
    guard.mode = ""
    say(graph, "What may I eat?")
    assert active(ann) == ["I am allergic to nuts", "What may I eat?", "answer 0"]


def test_the_question_of_a_run_that_another_person_resumed_is_stored_with_the_next_one_of_its_person(
    memory: Memory,
) -> None:
    guard = Guard()
    agent = guarded(memory, guard)
    guard.mode = "ask"
    agent.invoke({"messages": [HumanMessage("my account is 84-000")]}, as_user("ann"))
    agent.invoke(Command(resume=True), as_user("ben"))
    assert active(memory.bind(user="ben")) == ["answer 0"]
    assert not active(memory.bind(user="ann"))
    guard.mode = ""
    agent.invoke({"messages": [HumanMessage("thanks")]}, as_user("ann"))
    assert active(memory.bind(user="ann")) == ["my account is 84-000", "thanks", "answer 1"]
    assert active(memory.bind(user="ben")) == ["answer 0"]


class Waiting(AgentMiddleware[Any, Any, Any]):
    """Lets a run wait for another one."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.both = asyncio.Event()

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        self.seen.append(state["messages"][-1].text)
        if len(self.seen) == 2:
            self.both.set()
        await self.both.wait()


async def test_two_runs_of_a_thread_at_once_both_stay_with_their_answers(ann: BoundMemory) -> None:
    agent = guarded(ann, Waiting())
    runs = [agent.ainvoke({"messages": [HumanMessage(text)]}, THREAD) for text in ("one", "two")]
    await asyncio.gather(*runs)
    page = await ann.list()
    assert sorted(record.text for record in page.records) == ["answer 0", "answer 1", "one", "two"]


def test_an_answer_that_a_person_approves_is_stored(ann: BoundMemory) -> None:
    class Approved(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            interrupt("May this be said?")

    agent = guarded(ann, Approved())
    say(agent, "one")
    assert active(ann) == ["one"]
    agent.invoke(Command(resume=True), THREAD)
    assert active(ann) == ["one", "answer 0"]


def test_a_question_that_a_node_rewrites_is_stored_in_the_words_of_its_person(ann: BoundMemory) -> None:
    def rewrite(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [HumanMessage("Which foods are free of nuts?", id=last.id)]}

    builder: Any = StateGraph(MessagesState).add_node("rewrite", rewrite)
    builder.add_node("agent", agent_with(ann, checkpointer=None))
    graph = builder.add_edge(START, "rewrite").add_edge("rewrite", "agent").compile(checkpointer=InMemorySaver())
    say(graph, "What may I eat?")
    assert active(ann) == ["What may I eat?", "answer 0"]


class Redacting(AgentMiddleware[Any, Any, Any]):
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [redacted(message) for message in state["messages"] if "4111" in message.text]}


def redacted(message: BaseMessage) -> HumanMessage:
    return HumanMessage(message.text.replace("4111", "[card]"), id=message.id)


def test_what_an_agent_redacts_of_the_question_that_a_node_gave_to_it_is_stored_redacted(ann: BoundMemory) -> None:
    agent = agent_with(ann, Redacting(), checkpointer=None)

    def ask(state: MessagesState) -> dict[str, Any]:
        answer = agent.invoke({"messages": [("user", state["messages"][-1].text)]})["messages"][-1]
        return {"messages": [answer]}

    builder: Any = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    say(builder.compile(checkpointer=InMemorySaver()), "my card is 4111")
    assert active(ann) == ["my card is [card]", "answer 0"]


def test_nothing_of_a_finished_conversation_is_kept_in_the_middleware(ann: BoundMemory) -> None:
    middleware = MemoryMiddleware(ann, tools=())
    agent: Any = create_agent(numbered(), middleware=[middleware], checkpointer=InMemorySaver())
    say(agent, "one")
    assert not vars(middleware)["_unstored"]
    assert not any(vars(middleware)["_begun"].values())


def test_what_is_stored_of_a_failed_run_can_be_forgotten(ann: BoundMemory) -> None:
    guard = Guard()
    agent = guarded(ann, guard)
    guard.mode = "fail"
    with pytest.raises(ConnectionError):
        say(agent, "I am allergic to nuts")
    guard.mode = ""
    say(agent, "one")
    (record,) = [one for one in run_sync(ann.list).records if "nuts" in one.text]
    run_sync(ann.delete, record.id)
    say(agent, "two")
    assert "I am allergic to nuts" not in active(ann)


def test_a_message_of_a_failed_run_over_which_another_person_writes_is_not_stored_with_those_words(
    memory: Memory,
) -> None:
    guard = Guard()
    agent = guarded(memory, guard)
    guard.mode = "fail"
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [HumanMessage("I am allergic to nuts", id="1")]}, as_user("ann"))
    guard.mode = ""
    agent.invoke({"messages": [HumanMessage("I eat anything", id="1"), HumanMessage("hello")]}, as_user("ben"))
    agent.invoke({"messages": [HumanMessage("What may I eat?")]}, as_user("ann"))
    assert active(memory.bind(user="ann")) == ["What may I eat?", "answer 1"]


def test_a_message_of_a_failed_run_that_its_person_edits_is_stored_as_edited(ann: BoundMemory) -> None:
    guard = Guard()
    agent = guarded(ann, guard)
    guard.mode = "fail"
    with pytest.raises(ConnectionError):
        say(agent, "My cat is called Pepper", "1")
    guard.mode = ""
    agent.invoke(
        {"messages": [HumanMessage("My cat is called Ginger", id="1"), HumanMessage("How old is she?")]}, THREAD
    )
    assert active(ann) == ["My cat is called Ginger", "How old is she?", "answer 0"]
