"""A memory that hangs or fails costs a run its memory, and never the answer; it heals by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from memory_core import Hit, Memory, MemoryRecord, Quota, Scope, StoreUnavailableError
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.store import SqliteStore
from memory_langchain import BankMiddleware, MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "monday"}}


@tool
def look() -> str:
    """Look into the tin."""
    return "It is empty"


class Moody(SqliteStore):
    """A store that works, hangs, or fails."""

    mood = "well"

    async def _suffer(self) -> None:
        if self.mood == "hangs":
            await asyncio.Event().wait()
        if self.mood == "fails":
            raise StoreUnavailableError("out of reach")

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        await self._suffer()
        return await super().search(scopes, request)

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        await self._suffer()
        return await super().add(scope, records, **options)


@pytest.mark.parametrize("mood", ["hangs", "fails"])
async def test_a_memory_that_does_not_answer_costs_no_answer_and_has_all_that_was_said_afterwards(
    mood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)
    store = Moody(tmp_path / "m.db", embedder=None, clock=lambda: datetime.now(UTC))
    async with Memory(store) as memory:
        ann = memory.bind(user="ann")
        model = ScriptedChatModel(script=lambda prompt: f"answer to {prompt[-1].text}")
        middleware = MemoryMiddleware(ann, timeout=0.2, tools=())
        agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())

        async def say(text: str) -> str:
            state = await agent.ainvoke({"messages": [HumanMessage(text)]}, THREAD)
            return str(state["messages"][-1].text)

        await say("one")
        store.mood = mood
        with caplog.at_level(logging.ERROR, logger="memory_langchain"):
            assert await say("two") == "answer to two"
        store.mood = "well"
        assert await say("three") == "answer to three"
        page = await ann.list(limit=100)
        said = [text for turn in ("one", "two", "three") for text in (turn, f"answer to {turn}")]
        assert sorted(record.text for record in page.records) == sorted(said)


async def test_a_memory_that_fails_costs_those_who_have_another_nothing(tmp_path: Path) -> None:
    stores = {name: Moody(tmp_path / f"{name}.db", embedder=None, clock=lambda: datetime.now(UTC)) for name in "ab"}
    async with Memory(stores["a"]) as broken, Memory(stores["b"]) as well:
        handles = {"ann": broken.bind(user="ann"), "bob": well.bind(user="bob")}
        await handles["bob"].add("Bob drinks jasmine tea")
        model = ScriptedChatModel(script=lambda prompt: "noted")
        middleware = MemoryMiddleware(lambda user, _: handles[user], tools=())
        agent: Any = create_agent(model, middleware=[middleware])

        async def ask(user: str) -> str:
            config: Any = {"configurable": {"thread_id": user, "user_id": user}}
            await agent.ainvoke({"messages": [HumanMessage("Which tea does Bob drink?")]}, config)
            return str(model.prompts[-1][0].text)

        stores["a"].mood = "fails"
        assert "jasmine" not in await ask("ann")
        assert "jasmine" in await ask("bob")
        assert "jasmine" not in await ask("ann")


async def test_an_owner_whose_quota_is_full_still_gets_answers_from_what_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory(tmp_path / "memory.db", embedder=None, quota=Quota(records=1)) as memory:
        await memory.bind(user="ann").add("Ann's tea is jasmine tea")
        call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "call"}])
        model = ScriptedChatModel(script=[call, "Jasmine."])
        middleware: Any = [MemoryMiddleware(memory.bind(user="ann")), BankMiddleware(memory.bind(user="ann"))]
        agent: Any = create_agent(model, [look], middleware=middleware)
        answer = await agent.ainvoke({"messages": [HumanMessage("Which tea is Ann's tea?")]}, THREAD)
        assert answer["messages"][-1].text == "Jasmine."
        assert "jasmine tea" in model.prompts[0][0].text
    assert "a turn of conversation monday is not stored: QuotaExceededError" in caplog.text
    assert "an agent goes on without its bank: QuotaExceededError" in caplog.text


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_timeout_is_above_zero(seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        MemoryMiddleware(Memory(":memory:").bind(user="ann"), timeout=seconds)
