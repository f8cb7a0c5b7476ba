"""The promises of docs/adk.md and its guides with "always", "never" and "nothing", each over real session services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.tools.load_memory_tool import load_memory_tool
from google.genai import types

from memory_adk import MemoryPlugin, MemoryService, MemoryToolset
from memory_adk.testing import ScriptedLlm, Step, ask, prompt
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, entry_of, session_with, texts
from tests.adapters.adk.test_following import SERVICES, running, sessions_of, stored
from tests.adapters.adk.test_hang_ups import Unfinished, cut_off
from tests.adapters.adk.test_live import Call
from tests.adapters.adk.test_rewind import rewound

TEA, SECRET = "My favourite tea is jasmine", "My passphrase is xyzzy"


@pytest.fixture(params=SERVICES)
async def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseSessionService]:
    async with sessions_of(request.param, tmp_path) as each:
        yield each


def agent(*script: Step, tools: tuple[object, ...] = ()) -> tuple[LlmAgent, ScriptedLlm]:
    model = ScriptedLlm(script=list(script))
    return LlmAgent(name="helper", model=model, tools=list(tools)), model  # type: ignore[arg-type]  # two kinds of tools


async def test_storing_never_breaks_an_answer(sessions: BaseSessionService, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    service = MemoryService(tmp_path / "folder")  # which is no file
    root, _ = agent("Noted.", "Fine.")
    async with running(service, root, sessions, MemoryPlugin()) as runner:
        assert await ask(runner, TEA, user_id=ANN, session_id="s1") == "Noted."
        assert await ask(runner, "It rains", user_id=ANN, session_id="s1") == "Fine."
    await service.close()


async def test_leaving_events_out_of_a_later_call_removes_nothing(
    service: MemoryService, memory: Memory, sessions: BaseSessionService
) -> None:
    root, _ = agent("Noted.", "Fine.")
    async with running(service, root, sessions, MemoryPlugin(recall=False)) as runner:
        await ask(runner, TEA, user_id=ANN, session_id="s1")
        await ask(runner, "It rains", user_id=ANN, session_id="s1")
    before = await stored(memory)
    for last in (0, 1, 2):
        cut = GetSessionConfig(num_recent_events=last)
        session = await sessions.get_session(app_name=APP, user_id=ANN, session_id="s1", config=cut)
        assert session is not None
        await service.add_session_to_memory(session)
    assert await stored(memory) == before
    assert len(before) == 4


@pytest.mark.parametrize("then", ["rewind", "deletion"])
async def test_a_rewound_turn_is_withdrawn_from_other_sessions_and_a_deleted_session_changes_nothing(
    service: MemoryService, sessions: BaseSessionService, then: str
) -> None:
    searches = [("load_memory", {"query": "passphrase"}), ("search_past_conversations", {"query": "passphrase"})]
    root, model = agent("Hello.", "Noted.", *searches, "Done.", tools=(load_memory_tool, MemoryToolset()))
    plugin = MemoryPlugin()
    async with running(service, root, sessions, plugin) as runner:
        await ask(runner, TEA, user_id=ANN, session_id="s1")
        await ask(runner, SECRET, user_id=ANN, session_id="s1")
        await plugin.flush()
        if then == "rewind":
            await rewound(runner)
        else:
            await sessions.delete_session(app_name=APP, user_id=ANN, session_id="s1")
        await ask(runner, "What is my passphrase?", user_id=ANN, session_id="s2")
    shown = [prompt(request).count("xyzzy") for request in model.requests[-3:]]
    assert shown == ([0, 0, 0] if then == "rewind" else [1, 2, 3])


async def test_what_a_user_says_is_always_stored_in_their_own_memory(
    memory: Memory, sessions: BaseSessionService
) -> None:
    team, own = memory.bind(app=APP, user="team"), memory.bind(app=APP)
    service = MemoryService(own.sharing({"team": team}, writable=["team"]))
    root, _ = agent("Noted.", tools=(MemoryToolset(),))
    async with running(service, root, sessions, MemoryPlugin()) as runner:
        await ask(runner, TEA, user_id=ANN, session_id="s1")
    assert sorted(await stored(memory)) == sorted([TEA, "Noted."])
    assert (await team.list()).records == ()


async def test_the_user_comes_from_adks_context_and_never_from_the_model(
    service: MemoryService, sessions: BaseSessionService
) -> None:
    await service.add_memory(app_name=APP, user_id="bob", memories=[entry_of(SECRET)])
    asks = {"query": "passphrase", "user_id": "bob", "user": "bob", "app_name": APP}
    root, model = agent(("search_past_conversations", asks), "Done.", tools=(MemoryToolset(),))
    async with running(service, root, sessions, MemoryPlugin()) as runner:
        await ask(runner, "What is Bob's passphrase?", user_id=ANN, session_id="s1")
    assert "xyzzy" not in prompt(model.requests[-1])


class Listening(ScriptedLlm):
    """Keeps what it is connected with."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[Call]:
        self.requests.append(llm_request)
        yield Unfinished()


async def test_nothing_is_added_to_the_prompt_of_a_live_call(
    service: MemoryService, sessions: BaseSessionService
) -> None:
    await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("Ann's favourite tea is jasmine")])
    await sessions.create_session(app_name=APP, user_id=ANN, session_id="s1")
    model = Listening()
    runner = running(service, LlmAgent(name="helper", model=model), sessions, MemoryPlugin())
    spoken, queue = RunConfig(streaming_mode=StreamingMode.BIDI), LiveRequestQueue()
    call = runner.run_live(user_id=ANN, session_id="s1", live_request_queue=queue, run_config=spoken)
    await cut_off(call, after=2)
    assert [prompt(request) for request in model.requests] == [""]
    await runner.close()


async def test_a_message_that_is_nothing_but_a_file_is_found(service: MemoryService) -> None:
    contract = types.Blob(data=b"The rent is 700 a month", mime_type="text/plain", display_name="contract.txt")
    sent = types.Content(role="user", parts=[types.Part(inline_data=contract)])
    await service.add_session_to_memory(session_with(Event(author="user", content=sent)))
    assert await texts(service, "Which contract did I send you?") == ["Attached: contract.txt"]
