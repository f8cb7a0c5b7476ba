"""A run that is cut off after an event tells nobody; what the user was told is stored without another turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from pydantic import PrivateAttr

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, user_says
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, runner_of
from tests.adapters.adk.test_following import running, stored
from tests.adapters.adk.test_live import Call, heard

TOLD, ANSWER = "My favourite tea is jasmine", "I shall remember that"


class Silent(ScriptedLlm):
    """Never answers."""

    _asked: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)

    @property
    def asked(self) -> asyncio.Event:
        """The event that it has been asked."""
        return self._asked

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
    ) -> AsyncGenerator[LlmResponse, None]:
        self._asked.set()
        await asyncio.Event().wait()
        yield LlmResponse()


class Unfinished(Call):
    """Answers, and its turn is never complete."""

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(input_transcription=heard(TOLD))
        yield LlmResponse(output_transcription=heard(ANSWER))
        await asyncio.Event().wait()


class Voice(ScriptedLlm):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[Call]:
        yield Unfinished()


class Slow(InMemorySessionService):
    """Appends events after the first look at the session."""

    async def append_event(self, session: Session, event: Event) -> Event:
        await asyncio.sleep(0.4 if event.author == "first" else 0)
        return await super().append_event(session, event)


async def cut_off(events: AsyncGenerator[Event, None], after: int) -> None:
    """Read so many events, and cancel the task that waits for more."""
    read = asyncio.Semaphore(0)

    async def reading() -> None:
        async for _ in events:
            read.release()

    task = asyncio.create_task(reading())
    for _ in range(after):
        await read.acquire()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until_stored(memory: Memory, *expected: str) -> None:
    while sorted(await stored(memory)) != sorted(expected):  # noqa: ASYNC110  (a timer is waited for)
        await asyncio.sleep(0.02)


async def test_what_was_said_in_a_call_is_stored_when_the_caller_hangs_up(
    service: MemoryService, memory: Memory
) -> None:
    runner = runner_of(service, Voice(), plugins=[MemoryPlugin()])
    await runner.session_service.create_session(app_name=APP, user_id=ANN, session_id="s1")
    settings, queue = RunConfig(streaming_mode=StreamingMode.BIDI), LiveRequestQueue()
    call = runner.run_live(user_id=ANN, session_id="s1", live_request_queue=queue, run_config=settings)
    await cut_off(call, after=2)
    await until_stored(memory, TOLD, ANSWER)


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
@pytest.mark.parametrize("sessions", [InMemorySessionService, Slow])
@pytest.mark.parametrize("flushes", [False, True])
async def test_an_answer_of_a_run_that_a_time_out_ends_is_stored_without_another_turn(
    service: MemoryService,
    memory: Memory,
    sessions: type[InMemorySessionService],
    flushes: bool,  # noqa: FBT001
) -> None:
    steps: list[Any] = [
        LlmAgent(name="first", model=ScriptedLlm(script=[ANSWER])),
        LlmAgent(name="second", model=Silent()),
    ]
    plugin = MemoryPlugin(recall=False)
    runner = running(service, SequentialAgent(name="both", sub_agents=steps), sessions(), plugin)
    await cut_off(runner.run_async(user_id=ANN, session_id="s1", new_message=user_says(TOLD)), after=1)
    if flushes:
        await plugin.flush()
        assert sorted(await stored(memory)) == sorted([TOLD, ANSWER])
    await until_stored(memory, TOLD, ANSWER)


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_an_answer_is_stored_while_the_next_one_is_waited_for(service: MemoryService, memory: Memory) -> None:
    steps = LlmAgent(name="first", model=ScriptedLlm(script=[ANSWER])), LlmAgent(name="second", model=Silent())
    agent = SequentialAgent(name="both", sub_agents=list(steps))
    runner = running(service, agent, Slow(), MemoryPlugin(recall=False))

    async def waiting() -> None:
        async for _ in runner.run_async(user_id=ANN, session_id="s1", new_message=user_says(TOLD)):
            pass

    task = asyncio.create_task(waiting())
    await until_stored(memory, TOLD, ANSWER)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
