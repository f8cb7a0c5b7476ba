"""Messages as records, and back."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompt_values import ChatPromptValue

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, run_sync
from memory_core.models import Scope
from memory_core.records.draft_to_record import complete
from memory_core.records.superseding import FRAMEWORK_MESSAGE
from memory_core.values.times import utc_now
from memory_langchain import MemoryChatMessageHistory
from memory_langchain.messages import searchable_text, to_draft, to_message, to_messages
from memory_langchain.scope import CallScope

EVERY_KIND: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage("hello", id="1", name="ann"),
    HumanMessage(
        [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
        id="2",
    ),
    AIMessage("hi", id="3", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage("", id="4", tool_calls=[{"name": "search", "args": {"query": "tea"}, "id": "call"}]),
    AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "so"}], id="5"),
    AIMessage(
        "",
        id="6",
        invalid_tool_calls=[{"name": "f", "args": "{", "id": "x", "error": "?", "type": "invalid_tool_call"}],
    ),
    ToolMessage("42", id="7", tool_call_id="call", artifact={"rows": [1, 2]}, status="error"),
    SystemMessage("be brief", id="8"),
    ChatMessage(content="hear, hear", role="chorus", id="9"),
    FunctionMessage(content="done", name="f", id="10"),
]


def scope() -> CallScope:
    ann = Memory(":memory:", embedder=None).bind(app="demo", user="ann")
    return CallScope(ann, "monday", None)


@pytest.mark.parametrize("message", EVERY_KIND, ids=lambda message: f"{message.type}-{message.id}")
def test_every_kind_of_message_comes_back_as_it_was(ann: BoundMemory, message: BaseMessage) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_message(message)
    (back,) = history.messages
    assert back == message
    assert type(back) is type(message)


@pytest.mark.parametrize("chunk", [AIMessageChunk(content="hi", id="1"), HumanMessageChunk(content="ho")])
def test_a_chunk_becomes_the_message_it_was_part_of(ann: BoundMemory, chunk: BaseMessage) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_message(chunk)
    (back,) = history.messages
    assert type(back) is type(chunk).__mro__[1]
    assert (back.content, back.id) == (chunk.content, chunk.id)


def test_what_json_cannot_hold_degrades_instead_of_failing(ann: BoundMemory) -> None:
    artifact = {1: dt.date(2026, 5, 1), "nan": float("nan"), "set": {3}, "pair": (1, 2)}
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_message(ToolMessage("ok", tool_call_id="call", artifact=artifact))
    (back,) = history.messages
    assert isinstance(back, ToolMessage)
    assert back.artifact == {"1": "2026-05-01", "nan": None, "set": [3], "pair": [1, 2]}


def test_half_a_character_from_a_broken_stream_is_stored(ann: BoundMemory) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_message(AIMessage("cut \ud83d", name="bot \ud83d"))
    assert history.messages[0].content == "cut \ud83d"


@pytest.mark.parametrize(
    "held",
    [
        {},
        {"type": "riddle", "data": {"content": "x"}},
        {"type": "human"},
        {"type": "human", "data": {"content": 5}},
        {"type": "ai", "data": {"content": "x", "tool_calls": "x"}},
        {"type": ["human"], "data": []},
    ],
    ids=repr,
)
def test_a_message_that_cannot_be_read_leaves_the_others_readable(ann: BoundMemory, held: Any) -> None:
    run_sync(
        ann.add,
        Draft("hello", kind="message", author="ann", session="monday", data={FRAMEWORK_MESSAGE: {"langchain": held}}),
    )
    history = MemoryChatMessageHistory(ann, "monday")
    history.add_message(AIMessage("hi"))
    assert history.messages == [HumanMessage("hello"), AIMessage("hi")]


def test_a_message_that_contains_itself_is_refused_and_nothing_is_stored(ann: BoundMemory) -> None:
    endless: dict[str, Any] = {}
    endless["more"] = endless
    history = MemoryChatMessageHistory(ann, "monday")
    with pytest.raises(InvalidInputError, match="ai"):
        history.add_messages([HumanMessage("go"), AIMessage("x", additional_kwargs=endless)])
    assert history.messages == []


def test_a_message_that_could_never_be_read_again_is_refused() -> None:
    class Custom(BaseMessage):
        type: str = "custom"

    with pytest.raises(TypeError, match="custom"):
        to_draft(Custom(content="x"), scope(), source_key=None)
    with pytest.raises(TypeError, match="str"):
        to_draft("x", scope(), source_key=None)


@pytest.mark.parametrize(
    ("message", "author", "text"),
    [
        (HumanMessage("tea"), "ann", "tea"),
        (HumanMessage("tea", name="Bob"), "Bob", "tea"),
        (AIMessage("tea"), "assistant", "tea"),
        (ChatMessage(content="tea", role="chorus"), "chorus", "tea"),
        (ToolMessage("tea", tool_call_id="1"), None, ""),
        (SystemMessage("tea"), None, ""),
    ],
)
def test_what_people_and_models_said_is_found_under_their_names(message: BaseMessage, author: str, text: str) -> None:
    draft = to_draft(message, scope(), source_key=None)
    assert (draft.author, draft.text, draft.kind, draft.session) == (author, text, "message", "monday")


Values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@given(Values)
def test_a_tool_may_return_anything(value: Any) -> None:
    data = to_draft(ToolMessage("42", tool_call_id="1", artifact=value), scope(), source_key=None).data
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@given(st.text(st.characters(), min_size=1))
def test_any_text_is_searchable_text(text: str) -> None:
    searchable_text(HumanMessage(text)).encode()


@given(st.text(st.characters()), st.none() | st.text(st.characters(), max_size=600))
def test_any_text_under_any_name_can_be_stored(text: str, name: str | None) -> None:
    for message in (
        HumanMessage(text, name=name),
        AIMessage(text, name=name),
        ChatMessage(content=text, role=name or ""),
    ):
        record = complete(to_draft(message, scope(), source_key=None), Scope("demo", "ann"), utc_now())
        assert to_message(record) == message


@pytest.mark.parametrize(
    "value",
    [
        "hi",
        HumanMessage("hi"),
        HumanMessageChunk(content="hi"),
        [HumanMessage("hi")],
        (("human", "hi"),),
        [{"role": "user", "content": "hi"}],
        ChatPromptValue(messages=[HumanMessage("hi")]),
    ],
)
def test_all_that_langchain_takes_for_messages_is_understood(value: object) -> None:
    assert to_messages(value, role=HumanMessage) == [HumanMessage("hi")]


def test_what_is_no_message_is_refused_with_its_value() -> None:
    with pytest.raises(TypeError, match="42"):
        to_messages(42, role=HumanMessage)
