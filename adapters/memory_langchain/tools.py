"""The agent tools of the core as LangChain tools."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException

from memory_core import Json, MemoryCoreError, StorageError, run_sync
from memory_core.adapting import (
    EDITING_TOOLS,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    Deadline,
    Tool,
    ToolContext,
    limits,
    reason_for_log,
)
from memory_langchain.scope import Given, ScopeResolver

logger = logging.getLogger(__name__)

DEFAULT_TOOLS: Final = (STORE_MEMORY, SEARCH_MEMORIES, *EDITING_TOOLS)
"""Default tools of an agent."""


def memory_tools(
    memory: Given,
    *,
    tools: Sequence[Tool] = DEFAULT_TOOLS,
    timeout: float = limits.EXPLICIT_SECONDS,
) -> list[StructuredTool]:
    """Create tools with which a model stores, searches, corrects, forgets and pins memories.

    The owner of a call comes from the run's context and `config`, as everywhere in this package, and never from the
    model: the schemas have no such field, and extra arguments are ignored. A tool returns text for the model and the
    same content as data in the message's `artifact`; an invalid argument results in a message with status `"error"`.

    Args:
        memory: A handle or a memory; a call may name the user. The tools read the spaces of a handle, say which one a
            memory is from, and offer the writable ones by their labels. It may also be a function from user and context
            to a handle (see `memory_langchain.scope`); `MemoryMiddleware` then offers each user their own.
        tools: The tools to create.
        timeout: The number of seconds that a call may take; then the model is told so, and what was to be written still
            may be.

    Raises:
        ScopeError: During a call, if no user is named.
    """
    scopes = ScopeResolver(memory)
    offered = tools if scopes.handle is None else [tool.offered_for(scopes.handle) for tool in tools]
    deadline = Deadline(timeout, "an agent")
    return [_structured(tool, scopes, deadline) for tool in offered]


def _structured(tool: Tool, scopes: ScopeResolver, deadline: Deadline) -> StructuredTool:
    async def answered(config: RunnableConfig, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Json]]:
        try:
            scope = await scopes.resolved(deadline, config)
            context = ToolContext(memory=scope.reach, agent=scope.agent, session=scope.session, author=scope.agent)
            result = await deadline.write(tool.name, lambda: tool(context, arguments))
        except StorageError as error:
            raise ToolException(f"{tool.name} failed: {error}") from error
        except MemoryCoreError:  # of the application, such as an owner that is not named
            raise
        except Exception as error:
            logger.error("%s failed: %s", tool.name, reason_for_log(error))  # noqa: TRY400  (a traceback quotes)
            raise ToolException(f"{tool.name} failed: the memory had an internal error") from error
        if result.status == "error":
            raise ToolException(result.text)  # LangChain reports it to the model
        return result.text, result.data

    # LangChain evaluates the annotations and injects `config`; the model's arguments arrive as keywords.
    def call(config: RunnableConfig, **arguments: Any) -> tuple[str, Mapping[str, Json]]:
        return run_sync(answered, config, arguments)

    async def acall(config: RunnableConfig, **arguments: Any) -> tuple[str, Mapping[str, Json]]:
        return await answered(config, arguments)

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=_schema(tool.parameters),
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with null for an optional argument that is not given, as in schemas that LangChain derives from
    functions. In OpenAI's strict mode a model gives every argument, and would otherwise have to pick a category."""
    required = parameters.get("required", ())
    properties = {
        name: one if name in required else _or_null(one) for name, one in parameters.get("properties", {}).items()
    }
    return {**parameters, "properties": properties}


def _or_null(value: Mapping[str, Any]) -> dict[str, Any]:
    meaning = {name: value[name] for name in ("description",) if name in value}
    kinds = {name: one for name, one in value.items() if name not in meaning}
    return {"anyOf": [kinds, {"type": "null"}], **meaning}
