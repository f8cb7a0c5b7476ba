"""The messages of a conversation."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import ConfigurableFieldSpec, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from memory_core import BoundMemory, Draft, Memory, Patch, Role, Where, run_sync, utc_now
from memory_core.embedding.hashing import HashingEmbedder
from memory_langchain import MemoryChatMessageHistory, with_memory
from memory_langchain.testing import ScriptedChatModel

if TYPE_CHECKING:
    from memory_core.supplied import Vectors


@pytest.fixture
def history(ann: BoundMemory) -> MemoryChatMessageHistory:
    return MemoryChatMessageHistory(ann, "monday")


def contents(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.parametrize("session", [None, "", "  "])
def test_a_history_without_a_conversation_is_refused(ann: BoundMemory, session: str | None) -> None:
    with pytest.raises(ValueError, match="session"):
        MemoryChatMessageHistory(ann, session)


@pytest.mark.parametrize("user", [None, "", "  "])
def test_a_history_without_a_user_is_refused(open_handle: BoundMemory, user: str | None) -> None:
    with pytest.raises(ValueError, match="user"):
        MemoryChatMessageHistory(open_handle, "monday", user_id=user)


def test_messages_come_back_in_the_order_they_were_added(history: MemoryChatMessageHistory) -> None:
    history.add_user_message("one")
    history.add_ai_message("two")
    history.add_messages([HumanMessage(f"{n}") for n in range(50)])
    assert contents(history.messages) == ["one", "two", *(f"{n}" for n in range(50))]
    assert str(history).startswith("Human: one\nAI: two")


def test_a_clock_that_is_set_back_changes_no_order() -> None:
    now = utc_now()
    memory = Memory(":memory:", embedder=None, clock=lambda: now)
    history = MemoryChatMessageHistory(memory.bind(user="ann"), "monday")
    history.add_messages([HumanMessage("one", id="1"), AIMessage("two")])
    now -= timedelta(hours=1)
    history.add_messages([HumanMessage("three", id="3"), AIMessage("four")])
    history.add_messages([HumanMessage("one, edited", id="1"), HumanMessage("five", id="5")])
    history.add_messages([HumanMessage("six")])
    assert contents(history.messages) == ["one, edited", "two", "three", "four", "five", "six"]
    run_sync(memory.close)


def test_a_message_is_removed_as_in_a_graph(history: MemoryChatMessageHistory) -> None:
    history.add_messages([HumanMessage("My PIN is 4711", id="q1"), AIMessage("Noted", id="a1")])
    history.add_messages([RemoveMessage(id="q1"), RemoveMessage(id="unknown"), HumanMessage("Hello", id="q2")])
    assert contents(history.messages) == ["Noted", "Hello"]
    history.add_messages(
        [HumanMessage("wrong", id="q3"), RemoveMessage(id="q3"), HumanMessage("My name is Ann", id="q1")]
    )
    assert contents(history.messages) == ["Noted", "Hello", "My name is Ann"]
    history.add_messages([HumanMessage("gone", id="q4"), RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("Hi")])
    assert contents(history.messages) == ["Hi"]


def test_a_message_that_a_chain_stored_is_removed(ann: BoundMemory, history: MemoryChatMessageHistory) -> None:
    chain = with_memory(ScriptedChatModel(script=lambda _: "Noted"), ann).with_config(
        configurable={"session_id": "monday"}
    )
    chain.invoke([HumanMessage("My PIN is 4711", id="q1")])
    chain.invoke([RemoveMessage(id="q1"), HumanMessage("Hello", id="q2")])
    assert contents(history.messages) == ["Noted", "Hello", "Noted"]
    history.add_messages([RemoveMessage(id="q2")])
    assert contents(history.messages) == ["Noted", "Noted"]
    assert run_sync(ann.search, "PIN", mode="substring") == []


@pytest.mark.parametrize("removed", ["q1", REMOVE_ALL_MESSAGES])
def test_what_a_chain_trims_of_its_messages_stays_as_it_was_said(
    ann: BoundMemory, history: MemoryChatMessageHistory, removed: str
) -> None:
    """A person removes messages; a chain that answers with removals shortens its own state."""

    def trimming(_: object) -> list[BaseMessage]:
        return [RemoveMessage(id=removed), AIMessage("Noted", id="a1")]

    chain = with_memory(RunnableLambda(trimming), ann).with_config(configurable={"session_id": "monday"})
    chain.invoke([HumanMessage("My boat is called Marigold", id="q1")])
    chain.invoke([HumanMessage("Hello", id="q2")])
    assert contents(history.messages)[:2] == ["My boat is called Marigold", "Noted"]
    assert "Hello" in contents(history.messages)


def test_what_a_chain_stored_of_a_conversation_is_not_stored_again(
    ann: BoundMemory, history: MemoryChatMessageHistory
) -> None:
    said = [HumanMessage("I like tea", id="q1"), AIMessage("Noted", id="a1"), HumanMessage("And coffee", id="q2")]
    answer = AIMessage("Both then", id="a2")
    chain = with_memory(ScriptedChatModel(script=lambda _: answer), ann)
    chain.invoke(said, {"configurable": {"session_id": "monday"}})
    history.add_messages([*said, AIMessage("Both", id="a2")])
    assert contents(history.messages) == ["I like tea", "Noted", "And coffee", "Both"]


def test_a_long_history_is_read_to_its_end(history: MemoryChatMessageHistory) -> None:
    history.add_messages([HumanMessage(f"{n}") for n in range(1_234)])
    assert contents(history.messages) == [f"{n}" for n in range(1_234)]


def test_a_message_with_an_id_is_added_once(history: MemoryChatMessageHistory) -> None:
    messages: list[BaseMessage] = [HumanMessage("hi", id="1"), AIMessage("ho", id="2")]
    history.add_messages(messages)
    history.add_messages(messages)
    history.add_messages([HumanMessage("hi", id="1"), HumanMessage("hi", id="1")])
    assert history.messages == messages


def test_a_known_id_with_another_content_replaces_the_message(history: MemoryChatMessageHistory) -> None:
    history.add_messages([AIMessage("hel", id="1"), HumanMessage("yes?", id="2")])
    history.add_message(AIMessage("hello", id="1", tool_calls=[{"name": "f", "args": {}, "id": "c"}]))
    first, second = history.messages
    assert first == AIMessage("hello", id="1", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    assert second.id == "2"


def test_the_same_id_in_two_conversations_is_two_messages(ann: BoundMemory) -> None:
    one, two = MemoryChatMessageHistory(ann, "monday"), MemoryChatMessageHistory(ann, "tuesday")
    one.add_message(HumanMessage("a", id="1"))
    two.add_message(HumanMessage("b", id="1"))
    assert (contents(one.messages), contents(two.messages)) == (["a"], ["b"])


def test_equal_messages_without_id_are_all_kept_and_stay_without_id(history: MemoryChatMessageHistory) -> None:
    history.add_messages([HumanMessage("yes"), HumanMessage("yes")])
    history.add_message(HumanMessage("yes"))
    assert history.messages == [HumanMessage("yes")] * 3


def test_adding_messages_is_all_or_nothing(history: MemoryChatMessageHistory) -> None:
    with pytest.raises(TypeError):
        history.add_messages([HumanMessage("fine"), "not a message"])  # type: ignore[list-item]
    assert history.messages == []


class Held(HashingEmbedder):
    """Makes no vector of a text before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        await asyncio.to_thread(self.may.wait)
        return await super().embed_documents(texts)


