"""The acts of a person in a thread, row by row, and what only looks like them, over every checkpointer and
durability."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.config import get_config
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from memory_langchain.run_start import start_of
from memory_langchain.testing import ScriptedChatModel
from memory_langchain.thread_changes import changes
from tests.adapters.langchain.threads.watching import (
    EVERY,
    THREAD,
    CountingSaver,
    Setting,
    Turn,
    Watcher,
    numbered,
    setting_of,
)


@pytest.fixture(params=EVERY)
def every(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    with setting_of(request.param, tmp_path) as setting:
        yield setting


@pytest.fixture(params=[one for one in EVERY if "exit" not in str(one.id)])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    """A setting in which the checkpoints of a run are stored while it goes on."""
    with setting_of(request.param, tmp_path) as setting:
        yield setting


def is_untouched(turn: Turn) -> bool:
    return not turn.left and not turn.edited


# What a person does


def test_a_plain_turn_brings_its_question_and_changes_nothing(every: Setting) -> None:
    agent = every.rooted()
    for text in ("one", "two", "three"):
        turn = every.say(agent, text)
        assert turn.asked == [text]
        assert is_untouched(turn)
        assert [message.text for message in turn.answers] == [every.messages(agent)[-1].text]


def test_what_update_state_edits_is_edited(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    first = every.id_of(agent, "one")
    every.update(agent, [HumanMessage("one, edited", id=first)])
    turn = every.say(agent, "two")
    assert (turn.asked, turn.edited, turn.left) == (["two"], {first: "one, edited"}, set())
    assert is_untouched(every.say(agent, "three"))


def test_what_update_state_removes_is_left(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    every.say(agent, "two")
    first = every.id_of(agent, "one")
    every.update(agent, [RemoveMessage(id=first)])
    turn = every.say(agent, "three")
    assert (turn.asked, turn.edited, turn.left) == (["three"], {}, {first})
    assert first not in turn.resumed
    assert is_untouched(every.say(agent, "four"))


def test_what_update_state_adds_is_said_with_the_next_question(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    every.update(agent, [HumanMessage("I am allergic to nuts")])
    assert every.say(agent, "two").asked == ["I am allergic to nuts", "two"]
    assert every.say(agent, "three").asked == ["three"]


def test_what_another_user_added_is_not_said_by_this_one(every: Setting) -> None:
    agent = every.rooted()
    every.call(agent, {"messages": [HumanMessage("one")]}, as_user("ann"))
    every.update(agent, [HumanMessage("I am allergic to nuts")], as_user("ben"))
    turn = every.call(agent, {"messages": [HumanMessage("two")]}, as_user("ann"))
    assert turn.asked == ["two"]


def as_user(user: str) -> RunnableConfig:
    return {"configurable": {"thread_id": "monday", "user_id": user}}


def test_several_updates_are_followed_together(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    every.say(agent, "two")
    first, second = every.id_of(agent, "one"), every.id_of(agent, "two")
    every.update(agent, [RemoveMessage(id=first)])
    every.update(agent, [HumanMessage("two, edited", id=second)])
    every.update(agent, [HumanMessage("added")])
    turn = every.say(agent, "three")
    assert (turn.asked, turn.edited, turn.left) == (["added", "three"], {second: "two, edited"}, {first})


def test_an_edit_in_the_input_is_an_edit(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    first = every.id_of(agent, "one")
    turn = every.say(agent, "two", THREAD, HumanMessage("one, edited", id=first))
    assert (turn.asked, turn.edited, turn.left) == (["two"], {first: "one, edited"}, set())


def test_a_removal_in_the_input_leaves(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "my pin is 9999")
    first = every.id_of(agent, "my pin is 9999")
    turn = every.say(agent, "forget that", THREAD, RemoveMessage(id=first))
    assert (turn.asked, turn.edited, turn.left) == (["forget that"], {}, {first})


def test_a_thread_that_the_caller_clears_is_left(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    ids = {message.id for message in every.messages(agent)}
    turn = every.say(agent, "two", THREAD, RemoveMessage(id=REMOVE_ALL_MESSAGES))
    assert (turn.asked, turn.left) == (["two"], ids)


def test_the_branch_behind_a_named_checkpoint_is_left_and_resumed(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    old = every.state(agent).config
    every.say(agent, "two")
    head, second = every.state(agent).config, {message.id for message in every.messages(agent)[2:]}
    turn = every.say(agent, "three", old)
    assert (turn.asked, turn.edited, turn.left) == (["three"], {}, second)
    third = {message.id for message in every.messages(agent)[2:]}
    turn = every.say(agent, "four", head)
    assert (turn.asked, turn.left) == (["four"], third)
    assert turn.resumed >= second
    assert is_untouched(every.say(agent, "five"))


def test_the_head_that_is_named_leaves_nothing(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    turn = every.say(agent, "two", every.state(agent).config)
    assert turn.asked == ["two"]
    assert is_untouched(turn)


def test_another_text_under_one_id_at_a_fork_is_an_edit(stored: Setting) -> None:
    agent = stored.rooted()
    stored.call(agent, {"messages": [HumanMessage("My cat is called Pepper", id="1")]})
    before = next(state for state in stored.history(agent) if state.next == ("__start__",))
    answer = stored.messages(agent)[-1].id
    turn = stored.call(agent, {"messages": [HumanMessage("My cat is called Ginger", id="1")]}, before.config)
    assert (turn.asked, turn.left) == (["My cat is called Ginger"], {answer})
    assert turn.edited == {"1": "My cat is called Ginger"}


@pytest.mark.parametrize("at", ["Watcher.before_agent", "model"])
def test_an_answer_that_is_repeated_leaves_its_predecessor_and_asks_nothing(stored: Setting, at: str) -> None:
    agent = stored.rooted()
    stored.say(agent, "one")
    stored.say(agent, "two")
    answer = stored.messages(agent)[-1].id
    old = next(state for state in stored.history(agent) if state.next == (at,))
    turn = stored.call(agent, None, old.config)
    assert (turn.asked, turn.edited, turn.left) == ([], {}, {answer})
    assert [message.text for message in turn.answers] == ["answer 2"]


def test_an_edited_question_that_is_answered_again_is_edited(stored: Setting) -> None:
    agent = stored.rooted()
    stored.say(agent, "one")
    stored.say(agent, "two")
    question, answer = stored.messages(agent)[-2:]
    old = next(state for state in stored.history(agent) if state.next == ("Watcher.before_agent",))
    new = stored.update(agent, [HumanMessage("two, edited", id=question.id)], old.config)
    turn = stored.call(agent, None, new)
    assert (turn.asked, turn.edited, turn.left) == ([], {question.id: "two, edited"}, {answer.id})


def test_an_update_of_an_old_checkpoint_has_gone_back_to_it(every: Setting) -> None:
    agent = every.rooted()
    every.say(agent, "one")
    old = every.state(agent).config
    every.say(agent, "two")
    second = {message.id for message in every.messages(agent)[2:]}
    every.update(agent, [HumanMessage("added")], old)
    turn = every.say(agent, "three")
    assert (turn.asked, turn.left) == (["added", "three"], second)


def test_a_thread_that_begins_with_an_update_has_its_words(every: Setting) -> None:
    agent = every.rooted()
    every.update(agent, [HumanMessage("I am allergic to nuts")])
    turn = every.say(agent, "one")
    assert turn.asked == ["I am allergic to nuts", "one"]
    assert is_untouched(turn)


# What nodes and middleware do


class Changing(AgentMiddleware[Any, Any, Any]):
    """Changes the thread in a hook of the agent."""

    def __init__(self, hook: str, change: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]]) -> None:
        super().__init__()
        self.hook, self.change = hook, change

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": self.change(state["messages"])} if self.hook == "before_agent" else None

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": self.change(state["messages"])} if self.hook == "before_model" else None

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": self.change(state["messages"])} if self.hook == "after_agent" else None


def trimmed(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    if len(messages) < 4:
        return []
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), messages[0], *messages[-2:]]


def redacted(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [HumanMessage("[cleared]", id=one.id) for one in messages[:-2] if one.type == "human"]


@pytest.mark.parametrize("change", [trimmed, redacted])
@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_agent"])
def test_what_a_hook_changes_is_nobodys_wish(
    every: Setting, hook: str, change: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]]
) -> None:
    agent = every.rooted(Changing(hook, change))
    for text in ("one", "two", "three", "four"):
        turn = every.say(agent, text)
        assert turn.asked == [text]
        assert is_untouched(turn)


def graph_of(setting: Setting, nodes: dict[str, Any], **options: Any) -> Any:
    """The nodes one after the other, over messages."""
    builder: Any = StateGraph(MessagesState, **options)
    for (name, node), previous in zip(nodes.items(), [START, *nodes], strict=False):
        builder.add_node(name, node).add_edge(previous, name)
    return builder.compile(checkpointer=setting.saver)


@pytest.mark.parametrize("change", [trimmed, redacted])
@pytest.mark.parametrize("behind", [True, False])
def test_what_a_node_changes_is_nobodys_wish(
    every: Setting, change: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]], *, behind: bool
) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": change(state["messages"])}

    nodes = {"agent": every.agent(), "change": node} if behind else {"change": node, "agent": every.agent()}
    graph = graph_of(every, nodes)
    for text in ("one", "two", "three", "four"):
        turn = every.say(graph, text)
        assert turn.asked == [text]
        assert is_untouched(turn)


def test_a_summary_is_nobodys(every: Setting) -> None:
    model = ScriptedChatModel(script=lambda prompt: "They spoke of tea.")
    agent = every.rooted(SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2)))
    for text in ("one", "two", "three", "four"):
        turn = every.say(agent, text)
        assert turn.asked == [text]
        assert is_untouched(turn)


def test_a_summary_that_a_node_puts_in_front_is_nobodys(stored: Setting) -> None:
    def summarize(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        if len(state["messages"]) < 4:
            return {}
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("They spoke of tea."), last]}

    graph = graph_of(stored, {"summarize": summarize, "agent": stored.agent()})
    for text in ("one", "two", "three", "four"):
        turn = stored.say(graph, text)
        assert turn.asked == [text]
        assert is_untouched(turn)


def boss(state: MessagesState) -> dict[str, Any]:
    return {"messages": [HumanMessage("Write to the landlord and threaten him")]}


def test_the_task_of_a_supervisor_is_nobodys(stored: Setting) -> None:
    graph = graph_of(stored, {"boss": boss, "worker": stored.agent()})
    for text in ("I have a leak", "thanks"):
        assert stored.say(graph, text).asked == [text]


def test_a_task_that_a_node_gives_to_an_agent_is_nobodys(stored: Setting) -> None:
    agent = stored.agent()

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": agent.invoke({"messages": [HumanMessage("Threaten the landlord")]})["messages"][1:]}

    async def anode(state: MessagesState) -> dict[str, Any]:
        given = {"messages": [HumanMessage("Threaten the landlord")]}
        return {"messages": (await agent.ainvoke(given))["messages"][1:]}

    graph = graph_of(stored, {"worker": node if stored.runner is None else anode})
    assert stored.say(graph, "I have a leak").asked == []


def test_a_question_that_a_node_rewrites_keeps_the_words_of_its_person(stored: Setting) -> None:
    def rewrite(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage("leak plumber cost", id=state["messages"][-1].id)]}

    graph = graph_of(stored, {"rewrite": rewrite, "agent": stored.agent()})
    stored.say(graph, "hello")
    turn = stored.say(graph, "I have a leak")
    (seen,) = turn.changes
    assert is_untouched(turn)
    assert [message.id for message in seen.asked] == [stored.messages(graph)[-2].id]


def test_each_agent_of_a_graph_hears_the_person(every: Setting) -> None:
    graph = graph_of(every, {"one": every.agent(), "two": every.agent()})
    for text in ("hello", "again"):
        turn = every.say(graph, text)
        assert turn.asked == [text]
        assert len(turn.changes) == 2
        assert is_untouched(turn)


@pytest.mark.parametrize("change", ["edit", "removal"])
def test_a_change_in_a_graph_is_followed(every: Setting, change: str) -> None:
    graph = graph_of(every, {"one": every.agent(), "two": every.agent()})
    every.say(graph, "one")
    first = every.id_of(graph, "one")
    given = HumanMessage("one, edited", id=first) if change == "edit" else RemoveMessage(id=first)
    every.update(graph, [given])
    turn = every.say(graph, "two")
    assert turn.asked == ["two"]
    assert (turn.edited, turn.left) == (({first: "one, edited"}, set()) if change == "edit" else ({}, {first}))


def test_the_branch_that_a_graph_has_left_is_left(every: Setting) -> None:
    graph = graph_of(every, {"one": every.agent(), "two": every.agent()})
    every.say(graph, "one")
    old = every.state(graph).config
    every.say(graph, "two")
    second = {message.id for message in every.messages(graph)[3:]}
    turn = every.say(graph, "three", old)
    assert (turn.asked, turn.left) == (["three"], second)


def called_by_a_node(setting: Setting, agent: Any, key: str, given: Callable[[Any], object]) -> Any:
    """A graph without messages whose only node asks an agent."""

    class Question(TypedDict, total=False):
        question: str
        answer: str

    def node(state: Question) -> Question:
        return {"answer": agent.invoke({"messages": given(state)})["messages"][-1].text}

    async def anode(state: Question) -> Question:
        return {"answer": (await agent.ainvoke({"messages": given(state)}))["messages"][-1].text}

    builder: Any = StateGraph(Question).add_node(key, node if setting.runner is None else anode).add_edge(START, key)
    return builder.compile(checkpointer=setting.saver)


@pytest.mark.parametrize("history", [None, True])
def test_an_agent_with_messages_of_its_own_hears_the_last_question(every: Setting, history: bool | None) -> None:  # noqa: FBT001
    agent = every.agent(checkpointer=history)
    graph = called_by_a_node(every, agent, "ask", lambda state: [HumanMessage(state["question"])])
    for text in ("one", "two", "three"):
        turn = every.call(graph, {"question": text})
        assert turn.asked == [text]
        assert is_untouched(turn)


def test_an_agent_with_a_checkpointer_of_its_own_inside_a_graph_hears_the_last_question(every: Setting) -> None:
    agent = every.agent(checkpointer=CountingSaver())
    graph = called_by_a_node(every, agent, "ask", lambda state: [HumanMessage(state["question"])])
    for text in ("one", "two"):
        turn = every.call(graph, {"question": text})
        assert turn.asked == [text]
        assert is_untouched(turn)


def test_an_agent_of_an_entrypoint_hears_the_last_question(every: Setting) -> None:
    agent = every.agent()

    def sync(question: str, *, previous: list[BaseMessage] | None = None) -> Any:
        said = agent.invoke({"messages": [*(previous or []), HumanMessage(question)]})["messages"]
        return entrypoint.final(value=said[-1].text, save=said)

    async def asynchronous(question: str, *, previous: list[BaseMessage] | None = None) -> Any:
        said = (await agent.ainvoke({"messages": [*(previous or []), HumanMessage(question)]}))["messages"]
        return entrypoint.final(value=said[-1].text, save=said)

    flow = entrypoint(checkpointer=every.saver)(sync if every.runner is None else asynchronous)
    for text in ("one", "two", "three"):
        turn = every.call(flow, text)
        assert turn.asked == [text]
        assert is_untouched(turn)


# What several people and agents do


def test_agents_with_checkpointers_of_their_own_leave_nothing_of_each_other(every: Setting) -> None:
    one, two = every.rooted(), every.agent(checkpointer=CountingSaver())
    for text in ("one", "two", "three"):
        for agent in (one, two):
            turn = every.say(agent, text)
            assert turn.asked == [text]
            assert is_untouched(turn)


class Failing(AgentMiddleware[Any, Any, Any]):
    fails = False

    def before_agent(self, state: Any, runtime: Any) -> None:
        if self.fails:
            raise RuntimeError("429")


def test_the_question_of_a_run_that_failed_is_not_the_next_persons(every: Setting) -> None:
    failing = Failing()
    agent = every.rooted(failing)
    every.say(agent, "one")
    failing.fails = True
    with pytest.raises(RuntimeError):
        every.say(agent, "ann, failed")
    failing.fails = False
    turn = every.say(agent, "ben")
    assert turn.asked == ["ben"]
    assert is_untouched(turn)


def test_a_failed_run_that_another_repeats_brings_nothing(every: Setting) -> None:
    failing = Failing()
    agent = every.rooted(failing)
    every.say(agent, "one")
    failing.fails = True
    with pytest.raises(RuntimeError):
        every.say(agent, "ann, failed")
    failing.fails = False
    turn = every.call(agent, None)
    assert turn.asked == []
    assert is_untouched(turn)


def test_a_run_that_fails_at_once_and_is_repeated_brings_nothing(every: Setting) -> None:
    failing = Failing()

    def guard(state: MessagesState) -> dict[str, Any]:
        failing.before_agent(state, None)
        return {}

    graph = graph_of(every, {"guard": guard, "agent": every.agent()})
    every.say(graph, "one")
    failing.fails = True
    with pytest.raises(RuntimeError):
        every.say(graph, "ann, failed")
    failing.fails = False
    assert every.call(graph, None).asked == []


@pytest.mark.parametrize("checkpointer", [None, False, True])
def test_a_failed_run_that_another_repeats_inside_a_graph_brings_nothing(
    every: Setting,
    checkpointer: bool | None,  # noqa: FBT001
) -> None:
    if checkpointer is False and every.durability == "sync":
        pytest.skip("LangGraph 1.2 cannot run such a graph")
    failing = Failing()
    graph = graph_of(every, {"node": lambda state: {}, "agent": every.agent(failing, checkpointer=checkpointer)})
    every.say(graph, "one", as_user("ann"))
    failing.fails = True
    with pytest.raises(RuntimeError):
        every.say(graph, "ann, failed", as_user("ann"))
    failing.fails = False
    turn = every.call(graph, None, as_user("ben"))
    assert turn.asked == []
    assert is_untouched(turn)


def gate(state: MessagesState) -> dict[str, Any]:
    interrupt("Is that right?")
    return {}


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_a_run_that_another_resumes_brings_nothing(stored: Setting, nodes: int) -> None:
    between: dict[str, Any] = {f"node {n}": lambda state: {} for n in range(nodes)}
    graph = graph_of(stored, {"gate": gate, **between, "agent": stored.agent()})
    for text in ("my account is 84-000", "another"):
        stored.say(graph, text)
        turn = stored.call(graph, Command(resume=True))
        assert turn.asked == []
        assert is_untouched(turn)


class Asking(AgentMiddleware[Any, Any, Any]):
    def before_agent(self, state: Any, runtime: Any) -> None:
        interrupt("Is that right?")


def test_an_agent_that_another_resumes_inside_a_graph_brings_nothing(every: Setting) -> None:
    graph = graph_of(every, {"agent": every.agent(Asking())})
    for text in ("my account is 84-000", "another"):
        every.say(graph, text)
        turn = every.call(graph, Command(resume=True))
        assert turn.asked == []
        assert is_untouched(turn)


def test_a_run_that_is_resumed_in_a_tool_brings_nothing_but_its_answer(every: Setting) -> None:
    call = AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "1"}])

    def pay() -> str:
        """Pay."""
        return "paid" if interrupt("ok?") else "no"

    model = ScriptedChatModel(script=[call, "Paid."])
    agent = create_agent(model, [pay], middleware=[every.watcher()], checkpointer=every.saver)
    assert every.say(agent, "Pay my rent").asked == ["Pay my rent"]
    turn = every.call(agent, Command(resume=True))
    assert turn.asked == []
    assert is_untouched(turn)
    assert [message.text for message in turn.answers] == ["Paid."]


@pytest.mark.parametrize("delay", [0, 0.02])
async def test_two_runs_at_once_leave_nothing_of_each_other(delay: float) -> None:
    saver, watchers = CountingSaver(delay), [Watcher([Turn()]) for _ in range(2)]

    class Late(AgentMiddleware[Any, Any, Any]):
        async def abefore_model(self, state: Any, runtime: Any) -> None:
            await asyncio.sleep(0.05)

    agents = [create_agent(numbered(), middleware=[one, Late()], checkpointer=saver) for one in watchers]
    await agents[0].ainvoke({"messages": [HumanMessage("hello")]}, THREAD)
    for one in watchers:
        one.turns[:] = [Turn()]
    asked = ["book a table", "for four"]
    given: list[Any] = [{"messages": [HumanMessage(text)]} for text in asked]
    await asyncio.gather(*(agent.ainvoke(one, THREAD) for agent, one in zip(agents, given, strict=True)))
    assert [one.turns[-1].asked for one in watchers] == [[text] for text in asked]
    assert all(is_untouched(one.turns[-1]) for one in watchers)


class Overlapping(CountingSaver):
    """Two people begin at the same checkpoint; of both, only ann's input is stored when the agent of ben begins."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.begun, self.read = asyncio.Event(), asyncio.Event()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await super().aget_tuple(config)
        if self.is_slow and config["configurable"]["user_id"] == "ben":
            await self.begun.wait()
        return found

    async def aput(self, *given: Any, **options: Any) -> RunnableConfig:
        if self.is_slow and (given[0]["configurable"]["user_id"] == "ben" or self.begun.is_set()):
            await self.read.wait()
        stored = await super().aput(*given, **options)
        if self.is_slow:
            self.begun.set()
        return stored


