"""Working memory for the tools of an agent made with `create_agent`."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import ensure_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from typing_extensions import override

from memory_core import AsyncMemoryBank, BoundMemory, Memory, run_sync
from memory_core.adapting import OF_THE_APPLICATION, Deadline, limits
from memory_langchain.scope import ScopeResolver
from memory_langchain.turns import with_memories

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ToolCallRequest

_NOBODY: Final = "bank"
"""The user of runs that name none, of a memory that nobody else uses."""
_WITHOUT: Final = "an agent goes on without its bank"

_Result = ToolMessage | Command[Any]


class BankMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Keeps a `MemoryBank` per thread: every tool call becomes a step, and every model request gets the last summaries
    and steps. A thread is a task: start a new thread for an unrelated task.

    Args:
        memory: A handle or a memory (a run names the user); by default a memory that lives as long as the process.
        max_entries: See `MemoryBank`.
        compression_threshold: See `MemoryBank`.
        timeout: The number of seconds that a run waits for one call of its bank; then it goes on without.

    Raises:
        ScopeError: During a run, if the user or the thread is missing.
    """

    def __init__(
        self,
        memory: BoundMemory | Memory | None = None,
        *,
        max_entries: int = 6,
        compression_threshold: int = 6,
        timeout: float = limits.CALL_SECONDS,
    ) -> None:
        super().__init__()
        self._deadline = Deadline(timeout, "a bank")
        self._user = {} if memory else {"user_id": _NOBODY}
        self._scopes = ScopeResolver(memory or Memory(":memory:", embedder=None))
        self._limits = (max_entries, compression_threshold)
        self._banks: OrderedDict[object, AsyncMemoryBank] = OrderedDict()

    def bank(self) -> AsyncMemoryBank:
        """Return the bank of the current run, for tools and other middleware.

        Raises:
            ScopeError: The run names no user or no thread.
        """
        configurable = {**self._user, **ensure_config().get("configurable", {})}
        scope = self._scopes.resolve({"configurable": configurable}, needs_session=True)
        key = (scope.memory.scope, scope.session)
        bank = self._banks.get(key)
        if bank is None:
            bank = self._banks[key] = AsyncMemoryBank(*self._limits, memory=scope.memory, task=scope.session)
        self._banks.move_to_end(key)
        if len(self._banks) > limits.MAX_BANKS:
            self._banks.popitem(last=False)
        return bank

    @override
    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]) -> _Result:
        """Add the result of the tool call, or its error; an interrupt is neither, and the tool is called again."""
        try:
            result = handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever a tool raises is its result, and is raised again
            run_sync(self._add, request, error)
            raise
        run_sync(self._add, request, result)
        return result

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """As `wrap_tool_call`."""
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            await self._add(request, error)
            raise
        await self._add(request, result)
        return result

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the last steps."""
        block = run_sync(self._block)
        return handler(request.override(system_message=with_memories(request.system_message, block)))

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        block = await self._block()
        return await handler(request.override(system_message=with_memories(request.system_message, block)))

    async def _add(self, request: ToolCallRequest, result: _Result | Exception) -> None:
        call, bank, failed, thinking = request.tool_call, self.bank(), False, _thinking(request.state)
        match result:
            case ToolMessage():
                text, failed = str(result.text), result.status == "error"
            case Exception():
                text, failed = f"{type(result).__name__}: {result}", True
            case _:
                text = repr(result)

        async def add() -> None:
            command = json.dumps(call["args"], ensure_ascii=False, default=repr)
            await bank.add_step(call["name"], command, text, thinking=thinking, failed=failed)

        with self._deadline.spared(_WITHOUT, Exception, but=OF_THE_APPLICATION):
            await self._deadline.write("adding a step to a bank", add)

    async def _block(self) -> str:
        bank = self.bank()
        with self._deadline.spared(_WITHOUT, Exception, but=OF_THE_APPLICATION):
            return await self._deadline.read("reading a bank", bank.prompt_block)
        return ""


def _thinking(state: Any) -> str:  # a mapping with messages, or a custom state
    """The text of the model message that called the tools."""
    messages: list[BaseMessage] = cast("dict[str, Any]", state).get("messages", []) if isinstance(state, dict) else []
    return next((str(message.text) for message in reversed(messages) if isinstance(message, AIMessage)), "")
