"""An MCP client that hands its conversation over to `memory_remember`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mcp import Client

from memory_core import BoundMemory
from memory_mcp import memory_server


class Mcp:
    """A client whose messages have ids."""

    def __init__(self, handles: Sequence[BoundMemory], **options: Any) -> None:
        self._servers = [memory_server(handle, tools="all", **options) for handle in handles]
        self._messages: list[dict[str, Any]] = []
        self._ids: dict[str, str] = {}
        """The memories of the messages, by message id."""

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        at = place % len(self._messages) if self._messages else 0
        if what == "edit" and self._messages:
            self._messages[at] = {**self._messages[at], "content": text}
        elif what == "remove" and self._messages:
            gone = self._messages.pop(at)
            await self._call(process, "memory_delete", id=self._ids[gone["id"]])
        elif what not in ("again", "at_once"):
            self._add("user", text)
            if what != "interrupt":
                self._add("assistant", f"answer to {text}")
        processes = range(len(self._servers)) if what == "at_once" else [process]
        if self._messages:
            await asyncio.gather(*(self._remember(each) for each in processes))

    async def shown(self) -> list[str]:
        return [message["content"] for message in self._messages]

    def _add(self, role: str, text: str) -> None:
        self._messages.append({"role": role, "content": text, "id": f"m{len(self._messages)} {text}"})

    async def _remember(self, process: int) -> None:
        answer = await self._call(process, "memory_remember", messages=self._messages, session="s")
        self._ids = {one["id"]: name for one, name in zip(self._messages, answer["ids"], strict=True)}

    async def _call(self, process: int, tool: str, **arguments: Any) -> dict[str, Any]:
        async with Client(self._servers[process]) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return dict(result.structured_content or {})
