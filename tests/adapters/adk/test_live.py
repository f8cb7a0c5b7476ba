"""A voice call: `Runner.run_live`, with a scripted model at the other end of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm_connection import BaseLlmConnection, RealtimeInput
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, runner_of


def heard(text: str, *, finished: bool = True) -> types.Transcription:
    return types.Transcription(text=text, finished=finished)


class Call(BaseLlmConnection):
    """Hears one sentence, answers it, and stays on the line."""

    async def send_history(self, history: list[types.Content]) -> None: ...

    async def send_content(self, content: types.Content) -> None: ...

    async def send_realtime(self, blob: RealtimeInput) -> None: ...

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(input_transcription=heard("My favourite", finished=False), partial=True)
        yield LlmResponse(input_transcription=heard("My favourite tea is jasmine"))
        yield LlmResponse(output_transcription=heard("I shall remember that"))
        yield LlmResponse(turn_complete=True)
        await asyncio.Event().wait()

    async def close(self) -> None: ...


class Voice(ScriptedLlm):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[Call]:
        yield Call()


async def test_what_is_said_in_a_call_is_remembered_while_the_call_goes_on(
    service: MemoryService, memory: Memory
) -> None:
    said = [("user", "My favourite tea is jasmine"), ("helper", "I shall remember that")]
    assert await said_in(service, memory, Voice()) == said


class Interrupted(Call):
    """Is interrupted while it answers: what it had said by then is transcribed as finished, as ADK's connection to
    Gemini does, and the sentence goes no further."""

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(input_transcription=heard("Which teas do you know?"))
        yield LlmResponse(output_transcription=heard("There is jasmine,", finished=False), partial=True)
        yield LlmResponse(output_transcription=heard(" there is", finished=False), partial=True)
        yield LlmResponse(output_transcription=heard("There is jasmine, there is"))
        yield LlmResponse(interrupted=True)
        yield LlmResponse(input_transcription=heard("Stop, jasmine it is"))
        yield LlmResponse(output_transcription=heard("Jasmine then"))
        yield LlmResponse(turn_complete=True)
        await asyncio.Event().wait()


class InterruptedVoice(ScriptedLlm):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[Call]:
        yield Interrupted()


async def said_in(service: MemoryService, memory: Memory, model: ScriptedLlm) -> list[tuple[str | None, str]]:
    """The texts that are stored of a call when its first turn is complete."""
    plugin = MemoryPlugin()
    async with runner_of(service, model, plugins=[plugin]) as runner:
        await runner.session_service.create_session(app_name=APP, user_id=ANN, session_id="s1")
        queue = LiveRequestQueue()
        settings = RunConfig(streaming_mode=StreamingMode.BIDI)
        events = runner.run_live(user_id=ANN, session_id="s1", live_request_queue=queue, run_config=settings)
        async for event in events:
            if event.turn_complete:
                break
        await plugin.flush()
        held = (await memory.bind(app=APP, user=ANN).list(order="oldest")).records
        queue.close()
        await events.aclose()
    return [(record.author, record.text) for record in held]


async def test_of_an_interrupted_sentence_what_was_said_is_stored_once_and_so_is_what_follows(
    service: MemoryService, memory: Memory
) -> None:
    assert await said_in(service, memory, InterruptedVoice()) == [
        ("user", "Which teas do you know?"),
        ("helper", "There is jasmine, there is"),
        ("user", "Stop, jasmine it is"),
        ("helper", "Jasmine then"),
    ]
