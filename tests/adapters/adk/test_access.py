"""A store that goes away costs each runner at most one slow turn; loading the model does not count as slowness."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from google.adk.tools.load_memory_tool import load_memory_tool

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Hit, InvalidInputError, Memory, Scope, StoreUnavailableError
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.store import SqliteStore
from tests.adapters.adk.agents import ANN, APP, answering, entry_of, runner_of, texts

if TYPE_CHECKING:
    from memory_core.supplied import Vector

QUESTION, FACT = "Which tea do I like?", "Ann's favourite tea is jasmine"


class Switched(SqliteStore):
    """A store that can be out of reach: its searches then wait, as for a server, until they fail."""

    down = False
    patience = 60.0
    tried = 0
    """Searches of a user's memories while it was down."""

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        if self.down:
            self.tried += not request.where.data
            await asyncio.sleep(self.patience)
            raise StoreUnavailableError("out of reach")
        return await super().search(scopes, request)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> Switched:
    return Switched(tmp_path / "m.db", embedder=None, clock=lambda: datetime.now(UTC))


@pytest_asyncio.fixture
async def service(store: Switched) -> AsyncIterator[MemoryService]:
    async with Memory(store) as memory:
        service = MemoryService(memory)
        await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of(FACT)])
        yield service


async def test_a_store_that_goes_away_and_comes_back_costs_each_of_ten_runners_at_most_one_slow_turn(
    service: MemoryService, store: Switched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)
    models = [ScriptedLlm(script=["fine"] * 6) for _ in range(10)]
    runners = [runner_of(service, model, plugins=[MemoryPlugin(capture=False, recall_seconds=2.0)]) for model in models]

    async def turn(name: str) -> list[bool]:
        await asyncio.gather(*(ask(runner, QUESTION, user_id=ANN, session_id=name) for runner in runners))
        return [FACT in prompt(model.requests[-1]) for model in models]

    assert await turn("before") == [True] * 10
    store.down = True
    with caplog.at_level(logging.INFO, "memory_core.conversation"):
        for name in ("down 1", "down 2", "down 3"):
            assert await turn(name) == [False] * 10
        assert store.tried <= 10  # each runner waited for it once at most
        store.down = False
        await answering(service)
    assert await turn("after") == [True] * 10
    assert [record.getMessage() for record in caplog.records if record.name.startswith("memory_core.conversation")] == [
        "the memory is left alone until it answers: it was too slow",
        "the memory answers again",
    ]
    for runner in runners:
        await runner.close()


@pytest.mark.parametrize(("name", "key"), [("load_memory", "error"), ("search_past_conversations", "message")])
async def test_a_tool_does_not_wait_for_a_store_that_is_known_to_be_away(
    service: MemoryService, store: Switched, name: str, key: str
) -> None:
    call = (name, {"query": "tea"})
    model = ScriptedLlm(script=[call, "first", call, "second"])
    plugin = MemoryPlugin(recall=False, capture=False)
    assert await texts(service, "tea") == [FACT]
    store.down, store.patience = True, 0.0
    async with runner_of(service, model, load_memory_tool, MemoryToolset(), plugins=[plugin]) as runner:
        assert await ask(runner, "tea?", user_id=ANN, session_id="s1") == "first"
        assert await ask(runner, "tea?", user_id=ANN, session_id="s2") == "second"
    assert store.tried == 1
    assert key in prompt(model.requests[-1])
    assert "is not asked again for now" in prompt(model.requests[-1])


class Loading(HashingEmbedder):
    """Takes a while for its first answer, like a model that is read from the disk."""

    loaded = False

    async def embed_query(self, text: str) -> Vector:
        if not self.loaded:
            await asyncio.sleep(1.5)
            self.loaded = True
        return await super().embed_query(text)


async def test_loading_the_model_does_not_count_as_the_time_of_a_recall(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=Loading()) as memory:
        service, model = MemoryService(memory), ScriptedLlm(script=["Jasmine."])
        await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of(FACT)])
        async with runner_of(service, model, plugins=[MemoryPlugin(recall_seconds=1.4)]) as runner:
            await ask(runner, QUESTION, user_id=ANN, session_id="s1")
    assert FACT in prompt(model.requests[0])


async def test_a_store_that_is_away_from_the_beginning_is_used_when_it_comes(
    service: MemoryService, store: Switched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)
    store.down, store.patience = True, 0.0
    model = ScriptedLlm(script=["one", "two", "three"])
    async with runner_of(service, model, plugins=[MemoryPlugin(capture=False)]) as runner:
        await ask(runner, QUESTION, user_id=ANN, session_id="s1")
        store.down = False
        await ask(runner, QUESTION, user_id=ANN, session_id="s2")
        await answering(service)
        await ask(runner, QUESTION, user_id=ANN, session_id="s3")
    assert [FACT in prompt(request) for request in model.requests][::2] == [False, True]


async def test_a_search_that_fails_raises_and_the_next_one_fails_at_once(
    service: MemoryService, store: Switched
) -> None:
    store.down, store.patience = True, 0.0
    with pytest.raises(StoreUnavailableError):
        await texts(service, "tea")
    with pytest.raises(StoreUnavailableError, match="is not asked again for now"):
        await texts(service, "tea")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_limit_is_above_zero(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="recall_seconds must be a number of seconds above 0"):
        MemoryPlugin(recall_seconds=seconds)
