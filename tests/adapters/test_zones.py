"""Each framework's own context says where a person is."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_adk.zone import zone_of
from memory_core import InvalidInputError, Memory
from memory_core.adapting import zoned_text
from memory_core.values.times import offset_of
from memory_langchain.scope import ScopeResolver
from memory_xaibo import CoreMemory
from tests.adapters.adk.agents import ANN, APP, runner_of, said_event, session_with

TOKYO = 9 * 60


async def offsets(memory: Memory, app: str = APP) -> set[int]:
    records = (await memory.bind(app=app, user=ANN).list()).records
    return {offset_of(record.occurred_at) for record in records}


def in_state(**state: object) -> Session:
    return session_with(said_event("I was at the dentist today")).model_copy(update={"state": state})


@pytest.mark.parametrize(
    ("state", "minutes"),
    [
        ({"user:zone": "Asia/Tokyo"}, TOKYO),
        ({"user:zone": "Europe/Oslo", "zone": "+09:00"}, TOKYO),
        ({"zone": "nowhere"}, 0),
        ({}, 0),
    ],
)
async def test_the_state_of_an_adk_session_says_the_zone(state: dict[str, object], minutes: int) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        await MemoryService(memory).add_session_to_memory(in_state(**state))
        assert await offsets(memory) == {minutes}


async def test_a_turn_of_adk_is_stored_in_the_zone_of_its_session() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        service, plugin = MemoryService(memory), MemoryPlugin(recall=False)
        async with runner_of(service, ScriptedLlm(script=["Noted."]), plugins=[plugin]) as runner:
            assert isinstance(runner.session_service, InMemorySessionService)
            await runner.session_service.create_session(
                app_name=APP, user_id=ANN, session_id="s1", state={"user:zone": "Asia/Tokyo"}
            )
            await ask(runner, "I was at the dentist today", user_id=ANN, session_id="s1")
        assert await offsets(memory) == {TOKYO}


def test_what_is_no_zone_in_a_state_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert zone_of({"zone": "nowhere\n[forged]"}) is None
    assert "time zone" in caplog.text
    assert "\n[forged]" not in caplog.text


@pytest.mark.parametrize("place", ["config", "context"])
async def test_the_config_of_langgraph_says_the_zone(place: str) -> None:
    named = {"user_id": ANN, "session_id": "s", "zone": "Asia/Tokyo"}
    config: RunnableConfig = {"configurable": named if place == "config" else {}}
    async with Memory(":memory:", embedder=None) as memory:
        scope = ScopeResolver(memory).resolve(config, context=named if place == "context" else None)
        await scope.memory.remember([("user", str(HumanMessage("I was at the dentist today").content))], session="s")
        assert await offsets(memory, "default") == {TOKYO}


def test_what_is_no_zone_in_a_config_is_refused() -> None:
    config: RunnableConfig = {"configurable": {"user_id": ANN, "zone": "nowhere"}}
    with pytest.raises(InvalidInputError, match="nowhere"):
        ScopeResolver(Memory(":memory:", embedder=None)).resolve(config)


async def test_the_config_of_xaibo_says_the_zone(tmp_path: Path) -> None:
    core = CoreMemory({"path": str(tmp_path / "m.db"), "user": ANN, "zone": "Asia/Tokyo"})
    assert offset_of(core.handle.now()) == TOKYO


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("2026-03-10T20:30:00-07:00", -420), ("2026-03-10T20:30:00Z", 0), ("2026-03-10T20:30:00", None), (None, None)],
)
def test_the_offset_of_a_stamp_or_a_line_of_a_transcript_is_kept(text: object, minutes: int | None) -> None:
    moment = zoned_text(text)
    assert (None if moment is None else offset_of(moment)) == minutes
