"""An agent searches, stores, corrects and forgets by itself, within what ADK's context allows it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.load_memory_tool import load_memory_tool

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Draft, Memory, RecallOptions, Where
from memory_core.adapting import EDITING_TOOLS
from tests.adapters.adk.agents import ANN, APP, START, entry_of, runner_of, said_event, session_of, session_with

NAMES = ["search_past_conversations", "store_important_information", *(tool.name for tool in EDITING_TOOLS)]


async def call(service: MemoryService | None, name: str, user: str = ANN, **arguments: Any) -> dict[str, Any]:
    """The answer of the tool to the model in a real run."""
    model = ScriptedLlm(script=[(name, arguments), "done"])
    async with runner_of(service, model, MemoryToolset()) as runner:
        await ask(runner, "go", user_id=user, session_id="now")
        events = (await session_of(runner, user, "now")).events
    (answer,) = [response for event in events for response in event.get_function_responses()]
    assert isinstance(answer.response, dict)
    return answer.response


async def test_the_model_is_offered_tools_none_of_which_names_a_user(service: MemoryService) -> None:
    model = ScriptedLlm(script=["hi"])
    async with runner_of(service, model, MemoryToolset()) as runner:
        await ask(runner, "hello", user_id=ANN, session_id="s1")
    (offered,) = model.requests[0].config.tools or []
    declared = {d.name: d.parameters_json_schema for d in offered.function_declarations or []}  # type: ignore[union-attr]
    assert list(declared) == NAMES
    arguments = {name for schema in declared.values() if schema for name in schema["properties"]}
    assert not any("user" in name or "app" in name for name in arguments)


async def test_tools_can_be_filtered_and_prefixed() -> None:
    toolset = MemoryToolset(tool_filter=["forget_memory"], tool_name_prefix="ann")
    assert [tool.name for tool in await toolset.get_tools_with_prefix()] == ["ann_forget_memory"]


async def test_what_one_agent_stored_another_finds_corrects_and_forgets(service: MemoryService, memory: Memory) -> None:
    done = await call(
        service,
        "store_important_information",
        information="Ann is allergic to nuts",
        memory_type="important_fact",
        metadata={"source": "doctor"},
    )
    assert done == {
        "status": "success", "message": 'Stored as "important_fact".', "id": done["id"],
        "stored_text": "Ann is allergic to nuts",
    }  # fmt: skip
    record = await memory.bind(app=APP, user=ANN).get(done["id"])
    assert record is not None
    assert (record.kind, record.session, record.agent, record.author) == ("important_fact", "now", "helper", "helper")
    assert record.data == {"source": "doctor"}
    found = await call(service, "search_past_conversations", query="allergic to what?")
    assert found["results_count"] == 1
    assert {"id": done["id"], "text": "Ann is allergic to nuts", "memory_type": "important_fact"}.items() <= (
        found["results"][0].items()
    )
    await call(service, "update_memory", memory_id=done["id"], content="Ann is allergic to hazelnuts")
    assert (await call(service, "search_past_conversations", query="hazelnuts"))["results_count"] == 1
    assert (await call(service, "forget_memory", memory_id=done["id"]))["status"] == "success"
    assert (await call(service, "search_past_conversations", query="hazelnuts"))["results_count"] == 0


@pytest.mark.parametrize(("asked", "given"), [("3", 3), (2.0, 2), (0, 1), (-1, 1), (1_000, 50), ("many", 5), (None, 5)])
async def test_the_number_of_results_is_coerced_and_clamped(service: MemoryService, asked: object, given: int) -> None:
    await service.add_session_to_memory(session_with(*(said_event(f"tea {n}", at=n) for n in range(60))))
    answer = await call(service, "search_past_conversations", query="tea", max_results=asked)
    assert answer["results_count"] == given


@pytest.mark.parametrize(("days", "texts"), [(1, ["new tea"]), ("2.5", ["new tea"]), (1e300, ["new tea", "old tea"])])
async def test_the_time_window_leaves_out_what_is_older(service: MemoryService, days: object, texts: list[str]) -> None:
    age = time.time() - START
    await service.add_session_to_memory(session_with(said_event("old tea"), said_event("new tea", at=age - 60)))
    answer = await call(service, "search_past_conversations", query="tea", time_window_days=days)
    assert sorted(result["text"] for result in answer["results"]) == texts


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("search_past_conversations", {}, "'query'"),
        ("search_past_conversations", {"query": 7}, "'query'"),
        ("search_past_conversations", {"query": "tea", "time_window_days": 0}, "above 0"),
        ("search_past_conversations", {"query": "tea", "time_window_days": "soon"}, "'soon'"),
        ("search_past_conversations", {"query": "tea", "time_window_days": "nan"}, "'nan'"),
        ("store_important_information", {"information": " "}, "'information'"),
        ("store_important_information", {"information": "x", "metadata": "not json"}, "'metadata'"),
        ("store_important_information", {"information": "x", "memory_type": "k" * 600}, "kind"),
        ("update_memory", {"memory_id": "nobody", "content": "x"}, "nobody"),
        ("forget_memory", {"memory_id": "nobody"}, "nobody"),
        ("forget_memory", {}, "'memory_id'"),
    ],
)
async def test_a_bad_call_is_answered_with_an_error_and_its_reason(
    service: MemoryService, name: str, arguments: dict[str, Any], reason: str
) -> None:
    answer = await call(service, name, **arguments)
    assert answer["status"] == "error"
    assert reason in answer["message"]


async def test_without_a_memory_the_answer_says_so() -> None:
    answer = await call(None, "search_past_conversations", query="tea")
    assert answer["status"] == "error"
    assert "MemoryService" in answer["message"]


async def test_metadata_may_come_as_text(service: MemoryService, memory: Memory) -> None:
    answer = await call(service, "store_important_information", information="x", metadata='{"a": [1]}')
    record = await memory.bind(app=APP, user=ANN).get(answer["id"])
    assert record is not None
    assert record.data == {"a": [1]}


async def test_the_model_cannot_choose_whose_memory_it_reaches(service: MemoryService) -> None:
    await service.add_memory(app_name=APP, user_id="bob", memories=[entry_of("the code word is tamarind", id="b")])
    answer = await call(service, "search_past_conversations", query="code word", user_id="bob", app_name="x")
    assert answer["results_count"] == 0
    assert (await call(service, "forget_memory", memory_id="b", user_id="bob"))["status"] == "error"
    assert (await call(service, "search_past_conversations", user="bob", query="code word"))["results_count"] == 1


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # by ADK's own AgentTool
async def test_an_agent_that_runs_as_a_tool_reaches_the_memory_through_its_toolset(
    service: MemoryService, memory: Memory
) -> None:
    await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("Ann's favourite tea is jasmine")])
    search = ("search_past_conversations", {"query": "favourite tea"})
    child_model = ScriptedLlm(script=[search, "jasmine"])
    child = LlmAgent(name="child", model=child_model, description="answers", tools=[MemoryToolset(service)])
    model = ScriptedLlm(script=[("child", {"request": "Which tea?"}), "Jasmine."])
    async with runner_of(service, model, AgentTool(child), plugins=[MemoryPlugin(recall=False)]) as runner:
        await ask(runner, "Which tea do I like?", user_id=ANN, session_id="s1")
    assert "Ann's favourite tea is jasmine" in prompt(child_model.requests[-1])
    page = await memory.bind(app=APP, user=ANN).list(where=Where(kinds=("message",)))
    assert {record.text for record in page.records} == {"Which tea do I like?", "Jasmine."}


async def test_the_tools_do_not_find_the_message_that_is_being_answered(service: MemoryService, memory: Memory) -> None:
    ann = memory.bind(app=APP, user=ANN)
    await ann.add_many(["The jasmine tea is in the tin", Draft("Nobody drinks jasmine tea here", kind="fact")])
    calls = [("search_past_conversations", {"query": "jasmine tea"}), ("load_memory", {"query": "jasmine tea"})]
    model = ScriptedLlm(script=[*calls, "In the tin."])
    options = RecallOptions(where=Where(kinds=["note", "message"]), floor=False)
    service, tools = MemoryService(memory, recall=options), (MemoryToolset(recall=options), load_memory_tool)
    async with runner_of(service, model, *tools, plugins=[MemoryPlugin(recall=False)]) as runner:
        await ask(runner, "I have jasmine tea somewhere in my kitchen", user_id=ANN, session_id="s1")
    assert (await ann.search("somewhere in my kitchen"))[0].record.text.startswith("I have")
    for request in model.requests[1:]:
        read = prompt(request)
        assert read.count("The jasmine tea is in the tin") == len(model.requests[1 : model.requests.index(request) + 1])
        assert read.count("somewhere in my kitchen") == 1
        assert "Nobody drinks" not in read


async def test_an_agent_has_a_memory_of_its_own(service: MemoryService, memory: Memory) -> None:
    scripts = {
        "billing": ("store_important_information", {"information": "Ann pays by invoice"}),
        "support": ("search_past_conversations", {"query": "How does Ann pay?"}),
    }
    events: list[Event] = []
    for name, tool_call in scripts.items():
        toolset = MemoryToolset(MemoryService(memory.bind(app=APP, agent=name)))
        agent = LlmAgent(name=name, model=ScriptedLlm(script=[tool_call, "done"]), tools=[toolset])
        async with Runner(
            app=App(name=APP, root_agent=agent),
            session_service=InMemorySessionService(),
            memory_service=service,
            auto_create_session=True,
        ) as runner:
            await ask(runner, "go", user_id=ANN, session_id="s")
            events += (await session_of(runner, ANN, "s")).events
    answers = [response.response or {} for event in events for response in event.get_function_responses()]
    assert [answer["status"] for answer in answers] == ["success", "success"]
    assert answers[1]["results_count"] == 0
    (kept,) = (await memory.bind(app=APP, user=ANN, agent="billing").list()).records
    assert kept.text == "Ann pays by invoice"