def test_nobody_waits_for_the_vectors_of_a_very_long_message(tmp_path: Path) -> None:
    embedder = Held()
    with Memory(tmp_path / "long.db", embedder=embedder) as memory:
        ann = memory.bind(app="demo", user="ann")
        history = MemoryChatMessageHistory(ann, "monday")
        history.add_messages([HumanMessage("jasmine tea " * 10_000), AIMessage("hm")])
        assert len(history.messages[0].text) == 120_000
        assert run_sync(ann.stats).vectors_pending > 0
        hit, *_ = run_sync(partial(ann.search, "jasmine", mode="lexical"))
        assert hit.record.text.startswith("jasmine tea")
        embedder.may.set()


def test_messages_is_a_fresh_list_each_time(history: MemoryChatMessageHistory) -> None:
    history.add_user_message("one")
    history.messages.append(HumanMessage("two"))
    copied = history.messages.copy()
    copied[0].content = "changed"
    assert history.messages == [HumanMessage("one")]


async def test_the_async_forms_do_the_same(history: MemoryChatMessageHistory) -> None:
    await history.aadd_messages([HumanMessage("one", id="1"), AIMessage("two")])
    assert await history.aget_messages() == [HumanMessage("one", id="1"), AIMessage("two")]
    await history.aclear()
    assert await history.aget_messages() == []


