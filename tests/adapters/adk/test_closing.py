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
