"""The agent tools of the core as LangChain tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from memory_core import BoundMemory, Json, Memory, run_sync
from memory_core.adapting import (
    FORGET_MEMORY,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    Tool,
    ToolContext,
    ToolResult,
)
from memory_langchain.scope import ScopeResolver

try:
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import StructuredTool, ToolException
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

DEFAULT_TOOLS: Final = (STORE_MEMORY, SEARCH_MEMORIES, UPDATE_MEMORY, FORGET_MEMORY)
"""What an agent gets unless it asks for others."""


def memory_tools(
    memory: BoundMemory | Memory,
    *,
    tools: Sequence[Tool] = DEFAULT_TOOLS,
    user_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
) -> list[StructuredTool]:
    """Tools with which a model stores, searches, corrects and forgets memories.

    Whose memory a call reaches comes from the run's context and `config`, as everywhere in this package, and never
    from what the model writes: the schemas have no such field, and extra arguments are ignored. A tool answers with a
    text for the model and the same as data in the message's `artifact`; an argument it cannot use is answered with
    a message of status `"error"`.

    Args:
        memory: A handle, whose user a call may name, or a memory.
        tools: Which ones.
        user_id: The user, unless a call names one.
        session_id: The conversation, unless a call names one.
        agent_id: The agent that stores something, unless a call names one.

    Raises:
        ScopeError: A default is empty or contradicts the handle; at each call, if no user is named.
    """
    scopes = ScopeResolver(memory, user_id, session_id, agent_id)
    return [_structured(tool, scopes) for tool in tools]


def _structured(tool: Tool, scopes: ScopeResolver) -> StructuredTool:
    # LangChain evaluates the annotations, finds `config` and fills it in; what the model wrote arrives as keywords.
    def call(config: RunnableConfig, **arguments: Any) -> tuple[str, Mapping[str, Json]]:
        return _answer(run_sync(tool, _context(scopes, config), arguments))

    async def acall(config: RunnableConfig, **arguments: Any) -> tuple[str, Mapping[str, Json]]:
        return _answer(await tool(_context(scopes, config), arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _context(scopes: ScopeResolver, config: RunnableConfig) -> ToolContext:
    scope = scopes.resolve(config)
    return ToolContext(memory=scope.memory, agent=scope.agent, session=scope.session, author=scope.agent)


def _answer(result: ToolResult) -> tuple[str, Mapping[str, Json]]:
    if result.status == "error":
        raise ToolException(result.text)  # LangChain's way to tell the model
    return result.text, result.data
