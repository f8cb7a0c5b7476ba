"""Memory follows the visible thread of an agent: the table of LangGraph in docs/conversations.md, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from memory_core import BoundMemory, Draft, Link, MemoryRecord, Patch, Where, run_sync
from memory_langchain import MemoryChatMessageHistory, MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel

pytestmark = pytest.mark.uncovered

THREAD: RunnableConfig = {"configurable": {"thread_id": "monday"}}


def numbered() -> ScriptedChatModel:
    """Never answers the same."""
    count = iter(range(1_000))
    return ScriptedChatModel(script=lambda prompt: f"answer {next(count)}")


def agent_with(memory: BoundMemory, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    model = options.pop("model", None) or numbered()
    options.setdefault("checkpointer", InMemorySaver())
    return create_agent(model, middleware=[*middleware, MemoryMiddleware(memory, tools=())], **options)


def say(agent: Any, text: str, message_id: str | None = None, config: RunnableConfig = THREAD) -> list[str]:
    state = agent.invoke({"messages": [HumanMessage(text, id=message_id)]}, config)
    return [message.text for message in state["messages"]]


def active(memory: BoundMemory) -> list[str]:
    return [record.text for record in run_sync(memory.list, order="oldest").records]


def record_of(memory: BoundMemory, text: str) -> MemoryRecord:
    page = run_sync(memory.list, where=Where(states=("active", "compacted", "archived"), left=None), limit=1_000)
    (record,) = [record for record in page.records if record.text == text]
    return record


def before(agent: Any, text: str) -> RunnableConfig:
    """The checkpoint before a question was asked."""
    states = list(agent.get_state_history(THREAD))
    asked = [state for state in states if state.next == ("__start__",) and text not in shown(state)]
    (state,) = [state for state in asked if text in str(state.tasks)]
    found: RunnableConfig = state.config
    return found


def shown(state: Any) -> list[str]:
    return [message.text for message in state.values.get("messages", [])]


def shortly(agent: Any) -> list[BaseMessage]:
    found: list[BaseMessage] = agent.get_state(THREAD).values["messages"]
    return found


def test_an_edited_message_has_its_new_text_and_keeps_the_old_one_in_its_history(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "My cat is called Pepper", "1")
    first = record_of(ann, "My cat is called Pepper")
    visible = say(agent, "My cat is called Ginger", "1", before(agent, "Pepper"))
    assert active(ann) == visible == ["My cat is called Ginger", "answer 1"]
    assert [version.text for version in run_sync(ann.history, first.id)] == [
        "My cat is called Pepper",
        "My cat is called Ginger",
    ]
    assert record_of(ann, "answer 0").left
    assert "Pepper" not in run_sync(ann.recall, "What is my cat called?").text


def test_what_update_state_edits_is_edited(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "My cat is called Pepper", "1")
    agent.update_state(THREAD, {"messages": [HumanMessage("My cat is called Ginger", id="1")]})
    visible = say(agent, "How old is she?")
    assert active(ann) == visible


def test_a_regenerated_answer_replaces_its_predecessor(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "Tell me a joke")
    state = next(state for state in agent.get_state_history(THREAD) if state.next == ("model",))
    again = agent.invoke(None, state.config)
    assert active(ann) == [message.text for message in again["messages"]] == ["Tell me a joke", "answer 1"]
    assert record_of(ann, "answer 0").left


def test_a_branch_that_is_left_is_compacted_and_active_again_when_it_is_resumed(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one")
    say(agent, "two")
    old = agent.get_state(THREAD).config
    visible = say(agent, "three", None, before(agent, "two"))
    assert active(ann) == visible == ["one", "answer 0", "three", "answer 2"]
    visible = say(agent, "four", None, old)
    assert active(ann) == visible == ["one", "answer 0", "two", "answer 1", "four", "answer 3"]


def test_a_fork_that_has_nothing_in_common_leaves_everything(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "My cat is called Pepper")
    visible = say(agent, "My cat is called Ginger", None, before(agent, "Pepper"))
    assert active(ann) == visible


def test_the_same_question_typed_again_at_a_fork_is_one_record(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one")
    say(agent, "two")
    visible = say(agent, "two", None, before(agent, "two"))
    assert active(ann) == visible


def test_a_removed_message_is_left_and_what_follows_stays(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one")
    say(agent, "my code is 1234")
    (secret,) = [message for message in shortly(agent) if "1234" in message.text]
    agent.update_state(THREAD, {"messages": [RemoveMessage(id=str(secret.id))]})
    visible = say(agent, "three")
    assert active(ann) == visible
    assert "1234" not in run_sync(ann.recall, "What is my code?").text


def test_a_fact_derived_from_what_is_left_goes_and_comes_with_it(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one")
    say(agent, "I live in Bern")
    old = agent.get_state(THREAD).config
    source = record_of(ann, "I live in Bern")
    fact = Draft("Ann lives in Bern", kind="fact", links=[Link("derived_from", source.id)])
    run_sync(ann.add, fact)
    say(agent, "three", None, before(agent, "Bern"))
    assert "Ann lives in Bern" not in active(ann)
    say(agent, "four", None, old)
    assert "Ann lives in Bern" in active(ann)


class Changing(AgentMiddleware[Any, Any, Any]):
    """Changes the thread before the model is called, as summaries and redactions do."""

    def __init__(self, change: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]]) -> None:
        super().__init__()
        self.change = change

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": self.change(state["messages"])}


def rewritten(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [HumanMessage("[cleared]", id=messages[0].id)] if len(messages) > 2 else []


def trimmed(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [RemoveMessage(id=str(message.id)) for message in messages[:-1]]


@pytest.mark.parametrize("change", [rewritten, trimmed])
def test_what_middleware_changes_during_a_run_stays_as_it_was_said(
    ann: BoundMemory, change: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]]
) -> None:
    agent = agent_with(ann, Changing(change))
    for text in ("one", "two", "three"):
        say(agent, text)
    assert active(ann) == ["one", "answer 0", "two", "answer 1", "three", "answer 2"]


def test_an_edit_is_stored_as_middleware_redacts_it(ann: BoundMemory) -> None:
    def redact(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        return [HumanMessage(m.text.replace("4111", "[card]"), id=m.id) for m in messages if "4111" in m.text]

    agent = agent_with(ann, Changing(redact))
    say(agent, "my card is 1234", "1")
    say(agent, "my card is 4111", "1", before(agent, "1234"))
    assert active(ann) == ["my card is [card]", "answer 1"]
    say(agent, "thanks")
    assert active(ann)[0] == "my card is [card]"


def test_what_a_tool_corrected_is_not_what_the_thread_says_and_stays_corrected(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "my code is 1234")
    run_sync(ann.update, record_of(ann, "my code is 1234").id, Patch(text="my code is secret"))
    say(agent, "two")
    assert active(ann)[0] == "my code is secret"


def test_lost_checkpoints_leave_nothing(ann: BoundMemory) -> None:
    say(agent_with(ann), "I live in Bern")
    say(agent_with(ann), "Where do I live?")
    assert active(ann) == ["I live in Bern", "answer 0", "Where do I live?", "answer 0"]


def test_a_client_that_sends_only_what_is_new_leaves_nothing(ann: BoundMemory) -> None:
    agent = agent_with(ann, checkpointer=None)
    for text in ("one", "two"):
        agent.invoke({"messages": [HumanMessage(text, id=text)]}, THREAD)
    assert active(ann) == ["one", "answer 0", "two", "answer 1"]


def test_what_a_client_changes_without_a_record_stays_as_it_was_said(ann: BoundMemory) -> None:
    agent = agent_with(ann, checkpointer=None)
    agent.invoke({"messages": [HumanMessage("My cat is called Pepper", id="1")]}, THREAD)
    sent = [HumanMessage("My cat is called Ginger", id="1"), AIMessage("answer 0"), HumanMessage("two", id="2")]
    agent.invoke({"messages": sent}, THREAD)
    assert active(ann) == ["My cat is called Pepper", "answer 0", "two", "answer 1"]


def test_a_client_without_a_record_that_resends_only_its_persons_messages_stores_none_twice(ann: BoundMemory) -> None:
    agent, asked = agent_with(ann, checkpointer=None), list[tuple[str, str]]()
    for text in ("one", "two", "three", "two"):
        asked.append(("user", text))
        agent.invoke({"messages": asked}, THREAD)
    assert active(ann) == ["one", "answer 0", "two", "answer 1", "three", "answer 2", "two", "answer 3"]


def test_a_message_that_was_removed_and_is_sent_again_under_its_id_is_there_again(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one", "1")
    say(agent, "two", "2")
    agent.update_state(THREAD, {"messages": [RemoveMessage(id="2")]})
    say(agent, "three", "3")
    assert "two" not in active(ann)
    say(agent, "two", "2")
    assert "two" in active(ann)


def test_a_run_that_stores_nothing_leaves_nothing_behind(ann: BoundMemory) -> None:
    middleware = MemoryMiddleware(ann, capture=False, tools=())
    agent: Any = create_agent(ScriptedChatModel(script=lambda _: "Noted."), middleware=[middleware])
    for thread in "abc":
        agent.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": thread}})
    assert not active(ann)
    assert not vars(middleware)["_unstored"]
    assert not vars(middleware)["_begun"]


def test_an_interrupted_run_that_is_resumed_is_said_once(ann: BoundMemory) -> None:
    call = AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "call"}])
    model = ScriptedChatModel(script=["one", call, "noon"])

    def clock() -> str:
        """Tell the time."""
        return "noon"

    asking = HumanInTheLoopMiddleware(interrupt_on={"clock": True})
    agent = agent_with(ann, asking, model=model, tools=[clock])
    say(agent, "hello")
    say(agent, "What time is it?")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert active(ann) == ["hello", "one", "What time is it?", "noon"]


class Waiting(AgentMiddleware[Any, Any, Any]):
    """Stands behind the memory."""

    is_asking = False

    def before_model(self, state: Any, runtime: Any) -> None:
        if self.is_asking:
            interrupt("ok?")


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (HumanMessage("one, edited", id="1"), ["one, edited", "answer 0", "two"]),
        (HumanMessage("two, edited", id="2"), ["one", "answer 0", "two, edited"]),
        (HumanMessage("three", id="3"), ["one", "answer 0", "two", "three"]),
        (RemoveMessage(id="1"), ["answer 0", "two"]),
    ],
    ids=["an edit", "an edit of the question", "an addition", "a removal"],
)
def test_what_its_person_changes_while_a_run_waits_is_followed(
    ann: BoundMemory, change: BaseMessage, shown: Sequence[str]
) -> None:
    waiting = Waiting()
    agent = create_agent(
        numbered(), middleware=[MemoryMiddleware(ann, tools=()), waiting], checkpointer=InMemorySaver()
    )
    say(agent, "one", "1")
    waiting.is_asking = True
    say(agent, "two", "2")
    agent.update_state(THREAD, {"messages": [change]})
    waiting.is_asking = False
    agent.invoke(Command(resume=True), THREAD)
    assert active(ann) == [*shown, "answer 1"]


def test_a_history_does_not_show_what_was_left(ann: BoundMemory) -> None:
    agent = agent_with(ann)
    say(agent, "one")
    visible = say(agent, "two", None, before(agent, "one"))
    assert [message.text for message in MemoryChatMessageHistory(ann, "monday").messages] == visible
