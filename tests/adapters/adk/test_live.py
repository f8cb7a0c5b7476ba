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
    plugin = MemoryPlugin()
    async with runner_of(service, Voice(), plugins=[plugin]) as runner:
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
    said = [("user", "My favourite tea is jasmine"), ("helper", "I shall remember that")]
    assert [(record.author, record.text) for record in held] == said
