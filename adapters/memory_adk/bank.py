"""Working memory for the tools of an ADK runner: each call is a step, and model requests show the latest steps."""

from __future__ import annotations

import json
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from memory_adk.latest import Latest
from memory_adk.recall import show
from memory_core import AsyncMemoryBank, BoundMemory, Memory
from memory_core.adapting import Deadline, limits, owned_by


class BankPlugin(BasePlugin):
    """Keeps a `MemoryBank` per session: every tool call becomes a step, and every model request gets the last summaries
    and steps. A session is a task: start a new session for an unrelated task.

    Errors of the memory are logged and do not reach the conversation.

    Args:
        memory: The memory for the banks; a handle without a user takes ADK's user. By default a memory that lives as
            long as the process.
        max_entries: See `MemoryBank`.
        compression_threshold: See `MemoryBank`.
        timeout: The number of seconds that a run waits for one call of its bank; then it goes on without.
        name: Name of the plugin in ADK.
    """

    def __init__(
        self,
        memory: BoundMemory | None = None,
        *,
        max_entries: int = 6,
        compression_threshold: int = 6,
        timeout: float = limits.CALL_SECONDS,
        name: str = "memory_bank",
    ) -> None:
        super().__init__(name)
        self._own = Memory(":memory:", embedder=None) if memory is None else None
        self._memory = memory
        self._deadline = Deadline(timeout, "a bank")
        self._limits = (max_entries, compression_threshold)
        self._banks = Latest[tuple[str, str, str], AsyncMemoryBank]()

    def bank(self, context: CallbackContext) -> AsyncMemoryBank:
        """Return the bank of the session of a tool or a callback.

        Raises:
            ScopeError: The handle belongs to another user or session.
        """
        session = context.session
        key = (session.app_name, session.user_id, session.id)
        if key not in self._banks:
            handle = self._memory if self._own is None else self._own.bind(app=session.app_name)
            assert handle is not None  # noqa: S101  (one of the two is set, which type checkers cannot see)
            owned = owned_by(handle, session.user_id)
            self._banks[key] = AsyncMemoryBank(*self._limits, memory=owned, task=session.id)
        return self._banks.note(key, self._banks[key], limits.MAX_BANKS)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: object
    ) -> None:
        """Add the result of a tool call."""
        await self._add(tool, tool_args, tool_context, _written(result), failed=False)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """Add the error of a tool call, and let other plugins handle it."""
        await self._add(tool, tool_args, tool_context, f"{type(error).__name__}: {error}", failed=True)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add the last steps to the prompt."""
        with self._deadline.spared("a request goes without its bank", Exception):
            bank = self.bank(callback_context)
            show(llm_request, await self._deadline.read("reading a bank", bank.prompt_block))

    async def close(self) -> None:
        """Close the memory if the plugin created it; ADK calls this when the runner closes."""
        if self._own is not None:
            await self._own.close()

    async def _add(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, result: str, *, failed: bool
    ) -> None:
        with self._deadline.spared("a step is not in its bank", Exception):
            bank, command = self.bank(context), _written(arguments)

            async def add() -> None:
                await bank.add_step(tool.name, command, result, failed=failed)

            await self._deadline.write("adding a step to a bank", add)


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
