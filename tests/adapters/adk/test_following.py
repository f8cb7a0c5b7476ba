"""After the next turn, or when a session is added, the memory has the live texts of the session and no others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.workflow import Workflow
from google.genai import types

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import live_events
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory, Where
from tests.adapters.adk.agents import ANN, APP, Guard, said_event, session_with

SERVICES = ("in memory", "sqlite", "database")


@asynccontextmanager
async def sessions_of(kind: str, folder: Path) -> AsyncGenerator[BaseSessionService]:
    if kind == "database":
        async with DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/sessions.db") as database:
            yield database
    else:
        yield SqliteSessionService(f"{folder}/sessions.db") if kind == "sqlite" else InMemorySessionService()


async def stored(memory: Memory) -> list[str]:
    return [record.text for record in (await memory.bind(app=APP, user=ANN).list(order="oldest", limit=1_000)).records]


async def live(sessions: BaseSessionService, session_id: str = "s1") -> list[str]:
    session = await sessions.get_session(app_name=APP, user_id=ANN, session_id=session_id)
    assert session is not None
    parts = [part for event in live_events(session.events) if event.content for part in event.content.parts or []]
    return [part.text for part in parts if part.text]


def running(service: MemoryService, agent: BaseAgent | Workflow, sessions: BaseSessionService, *plugins: Any) -> Runner:
    app = App(name=APP, root_agent=agent, plugins=list(plugins))
    return Runner(app=app, session_service=sessions, memory_service=service, auto_create_session=True)


class Custom(BaseAgent):
    """An agent of the application whose events have the author `model`, as those of a guardrail."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        said = types.Content(role="model", parts=[types.Part(text="Noted.")])
        yield Event(author="model", invocation_id=ctx.invocation_id, content=said)


def custom() -> BaseAgent:
    return Custom(name="gate")


def step() -> BaseAgent:
    return SequentialAgent(name="root", sub_agents=[LlmAgent(name="model", model=ScriptedLlm(script=["Noted."] * 3))])


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
@pytest.mark.parametrize("make", [custom, step])
async def test_an_agent_whose_events_have_the_author_model_is_no_guardrail(
    service: MemoryService, memory: Memory, make: Any
) -> None:
    sessions, plugin = InMemorySessionService(), MemoryPlugin(recall=False)
    async with running(service, make(), sessions, plugin) as runner:
        await ask(runner, "My locker code is 4417", user_id=ANN, session_id="s1")
    assert sorted(await stored(memory)) == ["My locker code is 4417", "Noted."]


async def test_a_turn_that_a_guardrail_answered_is_not_added_with_its_session_and_leaves_no_tombstone(
    service: MemoryService, memory: Memory
) -> None:
    sessions, plugin = InMemorySessionService(), MemoryPlugin(recall=False)
    async with running(service, custom(), sessions, plugin, Guard("guard")) as runner:
        await ask(runner, "attack", user_id=ANN, session_id="s1")
    session = await sessions.get_session(app_name=APP, user_id=ANN, session_id="s1")
    assert session is not None
    await service.add_session_to_memory(session)
    assert await stored(memory) == []
    await MemoryService(memory).add_session_to_memory(session)  # as another process, which cannot know
    assert sorted(await stored(memory)) == ["attack", "blocked"]
    await service.add_session_to_memory(session)
    assert await stored(memory) == []
    left = await memory.bind(app=APP, user=ANN).list(where=Where(left=True))
    assert sorted(record.text for record in left.records) == ["attack", "blocked"]


async def test_where_agents_write_paths_a_guardrail_is_known_after_a_restart(
    service: MemoryService, memory: Memory
) -> None:
    sessions = InMemorySessionService()
    agent = LlmAgent(name="helper", model=ScriptedLlm(script=["Fine."]))
    async with running(service, agent, sessions, Guard("guard")) as bare:
        await ask(bare, "attack", user_id=ANN, session_id="s1")
    async with running(service, agent, sessions, MemoryPlugin(recall=False)) as runner:
        await ask(runner, "It rains", user_id=ANN, session_id="s1")
    assert await stored(memory) == ["It rains", "Fine."]


async def test_what_a_node_of_a_workflow_hands_to_the_next_is_not_said_by_the_user(
    service: MemoryService, memory: Memory
) -> None:
    async def save(callback_context: Any) -> None:
        await callback_context.add_session_to_memory()

    first = LlmAgent(name="first", model=ScriptedLlm(script=["I agree to the price of 900"]))
    second = LlmAgent(name="second", model=ScriptedLlm(script=["Noted."]), after_agent_callback=save)
    flow = Workflow(name="flow", edges=[("START", first, second)])
    async with running(service, flow, InMemorySessionService(), MemoryPlugin(recall=False)) as runner:
        await ask(runner, "What do you say to the price?", user_id=ANN, session_id="s1")
    page = await memory.bind(app=APP, user=ANN).list(order="oldest")
    assert [record.text for record in page.records if record.role == "user"] == ["What do you say to the price?"]


async def test_chunks_that_share_an_event_id_are_all_kept_once(service: MemoryService, memory: Memory) -> None:
    chunks = [said_event(text, id="e1", author="helper", at=n) for n, text in enumerate(("one", "two", "three"))]
    for count in (1, 2, 3, 3):
        await service.add_session_to_memory(session_with(*chunks[:count]))
    assert await stored(memory) == ["one", "two", "three"]


@pytest.mark.parametrize("kind", SERVICES)
async def test_events_that_the_application_appends_are_found_at_the_next_turn_wherever_they_are_sorted(
    tmp_path: Path, kind: str
) -> None:
    plugin = MemoryPlugin(recall=False)
    async with Memory(tmp_path / "m.db", embedder=None) as memory, sessions_of(kind, tmp_path) as sessions:
        agent = LlmAgent(name="helper", model=ScriptedLlm(script=["Noted.", "Fine."]))
        async with running(MemoryService(memory), agent, sessions, plugin) as runner:
            await ask(runner, "I drink tea", user_id=ANN, session_id="s1")
            for at in (0, 1, 10**9):  # long before the last event, and after it
                session = await sessions.get_session(app_name=APP, user_id=ANN, session_id="s1")
                assert session is not None
                await sessions.append_event(session, said_event(f"Appended at {at}", at=at, invocation_id=f"i{at}"))
            await ask(runner, "It rains", user_id=ANN, session_id="s1")
        assert sorted(await stored(memory)) == sorted(await live(sessions))
        assert len(await stored(memory)) == 7
