"""A runner of Google's ADK with the plugin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from google.adk.runners import Runner

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, prompt
from tests.adapters.adk.agents import APP, runner_of
from tests.adapters.drivers.driver import Setting, embedded

_MOST_ANSWERS: Final = 1_000


class Adk:
    """A runner whose plugin recalls and stores."""

    person = None

    def __init__(self, setting: Setting) -> None:
        assert setting.memory.scope.app == APP
        self._memory, self._answer = setting.memory, setting.answer
        self._said = ""
        self._model = ScriptedLlm(script=[lambda _: self._answer(self._said)] * _MOST_ANSWERS)
        self._plugin = MemoryPlugin(recall_seconds=setting.seconds)
        service = MemoryService(setting.memory, timeout=setting.seconds)
        self.runner: Runner = runner_of(service, self._model, plugins=[self._plugin])

    async def say(self, text: str, conversation: str = "monday") -> str:
        self._said = text
        return await ask(self.runner, text, user_id=str(self._memory.scope.user), session_id=conversation)

    def prompt(self) -> str:
        return prompt(self._model.requests[-1])

    async def settled(self) -> None:
        await self._plugin.flush()
        await embedded(self._memory)


@asynccontextmanager
async def adk(setting: Setting) -> AsyncIterator[Adk]:
    """Run an agent until the test is over."""
    driver = Adk(setting)
    async with driver.runner:
        yield driver
