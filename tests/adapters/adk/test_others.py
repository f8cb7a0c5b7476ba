"""A turn that was taken back in one session is not shown in another one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.others import current
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Memory, Recalled
from memory_core.adapting import NOTHING, Asked
from tests.adapters.adk.agents import ANN, APP, said_event, session_with, texts
from tests.adapters.adk.test_following import running
from tests.adapters.adk.test_rewind import rewind, rewound


class Stuck(InMemorySessionService):
    """Answers nobody who asks for the time of a session."""

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        if config is not None and config.num_recent_events == 0:
            await asyncio.sleep(600)
        return await super().get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)


async def _pin_in_prompt_of_next_session(memory: Memory, sessions: InMemorySessionService, *, then: str) -> bool:
    from google.adk.agents import LlmAgent

    model, plugin = ScriptedLlm(script=["Hello.", "Noted.", "No."]), MemoryPlugin(recall_seconds=4)
    agent = LlmAgent(name="helper", model=model)
    async with running(MemoryService(memory), agent, sessions, plugin) as runner:
        await ask(runner, "I live in Oslo", user_id=ANN, session_id="s1")
        await ask(runner, "My passphrase is xyzzy", user_id=ANN, session_id="s1")
        await plugin.flush()
        if then == "rewind":
            await rewound(runner)
        elif then == "delete":
            await sessions.delete_session(app_name=APP, user_id=ANN, session_id="s1")
        await ask(runner, "What is my passphrase?", user_id=ANN, session_id="s2")
    return "xyzzy" in prompt(model.requests[-1])


@pytest.mark.parametrize(("then", "shown"), [("nothing", 1), ("rewind", 0), ("delete", 1)])
async def test_a_rewind_counts_in_the_next_session_and_a_deleted_session_changes_nothing(
    memory: Memory, then: str, shown: int
) -> None:
    assert await _pin_in_prompt_of_next_session(memory, InMemorySessionService(), then=then) == shown


async def test_memories_of_a_session_that_does_not_answer_in_time_are_left_out(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await _pin_in_prompt_of_next_session(memory, Stuck(), then="nothing")
    assert "their sessions were not read in time" in caplog.text


async def test_the_time_that_a_search_takes_is_not_that_of_the_sessions(memory: Memory) -> None:
    """As on a slow machine, whose first search loads a model."""
    ann, has_searched = memory.bind(user=ANN), asyncio.Event()
    await ann.bind(session="s1").add("My passphrase is xyzzy")

    async def recalled(question: Asked) -> Recalled:
        found = await ann.search(question.text)
        if not has_searched.is_set():
            await asyncio.sleep(2.1)
            has_searched.set()
        return replace(NOTHING, hits=tuple(hit for hit in found if not question.shows(hit.record)))

    async def unchanged(_: str) -> bool:
        await asyncio.sleep(0.01)
        return False

    found = await current(ann, Asked("passphrase"), recalled, "s2", unchanged, seconds=2)
    assert [hit.record.text for hit in found.hits] == ["My passphrase is xyzzy"]


@pytest.mark.parametrize("by", ["plugin", "tool"])
async def test_a_session_of_that_name_in_a_shared_space_is_not_left_out(memory: Memory, by: str) -> None:
    """A session is one of its owner's; a space may have one of the same name."""
    from google.adk.agents import LlmAgent
    from google.adk.tools.load_memory_tool import load_memory_tool

    everyone = memory.bind(app=APP, user="everyone")
    for n in range(60):  # more of the session than a search wants
        await memory.bind(app=APP, user=ANN, session="s1").add(f"My passphrase is xyzzy {n}")
    await everyone.bind(session="s1").add("The passphrase of the wireless is plugh")
    question = "What is the passphrase?"
    script = ["No."] if by == "plugin" else [("load_memory", {"query": question}), "No."]
    model, plugin = ScriptedLlm(script=script), MemoryPlugin(recall=by == "plugin", recall_seconds=4)
    agent = LlmAgent(name="helper", model=model, tools=[load_memory_tool])
    service = MemoryService(memory.bind(app=APP).sharing({"handbook": everyone}))
    async with running(service, agent, Stuck(), plugin) as runner:
        await ask(runner, question, user_id=ANN, session_id="s2")
    shown = prompt(model.requests[-1])
    assert ("plugh" in shown, "xyzzy" in shown) == (True, False)


async def test_a_service_that_knows_the_sessions_leaves_out_what_was_rewound(memory: Memory) -> None:
    from google.adk.agents import LlmAgent

    sessions = InMemorySessionService()
    service, plugin = MemoryService(memory, sessions=sessions), MemoryPlugin(recall=False)
    agent = LlmAgent(name="helper", model=ScriptedLlm(script=["Noted."]))
    async with running(service, agent, sessions, plugin) as runner:
        await ask(runner, "My passphrase is xyzzy", user_id=ANN, session_id="s1")
        await plugin.flush()
        assert await texts(service, "passphrase xyzzy")
        await rewound(runner)
        assert await texts(service, "passphrase xyzzy") == []


async def test_what_another_session_has_not_stored_is_not_stored_by_reading_it(memory: Memory) -> None:
    service, sessions = MemoryService(memory), InMemorySessionService()
    session = await sessions.create_session(app_name=APP, user_id=ANN, session_id="s1")
    await sessions.append_event(session, said_event("My passphrase is xyzzy"))
    assert await service.read(sessions, APP, ANN, "s1")
    assert (await service.handle(APP, ANN).stats()).records == 0


async def test_what_another_process_stores_after_it_was_undone_is_left_at_the_next_search(memory: Memory) -> None:
    service, sessions = MemoryService(memory), InMemorySessionService()
    session = await sessions.create_session(app_name=APP, user_id=ANN, session_id="s1")
    said = await sessions.append_event(session, said_event("My passphrase is xyzzy"))
    await sessions.append_event(session, rewind("i1", at=1))
    assert await service.read(sessions, APP, ANN, "s1")
    await MemoryService(memory).add_session_to_memory(session_with(said))  # it has waited there to be written
    assert await service.read(sessions, APP, ANN, "s1")
    assert await texts(service, "passphrase xyzzy") == []
    assert not await service.read(sessions, APP, ANN, "s1")
