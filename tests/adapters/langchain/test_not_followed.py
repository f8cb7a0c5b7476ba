"""Changes that no record of LangGraph tells are not followed: the words that were said stay."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from memory_core import BoundMemory, Memory
from tests.adapters.langchain.test_following import THREAD, active, agent_with, before, numbered, say
from tests.adapters.langchain.test_unstored import Guard, as_user, guarded


def test_a_branch_that_another_person_leaves_stays(memory: Memory) -> None:
    agent: Any = guarded(memory, Guard())
    for user, text in (("ann", "one"), ("ben", "two")):
        say(agent, text, None, as_user(user))
    old = before(agent, "two")
    old["configurable"]["user_id"] = "ann"
    assert say(agent, "three", None, old) == ["one", "answer 0", "three", "answer 2"]
    assert active(memory.bind(user="ben")) == ["two", "answer 1"]


def test_of_a_copied_thread_only_what_is_said_in_it_is_stored(ann: BoundMemory) -> None:
    saver = InMemorySaver()
    agent = agent_with(ann, checkpointer=saver)
    say(agent, "one")
    saver.storage["copy"] = saver.storage["monday"]
    for (_, namespace, channel, version), blob in list(saver.blobs.items()):
        saver.blobs["copy", namespace, channel, version] = blob
    copied: RunnableConfig = {"configurable": {"thread_id": "copy"}}
    assert say(agent, "two", None, copied) == ["one", "answer 0", "two", "answer 1"]
    assert active(ann) == ["one", "answer 0", "two", "answer 1"]


class Asking(AgentMiddleware[Any, Any, Any]):
    """Stands in front of the memory, and waits for a person."""

    is_asking = True

    def before_agent(self, state: Any, runtime: Any) -> None:
        if self.is_asking:
            interrupt("ok?")


def test_a_question_that_waits_in_front_of_the_memory_is_not_said_by_who_resumes_it(memory: Memory) -> None:
    agent = agent_with(memory, Asking())  # type: ignore[arg-type]  # an unbound memory
    agent.invoke({"messages": [HumanMessage("my account is 84-000")]}, as_user("ann"))
    for user in ("ben", "ann"):
        agent.invoke(Command(resume=True), as_user(user))
    assert [active(memory.bind(user=user)) for user in ("ann", "ben")] == [[], ["answer 0"]]


def test_what_is_edited_before_a_run_without_memory_stays_as_it_was_said(ann: BoundMemory) -> None:
    saver = InMemorySaver()
    agent, plain = agent_with(ann, checkpointer=saver), create_agent(numbered(), checkpointer=saver)
    say(agent, "My cat is called Pepper", "1")
    agent.update_state(THREAD, {"messages": [HumanMessage("My cat is called Ginger", id="1")]})
    say(plain, "without memory")
    say(agent, "How old is she?")
    assert "My cat is called Pepper" in active(ann)
