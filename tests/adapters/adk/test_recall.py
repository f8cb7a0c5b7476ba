"""A real Runner remembers in one session and recalls in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai import types

from memory_adk import BankPlugin, MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, prompt, user_says
from memory_core import Memory
from tests.adapters.adk.agents import APP, remember, runner_of


async def test_load_memory_recalls_in_another_session_what_was_said_in_the_first(service: MemoryService) -> None:
    model = ScriptedLlm(script=["Noted.", ("load_memory", {"query": "favourite tea"}), "Jasmine."])
    async with runner_of(service, model, load_memory_tool) as runner:
        await ask(runner, "My favourite tea is jasmine", user_id="ann", session_id="s1")
        await remember(runner, service, "ann", "s1")
        assert await ask(runner, "Which tea do I like?", user_id="ann", session_id="s2") == "Jasmine."
    assert "My favourite tea is jasmine" in prompt(model.requests[-1])


async def test_preload_memory_puts_what_was_said_before_into_the_prompt(service: MemoryService) -> None:
    model = ScriptedLlm(script=["Noted.", "Jasmine."])
    async with runner_of(service, model, preload_memory_tool) as runner:
        await ask(runner, "My favourite tea is jasmine", user_id="ann", session_id="s1")
        await remember(runner, service, "ann", "s1")
        await ask(runner, "Which tea do I like?", user_id="ann", session_id="s2")
    assert "user: My favourite tea is jasmine" in prompt(model.requests[-1])


@pytest.mark.parametrize("recalling", ["plugin", "bank", "preload_memory"])
async def test_what_is_recalled_comes_after_a_static_instruction_and_before_the_question(
    recalling: str, service: MemoryService
) -> None:
    manual = types.Part(inline_data=types.Blob(data=b"manual", mime_type="application/pdf"))
    await service.handle(APP, "ann").add("My favourite tea is jasmine")
    bank = BankPlugin()
    plugins: dict[str, list[BasePlugin]] = {"plugin": [MemoryPlugin(capture=False)], "bank": [bank]}
    model = ScriptedLlm(script=["Jasmine."])
    agent = LlmAgent(
        name="helper",
        model=model,
        tools=[preload_memory_tool] if recalling == "preload_memory" else [],
        static_instruction=types.Content(role="user", parts=[types.Part(text="Read this."), manual]),
        before_agent_callback=lambda callback_context: _first_step(bank, callback_context),
    )
    app = App(name=APP, root_agent=agent, plugins=plugins.get(recalling, []))
    sessions = InMemorySessionService()
    async with Runner(app=app, session_service=sessions, memory_service=service, auto_create_session=True) as runner:
        await ask(runner, "Which tea do I like?", user_id="ann", session_id="s1")
    first, *_, recalled, question = model.requests[0].contents
    assert manual.inline_data in [part.inline_data for part in first.parts or []]  # providers cache what comes first
    assert "jasmine" in str(recalled)
    assert "Which tea" in str(question)


async def _first_step(bank: BankPlugin, context: CallbackContext) -> None:
    await bank.bank(context).add_step("tea", "order jasmine", "ordered")


async def test_the_agent_of_another_user_recalls_nothing(service: MemoryService) -> None:
    model = ScriptedLlm(script=["Noted.", ("load_memory", {"query": "favourite tea"}), "I do not know."])
    async with runner_of(service, model, load_memory_tool) as runner:
        await ask(runner, "My favourite tea is jasmine", user_id="ann", session_id="s1")
        await remember(runner, service, "ann", "s1")
        await ask(runner, "Which tea do I like?", user_id="bob", session_id="s2")
    assert "jasmine" not in prompt(model.requests[-1])


async def test_a_bound_handle_is_one_memory_for_the_runner_and_everybody_else(memory: Memory) -> None:
    ann = memory.bind(app="shared", user="ann")
    await ann.add("Ann prefers jasmine tea")
    model = ScriptedLlm(script=[("load_memory", {"query": "tea"}), "Jasmine."])
    service = MemoryService(ann)
    async with runner_of(service, model, load_memory_tool) as runner:
        await ask(runner, "What do I drink?", user_id="ann", session_id="s1")
        await remember(runner, service, "ann", "s1")
    assert "Ann prefers jasmine tea" in prompt(model.requests[-1])
    assert {hit.record.text for hit in await ann.search("What do I drink?")} >= {"What do I drink?"}


def test_sync_runner_calls_each_on_a_loop_of_its_own_share_one_memory(tmp_path: Path) -> None:
    call = ("load_memory", {"query": "tea"})
    model = ScriptedLlm(script=[call, "one", call, "two", call, "three"])
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        runner = runner_of(MemoryService(memory), model, load_memory_tool)
        for session in ("s1", "s2", "s3"):
            events = list(runner.run(user_id="ann", session_id=session, new_message=user_says("tea?")))
            assert events[-1].is_final_response()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_scripted_model_streams_partial_words_and_then_the_whole(*, stream: bool) -> None:
    model = ScriptedLlm(script=["one two three"])
    responses = [response async for response in model.generate_content_async(LlmRequest(), stream=stream)]
    assert [bool(response.partial) for response in responses] == ([True] * 3 if stream else []) + [False]
