"""The core's tools for ADK, and two additional ones: search with a time window, and storing with a type."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext as AdkToolContext
from google.genai import types

from memory_adk.convert import description
from memory_adk.recall import find
from memory_adk.service import MemoryService
from memory_adk.shown import conversation_of, in_conversation
from memory_adk.zone import zone_of
from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    Json,
    MemoryCoreError,
    RecallOptions,
    ScopeError,
    Where,
)
from memory_core.adapting import (
    AgentMemory,
    Arguments,
    Deadline,
    Tool,
    ToolContext,
    ToolResult,
    limits,
    named,
    operations,
    quoted,
    reason_for_log,
    store_where_chosen,
)

logger = logging.getLogger(__name__)

DEFAULT_RESULTS: Final = 5

_SEARCHES: Final = (
    "Search what was said in past conversations with this user, and what was stored about them. "
    "Use it when the answer may depend on something from before this conversation."
)
_SEARCH_ARGUMENTS: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "A question or some words"},
        "max_results": {"type": "integer", "description": "Most memories to return, 1 to 50 (default: 5)"},
        "time_window_days": {"type": "number", "description": "Only what is at most this many days old (optional)"},
    },
    "required": ["query"],
}


class MemoryTool(BaseTool):
    """A tool on the memory of the current user."""

    def __init__(self, service: MemoryService | None, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._service = service
        self._tool = tool
        self._briefly = Deadline(limits.RECALL_SECONDS, "an agent")

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._tool.parameters)
        )

    async def process_llm_request(self, *, tool_context: AdkToolContext, llm_request: LlmRequest) -> None:
        """Add the tool to a request, with the choice between the spaces that this user may write to."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        if not self._tool.stores:
            return
        try:
            memory = await _reached(self._serving(tool_context), tool_context, self._briefly)
            offered = self._tool.offered_for(memory)
        except Exception as error:  # noqa: BLE001  (the application's function of grants may raise anything)
            logger.warning("%s is offered without shared spaces: %s", self.name, reason_for_log(error))
            return
        for tool in llm_request.config.tools or []:
            for declaration in (isinstance(tool, types.Tool) and tool.function_declarations) or []:
                if declaration.name == self.name:
                    declaration.parameters_json_schema = dict(offered.parameters)

    async def run_async(self, *, args: dict[str, Any], tool_context: AdkToolContext) -> dict[str, Any]:
        """Call the tool. Errors are returned as answers; no argument of the model can end the run."""
        try:
            service, context = self._serving(tool_context), tool_context.get_invocation_context()
            in_conversation.set(conversation_of(context, service.reader(context)))  # each call has its own context
            caller = await self._caller(service, tool_context)
            result = await service.access.run(lambda: self._tool.handler(caller, Arguments(args)))
        except MemoryCoreError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001  (ADK would end the run)
            logger.error("%s failed: %s", self.name, reason_for_log(error))  # noqa: TRY400  (a traceback quotes)
            return self._failed("the memory had an internal error; its operator finds it in the log")
        return {"status": "success" if result.status == "ok" else "error", "message": result.text, **result.data}

    def _failed(self, reason: str) -> dict[str, Any]:
        return {"status": "error", "message": f"{self.name} failed: {reason}"}

    def _serving(self, context: AdkToolContext) -> MemoryService:
        service = self._service or context.get_invocation_context().memory_service
        if not isinstance(service, MemoryService):
            raise ScopeError("this runner has no MemoryService; pass one to MemoryToolset(service) or to the Runner")
        return service

    async def _caller(self, service: MemoryService, context: AdkToolContext) -> ToolContext:
        memory = await _reached(service, context, service.deadline)
        return ToolContext(
            memory=memory.bind(zone=zone_of(context.state.to_dict())),
            agent=context.agent_name,
            session=context.session.id,
            author=context.agent_name,
            clock=memory.memory.clock,
        )


async def _reached(service: MemoryService, context: AdkToolContext, deadline: Deadline) -> BoundMemory:
    return await service.reached(context.session.app_name, context.user_id, deadline)


def search_past_conversations(options: RecallOptions) -> Tool:
    """Create the search tool.

    Args:
        options: Recall options; `limit` is the number of results if the model gives none.
    """

    async def search(context: ToolContext, given: Arguments) -> ToolResult:
        query, days = given.text("query"), given.number("time_window_days", above=0)
        limit = given.count("max_results", DEFAULT_RESULTS if options.limit is None else options.limit)
        where = options.where if days is None else _since(context, options.where, days)
        wanted = replace(options, limit=limit, where=where)
        found_hits = await find(context.memory, query, wanted, in_conversation.get())
        results: list[Json] = [_shown(context.memory, hit, text) for hit, text in found_hits]
        found = f"Found {len(results)} memories" if results else "Found nothing"
        return ToolResult("ok", f"{found} for {quoted(query)}.", {"results_count": len(results), "results": results})

    return Tool("search_past_conversations", _SEARCHES, _SEARCH_ARGUMENTS, search, BoundMemory.recall)


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
    stored, where = await store_where_chosen(context, given, draft)
    record = stored.record
    done = f"Known already{where} (ID {named(record.id)})" if stored.is_known else f"Stored as {named(kind)}{where}"
    return ToolResult("ok", f"{done}.", {"id": record.id, "stored_text": record.text})


def _since(context: ToolContext, where: Where, days: float) -> Where:
    try:
        since = context.clock() - timedelta(days=days)
    except OverflowError:
        return where
    return replace(where, since=since if where.since is None else max(since, where.since))


def _shown(memory: AgentMemory, hit: Hit, text: str) -> dict[str, Json]:
    record, similarity = hit.record, hit.similarity
    label = memory.label_of(record)
    return {
        **({} if label is None else {"space": label}),
        "id": record.id,
        "text": text,
        "author": record.author,
        "timestamp": record.occurred_at.isoformat(timespec="seconds"),
        "memory_type": record.kind,
        "similarity": None if similarity is None else round(similarity, 2),
    }


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
    operations.store,
    stores=True,
)
