"""A message that the prompt shows is not recalled, and one that it no longer shows is."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.load_memory_tool import load_memory_tool

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from tests.adapters.adk.agents import ANN, APP, remember

TEA, QUESTION = "My favourite tea is jasmine", "What is my favourite tea?"
LOAD = ("load_memory", {"query": "favourite tea"})
SEARCH = ("search_past_conversations", {"query": "favourite tea"})


def runner_with(service: MemoryService, model: ScriptedLlm, plugins: list[BasePlugin], **agent: Any) -> Runner:
    root = LlmAgent(name="helper", model=model, tools=[load_memory_tool, MemoryToolset()], **agent)
    return Runner(
        app=App(name=APP, root_agent=root, plugins=plugins),
        session_service=InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )


@pytest.mark.parametrize("how", ["filter first", "filter last", "no history"])
async def test_what_was_cut_from_the_prompt_is_recalled_in_the_same_session(service: MemoryService, how: str) -> None:
    model, plugin = ScriptedLlm(script=["Noted.", "Indeed.", "Jasmine.", LOAD, SEARCH, "Jasmine."]), MemoryPlugin()
    cut = ContextFilterPlugin(num_invocations_to_keep=1)
    orders: dict[str, list[BasePlugin]] = {"filter first": [cut, plugin], "filter last": [plugin, cut]}
    plugins: list[BasePlugin] = orders.get(how, [plugin])
    options: dict[str, Any] = {"include_contents": "none"} if how == "no history" else {}
    async with runner_with(service, model, plugins, **options) as runner:
        for text in (TEA, "The weather is nice", QUESTION):
            await ask(runner, text, user_id=ANN, session_id="s1")
            await plugin.flush()
        asked = prompt(model.requests[2])
        await ask(runner, "Say it again", user_id=ANN, session_id="s1")
    assert (f'user: "{TEA}"' in asked) == (how != "filter last")  # it was still there when memories were recalled
    assert asked.count(QUESTION) == 1
    assert prompt(model.requests[-1]).count(TEA) >= 2  # both tools


async def test_an_agent_without_history_finds_by_tools_what_it_was_told_in_the_same_session(
    service: MemoryService,
) -> None:
    model = ScriptedLlm(script=["Noted.", SEARCH, "Jasmine."])
    async with runner_with(service, model, [], include_contents="none") as runner:
        await ask(runner, TEA, user_id=ANN, session_id="s1")
        await remember(runner, service, ANN, "s1")
        await ask(runner, QUESTION, user_id=ANN, session_id="s1")
        await remember(runner, service, ANN, "s1")
    assert prompt(model.requests[-1]).count(TEA) == 1
