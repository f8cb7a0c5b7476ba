"""The core's tools as ADK calls them, and two it does not have: searching with a time window, storing with a type."""

from __future__ import annotations

try:
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.load_memory_tool import LoadMemoryResponse
    from google.adk.tools.tool_context import ToolContext as AdkToolContext
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast

from memory_adk.convert import content_text, description
from memory_adk.recall import EVERYTHING, find
from memory_adk.service import MAX_CHARS, MemoryService
from memory_core import Draft, Json, MemoryCoreError, ScopeError, Where
from memory_core.adapting import Arguments, Tool, ToolContext, ToolResult

DEFAULT_RESULTS: Final = 5


class MemoryTool(BaseTool):
    """One tool on the memory of whoever the agent talks with."""

    def __init__(self, service: MemoryService | None, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._service = service
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._tool.parameters)
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: AdkToolContext) -> dict[str, Any]:
        """Call the tool. Whatever is wrong is in the answer; nothing the model passes can end the run."""
        try:
            caller = self._caller(tool_context)
        except MemoryCoreError as error:
            return {"status": "error", "message": f"{self.name} failed: {error}"}
        result = await self._tool(caller, args)
        return {"status": "success" if result.status == "ok" else "error", "message": result.text, **result.data}

    def _caller(self, context: AdkToolContext) -> ToolContext:
        service = self._service or context.get_invocation_context().memory_service
        if not isinstance(service, MemoryService):
            raise ScopeError("this runner has no MemoryService; pass one to MemoryToolset(service) or to the Runner")
        handle = service.handle(context.session.app_name, context.user_id)
        return ToolContext(
            memory=handle, agent=context.agent_name, session=context.session.id, author=context.agent_name
        )


def recalled_by(tool: BaseTool, result: object) -> list[str]:
    """The memories in the answer of a tool: of ours or of ADK's `load_memory`; any other tool's results are none."""
    if isinstance(result, LoadMemoryResponse):
        return [content_text(entry.content) for entry in result.memories]
    if not (isinstance(tool, MemoryTool) and isinstance(result, dict)):
        return []
    found = cast("dict[str, Any]", result).get("results", ())
    return [str(item["text"]) for item in cast("Sequence[Mapping[str, object]]", found)]


async def _search(context: ToolContext, given: Arguments) -> ToolResult:
    query, days = given.text("query"), given.number("time_window_days", above=0)
    entries = await find(
        context.memory,
        query,
        max_results=given.count("max_results", DEFAULT_RESULTS),
        max_chars=MAX_CHARS,
        where=EVERYTHING if days is None else _since(context, days),
    )
    results: list[Json] = [_shown(entry) for entry in entries]
    found = f"Found {len(results)} memories" if results else "Found nothing"
    return ToolResult("ok", f"{found} for {query!r}.", {"results_count": len(results), "results": results})


async def _store(context: ToolContext, given: Arguments) -> ToolResult:
    kind = given.optional_text("memory_type") or "important_fact"
    draft = Draft(
        given.text("information"),
        kind=kind,
        author=context.author,
        agent=context.agent,
        session=context.session,
        data=description(given.object("metadata")),
    )
    record = await context.memory.add(draft)
    return ToolResult("ok", f"Stored as {kind}.", {"id": record.id, "stored_text": record.text})


def _since(context: ToolContext, days: float) -> Where:
    try:
        return Where(since=context.memory.memory.clock() - timedelta(days=days))
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


SEARCH_PAST_CONVERSATIONS: Final = Tool(
    "search_past_conversations",
    "Search what was said in past conversations with this user, and what was stored about them. "
    "Use it when the answer may depend on something from before this conversation.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "A question or some words"},
            "max_results": {"type": "integer", "description": "Most memories to return, 1 to 50 (default: 5)"},
            "time_window_days": {"type": "number", "description": "Only what is at most this many days old (optional)"},
        },
        "required": ["query"],
    },
    _search,
)
STORE_IMPORTANT_INFORMATION: Final = Tool(
    "store_important_information",
    "Store something important about this user or their work for future conversations.",
    {
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
    },
    _store,
)
