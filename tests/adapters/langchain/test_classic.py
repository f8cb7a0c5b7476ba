"""The memory of classic chains."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import PromptTemplate

from memory_core import PUSHED, BoundMemory, Draft, Where, run_sync
from memory_langchain import ConversationMemory, MemoryChatMessageHistory
from memory_langchain.testing import ScriptedChatModel

with warnings.catch_warnings():  # the chains themselves are deprecated
    warnings.simplefilter("ignore")
    from langchain_classic.chains import ConversationChain, LLMChain
    from langchain_classic.memory import (
        CombinedMemory,
        ConversationBufferMemory,
        ConversationBufferWindowMemory,
        SimpleMemory,
    )

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")

PROMPT = PromptTemplate.from_template("{memories}\n{history}\nHuman: {input}\nAI:")


@pytest.fixture
def monday(ann: BoundMemory) -> MemoryChatMessageHistory:
    return MemoryChatMessageHistory(ann, "monday")


@pytest.fixture
def conversation(monday: MemoryChatMessageHistory) -> ConversationMemory:
    return ConversationMemory(chat_memory=monday)


def echo() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: f"re {len(prompt[-1].text)}")


def saved(monday: MemoryChatMessageHistory) -> list[str]:
    return [message.text for message in monday.messages]


async def test_a_conversation_chain_remembers(
    monday: MemoryChatMessageHistory, conversation: ConversationMemory
) -> None:
    model = ScriptedChatModel(script=["hello Ann", "you said it", "tea"])
    chain: Any = ConversationChain(llm=model, prompt=PROMPT, memory=conversation)
    assert chain.invoke({"input": "I am Ann"})["response"] == "hello Ann"
    await chain.ainvoke({"input": "I drink tea"})
    chain.invoke("What do I drink?")
    assert "Human: I am Ann\nAI: hello Ann\nHuman: I drink tea\nAI: you said it" in model.prompts[2][0].text
    assert saved(monday) == ["I am Ann", "hello Ann", "I drink tea", "you said it", "What do I drink?", "tea"]


def test_the_prompt_shows_recalled_memories_and_nothing_twice(
    ann: BoundMemory, monday: MemoryChatMessageHistory
) -> None:
    run_sync(ann.add, Draft("Ann drinks jasmine tea", author="ann", kind="fact"))
    conversation = ConversationMemory(chat_memory=monday, input_key="question", memories_key="known")
    prompt = PromptTemplate.from_template("{known}\n{history}\n{question} ({language})")
    model = echo()
    chain: Any = LLMChain(llm=model, prompt=prompt, memory=conversation)
    chain.invoke({"question": "Which tea does Ann drink?", "language": "English"})
    chain.invoke({"question": "Which tea does Ann drink at noon?", "language": "English"})
    assert 'ann: "Ann drinks jasmine tea"' in model.prompts[0][0].text
    assert model.prompts[1][0].text.count("Which tea does Ann drink?") == 1
    assert saved(monday)[0] == "Which tea does Ann drink?"


def test_options_say_what_is_recalled(ann: BoundMemory, monday: MemoryChatMessageHistory) -> None:
    run_sync(ann.add, Draft("Ann drinks jasmine tea", kind="fact"))
    run_sync(ann.add, Draft("Ann drinks green tea", kind="rumour"))
    facts = ConversationMemory(chat_memory=monday, recall=replace(PUSHED, where=Where(kinds=["fact"])))
    shown = facts.load_memory_variables({"input": "Which tea does Ann drink?"})["memories"]
    assert "jasmine" in shown
    assert "green" not in shown


def test_it_combines_with_other_memories(monday: MemoryChatMessageHistory) -> None:
    conversation = ConversationMemory(chat_memory=monday, input_key="question")
    both = CombinedMemory(memories=[conversation, SimpleMemory(memories={"place": "Graz"})])
    prompt = PromptTemplate.from_template("{history} {memories} {place} {question}")
    model = echo()
    chain: Any = LLMChain(llm=model, prompt=prompt, memory=both)
    chain.invoke({"question": "Which tea?"})
    chain.invoke({"question": "And now?"})
    assert model.prompts[1][0].text.startswith("Human: Which tea?\nAI: re")


async def test_its_methods_do_what_the_base_class_documents(
    monday: MemoryChatMessageHistory, conversation: ConversationMemory
) -> None:
    assert conversation.memory_variables == ["history", "memories"]
    assert conversation.load_memory_variables({}) == {"history": "", "memories": ""}
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    await conversation.asave_context({"input": "he", "history": "ignored"}, {"output": "hu"})
    as_messages = ConversationMemory(chat_memory=monday, return_messages=True)
    expected = [HumanMessage("hi"), AIMessage("ho"), HumanMessage("he"), AIMessage("hu")]
    assert as_messages.load_memory_variables({"input": "x"})["history"] == expected
    assert (await as_messages.aload_memory_variables({}))["history"] == expected
    await conversation.aclear()
    assert saved(monday) == []
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    conversation.clear()
    assert saved(monday) == []


def test_the_history_class_fits_the_classic_buffers(monday: MemoryChatMessageHistory) -> None:
    buffer = ConversationBufferMemory(chat_memory=monday)
    buffer.save_context({"input": "hi"}, {"output": "ho"})
    buffer.save_context({"input": "he"}, {"output": "hu"})
    assert buffer.load_memory_variables({}) == {"history": "Human: hi\nAI: ho\nHuman: he\nAI: hu"}
    window = ConversationBufferWindowMemory(chat_memory=monday, k=1)
    assert window.load_memory_variables({}) == {"history": "Human: he\nAI: hu"}
    assert saved(monday) == ["hi", "ho", "he", "hu"]


def test_it_has_no_history_but_ours(ann: BoundMemory) -> None:
    for wrong in ({}, {"chat_memory": ann}):
        with pytest.raises(ValueError, match="chat_memory"):
            ConversationMemory(**wrong)  # type: ignore[arg-type]  # what a caller may get wrong


@pytest.mark.filterwarnings("error")
def test_making_and_using_it_warns_of_nothing(monday: MemoryChatMessageHistory) -> None:
    conversation = ConversationMemory(chat_memory=monday)
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    assert conversation.load_memory_variables({})["history"] == "Human: hi\nAI: ho"
