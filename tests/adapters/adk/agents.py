"""The parts that the tests of this folder share: runners around scripted models, and events as ADK makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from memory_adk import MemoryService
from memory_adk.convert import event_drafts, keyed
from memory_adk.testing import ScriptedLlm
from memory_core import Draft, StoreUnavailableError

APP, ANN = "demo", "ann"
START = 1_700_000_000.0


def runner_of(
    service: BaseMemoryService | None,
    model: ScriptedLlm,
    *tools: BaseTool | BaseToolset,
    plugins: list[BasePlugin] | None = None,
) -> Runner:
    agent = LlmAgent(name="helper", model=model, tools=list(tools))
    return Runner(
        app=App(name=APP, root_agent=agent, plugins=plugins or []),
        session_service=InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )


async def session_of(runner: Runner, user_id: str, session_id: str) -> Session:
    session = await runner.session_service.get_session(app_name=APP, user_id=user_id, session_id=session_id)
    assert session is not None
    return session


async def remember(runner: Runner, service: MemoryService, user_id: str, session_id: str) -> None:
    await service.add_session_to_memory(await session_of(runner, user_id, session_id))


def said_event(text: str, *, at: float = 0, author: str = "user", **fields: Any) -> Event:
    """An event in which `author` says `text`, `at` seconds after the start of the test's time."""
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    merged: dict[str, Any] = {"invocation_id": "i1", "content": content} | fields
    return Event(author=author, timestamp=START + at, **merged)


def session_with(*events: Event, session_id: str = "s1", app: str = APP, user: str = ANN) -> Session:
    return Session(id=session_id, app_name=app, user_id=user, events=list(events))


def drafts_of(event: Event, session: str | None, metadata: Mapping[str, object], now: datetime) -> list[Draft]:
    return event_drafts(keyed([event], session), session, metadata, now)


def entry_of(text: str, **fields: Any) -> MemoryEntry:
    return MemoryEntry(content=types.Content(parts=[types.Part(text=text)]), **fields)


async def found(service: BaseMemoryService, query: str, *, app: str = APP, user: str = ANN) -> list[MemoryEntry]:
    return (await service.search_memory(app_name=app, user_id=user, query=query)).memories


async def texts(service: BaseMemoryService, query: str, *, app: str = APP, user: str = ANN) -> list[str]:
    return [text_of(entry) for entry in await found(service, query, app=app, user=user)]


async def answering(service: MemoryService) -> None:
    """Return when a store that was left alone answers again."""
    while True:
        try:
            service.access.insist()
        except StoreUnavailableError:
            await asyncio.sleep(0.01)
        else:
            return


def text_of(entry: MemoryEntry) -> str:
    assert entry.content.parts
    return "".join(part.text or "" for part in entry.content.parts)


def bytes_in(folder: Path) -> bytes:
    """Everything the files of a folder hold."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


class Guard(BasePlugin):
    """Answers attacks in the agent's place."""

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        if "attack" in str(invocation_context.user_content):
            return types.Content(role="model", parts=[types.Part(text="blocked")])
        return None
