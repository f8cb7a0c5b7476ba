"""Which tool of which framework does which operation of a handle: `python -m tests.repository.tools` draws the table.

The names are stated here, once. Arguments come from the schemas that models see; a test insists that every tool of
every framework stands in the table.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from memory_adk.tools import STORE_IMPORTANT_INFORMATION, search_past_conversations
from memory_core import BoundMemory, RecallOptions, ScopeError
from memory_core.adapting import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    MEMORY_PIN,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    Deadline,
    Tool,
)
from memory_mcp.tools import MemoryTools, chosen_tools
from memory_xaibo.protocols import MemoryProtocol


@dataclass(frozen=True)
class Row:
    """An operation of `BoundMemory` and the tools that call it, by their names."""

    operation: str
    core: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    xaibo: tuple[str, ...] = ()
    radbot: tuple[str, ...] = ()


ROWS: Final = (
    Row("recall", mcp=("memory_recall",)),
    Row("remember", mcp=("memory_remember",)),
    Row(
        "add",
        ("store_memory", "remember_interaction_info"),
        ("memory_store", "memory_store_many"),
        ("store_memory",),
        ("store_important_information",),
    ),
    Row("search", ("search_memories",), ("memory_search",), ("search_memory",), ("search_past_conversations",)),
    Row("list", ("list_memories",), ("memory_list",), ("list_memories",)),
    Row("get", (), ("memory_get",), ("get_memory",)),
    Row("history", mcp=("memory_history",)),
    Row("stats", mcp=("memory_statistics",)),
    Row("update", ("update_memory", "memory_pin"), ("memory_update", "memory_pin"), ("update_memory",)),
    Row("supersede", mcp=("memory_supersede",)),
    Row("delete", ("forget_memory",), ("memory_delete",), ("delete_memory",)),
    Row("delete_exactly", mcp=("memory_forget",)),
)
SURFACES: Final[Mapping[str, str]] = {
    "core": "LangChain, ADK, SPADE",
    "mcp": "MCP",
    "xaibo": "Xaibo",
    "radbot": "RadBot",
}


async def _no_owner() -> BoundMemory:
    raise ScopeError("there is no owner")


def _of_schema(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(name if name in required else f"*{name}*" for name in schema.get("properties", {}))


def _of_tools(tools: Iterable[Tool]) -> dict[str, str]:
    return {tool.name: _of_schema(tool.parameters) for tool in tools}


def _of_protocol(protocol: type) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if not name.startswith("_"):
            given = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
            made[name] = ", ".join(each.name if each.default is each.empty else f"*{each.name}*" for each in given)
    return made


def surfaces() -> dict[str, dict[str, str]]:
    """The tools of each framework by their names, with their arguments; optional ones in italics."""
    mcp = MemoryTools(_no_owner, "*", Deadline(60, "nobody")).all(chosen_tools("all"))
    core = (
        *(STORE_MEMORY, SEARCH_MEMORIES, LIST_MEMORIES, UPDATE_MEMORY),
        *(FORGET_MEMORY, MEMORY_PIN, REMEMBER_INTERACTION_INFO),
    )
    return {
        "core": _of_tools(core),
        "mcp": {tool.name: _of_schema(tool.parameters) for tool in mcp},
        "xaibo": _of_protocol(MemoryProtocol),
        "radbot": _of_tools([STORE_IMPORTANT_INFORMATION, search_past_conversations(RecallOptions())]),
    }


def table() -> str:
    """The table as Markdown."""
    known = surfaces()
    lines = [f"| operation | {' | '.join(SURFACES.values())} |", "|---" * (1 + len(SURFACES)) + "|"]
    for row in ROWS:
        cells = [
            "<br>".join(f"`{name}`: {known[surface][name]}".removesuffix(": ") for name in getattr(row, surface))
            for surface in SURFACES
        ]
        lines.append(f"| `{row.operation}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201
