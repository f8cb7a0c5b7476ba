"""A run that only goes on where the last one ended asks no checkpoint; every other run asks the record."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph.state import CompiledStateGraph

from memory_core import BoundMemory, Memory
from tests.adapters.langchain.test_following import THREAD, active, agent_with, before, numbered, say
from tests.adapters.langchain.test_unstored import Guard, as_user, guarded
from tests.adapters.langchain.threads.watching import CountingSaver


def loads_of_turn(agent: CompiledStateGraph[Any], saver: CountingSaver) -> int:
    """The number of checkpoints that the third turn of a thread loads."""
    for text in ("one", "two"):
        say(agent, text)
    before_it = saver.loads
    say(agent, "three")
    return saver.loads - before_it


def test_a_turn_that_goes_on_loads_no_more_checkpoints_than_the_bare_agent(ann: BoundMemory) -> None:
    bare, saver = CountingSaver(), CountingSaver()
    expected = loads_of_turn(create_agent(numbered(), checkpointer=bare), bare)
    assert loads_of_turn(agent_with(ann, checkpointer=saver), saver) == expected
    assert active(ann) == ["one", "answer 0", "two", "answer 1", "three", "answer 2"]


def test_what_another_person_adds_behind_the_end_is_not_said_by_the_next_one(memory: Memory) -> None:
    agent: Any = guarded(memory, Guard())
    say(agent, "one", None, as_user("ann"))
    agent.update_state(as_user("ben"), {"messages": [HumanMessage("Ben's words")]})
    say(agent, "two", None, as_user("ann"))
    assert active(memory.bind(user="ann")) == ["one", "answer 0", "two", "answer 1"]


def test_what_another_person_adds_is_not_said_by_who_lets_the_thread_go_on(memory: Memory) -> None:
    agent: Any = guarded(memory, Guard())
    say(agent, "one", None, as_user("ann"))
    for words in ("Ben's words", "more of them"):  # as many steps as an input takes
        agent.update_state(as_user("ben"), {"messages": [HumanMessage(words)]}, as_node="__start__")
    agent.invoke(None, as_user("ann"))
    assert active(memory.bind(user="ann")) == ["one", "answer 0", "answer 1"]


def test_the_question_of_a_run_that_failed_is_not_said_by_the_next_person(memory: Memory) -> None:
    guard = Guard()
    agent: Any = guarded(memory, guard)
    say(agent, "one", None, as_user("ann"))
    guard.mode = "ask"
    agent.invoke({"messages": [HumanMessage("Ben's words")]}, as_user("ben"))
    guard.mode = ""
    say(agent, "two", None, as_user("ann"))
    assert active(memory.bind(user="ann")) == ["one", "answer 0", "two", "answer 1"]


def test_a_branch_of_another_process_is_left_when_the_end_seen_here_is_named(ann: BoundMemory) -> None:
    saver = CountingSaver()
    here, there = (agent_with(ann, checkpointer=saver) for _ in range(2))
    say(here, "one")
    end = here.get_state(THREAD).config
    say(there, "two")
    assert say(here, "three", None, end) == active(ann) == ["one", "answer 0", "three", "answer 1"]


def test_what_somebody_else_has_come_back_to_is_resumed_by_the_next_run_of_its_person(memory: Memory) -> None:
    agent: Any = guarded(memory, Guard())
    for text in ("one", "two"):
        say(agent, text, None, as_user("ben"))
    end = agent.get_state(THREAD).config
    old = before(agent, "two")
    old["configurable"]["user_id"] = "ben"
    say(agent, "three", None, old)
    assert "two" not in active(memory.bind(user="ben"))
    end["configurable"]["user_id"] = "ann"
    say(agent, "four", None, end)
    say(agent, "five", None, as_user("ben"))
    assert {"two", "answer 1", "five", "answer 4"} <= set(active(memory.bind(user="ben")))


def test_what_the_input_edits_is_edited(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "My cat is called Pepper", "1")
    edited = HumanMessage("My cat is called Ginger", id="1")
    agent.invoke({"messages": [edited, HumanMessage("How old is she?")]}, THREAD)
    assert active(ann) == ["My cat is called Ginger", "answer 0", "How old is she?", "answer 1"]
