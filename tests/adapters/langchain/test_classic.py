"""The memory of classic chains."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import PromptTemplate

from memory_core import BoundMemory, Draft, run_sync
from memory_langchain import ConversationMemory, MemoryChatMessageHistory
from memory_langchain.testing import ScriptedChatModel

with warnings.catch_warnings():  # the chains themselves are deprecated
    warnings.simplefilter("ignore")
    from langchain_classic.chains import ConversationChain, LLMChain
    from langchain_classic.memory import CombinedMemory, ConversationBufferMemory, SimpleMemory

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")


@pytest.fixture
def conversation(ann: BoundMemory) -> ConversationMemory:
    return ConversationMemory(memory=ann, session_id="monday")


def echo() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: f"re {len(prompt[-1].text)}")


def saved(memory: BoundMemory) -> list[str]:
    return [message.text for message in MemoryChatMessageHistory(memory, "monday").messages]


async def test_a_conversation_chain_remembers(ann: BoundMemory, conversation: ConversationMemory) -> None:
    model = ScriptedChatModel(script=["hello Ann", "you said it", "tea"])
    chain: Any = ConversationChain(llm=model, memory=conversation)
    assert chain.invoke({"input": "I am Ann"})["response"] == "hello Ann"
    await chain.ainvoke({"input": "I drink tea"})
    chain.invoke("What do I drink?")
    assert "Human: I am Ann\nAI: hello Ann\nHuman: I drink tea\nAI: you said it" in model.prompts[2][0].text
    assert saved(ann) == ["I am Ann", "hello Ann", "I drink tea", "you said it", "What do I drink?", "tea"]


def test_a_prompt_may_ask_for_recalled_memories(ann: BoundMemory) -> None:
    run_sync(ann.add, Draft("Ann drinks jasmine tea", author="ann"))
    conversation = ConversationMemory(memory=ann, session_id="monday", memories_key="memories", input_key="question")
    prompt = PromptTemplate.from_template("{memories}\n{history}\n{question} ({language})")
    model = echo()
    chain: Any = LLMChain(llm=model, prompt=prompt, memory=conversation)
    chain.invoke({"question": "Which tea?", "language": "English"})
    assert 'ann: "Ann drinks jasmine tea"' in model.prompts[0][0].text
    assert saved(ann)[0] == "Which tea?"


def test_it_combines_with_other_memories(ann: BoundMemory) -> None:
    conversation = ConversationMemory(memory=ann, session_id="monday", input_key="question")
    both = CombinedMemory(memories=[conversation, SimpleMemory(memories={"place": "Graz"})])
    prompt = PromptTemplate.from_template("{history} {place} {question}")
    model = echo()
    chain: Any = LLMChain(llm=model, prompt=prompt, memory=both)
    chain.invoke({"question": "Which tea?"})
    chain.invoke({"question": "And now?"})
    assert model.prompts[1][0].text.startswith("Human: Which tea?\nAI: re")


async def test_its_methods_do_what_the_base_class_documents(ann: BoundMemory, conversation: ConversationMemory) -> None:
    assert conversation.memory_variables == ["history"]
    assert conversation.load_memory_variables({}) == {"history": ""}
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    await conversation.asave_context({"input": "he", "history": "ignored"}, {"output": "hu"})
    as_messages = ConversationMemory(memory=ann, session_id="monday", return_messages=True, history_limit=2)
    expected = [HumanMessage("he"), AIMessage("hu")]
    assert as_messages.load_memory_variables({"input": "x"}) == {"history": expected}
    assert await as_messages.aload_memory_variables({}) == {"history": expected}
    await conversation.aclear()
    assert saved(ann) == []
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    conversation.clear()
    assert saved(ann) == []


def test_the_history_class_fits_the_classic_buffer(ann: BoundMemory) -> None:
    buffer = ConversationBufferMemory(chat_memory=MemoryChatMessageHistory(ann, "monday"))
    buffer.save_context({"input": "hi"}, {"output": "ho"})
    assert buffer.load_memory_variables({}) == {"history": "Human: hi\nAI: ho"}
    assert saved(ann) == ["hi", "ho"]


@pytest.mark.parametrize("scope", [{"user_id": "ann"}, {"session_id": "1"}, {"user_id": "", "session_id": "1"}])
def test_user_and_conversation_are_named_when_it_is_made(open_handle: BoundMemory, scope: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"user|conversation"):
        ConversationMemory(memory=open_handle, **scope)


@pytest.mark.filterwarnings("error")
def test_making_and_using_it_warns_of_nothing(conversation: ConversationMemory) -> None:
    conversation.save_context({"input": "hi"}, {"output": "ho"})
    assert conversation.load_memory_variables({}) == {"history": "Human: hi\nAI: ho"}