async def test_the_sync_forms_work_inside_a_running_loop(history: MemoryChatMessageHistory) -> None:
    history.add_user_message("one")
    assert history.messages == [HumanMessage("one")]


def test_a_history_lives_on_in_the_next_event_loop(history: MemoryChatMessageHistory) -> None:
    asyncio.run(history.aadd_messages([HumanMessage("one")]))
    asyncio.run(history.aadd_messages([HumanMessage("two")]))
    assert contents(asyncio.run(history.aget_messages())) == ["one", "two"]


def test_what_was_cleared_can_be_added_again_under_the_same_ids(history: MemoryChatMessageHistory) -> None:
    messages: list[BaseMessage] = [HumanMessage("one", id="1"), AIMessage("two", id="2"), HumanMessage("three", id="3")]
    history.add_messages(messages)
    for _ in range(3):  # how LangChain's guides trim a history
        kept = history.messages[-2:]
        history.clear()
        assert history.messages == []
        history.add_messages(kept)
        history.add_messages(kept)
    assert history.messages == messages[-2:]


def test_clear_deletes_only_the_messages_of_this_conversation(ann: BoundMemory) -> None:
    one, two = MemoryChatMessageHistory(ann, "monday"), MemoryChatMessageHistory(ann, "tuesday")
    one.add_user_message("one")
    two.add_user_message("two")
    run_sync(ann.add, Draft("Ann likes tea", kind="preference", session="monday"))
    one.clear()
    assert (one.messages, contents(two.messages)) == ([], ["two"])
    assert run_sync(ann.list, where=Where(session="monday")).records[0].text == "Ann likes tea"


def test_two_users_with_one_session_id_never_see_each_other(open_handle: BoundMemory) -> None:
    ann = MemoryChatMessageHistory(open_handle, "1", user_id="ann")
    bob = MemoryChatMessageHistory(open_handle, "1", user_id="bob")
    ann.add_message(HumanMessage("secret", id="x"))
    bob.add_message(HumanMessage("other", id="x"))
    bob.clear()
    assert (contents(ann.messages), bob.messages) == (["secret"], [])


def test_a_turn_that_another_framework_changed_shows_its_new_text(ann: BoundMemory) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    history.add_messages(
        [HumanMessage("my code is 1234", id="1"), HumanMessage([{"type": "text", "text": "a"}, picture])]
    )
    first, second = run_sync(ann.list, order="oldest").records
    run_sync(ann.update, first.id, Patch(text="my code is secret"))
    run_sync(ann.update, second.id, Patch(text="b"))
    assert history.messages == [
        HumanMessage("my code is secret", id="1"),
        HumanMessage([{"type": "text", "text": "b"}, picture]),
    ]


