"""One fact among twenty, asked in thirty conversations of a chain and of an agent: it is in every prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent

from memory_core import BoundMemory, Memory, MiniLmEmbedder, RecallOptions, run_sync
from memory_langchain import (
    ConversationMemory,
    MemoryChatMessageHistory,
    MemoryMiddleware,
    MemoryRetriever,
    with_memory,
)
from memory_langchain.testing import ScriptedChatModel
from tests.recall.asking import ANSWER, ENGLISH, IN_ANY_LANGUAGE, MIXED, assert_recalled, assert_shown, facts

Ask = Callable[[str, str], str]
"""Say something in a conversation; returns what the model read."""


@pytest.fixture(scope="module")
def embedder() -> Iterator[MiniLmEmbedder]:
    embedder = MiniLmEmbedder()
    yield embedder
    run_sync(embedder.close)


@pytest.fixture
def handle(tmp_path: Path, embedder: MiniLmEmbedder) -> Iterator[BoundMemory]:
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:  # recall goes by meaning, too
        yield memory.bind(app="demo", user="ann")


def model() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda prompt: ANSWER if "tea" in str(prompt[-1].text).casefold() else "Noted.")


def chain(handle: BoundMemory, recall: RecallOptions) -> Ask:
    scripted = model()
    remembering = with_memory(scripted, handle, recall=recall)

    def ask(text: str, session: str) -> str:
        remembering.invoke(text, {"configurable": {"session_id": session}})
        return str(scripted.prompts[-1][0].text)

    return ask


def agent(handle: BoundMemory, recall: RecallOptions) -> Ask:
    scripted = model()
    made: Any = create_agent(scripted, middleware=[MemoryMiddleware(handle, recall=recall)])

    def ask(text: str, session: str) -> str:
        made.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": session}})
        return str(scripted.prompts[-1][0].text)

    return ask


def classic(handle: BoundMemory, recall: RecallOptions) -> Ask:
    def ask(text: str, session: str) -> str:
        memory = ConversationMemory(chat_memory=MemoryChatMessageHistory(handle, session), recall=recall)
        shown = str(memory.load_memory_variables({"input": text})["memories"])
        memory.save_context({"input": text}, {"output": ANSWER if session.startswith("asking") else "Noted."})
        return shown

    return ask


@pytest.mark.parametrize("made", [chain, agent, classic])
@pytest.mark.parametrize(("recall", "asked"), [(RecallOptions(), ENGLISH), (IN_ANY_LANGUAGE, MIXED)])
def test_the_prompt_shows_it_every_time(
    handle: BoundMemory,
    made: Callable[[BoundMemory, RecallOptions], Ask],
    recall: RecallOptions,
    asked: Sequence[str],
) -> None:
    ask = made(handle, recall)
    for n, fact in enumerate(facts()):
        ask(fact, f"fact {n}")
    retriever = MemoryRetriever(memory=handle, recall=replace(recall, limit=None), k=recall.limit or 4)
    for n, question in enumerate(asked):
        assert_shown([found.page_content for found in retriever.invoke(question)], question)
        assert_recalled(ask(question, f"asking {n}"), question)
