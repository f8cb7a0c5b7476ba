"""Working memory for the tools of a spade_llm agent: each call is a step, and model requests show the latest steps."""

from __future__ import annotations

try:
    from spade_llm.context import ContextManager
    from spade_llm.providers.base_provider import BaseLLMProvider
    from spade_llm.tools import LLMTool
except ImportError as error:
    raise ImportError(
        "`BankProvider` needs spade_llm 0.3, which runs on Python 3.11 and 3.12; there: "
        "pip install 'memory-core[spade-llm]'"
    ) from error

from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from memory_core import AsyncMemoryBank, BoundMemory, Memory
from memory_core.adapting import Deadline, check_seconds, limits
from memory_spade.prompting import WrappingProvider, with_block

_FAILED: Final = "{'error': "
"""Prefix of spade_llm's result for a tool that raised an error."""
_Known = tuple[str, str, int]


class BankProvider(WrappingProvider):
    """A provider that keeps a `MemoryBank` per conversation and otherwise delegates to the wrapped provider.

    Every tool call of a behaviour becomes a step before the next model request, and that request gets the last
    summaries and steps. A conversation is a task: use a new thread for an unrelated task. Errors of the memory are
    logged and do not reach the conversation.

    Args:
        provider: The provider to wrap.
        memory: A handle for the banks, bound to a user; by default a memory that lives as long as the process.
        max_entries: See `MemoryBank`.
        compression_threshold: See `MemoryBank`.
        memory_timeout: The number of seconds that a model request waits for the bank. Then it is sent without the bank,
            and the steps are added when the memory answers again.

    Raises:
        InvalidInputError: `memory_timeout` is not a number above 0.
    """

    def __init__(
        self,
        provider: BaseLLMProvider,
        memory: BoundMemory | None = None,
        *,
        max_entries: int = 6,
        compression_threshold: int = 6,
        memory_timeout: float = limits.CALL_SECONDS,
    ) -> None:
        super().__init__(provider)
        self._memory = Memory(":memory:", embedder=None).bind(user="bank") if memory is None else memory
        self._limits = (max_entries, compression_threshold)
        self._deadline = Deadline(check_seconds("memory_timeout", memory_timeout), "a bank")
        self._tasks: OrderedDict[str, tuple[AsyncMemoryBank, set[_Known]]] = OrderedDict()
        """The bank of each conversation, and the calls that it contains."""

    def bank(self, conversation_id: str) -> AsyncMemoryBank:
        """Return the bank of a conversation."""
        return self._task(conversation_id)[0]

    async def get_llm_response(
        self,
        context: ContextManager,
        tools: list[LLMTool] | None = None,
        conversation_id: str | None = None,
        output_schema: object | None = None,
    ) -> dict[str, Any]:
        """See `BaseLLMProvider`: add the calls since the last request, then call the wrapped provider."""
        block = "" if conversation_id is None else await self._kept(context, conversation_id)
        given = with_block(context, block, conversation_id)
        return await self.provider.get_llm_response(given, tools, conversation_id, output_schema)

    async def _kept(self, context: ContextManager, conversation_id: str) -> str:
        bank, known = self._task(conversation_id)
        new = [call for call in _calls(context.get_conversation_history(conversation_id)) if call[0] not in known]
        known.update(call for call, *_ in new)  # now, because adding them may take longer than this request waits

        async def add() -> None:
            missing = list(new)
            try:
                while missing:
                    _, name, arguments, result = missing[0]
                    await bank.add_step(name, arguments, result, failed=result.startswith(_FAILED))
                    del missing[0]
            finally:
                known.difference_update(call for call, *_ in missing)  # the next request tries again

        with self._deadline.spared("an agent goes on without its bank"):
            if new:
                await self._deadline.write("adding steps to a bank", add)
            return await self._deadline.read("reading a bank", bank.prompt_block)
        return ""

    def _task(self, conversation_id: str) -> tuple[AsyncMemoryBank, set[_Known]]:
        if conversation_id not in self._tasks:
            bank = AsyncMemoryBank(*self._limits, memory=self._memory, task=conversation_id)
            self._tasks[conversation_id] = (bank, set())
        self._tasks.move_to_end(conversation_id)
        if len(self._tasks) > limits.MAX_BANKS:
            self._tasks.popitem(last=False)
        return self._tasks[conversation_id]


def _calls(history: list[Any]) -> Iterator[tuple[_Known, str, str, str]]:
    """Yield every answered tool call of a conversation: a unique key, tool, arguments and result.

    The id alone is not unique: if a model gives none, spade_llm gives the first call of every turn the same id.
    """
    asked: dict[str, str] = {}
    times = Counter[tuple[str, str]]()
    for message in history:
        for call in message.get("tool_calls") or ():
            asked[call["id"]] = str(call["function"]["arguments"])
        if message["role"] == "tool":
            id, result = str(message["tool_call_id"]), str(message["content"])  # noqa: A001
            times[id, result] += 1
            yield (id, result, times[id, result]), str(message.get("tool_name", "tool")), asked.get(id, ""), result