def test_a_turn_that_another_framework_deleted_is_gone_for_good(ann: BoundMemory) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_messages([HumanMessage("one", id="1"), AIMessage("two")])
    run_sync(ann.delete, run_sync(ann.list, order="oldest").records[0].id)
    assert history.messages == [AIMessage("two")]
    history.add_message(HumanMessage("one", id="1"))
    assert history.messages == [AIMessage("two")]


def test_turns_that_another_framework_captured_are_part_of_the_history(ann: BoundMemory) -> None:
    run_sync(ann.add, Draft("hello", kind="message", author="ann", session="monday"))
    run_sync(ann.add, Draft("hi Ann", kind="message", author="weather_agent", session="monday"))
    assert MemoryChatMessageHistory(ann, "monday").messages == [HumanMessage("hello"), AIMessage("hi Ann")]


def test_turns_of_another_framework_are_messages_by_their_role(ann: BoundMemory) -> None:
    roles: list[tuple[Role, str]] = [
        ("system", "the office"),
        ("user", "peer@example.com"),
        ("tool", "ann"),
        ("assistant", "ann"),
    ]
    for role, author in roles:
        run_sync(ann.add, Draft(role, role=role, kind="message", author=author, session="monday"))
    messages = MemoryChatMessageHistory(ann, "monday").messages
    assert messages == [SystemMessage("system"), HumanMessage("user"), AIMessage("tool"), AIMessage("assistant")]


def test_several_threads_lose_nothing(ann: BoundMemory) -> None:
    async def add(worker: int) -> None:
        history = MemoryChatMessageHistory(ann, "monday")
        for n in range(20):
            await history.aadd_messages([HumanMessage(f"{worker}.{n}"), AIMessage(f"{worker}.{n}!")])

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, add(worker)) for worker in range(6)))

    asyncio.run(main())
    texts = contents(MemoryChatMessageHistory(ann, "monday").messages)
    assert len(texts) == 240
    assert all(texts[n] + "!" == texts[n + 1] for n in range(0, 240, 2))


def with_langchains_history(model: ScriptedChatModel, memory: BoundMemory) -> RunnableWithMessageHistory:
    def history_of(user_id: str, session_id: str) -> MemoryChatMessageHistory:
        return MemoryChatMessageHistory(memory, session_id, user_id=user_id)

    specs = [ConfigurableFieldSpec(id=name, annotation=str) for name in ("user_id", "session_id")]
    with warnings.catch_warnings():  # it always warns of its own deprecation
        warnings.simplefilter("ignore")
        return RunnableWithMessageHistory(model, history_of, history_factory_config=specs)


async def test_it_works_in_langchains_own_wrapper(open_handle: BoundMemory) -> None:
    model = ScriptedChatModel(script=["hello Ann", "tea"])
    chain = with_langchains_history(model, open_handle)
    chain.invoke([HumanMessage("I am Ann")], {"configurable": {"user_id": "ann", "session_id": "1"}})
    await chain.ainvoke([HumanMessage("What do I drink?")], {"configurable": {"user_id": "ann", "session_id": "1"}})
    assert contents(model.prompts[1]) == ["I am Ann", "hello Ann", "What do I drink?"]
    stored = await MemoryChatMessageHistory(open_handle, "1", user_id="ann").aget_messages()
    assert contents(stored) == ["I am Ann", "hello Ann", "What do I drink?", "tea"]


def test_the_wrapper_does_not_get_past_an_empty_session(open_handle: BoundMemory) -> None:
    chain = with_langchains_history(ScriptedChatModel(script=["never"]), open_handle)
    with pytest.raises(ValueError, match="session_id"):
        chain.invoke([HumanMessage("hi")], {"configurable": {"user_id": "ann", "session_id": ""}})


def test_system_messages_are_kept_where_user_code_puts_them(memory: Memory) -> None:
    history = MemoryChatMessageHistory(memory, "1", user_id="ann")
    history.add_message(SystemMessage("be brief"))
    assert history.messages == [SystemMessage("be brief")]
