"""A runner with the plugin; rewinds, and sessions that are added again."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import live_events
from memory_adk.testing import ScriptedLlm, ask
from memory_core import BoundMemory
from tests.adapters.chats.langgraph import OverloadedError

_MOST_ANSWERS = 1_000


class Adk:
    """One session, which the runner of any process may go on with."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        self._answers, self._fails = itertools.count(), False
        self._services = [MemoryService(handle) for handle in handles]
        self._plugins = [MemoryPlugin(recall=False) for _ in handles]
        self._sessions = InMemorySessionService()
        self._runners = [self._runner(*each) for each in zip(self._services, self._plugins, strict=True)]

    def _runner(self, service: MemoryService, plugin: MemoryPlugin) -> Runner:
        model = ScriptedLlm(script=[self._answer] * _MOST_ANSWERS)
        app = App(name="demo", root_agent=LlmAgent(name="helper", model=model), plugins=[plugin])
        return Runner(app=app, session_service=self._sessions, memory_service=service, auto_create_session=True)

    def _answer(self, request: LlmRequest) -> str:
        if self._fails:
            raise OverloadedError
        return f"answer {next(self._answers)}"

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        if what in ("again", "at_once"):
            session = await self._session()
            services = self._services if what == "at_once" else [self._services[process]]
            await asyncio.gather(*(each.add_session_to_memory(session) for each in services))
            return
        runner, goes_back = self._runners[process], what in ("edit", "regenerate", "go_back")
        live = live_events((await self._session()).events) if goes_back else []
        turns = list(dict.fromkeys(event.invocation_id for event in live if event.author == "user"))
        if turns:  # in ADK, who edits or asks again rewinds first
            chosen = turns[place % len(turns)]
            await runner.rewind_async(user_id="ann", session_id="s", rewind_before_invocation_id=chosen)
        self._fails = what == "interrupt"
        with suppress(OverloadedError):
            await ask(runner, text, user_id="ann", session_id="s")
        self._fails = False
        await self._plugins[process].flush()  # a turn is stored before another process rewinds it

    async def shown(self) -> list[str]:
        for plugin in self._plugins:
            await plugin.flush()
        live = live_events((await self._session()).events)
        return [str(event.content.parts[0].text) for event in live if event.content and event.content.parts]

    async def _session(self) -> Any:
        found = await self._sessions.get_session(app_name="demo", user_id="ann", session_id="s")
        return found or await self._sessions.create_session(app_name="demo", user_id="ann", session_id="s")
