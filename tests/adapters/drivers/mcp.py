"""The hook of a coding client, which is run before the model and after it."""

from __future__ import annotations

import json
from collections import defaultdict

from memory_mcp import run_hook
from tests.adapters.drivers.driver import Setting, embedded


class Hook:
    """A client that tells the hook each prompt, and the conversation when a turn is over."""

    person = None

    def __init__(self, setting: Setting) -> None:
        self._memory, self._answer = setting.memory, setting.answer
        self._messages = defaultdict[str, list[dict[str, str]]](list)
        self._shown = ""

    async def say(self, text: str, conversation: str = "monday") -> str:
        said, answer = self._messages[conversation], self._answer(text)
        self._shown = await self._run(session_id=conversation, prompt=text)
        said += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        await self._run(session_id=conversation, messages=said)
        return answer

    def prompt(self) -> str:
        return self._shown

    async def settled(self) -> None:
        await embedded(self._memory)

    async def _run(self, **event: object) -> str:
        return await run_hook(self._memory, json.dumps(event))
