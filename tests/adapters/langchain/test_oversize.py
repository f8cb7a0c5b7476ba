"""Messages that are larger than a record may be: no turn fails, the words stay, a text says what was there."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from memory_core import BoundMemory, Memory, Patch, run_sync
from memory_core.models import Scope
from memory_core.records.draft_to_record import complete
from memory_core.values.limits import MAX_DATA_BYTES, MAX_DATA_VALUES
from memory_core.values.times import utc_now
from memory_langchain import MemoryChatMessageHistory, MemoryMiddleware, with_memory
from memory_langchain.messages import searchable_text, spoken_text, to_draft, to_message
from memory_langchain.scope import CallScope
from memory_langchain.testing import ScriptedChatModel

pytestmark = pytest.mark.uncovered

PHOTO = base64.b64encode(os.urandom(3_200_000)).decode()
QUESTION = "What is on this photo of my cat?"
THREAD: RunnableConfig = {"configurable": {"thread_id": "monday", "session_id": "monday"}}


def asked(*blocks: dict[str, Any], **fields: Any) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": QUESTION}, *blocks], **fields)


def photo(data: str = PHOTO) -> dict[str, Any]:
    return {"type": "image", "base64": data, "mime_type": "image/png"}


def shortened(message: BaseMessage) -> BaseMessage:
    """The message as it comes back from a record."""
    ann = Memory(":memory:", embedder=None).bind(app="demo", user="ann")
    draft = to_draft(message, CallScope(ann, "monday", None), source_key=None)
    return to_message(complete(draft, Scope("demo", "ann"), utc_now()))


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (photo(), "image/png"),
        ({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PHOTO}"}}, "image_url"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": PHOTO}}, "image"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PHOTO}"}}, "file"),
        ({"type": "input_audio", "input_audio": {"data": PHOTO, "format": "wav"}}, "input_audio"),
        ({"type": "custom", "items": ["a, b"] * 800_000}, "custom"),
    ],
)
def test_a_block_that_is_too_large_comes_back_as_a_text_that_says_what_it_was(block: dict[str, Any], kind: str) -> None:
    message = asked(block, id="1")
    kept = shortened(message)
    assert kept.id == "1"
    assert kept.content == [
        {"type": "text", "text": QUESTION},
        {"type": "text", "text": f"[{kind}: too large to be remembered]"},
    ]


def test_what_fits_comes_back_unchanged_and_of_several_the_largest_go_first() -> None:
    small, large = photo(PHOTO[:1_000_000]), photo(PHOTO)
    assert shortened(asked(small)) == asked(small)
    kept: Any = shortened(asked(small, large, small)).content
    assert (kept[1], kept[3]) == (small, small)
    assert "too large" in kept[2]["text"]


@pytest.mark.parametrize(
    "message",
    [
        ToolMessage("42", tool_call_id="1", artifact=[1] * (MAX_DATA_VALUES + 1)),
        ToolMessage("42", tool_call_id="1", artifact={"bytes": "x" * 5_000_000}),
        AIMessage("42", additional_kwargs={"audio": {"data": PHOTO}}),
        AIMessage("42", response_metadata={"raw": "é" * 3_000_000}),
        AIMessage("42", tool_calls=[{"name": "write", "args": {"text": "x" * 5_000_000}, "id": "1"}]),
        AIMessage("42", invalid_tool_calls=[{"name": "f", "args": "{" * 5_000_000, "id": "x", "error": "?"}]),
    ],
    ids=["values", "artifact", "audio", "raw", "arguments", "invalid arguments"],
)
def test_whatever_is_too_large_beside_the_words_is_replaced(message: BaseMessage) -> None:
    kept = shortened(message)
    assert (type(kept), kept.text) == (type(message), "42")
    assert "too large to be remembered]" in repr(kept)


def test_an_artifact_that_is_nested_too_deeply_is_stored_shortened() -> None:
    nested: Any = "x"
    for _ in range(300):
        nested = [nested]
    assert shortened(ToolMessage("42", tool_call_id="1", artifact=nested)).text == "42"


@pytest.mark.parametrize("character", ["x", "語", '"'])
def test_only_words_that_are_too_large_themselves_are_cut(character: str) -> None:
    said = "The beginning. " + character * (MAX_DATA_BYTES + 1)
    for message in (HumanMessage(said), asked(photo(), {"type": "text", "text": said})):
        kept = shortened(message)
        assert "The beginning. " + character * 1_000 in kept.text
        assert kept.text.endswith("characters: too large to be remembered]")
    assert len(shortened(HumanMessage(said)).text.encode()) > MAX_DATA_BYTES / 2 - 300  # what stands around it


@given(st.lists(st.sampled_from(["words", "photo", "small", "long"]), max_size=4))
def test_every_message_can_be_stored_and_keeps_its_short_texts(parts: list[str]) -> None:
    blocks = {
        "words": {"type": "text", "text": "jasmine tea"},
        "photo": photo(PHOTO),
        "small": photo(PHOTO[:800]),
        "long": {"type": "text", "text": "x" * 3_000_000},
    }
    kept = shortened(HumanMessage([blocks[part] for part in parts]))
    assert len(kept.content) == len(parts)
    assert kept.text.count("jasmine tea") == parts.count("words")


MANY = {str(n): "x" * 250 for n in range(20_000)}
HUGE = "x" * 5_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        AIMessage("42", tool_calls=[{"name": "f", "args": MANY, "id": "1"}], id="a"),
        AIMessage("42", additional_kwargs=MANY, id="a"),
        AIMessage("42", response_metadata=dict.fromkeys(map(str, range(260_000)), 1), id="a"),
        AIMessage("42", invalid_tool_calls=[{"name": "f", "args": "{", "id": "x", "error": HUGE}], id="a"),
        AIMessage([{"type": "text", "text": "42", "annotations": [{"title": HUGE}]}], id="a"),
        HumanMessage([{"type": "text", "text": "42"}, *({"type": "image", "url": "x" * 200},) * 20_000], id="a"),
        HumanMessage("42", name=HUGE, id="a"),
        HumanMessage("42", id="a", **MANY),
        ToolMessage("42", tool_call_id=HUGE, id="a"),
        ChatMessage(content="42", role=HUGE, id="a"),
    ],
    ids=["arguments", "kwargs", "values", "error", "annotations", "blocks", "name", "fields", "tool_call_id", "role"],
)
def test_many_small_parts_and_huge_names_are_shortened_and_the_words_stay(message: BaseMessage) -> None:
    kept = shortened(message)
    assert (type(kept), kept.text[:2], kept.id) == (type(message), "42", "a")
    assert "too large to be remembered]" in repr(kept)
    assert spoken_text(kept) == spoken_text(message)


def test_a_message_that_cannot_be_made_again_keeps_its_words() -> None:
    calls = [{"name": "f", "args": {}, "id": str(n) * 40} for n in range(20_000)]
    kept = shortened(AIMessage("42", tool_calls=calls, id="a"))
    assert (type(kept), kept.text) == (AIMessage, "42")


def test_a_call_with_many_arguments_stays_a_call_so_that_its_result_has_one() -> None:
    kept: Any = shortened(AIMessage("42", tool_calls=[{"name": "f", "args": MANY, "id": "1"}]))
    (call,) = kept.tool_calls
    assert (call["name"], call["id"]) == ("f", "1")


def test_an_agent_a_chain_and_a_history_go_on_with_a_large_photo(ann: BoundMemory) -> None:
    model = ScriptedChatModel(script=lambda prompt: "A grey cat.")
    agent: Any = create_agent(model, middleware=[MemoryMiddleware(ann)], checkpointer=InMemorySaver())
    for question in (asked(photo()), HumanMessage("And its colour?")):
        agent.invoke({"messages": [question]}, THREAD)
    assert model.prompts[0][-1].content == asked(photo()).content  # the model sees all of it
    history = MemoryChatMessageHistory(ann, "monday")
    words = [searchable_text(message) for message in history.messages]
    assert words == [QUESTION, "A grey cat.", "And its colour?", "A grey cat."]

    chain: Any = with_memory(model, ann)
    chain.invoke([asked(photo())], {"configurable": {"session_id": "chain"}})
    chain.invoke([HumanMessage("And its colour?")], {"configurable": {"session_id": "chain"}})
    assert "[image/png: too large to be remembered]" in str(model.prompts[-1])
    words = [searchable_text(message) for message in MemoryChatMessageHistory(ann, "chain").messages]
    assert words == [QUESTION, "A grey cat.", "And its colour?", "A grey cat."]


def test_a_client_that_resends_a_large_photo_without_ids_is_recognised(ann: BoundMemory) -> None:
    chain: Any = with_memory(ScriptedChatModel(script=lambda prompt: "A grey cat."), ann)
    chain.invoke([asked(photo())], THREAD)
    chain.invoke([asked(photo()), AIMessage("A grey cat."), HumanMessage("And its colour?")], THREAD)
    assert run_sync(ann.stats).records == 4


def test_a_large_photo_that_is_added_again_with_its_id_changes_nothing(ann: BoundMemory) -> None:
    history = MemoryChatMessageHistory(ann, "monday")
    for _ in range(2):
        history.add_messages([asked(photo(), id="1")])
    (record,) = run_sync(ann.list).records
    assert record.rev == 1


def test_an_edited_text_keeps_what_the_other_blocks_were(ann: BoundMemory) -> None:
    MemoryChatMessageHistory(ann, "monday").add_messages([asked(photo(), id="1")])
    (record,) = run_sync(ann.list).records
    run_sync(ann.update, record.id, Patch(text="What is on the photo?"))
    (message,) = MemoryChatMessageHistory(ann, "monday").messages
    assert searchable_text(message) == "What is on the photo?"
    assert "image/png: too large" in str(message.content)
