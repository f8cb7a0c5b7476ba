"""A long turn, such as a call or the work of an agent for an hour, costs what its messages cost, and loses none."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.radbot import QdrantMemoryService
from memory_adk.testing import ask
from memory_core import Memory, MemoryRecord, Scope, StoreUnavailableError
from memory_core.storage.sqlite.store import SqliteStore
from tests.adapters.adk.agents import ANN, APP

pytestmark = pytest.mark.uncovered

STEPS = 60


class Talker(BaseAgent):
    """Says one thing after the other."""

    steps: int = STEPS

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for step in range(self.steps):
            content = types.Content(role="model", parts=[types.Part(text=f"step {step}")])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)

    async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for step in range(self.steps):
            spoken = types.Transcription(text=f"step {step}", finished=True)
            if step % 2:
                yield Event(author=self.name, invocation_id=ctx.invocation_id, output_transcription=spoken)
            else:
                yield Event(author="user", invocation_id=ctx.invocation_id, input_transcription=spoken)


class Counting(SqliteStore):
    """Counts what it is given, and can be out of reach."""

    writes = records_given = 0
    fails: Sequence[int] = ()

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        self.writes += 1
        self.records_given += len(records)
        if self.writes in self.fails:
            raise StoreUnavailableError("out of reach")
        return await super().add(scope, records, **options)


@pytest.fixture
def store(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "counted.db", embedder=None, clock=lambda: datetime.now(UTC))


def talking(service: MemoryService, plugin: MemoryPlugin, steps: int = STEPS) -> Runner:
    app = App(name=APP, root_agent=Talker(name="talker", steps=steps), plugins=[plugin])
    sessions = InMemorySessionService()
    return Runner(app=app, session_service=sessions, memory_service=service, auto_create_session=True)


async def stored(memory: Memory, app: str = APP) -> list[str]:
    page = await memory.bind(app=app, user=ANN).list(order="oldest", limit=1_000)
    return [record.text for record in page.records]


SAID = ["go", *(f"step {step}" for step in range(STEPS))]


async def test_every_message_of_a_long_turn_is_handed_over_once(store: Counting) -> None:
    async with Memory(store) as memory:
        async with talking(MemoryService(memory), MemoryPlugin(recall=False)) as runner:
            await ask(runner, "go", user_id=ANN, session_id="s1")
        assert await stored(memory) == SAID
    assert store.records_given == len(SAID)


async def test_every_message_of_a_long_call_is_handed_over_once(store: Counting) -> None:
    async with Memory(store) as memory:
        async with talking(MemoryService(memory), MemoryPlugin(recall=False)) as runner:
            await runner.session_service.create_session(app_name=APP, user_id=ANN, session_id="s1")
            events = runner.run_live(
                user_id=ANN,
                session_id="s1",
                live_request_queue=LiveRequestQueue(),
                run_config=RunConfig(streaming_mode=StreamingMode.BIDI),
            )
            async for _ in events:
                pass
        assert await stored(memory) == SAID[1:]
    assert store.records_given == STEPS


async def test_what_is_said_while_a_write_runs_waits_for_one_other_write(store: Counting, tmp_path: Path) -> None:
    async with Memory(store) as memory:
        await memory.bind(app=APP, user="bob").add("The file is there")
        store.writes, blocker = 0, sqlite3.connect(tmp_path / "counted.db", isolation_level=None)
        async with talking(MemoryService(memory), MemoryPlugin(recall=False)) as runner:
            blocker.execute("BEGIN IMMEDIATE")
            await ask(runner, "go", user_id=ANN, session_id="s1")
            blocker.execute("ROLLBACK")
            blocker.close()
        assert await stored(memory) == SAID
        assert store.writes <= 2


@pytest.mark.parametrize("fails", [[1], [2], [1, 2]])
async def test_a_message_that_could_not_be_stored_is_stored_with_what_follows_in_its_turn(
    store: Counting, fails: list[int]
) -> None:
    plugin, store.fails = MemoryPlugin(recall=False), fails
    async with Memory(store) as memory:
        async with talking(MemoryService(memory), plugin) as runner:
            await ask(runner, "go", user_id=ANN, session_id="s1")
            await plugin.flush()  # or both turns might be in two writes that fail
            await ask(runner, "go", user_id=ANN, session_id="s1")
        assert sorted(await stored(memory)) == sorted(SAID * 2)


async def test_a_runner_closes_in_time_while_the_store_does_not_answer_and_its_turns_are_stored_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.CLOSE_SECONDS", 0.05)
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        plugin = MemoryPlugin(recall=False)
        blocker = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        with caplog.at_level(logging.WARNING, logger="memory_core.conversation"):
            async with talking(MemoryService(memory), plugin) as runner:
                blocker.execute("BEGIN IMMEDIATE")
                await ask(runner, "go", user_id=ANN, session_id="s1")
        assert "still being stored" in caplog.text
        blocker.execute("ROLLBACK")
        blocker.close()
        await plugin.flush()
        assert await stored(memory) == SAID


async def test_a_turn_of_radbot_has_all_answers_however_they_were_handed_over(memory: Memory) -> None:
    plugin, radbot = MemoryPlugin(recall=False), QdrantMemoryService(memory=memory)
    async with talking(radbot, plugin, steps=5) as runner:
        await ask(runner, "go", user_id=ANN, session_id="s1")
    answers = "\n".join(SAID[1:6])
    (turn,) = radbot.search_memories("go", ANN, memory_type="conversation_turn")
    assert turn.text == f"User: go\nAssistant: {answers}"
