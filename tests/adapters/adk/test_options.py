"""Options of searches and recalls, how long the answers of tools are, and when everything is found by meaning."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.memory import InMemoryMemoryService, SqliteMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.load_memory_tool import load_memory_tool
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import BoundMemory, Draft, Memory, RecallOptions, Where
from memory_core.adapting import equal_form, settled
from tests.adapters.adk.agents import ANN, APP, entry_of, found, runner_of, said_event, session_with, text_of, texts

SEARCH = "search_past_conversations"


@pytest_asyncio.fixture
async def meaning(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "memory.db") as memory:
        yield memory


async def call(service: MemoryService, tools: MemoryToolset, **arguments: Any) -> list[str]:
    """The texts that the search tool answers with."""
    model = ScriptedLlm(script=[(SEARCH, arguments), "done"])
    async with runner_of(service, model, tools) as runner:
        await ask(runner, "go", user_id=ANN, session_id="now")
    parts = [part.function_response for content in model.requests[1].contents for part in content.parts or []]
    (answer,) = [part.response for part in parts if part is not None]
    assert answer is not None
    return [result["text"] for result in answer["results"]]


QUESTION, ANSWER = "Which shop sells jasmine?", "The one on Mill Road."


async def test_a_message_is_found_by_what_was_said_beside_it_as_in_every_search(memory: Memory) -> None:
    service = MemoryService(memory)
    await service.add_session_to_memory(session_with(said_event(QUESTION), said_event(ANSWER, author="helper", at=1)))
    assert ANSWER in await texts(service, "jasmine shop")
    assert ANSWER in await call(service, MemoryToolset(), query="jasmine shop")


async def test_the_plugin_shows_a_question_with_its_answer(service: MemoryService) -> None:
    events = said_event(QUESTION), said_event(ANSWER, author="helper", at=1)
    await service.add_session_to_memory(session_with(*events, session_id="old"))
    model = ScriptedLlm(script=["fine"])
    async with runner_of(service, model, plugins=[MemoryPlugin()]) as runner:
        await ask(runner, "Where is jasmine sold in this town?", user_id=ANN, session_id="new")
    assert ANSWER in prompt(model.requests[0])


CONDITIONS = [
    (RecallOptions(where=Where(kinds=["preference"])), ["tea in the morning"]),
    (RecallOptions(where=Where(tags_any=["garden"])), ["tea roses"]),
    (RecallOptions(where=Where(session="monday")), ["tea on monday"]),
    (RecallOptions(where=Where(author="bob")), ["tea with bob"]),
]


@pytest.mark.parametrize(("options", "expected"), CONDITIONS)
async def test_kinds_tags_session_and_other_conditions_apply_to_service_tools_and_plugin(
    memory: Memory, options: RecallOptions, expected: list[str]
) -> None:
    await memory.bind(app=APP, user=ANN).add_many(
        [
            Draft("tea in the morning", kind="preference"),
            Draft("tea roses", tags=["garden"]),
            Draft("tea on monday", session="monday"),
            Draft("tea with bob", author="bob"),
        ]
    )
    service = MemoryService(memory, recall=options)
    assert await texts(service, "tea") == expected
    assert await call(service, MemoryToolset(recall=options), query="tea") == expected
    model = ScriptedLlm(script=["fine"])
    async with runner_of(service, model, plugins=[MemoryPlugin(recall=options, capture=False)]) as runner:
        await ask(runner, "tea?", user_id=ANN, session_id="new")
    shown = [line for line in prompt(model.requests[0]).splitlines() if line.startswith("- ")]
    assert [line.split('"')[1] for line in shown] == expected


async def test_a_least_score_leaves_out_what_is_much_worse_than_the_best(memory: Memory) -> None:
    lines = ["red ferry to the island", "a ferry", "a red car"]
    await memory.bind(app=APP, user=ANN).add_many(lines)
    assert len(await texts(MemoryService(memory), "red ferry island")) == 3
    strict = MemoryService(memory, recall=RecallOptions(min_score=0.9))
    assert await texts(strict, "red ferry island") == lines[:1]


async def test_no_result_has_less_than_a_tenth_of_the_best_score(meaning: Memory) -> None:
    ann = meaning.bind(app=APP, user=ANN)
    await ann.add_many(["Ann lives in Oslo", "Ann has a dog named Rex", "Ann drives a Volvo", "Ann plays the cello"])
    for query in ("What is my dog called?", "Where do I live?", "cello", "music"):
        scores = {hit.record.text: hit.score for hit in await ann.search(query)}
        assert all(scores[text] >= max(scores.values()) / 10 for text in await texts(MemoryService(meaning), query))


SOME = ("tea", "jasmine", "shop", "Oslo", "sails", "Ann", "likes", "every", "Friday")
WORDS = st.lists(st.sampled_from(SOME), min_size=1, max_size=6)
TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), WORDS, st.sampled_from([".", "?"])), max_size=25)


@given(turns=TURNS, facts=st.lists(WORDS, max_size=5), query=WORDS, mark=st.sampled_from(["", "?"]))
def test_the_ranking_is_that_of_every_other_search(
    turns: list[tuple[str, list[str], str]], facts: list[list[str]], query: list[str], mark: str
) -> None:
    async def check() -> None:
        async with Memory(":memory:", embedder=None) as memory:
            ann = memory.bind(app=APP, user=ANN)
            messages = [(role, " ".join(words) + end) for role, words, end in turns]
            if messages:
                await ann.remember(messages, session="s1")
            await ann.add_many([" ".join(words) for words in facts])
            asked = " ".join(query) + mark
            every = await ann.search(asked, limit=100)
            least = max((hit.score for hit in every), default=0.0) / 10
            repeats = {equal_form(asked)} if mark else set[str]()
            kept = [hit.record.text for hit in every if hit.score >= least]
            ranked = [
                text for n, text in enumerate(kept) if equal_form(text) not in repeats.union(map(equal_form, kept[:n]))
            ]
            results = await texts(MemoryService(memory), asked)
            assert results == (ranked if len(ranked) <= 10 else [text for text in ranked if text in results])

    asyncio.run(check())


NOTES = [f"tea note number {n}: jasmine is nice with a slice of lemon" for n in range(10)]


async def load_memory_answer(service: BaseMemoryService) -> int:
    """The length of what `load_memory` puts into the conversation about ten notes."""
    events = [said_event(note, at=n, id=f"{n:036}") for n, note in enumerate(NOTES)]
    for n, event in enumerate(events):
        await service.add_events_to_memory(app_name=APP, user_id=ANN, session_id=f"{n:036}", events=[event])
    answer = await service.search_memory(app_name=APP, user_id=ANN, query="tea jasmine")
    assert len(answer.memories) == 10
    return len(answer.model_dump_json(exclude_none=True))


async def test_the_answer_of_load_memory_is_hardly_longer_than_with_adks_own_service_of_a_file(
    service: MemoryService, tmp_path: Path
) -> None:
    own = SqliteMemoryService(str(tmp_path / "own.db"))
    assert await load_memory_answer(service) <= 1.2 * await load_memory_answer(own)
    await own.close()


async def test_the_answer_of_the_search_tool_is_no_longer_than_that_of_load_memory(service: MemoryService) -> None:
    own = await load_memory_answer(InMemoryMemoryService())
    await load_memory_answer(service)
    model = ScriptedLlm(script=[(SEARCH, {"query": "tea jasmine", "max_results": 10}), "done"])
    async with runner_of(service, model, MemoryToolset()) as runner:
        await ask(runner, "go", user_id=ANN, session_id="now")
    (answer,) = [p.function_response for c in model.requests[1].contents for p in c.parts or [] if p.function_response]
    assert answer.response is not None
    assert answer.response["results_count"] == 10
    assert len(json.dumps(answer.response)) <= 1.3 * own


async def test_a_turn_is_found_by_meaning_once_it_has_its_vector(meaning: Memory) -> None:
    service, plugin = MemoryService(meaning), MemoryPlugin()
    model = ScriptedLlm(script=["Noted.", "Jasmine."])
    async with runner_of(service, model, plugins=[plugin]) as runner:
        await ask(runner, "I never go anywhere without my labrador", user_id=ANN, session_id="s1")
        await plugin.flush()
        await settled(meaning.bind(app=APP, user=ANN))
        await ask(runner, "Do I have a dog?", user_id=ANN, session_id="s2")
    assert "labrador" in prompt(model.requests[1])


class Defective(MemoryService):
    """Every search of it is a defect."""

    def handle(self, app_name: str, user_id: str) -> BoundMemory:
        raise LookupError("a defect of ours")


@pytest.mark.parametrize("name", [SEARCH, "store_important_information", "forget_memory", "load_memory"])
async def test_no_error_of_a_tool_ends_the_run_or_quotes_a_memory(
    memory: Memory, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = {"query": "tea", "information": "my secret", "memory_id": "1"}
    model = ScriptedLlm(script=[(name, arguments), "I cannot remember."])
    plugin = MemoryPlugin(capture=False, recall=False)
    async with runner_of(Defective(memory), model, MemoryToolset(), load_memory_tool, plugins=[plugin]) as runner:
        assert await ask(runner, "go", user_id=ANN, session_id="s1") == "I cannot remember."
    assert "error" in prompt(model.requests[1])
    assert f"{name} failed: LookupError" in caplog.text
    assert "my secret" not in caplog.text


async def test_a_memory_names_its_session_and_its_event(memory: Memory) -> None:
    await memory.bind(app=APP, user=ANN).add(Draft("I drink tea", session="s1"))
    service, said = MemoryService(memory), said_event("Do you like tea?", id="e1")
    await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("tea is fine")])
    await service.add_session_to_memory(session_with(said, session_id="s2"))
    metadata = {text_of(entry): entry.custom_metadata for entry in await found(service, "tea")}
    assert metadata == {
        "I drink tea": {"kind": "note", "session_id": "s1"},
        "tea is fine": {},
        "Do you like tea?": {"session_id": "s2", "event_id": "e1"},
    }


async def test_an_image_is_not_in_the_answer(service: MemoryService) -> None:
    image = types.Part(inline_data=types.Blob(data=b"\x00" * 2_000, mime_type="image/png"))
    content = types.Content(role="user", parts=[types.Part(text="my tea cup"), image])
    await service.add_session_to_memory(session_with(said_event("", content=content)))
    answer = await service.search_memory(app_name=APP, user_id=ANN, query="tea")
    assert len(answer.model_dump_json()) < 1_000


async def test_a_copy_of_an_app_shares_its_memory(service: MemoryService) -> None:
    """As the templates of hosting services make one."""
    model, plugin = (
        ScriptedLlm(script=["Noted.", (SEARCH, {"query": "favourite tea"}), "Jasmine."]),
        MemoryPlugin(service),
    )
    agent = LlmAgent(name="helper", model=model, tools=[MemoryToolset(service)])
    copied = copy.deepcopy(App(name=APP, root_agent=agent, plugins=[plugin]))
    sessions = InMemorySessionService()
    async with Runner(app=copied, session_service=sessions, memory_service=service, auto_create_session=True) as runner:
        await ask(runner, "My favourite tea is jasmine", user_id=ANN, session_id="s1")
        await plugin.flush()
        await ask(runner, "Which tea do I like?", user_id=ANN, session_id="s2")
    assert isinstance(copied.root_agent, LlmAgent)
    assert isinstance(copied.root_agent.model, ScriptedLlm)
    assert "My favourite tea is jasmine" in prompt(copied.root_agent.model.requests[-1])
