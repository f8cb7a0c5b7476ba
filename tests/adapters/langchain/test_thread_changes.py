"""The changes of a person follow from the states of a thread alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory_langchain.thread_changes import Changes, Start, answered, changes, last_questions


def human(text: str, key: str) -> HumanMessage:
    return HumanMessage(text, id=key)


THREAD: list[BaseMessage] = [human("one", "1"), AIMessage("hello", id="2")]
ASKED: list[BaseMessage] = [*THREAD, human("two", "3")]


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def test_the_last_questions_are_those_behind_the_last_answer() -> None:
    summary = HumanMessage("a summary", additional_kwargs={"lc_source": "summarization"})
    tool = ToolMessage("noon", tool_call_id="1")
    assert texts(
        last_questions([*THREAD, summary, human("two", "3"), SystemMessage("be kind"), human("three", "4")])
    ) == [
        "two",
        "three",
    ]
    assert last_questions([human("one", "1"), tool]) == []
    assert last_questions([]) == []


def test_without_a_start_the_last_question_is_said_and_nothing_else() -> None:
    assert changes(None, ASKED) == Changes([ASKED[-1]], has_record=False)


def test_what_the_start_shows_is_not_said() -> None:
    unanswered = [*THREAD, human("failed", "3")]
    seen = changes(Start("input", {"messages": unanswered}), [*unanswered, human("two", "4")])
    assert texts(list(seen.asked)) == ["two"]
    assert seen.resumed == {"1", "2", "3"}


def test_what_a_history_of_its_own_shows_is_not_said() -> None:
    start = Start("input", private={"messages": THREAD}, applied={})
    assert texts(list(changes(start, ASKED).asked)) == ["two"]


def test_a_resumption_brings_what_was_added_and_nothing_else() -> None:
    start = Start("resumption", {"messages": ASKED})
    assert changes(start, ASKED).asked == ()
    added = replace(start, added=[ASKED[-1]], before_updates={"messages": THREAD})
    assert changes(added, ASKED).asked == [ASKED[-1]]


def test_what_nodes_took_out_is_left_by_nobody() -> None:
    start = Start("input", {"messages": THREAD}, applied={"messages": ASKED})
    seen = changes(start, [ASKED[-1]])
    assert (seen.left, texts(list(seen.asked))) == (frozenset(), ["two"])


def test_a_message_that_moves_to_another_channel_is_not_left() -> None:
    start = Start("input", {"archive": THREAD, "messages": []})
    assert changes(start, [human("two", "3")]).left == frozenset()


def test_the_text_of_another_branch_is_no_edit_unless_the_input_brings_it() -> None:
    branch = [human("[redacted]", "1"), human("two, other", "3")]
    seen = changes(Start("input", {"messages": THREAD}, departed={"messages": branch}), ASKED)
    assert {key: message.text for key, message in seen.edited.items()} == {"3": "two"}


def test_the_text_that_another_person_wrote_is_no_edit_of_this_one() -> None:
    edited: list[BaseMessage] = [human("one, edited", "1"), THREAD[1]]
    start = Start("input", {"messages": edited}, before_updates={"messages": THREAD})
    assert set(changes(start, [*edited, human("two", "3")]).edited) == {"1"}
    assert not changes(replace(start, foreign=frozenset({"1"})), [*edited, human("two", "3")]).edited


def test_an_agent_that_sees_a_copy_of_the_question_has_heard_it() -> None:
    start = Start("input", {"messages": THREAD}, applied={"messages": ASKED})
    assert changes(start, [HumanMessage("two", id="copy")]).asked == [ASKED[-1]]
    assert changes(start, [HumanMessage("a task", id="task")]).asked == []


def test_answers_are_what_the_model_calls_returned_as_the_state_shows_it() -> None:
    call = AIMessage("", id="5", tool_calls=[{"name": "clock", "args": {}, "id": "call"}])
    returned = [call, AIMessage("my card is 4111", id="6"), AIMessage("removed", id="7")]
    state = [*ASKED, call, AIMessage("my card is [card]", id="6"), AIMessage("by a node", id="8")]
    assert texts(list(answered(state, returned))) == ["my card is [card]"]
    assert answered(state, []) == []


MESSAGES = st.lists(
    st.builds(
        lambda kind, key, text: kind(text, id=str(key)),
        st.sampled_from([HumanMessage, AIMessage]),
        st.integers(0, 9),
        st.sampled_from(["one", "two"]),
    ),
    unique_by=lambda message: message.id,
    max_size=8,
)


@given(
    shown=MESSAGES,
    state=MESSAGES,
    applied=st.none() | MESSAGES,
    cause=st.sampled_from(["input", "resumption", "unknown"]),
)
def test_every_change_is_of_what_the_states_have(
    shown: list[BaseMessage], state: list[BaseMessage], applied: list[BaseMessage] | None, cause: str
) -> None:
    start = Start(cause, {"messages": shown}, None if applied is None else {"messages": applied})  # type: ignore[arg-type]  # sampled
    seen = changes(start, state)
    before = {message.id for message in shown}
    assert not {message.id for message in seen.asked} & before
    assert all(isinstance(message, HumanMessage) for message in seen.asked)
    assert seen.left <= before
    assert seen.left | seen.resumed == before
    assert not seen.left & seen.resumed
    if cause != "input":
        assert not seen.left
        assert not seen.edited


@pytest.mark.parametrize("cause", ["input", "resumption", "unknown"])
def test_a_start_that_knows_nothing_changes_nothing(cause: str) -> None:
    seen = changes(Start(cause), ASKED)  # type: ignore[arg-type]  # one of the three
    assert not seen.left
    assert not seen.edited
