"""One turn of a chain, without the chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableGenerator
from langchain_core.runnables.utils import AddableDict

from memory_core import BoundMemory
from memory_langchain import MemoryChatMessageHistory, with_memory
from memory_langchain.testing import ScriptedChatModel
from memory_langchain.turns import in_order, joined, with_memories

MONDAY: RunnableConfig = {"configurable": {"session_id": "monday"}}
CACHED = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("chunks", "whole"),
    [
        ([], None),
        (["a", "b", "c"], "abc"),
        ([[1], [2]], [1, 2]),
        ([AddableDict(output="a"), AddableDict(output="b")], {"output": "ab"}),
        ([{"messages": 1}, {"messages": 2}], {"messages": 2}),
        ([{"a": 1}, "b"], "b"),
    ],
)
def test_streamed_chunks_are_the_output_they_stand_for(chunks: list[Any], whole: object) -> None:
    assert joined(chunks) == whole


@given(st.lists(st.text(), min_size=1))
def test_streamed_messages_are_one_message(words: list[str]) -> None:
    whole: Any = joined([AIMessageChunk(content=word, id="1") for word in words])
    assert (whole.content, whole.id) == ("".join(words), "1")


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        ([], ["go"]),
        ([{"messages": [AIMessage("a")]}, {"messages": [AIMessage("b")]}], ["go", "b"]),
        ([AddableDict(output="a"), AddableDict(output="b")], ["go", "ab"]),
    ],
)
def test_whatever_a_chain_streams_its_answer_is_kept(ann: BoundMemory, chunks: list[Any], kept: list[str]) -> None:
    def speak(given: Iterator[object]) -> Iterator[object]:
        yield from chunks

    assert list(with_memory(RunnableGenerator(speak), ann).stream("go", MONDAY)) == chunks
    assert [message.text for message in MemoryChatMessageHistory(ann, "monday").messages] == kept


@pytest.mark.parametrize(
    ("instruction", "content"),
    [
        (None, "memories"),
        (SystemMessage("Be brief."), [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "memories"}]),
        (SystemMessage([CACHED]), [CACHED, {"type": "text", "text": "memories"}]),
    ],
)
def test_memories_come_after_the_instructions(instruction: SystemMessage | None, content: object) -> None:
    before = None if instruction is None else instruction.model_copy(deep=True)
    filled = with_memories(instruction, "memories")
    assert filled is not None
    assert filled.content == content
    assert instruction == before


def test_history_stands_between_instructions_and_question() -> None:
    one, two, old, new = SystemMessage("1"), SystemMessage("2"), AIMessage("old"), HumanMessage("new")
    assert in_order([one, two, new], [old], "") == [one, two, old, new]
    first, second, *rest = in_order([one, two, new], [old], "memories")
    assert (first, second.text, rest) == (one, "2memories", [old, new])


def test_a_script_that_has_run_out_says_so() -> None:
    model = ScriptedChatModel(script=["", "two words"])
    assert model.invoke("1").text == ""
    assert [chunk.text for chunk in model.stream("2")] == ["two", " words"]
    with pytest.raises(IndexError, match="2 replies"):
        model.invoke("3")


def test_the_runnable_has_the_output_type_of_its_chain(ann: BoundMemory) -> None:
    model = ScriptedChatModel(script=["hi"])
    chain = with_memory(model, ann)
    assert chain.OutputType == model.OutputType
    assert chain.get_input_jsonschema()
