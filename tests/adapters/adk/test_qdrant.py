"""The adapter on a Qdrant server, over HTTP, also while there is none."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from memory_adk import MemoryPlugin, memory_service
from memory_adk.radbot import QdrantMemoryService, create_enhanced_memory_agent
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Memory, QdrantStore
from memory_core.storage.qdrant.settings import Patience
from tests.adapters.adk.agents import ANN, APP, answering, found, runner_of, said_event, session_with, texts
from tests.storage.qdrant.loopback import Loopback

LOAD_TEA = ("load_memory", {"query": "favourite tea"})


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


async def test_a_uri_names_a_collection_where_what_was_deleted_stays_deleted_after_a_restart(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_with(said_event("My favourite tea is jasmine", id="e1"), said_event("And I sail", at=1, id="e2"))
    uri = server.url.replace("http", "memorycore+qdrant") + "/adk?embedder=none&app_name=demo"
    first = memory_service(uri)
    await first.add_session_to_memory(session)
    entry = (await found(first, "favourite tea"))[0]
    await first.delete_memory(app_name=APP, user_id=ANN, memory_id=entry.id)
    await first.close()
    monkeypatch.setenv("QDRANT_URL", server.url)
    second = memory_service("memorycore+qdrant:///adk?embedder=none&app_name=demo")
    await second.add_session_to_memory(session)
    assert await texts(second, "favourite tea sail") == ["And I sail"]
    assert await texts(second, "sail", user="bob") == []
    await second.close()


async def test_while_the_server_is_down_the_agent_answers_and_what_was_said_is_stored_later(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    impatient = Patience(attempts=1, deadline_seconds=1)
    store = QdrantStore(server.url, embedder=None, collection="outage", patience=impatient)
    async with Memory(store) as memory:
        model = ScriptedLlm(script=["Noted.", "Noted.", prompt])
        service = QdrantMemoryService(memory=memory)
        async with create_enhanced_memory_agent(model=model, memory_service=service) as agent:
            with caplog.at_level(logging.WARNING, "memory_core.conversation"):
                server.stop()
                answer = await agent.aprocess_message(ANN, "Important: the gate code is 4711 #beto_home")
                await agent.plugin.flush()
                server.start()
            assert answer == "Noted."
            warned = [
                record.getMessage() for record in caplog.records if record.name.startswith("memory_core.conversation")
            ]
            assert sorted(message.split(":")[0] for message in warned) == [
                "a turn of session main is not stored yet",
                "the memory is left alone until it answers",
                "what a user asks to be remembered is not marked",
            ]
            await agent.aprocess_message(ANN, "Good morning")
            await agent.plugin.flush()  # the write succeeds, so the store is tested now
            await answering(agent.memory_service)
            assert "the gate code is 4711" in await agent.aprocess_message(ANN, "What is the gate code?", "s2")


async def test_the_plugin_and_load_memory_work_on_a_server(server: Loopback) -> None:
    service = memory_service(server.url.replace("http", "memorycore+qdrant") + "/turns?embedder=none")
    model, plugin = ScriptedLlm(script=["Noted.", prompt]), MemoryPlugin()
    async with runner_of(service, model, plugins=[plugin]) as runner:
        await ask(runner, "My favourite tea is jasmine", user_id=ANN, session_id="s1")
        await plugin.flush()
        assert 'user: "My favourite tea is jasmine"' in await ask(runner, "Which tea?", user_id=ANN, session_id="s2")
    await service.close()
