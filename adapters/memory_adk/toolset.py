"""The tools with which an agent searches, stores, corrects and forgets by itself.

```python
service = MemoryService("memory.db")
agent = LlmAgent(name="helper", model="gemini-flash-latest", tools=[MemoryToolset(service)])
```
"""

from __future__ import annotations

try:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset, ToolPredicate
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast

from memory_adk.convert import content_text, description
from memory_adk.recall import EVERYTHING, recall
from memory_adk.service import MAX_CHARS, MemoryService
from memory_core import (
    FORGET_MEMORY,
    UPDATE_MEMORY,
    Arguments,
    Draft,
    Json,
    MemoryCoreError,
    ScopeError,
    ToolResult,
    Where,
)
from memory_core import ToolContext as Caller

DEFAULT_RESULTS: Final = 5

Handler = Callable[[Caller, Mapping[str, object]], Awaitable[ToolResult]]


class MemoryToolset(BaseToolset):
    """`search_past_conversations`, `store_important_information`, `update_memory` and `forget_memory`.

    Whose memory a call reaches comes from ADK's context, never from the model. Every answer is a dict with `status`
    (`success` or `error`) and `message`.

    Args:
        service: The memory; by default the runner's. Give it for an agent that runs as an `AgentTool` or over A2A,
            where ADK puts an empty memory in the runner's place.
        tool_filter: Names of the tools to offer, or a predicate.
        tool_name_prefix: Put before every name, with an underscore.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        *,
        tool_filter: ToolPredicate | list[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self._tools = [
            MemoryTool(service, "search_past_conversations", _SEARCHES, _SEARCH_SCHEMA, _search),
            MemoryTool(service, "store_important_information", _STORES, _STORE_SCHEMA, _store),
            *(MemoryTool(service, t.name, t.description, t.parameters, t) for t in (UPDATE_MEMORY, FORGET_MEMORY)),
        ]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools, without those the filter leaves out."""
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]


class MemoryTool(BaseTool):
    """One tool on the memory of whoever the agent talks with."""

    def __init__(
        self,
        service: MemoryService | None,
        name: str,
        summary: str,
        parameters: Mapping[str, Json],
        handler: Handler,
    ) -> None:
        super().__init__(name=name, description=summary)
        self._service = service
        self._parameters = parameters
        self._handler = handler

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._parameters)
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Call the tool. Whatever is wrong is in the answer; nothing the model passes can end the run."""
        try:
            result = await self._handler(self._caller(tool_context), args)
        except MemoryCoreError as error:
            result = ToolResult("error", f"{self.name} failed: {error}")
        return {"status": "success" if result.status == "ok" else "error", "message": result.text, **result.data}

    def _caller(self, context: ToolContext) -> Caller:
        service = self._service or context.get_invocation_context().memory_service
        if not isinstance(service, MemoryService):
            raise ScopeError("this runner has no MemoryService; pass one to MemoryToolset(service) or to the Runner")
        handle = service.handle(context.session.app_name, context.user_id)
        return Caller(memory=handle, agent=context.agent_name, session=context.session.id, author=context.agent_name)


def texts_of(result: object) -> list[str]:
    """The memories in a tool's answer."""
    found = cast("dict[str, Any]", result).get("results") if isinstance(result, dict) else None
    return [str(item["text"]) for item in cast("Sequence[Mapping[str, object]]", found or [])]


async def _search(caller: Caller, args: Mapping[str, object]) -> ToolResult:
    given = Arguments(args)
    query, days = given.text("query"), given.number("time_window_days", above=0)
    entries = await recall(
        caller.memory,
        query,
        max_results=given.count("max_results", DEFAULT_RESULTS),
        max_chars=MAX_CHARS,
        where=EVERYTHING if days is None else _since(caller, days),
    )
    results: list[Json] = [_shown(entry) for entry in entries]
    found = f"Found {len(results)} memories" if results else "Found nothing"
    return ToolResult("ok", f"{found} for {query!r}.", {"results_count": len(results), "results": results})


async def _store(caller: Caller, args: Mapping[str, object]) -> ToolResult:
    given = Arguments(args)
    kind = given.optional_text("memory_type") or "important_fact"
    draft = Draft(
        given.text("information"),
        kind=kind,
        author=caller.author,
        agent=caller.agent,
        session=caller.session,
        data=description(given.object("metadata")),
    )
    record = await caller.memory.add(draft)
    return ToolResult("ok", f"Stored as {kind}.", {"id": record.id, "stored_text": record.text})


def _since(caller: Caller, days: float) -> Where:
    try:
        return Where(since=caller.memory.memory.clock() - timedelta(days=days))
    except OverflowError:
        return EVERYTHING


def _shown(entry: MemoryEntry) -> dict[str, Json]:
    return {
        "id": entry.id,
        "text": content_text(entry.content),
        "author": entry.author,
        "timestamp": entry.timestamp,
        "memory_type": entry.custom_metadata["kind"],
        "similarity": entry.custom_metadata.get("similarity"),
    }


_SEARCHES: Final = (
    "Search what was said in past conversations with this user, and what was stored about them. "
    "Use it when the answer may depend on something from before this conversation."
)
_SEARCH_SCHEMA: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "A question or some words"},
        "max_results": {"type": "integer", "description": "Most memories to return, 1 to 50 (default: 5)"},
        "time_window_days": {"type": "number", "description": "Only what is at most this many days old (optional)"},
    },
    "required": ["query"],
}
_STORES: Final = "Store something important about this user or their work for future conversations."
_STORE_SCHEMA: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {
        "information": {"type": "string", "description": "What to remember, as a complete sentence"},
        "memory_type": {
            "type": "string",
            "description": "What kind of memory it is, such as important_fact (default), preference or summary",
        },
        "metadata": {"type": "object", "description": "Anything else worth keeping with it (optional)"},
    },
    "required": ["information"],
}
