"""A runner that closes at any moment, under load and on a slow store, closes in time and leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory, MemoryRecord, Scope
from memory_core.storage.sqlite.store import SqliteStore
from tests.adapters.adk.agents import ANN, APP, runner_of
from tests.adapters.closes.slow_store import SlowStore, at

WRITE_SECONDS = 0.2
TURNS = 30


class Slow(SqliteStore):
    """A store whose writes take their time."""

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        await asyncio.sleep(WRITE_SECONDS)
        return await super().add(scope, records, **options)


@pytest.mark.parametrize("closes", [3, pytest.param(200, marks=pytest.mark.torture)])
async def test_nothing_that_was_said_is_missing_however_a_runner_closes(closes: int, tmp_path: Path) -> None:
    dice = random.Random(closes)
    for number in range(closes):
        async with Memory(Slow(tmp_path / f"{number}.db", embedder=None, clock=lambda: datetime.now(UTC))) as memory:
            said: set[str] = set()
            model = ScriptedLlm(script=[f"answer {turn}" for turn in range(TURNS)])
            # ADK raises if the plugin takes longer than five seconds.
            async with runner_of(MemoryService(memory), model, plugins=[MemoryPlugin(recall=False)]) as runner:
                for turn in range(dice.randrange(1, TURNS)):
                    await ask(runner, f"turn {turn}", user_id=ANN, session_id=f"s{turn % 3}")
                    said |= {f"turn {turn}", f"answer {turn}"}
            page = await memory.bind(app=APP, user=ANN).list(limit=1_000)
            assert {record.text for record in page.records} == said


@pytest.mark.parametrize("owns", [False, True])
async def test_turns_that_a_closed_runner_left_behind_are_stored_before_the_memory_is_closed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owns: bool,  # noqa: FBT001
) -> None:
    """With many sessions, a slow store takes longer than ADK gives a plugin."""
    monkeypatch.setattr("memory_core.conversation.limits.CLOSE_SECONDS", 0.05)
    path, sessions = tmp_path / "m.db", range(10)
    async with Memory(SlowStore(at(path), one_by_one=True)) as memory:
        service, plugin = MemoryService(memory, owns_memory=owns), MemoryPlugin(recall=False)
        model = ScriptedLlm(script=["answer"] * len(sessions))
        async with runner_of(service, model, plugins=[plugin]) as runner:
            for number in sessions:
                await ask(runner, f"question {number}", user_id=ANN, session_id=f"s{number}")
        await service.close()
    async with Memory(path, embedder=None) as memory:
        page = await memory.bind(app=APP, user=ANN).list(limit=100)
    said = [f"question {number}" for number in sessions] + ["answer"] * len(sessions)
    assert sorted(record.text for record in page.records) == sorted(said)
