"""The tools of spade_llm's code: names, parameters and words of the answers.

A call waits five seconds for its memory; `tool.deadline.seconds` changes that.
"""

from __future__ import annotations

try:
    from spade_llm.tools import LLMTool
except ImportError as error:
    raise ImportError("`memory_spade.stock` needs spade_llm: pip install 'memory-core[spade-llm]'") from error

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Protocol

from memory_core.adapting import Deadline, limits, reason_for_log
from memory_spade.memory.checks import CATEGORIES
from memory_spade.memory.threads import in_thread

logger = logging.getLogger(__name__)

NO_CONVERSATION: Final = "unknown_conversation"


class Entry(Protocol):
    """The fields of a `MemoryEntry` that the tools show."""

    category: str
    content: str
    context: str | None


class BaseMemory(Protocol):
    """The methods of an `AgentBaseMemory` that the tools call."""

    def store_memory(self, category: str, content: str, context: str | None, confidence: float) -> Awaitable[str]:
        """Store a memory and return its id."""
        ...

    def search_memories(self, query: str, limit: int) -> Awaitable[Sequence[Entry]]:
        """Return the memories that match a query."""
        ...

    def get_memories_by_category(self, category: str, limit: int) -> Awaitable[Sequence[Entry]]:
        """Return the memories of a category."""
        ...


class NotesMemory(Protocol):
    """The method of an `AgentInteractionMemory` that the tool calls."""

    def add_information(self, conversation_id: str, information: str) -> str:
        """Add a note and return a confirmation."""
        ...


class AgentBaseMemoryStoreTool(LLMTool):
    """`store_memory`."""

    def __init__(self, base_memory: BaseMemory) -> None:
        self.base_memory = base_memory
        self.deadline = Deadline(limits.CALL_SECONDS, "an agent")
        properties = {
            "category": _category("Type of memory"),
            "content": {"type": "string", "description": "The information to remember, specific and concise"},
            "context": {"type": "string", "description": "When or why this is important"},
            "confidence": {
                "type": "number",
                "minimum": 0.0,
                "maximum": 1.0,
                "default": 1.0,
                "description": "Confidence in this memory, from 0.0 to 1.0",
            },
        }
        description = (
            "Store important information in my long-term memory. Use this tool to remember facts, patterns, "
            "preferences and capabilities across conversations."
        )
        schema = _schema(properties, "category", "content")
        super().__init__("store_memory", description, schema, self._store_memory)

    async def _store_memory(
        self, category: str, content: str, context: str | None = None, confidence: float = 1.0
    ) -> str:
        async def store() -> str:
            await self.base_memory.store_memory(
                category=category, content=content, context=context, confidence=confidence
            )
            return f"Stored {category} memory: {content}"

        return await _reported("store memory", store, self.deadline.write)


class AgentBaseMemorySearchTool(LLMTool):
    """`search_memories`."""

    def __init__(self, base_memory: BaseMemory) -> None:
        self.base_memory = base_memory
        self.deadline = Deadline(limits.CALL_SECONDS, "an agent")
        properties = {
            "query": {"type": "string", "description": "What to look for"},
            "limit": _limit(20, 10),
        }
        description = (
            "Search my long-term memory for information that is relevant to the conversation. Use this tool to recall "
            "facts, patterns, preferences and capabilities."
        )
        super().__init__("search_memories", description, _schema(properties, "query"), self._search_memories)

    async def _search_memories(self, query: str, limit: int = 10) -> str:
        async def search() -> str:
            memories = await self.base_memory.search_memories(query, limit)
            if not memories:
                return f"No memories found for query: {query}"
            lines = [_line(each, f"[{each.category}] {each.content}") for each in memories]
            return "\n".join([f"Found {len(memories)} memories for '{query}':", *lines])

        return await _reported("search memories", search, self.deadline.read)


class AgentBaseMemoryListTool(LLMTool):
    """`list_memories`."""

    def __init__(self, base_memory: BaseMemory) -> None:
        self.base_memory = base_memory
        self.deadline = Deadline(limits.CALL_SECONDS, "an agent")
        properties = {"category": _category("Category of memories to list"), "limit": _limit(50, 20)}
        description = (
            "List my memories organized by category. Use this tool to browse the facts, patterns, preferences and "
            "capabilities that I have stored."
        )
        super().__init__("list_memories", description, _schema(properties, "category"), self._list_memories)

    async def _list_memories(self, category: str, limit: int = 20) -> str:
        async def list_them() -> str:
            memories = await self.base_memory.get_memories_by_category(category, limit)
            if not memories:
                return f"No {category} memories found."
            lines = [_line(each, each.content) for each in memories]
            return "\n".join([f"My {category} memories ({len(memories)} total):", *lines])

        return await _reported("list memories", list_them, self.deadline.read)


class AgentMemoryTool(LLMTool):
    """`remember_interaction_info`. The conversation belongs to the running task, so conversations may interleave."""

    def __init__(self, interaction_memory: NotesMemory) -> None:
        self.interaction_memory = interaction_memory
        self.deadline = Deadline(limits.CALL_SECONDS, "an agent")
        self._conversation = ContextVar("memory_spade_stock_conversation", default=NO_CONVERSATION)
        information = {"type": "string", "description": "Specific useful information about this interaction"}
        description = "Remember specific, useful information about this interaction with another agent."
        schema = _schema({"information": information}, "information")
        super().__init__("remember_interaction_info", description, schema, self._remember_information)

    def set_conversation_id(self, conversation_id: str) -> None:
        """Set the conversation of the running task."""
        self._conversation.set(conversation_id)

    async def _remember_information(self, information: str) -> str:
        what, add = "adding a note", self.interaction_memory.add_information
        work = partial(add, self._conversation.get(), information)
        return await self.deadline.write(what, lambda: in_thread(what, work))


def create_base_memory_tools(base_memory: BaseMemory) -> list[LLMTool]:
    """Create the three tools for long-term memories."""
    tools: list[LLMTool] = [
        AgentBaseMemoryStoreTool(base_memory),
        AgentBaseMemorySearchTool(base_memory),
        AgentBaseMemoryListTool(base_memory),
    ]
    logger.info("Created %d base memory tools", len(tools))
    return tools


async def _reported(
    what: str,
    run: Callable[[], Awaitable[str]],
    within: Callable[[str, Callable[[], Awaitable[str]]], Awaitable[str]],
) -> str:
    """The answer of a tool, or the reason why it has no answer, for the model."""
    try:
        return await within(f"the call to {what}", run)
    except Exception as error:  # noqa: BLE001  (a backend may raise anything, and the conversation goes on)
        logger.error("Failed to %s: %s", what, reason_for_log(error))  # noqa: TRY400  (a traceback may quote)
        return f"Failed to {what}: {error}"


def _line(memory: Entry, text: str) -> str:
    return f"- {text}\n  Context: {memory.context}" if memory.context else f"- {text}"


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _category(description: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(CATEGORIES), "description": description}


def _limit(most: int, default: int) -> dict[str, Any]:
    description = "Maximum number of memories to retrieve"
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default, "description": description}
