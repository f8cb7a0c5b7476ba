"""Deletion by conditions, which a person confirms: through the client where it can ask, else by the number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

from memory_core import BoundMemory, InvalidInputError, Where
from memory_core.adapting import every_record, scrubbed
from memory_mcp.signatures import Tool, with_parameters
from memory_mcp.values import Filter, ForgetAnswer

try:
    from mcp.server.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from pydantic import BaseModel, Field
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Selected = Callable[[str | None, Filter], Awaitable[tuple[BoundMemory, Where]]]
"""The memories of a call, from its collection and its filter."""


class Agreement(BaseModel):
    """What the user is asked."""

    delete: bool = Field(description="Delete them for good")


Answered = AcceptedElicitation[Agreement] | DeclinedElicitation | CancelledElicitation
"""What the user answers."""


def asking(tool: Tool, selected: Selected) -> Tool:
    """A tool that asks the user before it deletes; the answer is its argument `agreed`, which no client can pass."""

    async def ask(
        filter: Filter,  # noqa: A002  (the tool's)
        collection: str | None,
        context: Context[Any, Any],
    ) -> Agreement | Elicit[Agreement]:
        handle, where = await selected(collection, filter)
        count = len(await every_record(handle, where)) if where != Where() else 0
        if not count or not can_ask(context):
            return Agreement(delete=False)
        return Elicit(f"Delete {count} memories for good? They cannot be brought back.", Agreement)

    return with_parameters(tool, {"agreed": (Annotated[Answered, Resolve(ask)], None)})


async def forget(handle: BoundMemory, where: Where, *, expected: int | None, agreed: Answered | None) -> ForgetAnswer:
    """Delete all memories that satisfy the conditions, if the user agreed or their number is the expected one.

    Args:
        handle: The memories.
        where: At least one condition.
        expected: The number, from a client that cannot ask.
        agreed: The answer of the user of a client that can.

    Raises:
        InvalidInputError: There is no condition.
    """
    if where == Where():
        raise InvalidInputError("the filter is empty, and all memories would be deleted; give at least one condition")
    ids = [record.id for record in await every_record(handle, where)]
    is_agreed = isinstance(agreed, AcceptedElicitation) and agreed.data.delete
    if not ids or not (is_agreed or expected == len(ids)):
        return ForgetAnswer(matching=len(ids), deleted=0, ids=[])
    deleted = await handle.delete_where(replace(where, ids=ids))
    return ForgetAnswer(matching=len(ids), deleted=deleted, ids=ids, filesClean=await scrubbed(handle.memory))


def can_ask(context: Context[Any, Any]) -> bool:
    """Whether the client can ask its user."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None
