"""After the next turn, or when a session is added, the memory has the live texts of the session and no others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import resolve_rewinds
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory
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
    parts = [
        part for event in resolve_rewinds(session.events)[0] if event.content for part in event.content.parts or []
    ]
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


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "turn", "turn", "rewind", "rewind", "append", "block", "restart", "add", "fail"]),
        st.integers(0, 9),
    ),
    min_size=2,
    max_size=9,
)


class History:
    """A session in which anything happens."""

    def __init__(self, memory: Memory, sessions: BaseSessionService) -> None:
        self.memory, self.sessions, self.count = memory, sessions, 0
        self.blocked: set[str] = set()
        self.begin()

    def begin(self) -> None:
        self.service, self.plugin = MemoryService(self.memory), MemoryPlugin(recall=False)

    async def turn(self, words: str, answer: str | Exception) -> None:
        agent = LlmAgent(name="helper", model=ScriptedLlm(script=[answer]))
        runner = running(self.service, agent, self.sessions, self.plugin, Guard("guard"))
        try:
            await ask(runner, words, user_id=ANN, session_id="s1")
        except RuntimeError:
            assert isinstance(answer, Exception)
        await self.plugin.flush()

    async def do(self, what: str, place: int) -> None:
        self.count += 1
        session = await self.sessions.get_session(app_name=APP, user_id=ANN, session_id="s1")
        if what == "restart":
            self.begin()
        elif what == "turn" or session is None:
            await self.turn(f"turn {self.count}", f"answer {self.count}")
        elif what == "fail":
            await self.turn(f"turn {self.count}", RuntimeError("out of order"))
        elif what == "block":
            self.blocked |= {f"attack {self.count}", "blocked"}
            await self.turn(f"attack {self.count}", "never asked")
        elif what == "append":
            await self.sessions.append_event(session, said_event(f"appended {self.count}", at=place, invocation_id="a"))
        elif what == "add":
            await self.service.add_session_to_memory(session)
        else:
            await self.rewind(session.events, place)

    async def rewind(self, events: Sequence[Event], place: int) -> None:
        turns = list(dict.fromkeys(event.invocation_id for event in events if event.invocation_id.startswith("e-")))
        agent = LlmAgent(name="helper", model=ScriptedLlm(script=[]))
        runner = running(self.service, agent, self.sessions, self.plugin)
        if turns:
            chosen = turns[place % len(turns)]
            await runner.rewind_async(user_id=ANN, session_id="s1", rewind_before_invocation_id=chosen)


@pytest.mark.parametrize("kind", SERVICES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_after_the_next_turn_the_memory_has_the_live_texts_of_the_session(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int]]
) -> None:
    async def happens() -> None:
        folder = tmp_path_factory.mktemp("history")
        async with Memory(":memory:", embedder=None) as memory, sessions_of(kind, folder) as sessions:
            history = History(memory, sessions)
            for what, place in steps:
                await history.do(what, place)
            await history.turn("the last turn", "the last answer")
            kept = [text for text in await live(history.sessions) if text not in history.blocked]
            assert sorted(await stored(memory)) == sorted(kept)

    asyncio.run(happens())
