"""Turns that a closed runner left behind are stored before the memory is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, runner_of
from tests.adapters.closes.slow_store import SlowStore, at


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
