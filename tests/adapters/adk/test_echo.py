"""One fact among twenty, asked in many sessions of a real runner: every tool finds it each time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Memory
from tests.adapters.adk.agents import runner_of
from tests.recall.asking import ANSWER, ASKED, FACT, assert_shown, facts


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db") as opened:  # recall goes by meaning, too
        yield opened


@pytest.fixture
def service(memory: Memory) -> MemoryService:
    return MemoryService(memory)


async def tell(runner: Any, plugin: MemoryPlugin, service: MemoryService) -> None:
    for n, fact in enumerate(facts()):
        await ask(runner, fact, user_id="ann", session_id=f"fact {n}")
    await stored(plugin, service)


async def stored(plugin: MemoryPlugin, service: MemoryService) -> None:
    """Return once what was said is found by its meaning, too; between the turns of people there is time for that."""
    await plugin.flush()
    while (await service.handle("demo", "ann").stats()).vectors_pending:  # noqa: ASYNC110  (vectors have no event)
        await asyncio.sleep(0.01)


def results(name: str, request: LlmRequest) -> list[str]:
    """The texts in the answer of a tool."""
    parts = [part for content in request.contents for part in content.parts or [] if part.function_response]
    response: Any = parts[-1].function_response and parts[-1].function_response.response
    if name == "load_memory":
        return [entry.content.parts[0].text for entry in response["result"].memories]
    return [result["text"] for result in response["results"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["load_memory", "search_past_conversations"])
async def test_the_tools_find_it_every_time(service: MemoryService, name: str) -> None:
    plugin, told = MemoryPlugin(recall=False), len(list(facts()))
    queries = [question if n % 2 else "favourite tea" for n, question in enumerate(ASKED)]
    calls = [(name, {"query": query}) for query in queries]
    model = ScriptedLlm(script=["Noted."] * told + [step for call in calls for step in (call, ANSWER)])
    tools = (load_memory_tool, MemoryToolset())
    async with runner_of(service, model, *tools, plugins=[plugin]) as runner:
        await tell(runner, plugin, service)
        for n, question in enumerate(ASKED):
            await ask(runner, question, user_id="ann", session_id=f"asking {n}")
            await stored(plugin, service)
            assert_shown(results(name, model.requests[-1]), queries[n])


@pytest.mark.slow
async def test_preload_memory_shows_it_every_time(service: MemoryService) -> None:
    plugin, told = MemoryPlugin(recall=False), len(list(facts()))
    model = ScriptedLlm(script=["Noted."] * told + [ANSWER] * len(ASKED))
    async with runner_of(service, model, preload_memory_tool, plugins=[plugin]) as runner:
        await tell(runner, plugin, service)
        for n, question in enumerate(ASKED):
            await ask(runner, question, user_id="ann", session_id=f"asking {n}")
            await stored(plugin, service)
            said = [line.partition(": ")[2] for line in prompt(model.requests[-1]).splitlines() if ": " in line]
            assert FACT in said, f"{question!r} got {said}"