async def test_a_question_is_said_by_its_person_although_the_input_of_another_is_stored_first() -> None:
    saver = Overlapping()

    class Reading(Watcher):
        async def abefore_agent(self, state: Any, runtime: Any) -> None:
            await super().abefore_agent(state, runtime)
            if get_config()["configurable"]["user_id"] == "ben":
                saver.read.set()

    watchers = {user: Reading([Turn()]) for user in ("ann", "ben")}
    agents = {user: create_agent(numbered(), middleware=[one], checkpointer=saver) for user, one in watchers.items()}
    await agents["ann"].ainvoke({"messages": [HumanMessage("hello")]}, as_user("ann"))
    saver.is_slow = True
    for one in watchers.values():
        one.turns[:] = [Turn()]
    given: dict[str, Any] = {user: {"messages": [HumanMessage(f"{user} asks")]} for user in watchers}
    await asyncio.gather(*(agents[user].ainvoke(given[user], as_user(user)) for user in watchers))
    assert {user: one.turns[-1].asked for user, one in watchers.items()} == {"ann": ["ann asks"], "ben": ["ben asks"]}
    assert all(is_untouched(one.turns[-1]) for one in watchers.values())


# Where there is no record, or little


def test_without_a_checkpointer_the_last_question_is_said(every: Setting) -> None:
    agent = every.agent()
    given = [HumanMessage("one"), AIMessage("hello"), HumanMessage("two"), HumanMessage("three")]
    turn = every.call(agent, {"messages": given}, durability=None)
    assert turn.asked == ["two", "three"]
    assert is_untouched(turn)
    assert not turn.resumed


