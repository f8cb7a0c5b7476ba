"""An agent of Xaibo whose model has a memory."""

from __future__ import annotations

from memory_xaibo import CoreMemory
from tests.adapters.drivers.driver import Setting, embedded
from tests.adapters.xaibo.talking import Talk, Told, said


class Xaibo:
    """An agent, made for each message as Xaibo's servers do it."""

    person = None

    def __init__(self, setting: Setting) -> None:
        self._memory, self._answer, self._seconds = setting.memory, setting.answer, setting.seconds
        self._model = Told(lambda messages: self._answer(said(messages)[-1]))

    async def say(self, text: str, conversation: str = "monday") -> str:
        memory = CoreMemory({"session": conversation}, memory=self._memory)
        return await Talk(memory, self._model, config=f"{{timeout: {self._seconds}}}").say(text)

    def prompt(self) -> str:
        return self._model.shown()

    async def settled(self) -> None:
        await embedded(self._memory)
