"""The two tool functions of RadBot's document, for any service with its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from google.adk.tools.tool_context import ToolContext

from memory_core.adapting import Arguments, named, operations


def search_past_conversations(
    query: str,
    max_results: int = 5,
    time_window_days: int | None = None,
    tool_context: ToolContext | None = None,
) -> dict[str, Any]:
    """Search past conversations for relevant information.

    Args:
        query: A question or some words.
        max_results: Most memories to return, 1 to 50.
        time_window_days: Only what is at most this many days old.
        tool_context: From ADK; it names the service and the user. The call blocks until the service has answered.

    Returns:
        `success`, `query`, `results_count` and `results`, each with `text`, `timestamp`, `memory_type` and
        `similarity`; or `error`.
    """

    def search(service: Any, user_id: str) -> dict[str, Any]:
        given = Arguments({"query": query, "max_results": max_results, "time_window_days": time_window_days})
        days = given.number("time_window_days", above=0)
        since = None if days is None else datetime.now(UTC) - timedelta(days=days)
        found = service.search_memories(
            given.text("query"), user_id=user_id, limit=given.count("max_results", 5), from_time=since
        )
        results = [_result(memory) for memory in found]
        return {"success": True, "query": query, "results_count": len(results), "results": results}

    return _answered(tool_context, search, "Error searching memories")


def store_important_information(
    information: str,
    memory_type: str = "important_fact",
    metadata: dict[str, Any] | None = None,
    tool_context: ToolContext | None = None,
) -> dict[str, Any]:
    """Store important information in memory for future reference.

    Args:
        information: The words to remember, as a complete sentence.
        memory_type: The kind of memory, such as important_fact, preference or summary.
        metadata: Anything else worth keeping with it.
        tool_context: From ADK; it names the service and the user. The call blocks until the service has answered.

    Returns:
        `success`, `message` and `stored_text`; or `error`.
    """

    def store(service: Any, user_id: str) -> dict[str, Any]:
        given = {"text": information, "user_id": user_id, "memory_type": memory_type, "metadata": metadata or {}}
        stored = getattr(service, "store_once", service.add_memory)(
            **given
        )  # any other service only has the document's
        message = f"Successfully stored information as {memory_type}"
        if isinstance(stored, operations.Stored) and stored.is_known:
            message = f"Known already (ID {named(stored.record.id)})"
        return {"success": True, "message": message, "stored_text": information}

    return _answered(tool_context, store, "Error storing information")


def _answered(context: Any, work: Callable[[Any, str], dict[str, Any]], failure: str) -> dict[str, Any]:
    """The result of `work` with the service and the user of a tool's context; `context` may be any such object."""
    service = getattr(context, "memory_service", None)
    if service is None and (get := getattr(context, "get_invocation_context", None)) is not None:
        service = get().memory_service
    if service is None:
        return {"error": "Memory service not available"}
    user_id = getattr(context, "user_id", None) or getattr(getattr(context, "session", None), "user_id", None)
    if not user_id:
        return {"error": "User ID not available in tool context"}
    try:
        return work(service, user_id)
    except Exception as error:  # noqa: BLE001  (the document returns every error)
        return {"error": f"{failure}: {error}"}


def _result(memory: Any) -> dict[str, Any]:
    timestamp = getattr(memory, "timestamp", None)
    return {
        "text": memory.text,
        "timestamp": None if timestamp is None else timestamp.isoformat(),
        "memory_type": getattr(memory, "memory_type", None),
        "similarity": getattr(memory, "similarity", None),
    }


OPERATIONS: Final[Mapping[str, operations.Operation]] = {
    search_past_conversations.__name__: operations.search,
    store_important_information.__name__: operations.store,
}
"""The operation of each of the functions, with a service of this package."""