def test_where_a_run_stores_nothing_until_its_end_nodes_cannot_be_told_from_people(tmp_path: Path) -> None:
    with setting_of(("memory", "exit", "invoke"), tmp_path) as setting:
        graph = graph_of(setting, {"boss": boss, "worker": setting.agent()})
        setting.say(graph, "I have a leak")
        turn = setting.say(graph, "thanks")
        assert turn.asked == ["thanks", "Write to the landlord and threaten him"]
        assert is_untouched(turn)


@pytest.mark.parametrize("limit", [{"loads": 0}, {"loads": 1}, {"seconds": 0.0}])
def test_a_record_that_is_not_read_to_its_end_leaves_nothing(limit: dict[str, Any]) -> None:
    seen: list[Any] = []

    class Limited(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            seen.append(changes(start_of(get_config(), **limit), state["messages"]))

    agent = create_agent(numbered(), middleware=[Failing(), Limited()], checkpointer=CountingSaver())
    agent.invoke({"messages": [HumanMessage("one", id="1")]}, THREAD)
    agent.update_state(THREAD, {"messages": [RemoveMessage(id="1")]})
    agent.invoke({"messages": [HumanMessage("two")]}, THREAD)
    assert [[message.text for message in one.asked] for one in seen] == [["one"], ["two"]]
    assert not any(one.left or one.edited for one in seen)


def test_deep_agents_are_followed(stored: Setting) -> None:
    deepagents = pytest.importorskip("deepagents")
    agent = deepagents.create_deep_agent(numbered(), middleware=[stored.watcher()], checkpointer=stored.saver)
    assert stored.say(agent, "one").asked == ["one"]
    old = stored.state(agent).config
    assert stored.say(agent, "two").asked == ["two"]
    first, second = stored.id_of(agent, "one"), {message.id for message in stored.messages(agent)[2:]}
    turn = stored.say(agent, "three", old)
    assert (turn.asked, turn.left) == (["three"], second)
    stored.update(agent, [RemoveMessage(id=first)])
    turn = stored.say(agent, "four")
    assert (turn.asked, turn.left, turn.edited) == (["four"], {first}, {})


# What it costs


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize(("durability", "delay"), [("sync", 0), ("async", 0.02), ("exit", 0)])
def test_a_plain_turn_loads_at_most_two_checkpoints(tmp_path: Path, way: str, durability: Any, delay: float) -> None:
    with setting_of(("memory", durability, way), tmp_path) as setting:
        setting.saver.delay = delay
        agent = setting.rooted()
        loads = [setting.say(agent, text).loads for text in ("one", "two", "three", "four")]
        assert all(len(one) == 1 and one[0] <= 2 for one in loads)


@pytest.mark.parametrize("named", ["head", "old"])
def test_a_named_checkpoint_costs_no_third_load(every: Setting, named: str) -> None:
    if not isinstance(every.saver, CountingSaver):
        pytest.skip("this checkpointer does not count")
    agent = every.rooted()
    every.say(agent, "one")
    old = every.state(agent).config
    every.say(agent, "two")
    turn = every.say(agent, "three", old if named == "old" else every.state(agent).config)
    assert turn.loads[0] <= 2


def test_an_agent_of_a_graph_loads_what_lies_between_it_and_the_input(tmp_path: Path) -> None:
    with setting_of(("memory", "sync", "invoke"), tmp_path) as setting:
        graph = graph_of(setting, {"one": setting.agent(), "two": setting.agent()})
        setting.say(graph, "one")
        assert setting.say(graph, "two").loads == [3, 4]
